"""Threads that hang: who takes their place, how often, and what comes back too late."""

import threading
from collections.abc import Callable

import pytest

from edgebox.runtime.decode_queue import Deferrable, decode_pool
from edgebox.runtime.threads import (
    LEFT_BEHIND_MAX,
    DaemonPool,
    HangLimit,
    InOrder,
    certain_end,
    within,
)
from tests.conftest import PATIENCE_S

LIMIT_NS = 1_000


class Hanging:
    """Work that says when it runs, and hangs until it is let go."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.go_on = threading.Event()
        self._thread: threading.Thread | None = None

    def __call__(self) -> None:
        self._thread = threading.current_thread()
        self.began.set()
        self.go_on.wait()

    def comes_back(self) -> None:
        """Let it go, and wait for its thread to end."""
        assert self._thread is not None
        self.go_on.set()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()


def picture(decode: Callable[[], object]) -> Deferrable:
    def run(_: Deferrable) -> None:
        decode()

    return Deferrable(run, lambda: False)


class Threads:
    """A pool on a clock that the test moves, and what it tells."""

    def __init__(self, threads: int, made: Callable[..., DaemonPool]) -> None:
        self.now_ns = 0
        self.notices: list[str] = []
        self.wedged: list[int] = []
        self.hung: list[Hanging] = []
        self.pool = made(
            threads, HangLimit(LIMIT_NS, self.notices.append, self._wedged), lambda: self.now_ns
        )

    def _wedged(self) -> None:
        self.wedged.append(self.now_ns)

    def hang(self, sender: str) -> None:
        """Have a thread hang, for longer than the pool waits."""
        self.hung.append(Hanging())
        self.pool.submit(picture(self.hung[-1]), sender)
        assert self.hung[-1].began.wait(PATIENCE_S)
        self.now_ns += LIMIT_NS

    def runs(self, sender: str) -> bool:
        """Say whether more work is run."""
        done = threading.Event()
        self.pool.submit(picture(done.set), sender)
        return done.wait(PATIENCE_S)

    def end(self) -> None:
        for each in self.hung:
            each.go_on.set()
        self.pool.stop()


def in_order(threads: int, hang_limit: HangLimit, clock_ns: Callable[[], int]) -> DaemonPool:
    return DaemonPool(threads, "test", InOrder(), hang_limit=hang_limit, clock_ns=clock_ns)


@pytest.mark.parametrize("made", [in_order, decode_pool])
def test_another_thread_takes_the_place_of_one_that_hangs(made: Callable[..., DaemonPool]) -> None:
    threads = Threads(1, made)
    threads.hang("gate")
    assert threads.runs("yard")
    (text,) = threads.notices
    assert "did not return" in text
    assert threads.runs("gate"), "its sender is served again, too"
    threads.end()


def test_a_thread_that_comes_back_after_all_ends_and_counts_no_more() -> None:
    threads = Threads(1, in_order)
    for _ in range(2 * LEFT_BEHIND_MAX):
        threads.hang("gate")
        assert threads.runs("yard")
        threads.hung[-1].comes_back()
    assert not threads.wedged
    threads.end()


@pytest.mark.parametrize("made", [in_order, decode_pool])
def test_what_would_end_a_thread_ends_only_its_work(made: Callable[..., DaemonPool]) -> None:
    threads = Threads(1, made)

    def die() -> None:
        raise SystemExit

    for _ in range(2 * LEFT_BEHIND_MAX):
        threads.pool.submit(die, "gate")
    assert threads.runs("gate")
    threads.now_ns += LIMIT_NS
    assert threads.pool.hanging() == (0, 1)
    assert not threads.notices
    threads.end()


def test_after_too_many_that_hang_no_more_are_started_and_somebody_is_told_once() -> None:
    threads = Threads(2, in_order)
    for _ in range(LEFT_BEHIND_MAX + 2):
        threads.hang("gate")
    assert len(threads.notices) == LEFT_BEHIND_MAX
    assert not threads.wedged
    for _ in range(3):
        threads.pool.submit(lambda: None)
    assert len(threads.wedged) == 1
    threads.end()


def test_what_hangs_is_charged_to_its_sender() -> None:
    """Its next pictures are those of somebody slow: a thread is left to the others."""
    threads = Threads(2, decode_pool)
    threads.hang("hostile")
    assert threads.runs("gate")
    again = [Hanging(), Hanging()]
    for each in again:
        threads.pool.submit(picture(each), "hostile")
    assert again[0].began.wait(PATIENCE_S)
    assert threads.runs("gate")
    assert not again[1].began.is_set()
    threads.hung += again
    threads.end()


def test_work_within_its_limit_gives_what_it_gives() -> None:
    assert within(PATIENCE_S, lambda: 7, "test", lambda late: None) == 7
    with pytest.raises(ZeroDivisionError):
        within(PATIENCE_S, lambda: 1 // 0, "test", lambda late: None)


def test_work_beyond_its_limit_is_not_waited_for_and_its_result_not_lost() -> None:
    go_on, late = threading.Event(), threading.Event()
    seen: list[str] = []

    def work() -> str:
        go_on.wait()
        return "an executor"

    def too_late(result: str) -> None:
        seen.append(result)
        late.set()

    with pytest.raises(TimeoutError):
        within(0, work, "test", too_late)
    assert not seen
    go_on.set()
    assert late.wait(PATIENCE_S)
    assert seen == ["an executor"]


def test_how_many_hang_is_told_before_anybody_submits_more() -> None:
    threads = Threads(2, decode_pool)
    assert threads.pool.hanging() == (0, 2)
    threads.hang("gate")
    assert threads.pool.hanging() == (1, 1)
    assert threads.runs("yard")
    assert threads.pool.hanging() == (1, 2)
    threads.hung[0].comes_back()
    assert threads.pool.hanging() == (0, 2)


def test_an_end_does_not_call_a_thread_hung_that_only_works(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    left: list[int] = []
    monkeypatch.setattr("edgebox.runtime.threads.hanging", lambda: ["edgebox-cpu/0"])
    monkeypatch.setattr("edgebox.runtime.threads.leave", left.append)
    with certain_end():
        pass
    assert left == [0]
    assert caplog.messages == ["ended without waiting for the work of edgebox-cpu/0"]
