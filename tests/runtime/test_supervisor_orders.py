"""What the supervisor does about each order, and what the core and people are told of it."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from queue import SimpleQueue
from typing import Any, cast

import pytest

from edgebox.domain.errors import ModelError
from edgebox.domain.loss_cause import LossCause
from edgebox.domain.model_family import ExecutorId
from edgebox.inference.executor import Executor
from edgebox.inference.null_executor import NullExecutor
from edgebox.runtime.callbacks import Callbacks
from edgebox.runtime.loading import Loader, Loads
from edgebox.runtime.supervisor import Opener, Reopened, Supervisor
from edgebox.scheduling.actions import Abandon, ExitProcess, Open
from edgebox.scheduling.events import ExecutorStarted, MemoryLimited, OpenFailed
from tests.scheduling.scene import CPU, MEDIAN_MS, name, profile

PROFILES = tuple(profile(px) for px in MEDIAN_MS)
LIMITED = MemoryLimited(CPU, 30, (), ())
TOOK_NS = 7


class Counted(NullExecutor):
    """Counts how often it was left behind."""

    def __init__(self) -> None:
        super().__init__(CPU)
        self.abandoned = 0

    def abandon(self) -> None:
        self.abandoned += 1
        super().abandon()


@dataclass
class Supervised:
    """A supervisor of one executor, and all that it says; the loop is the test."""

    opener: Opener | None = None
    said: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.calls: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.now_ns = 0
        self.old = Counted()
        self.executors: dict[ExecutorId, Executor] = {CPU: self.old}
        self.supervisor = Supervisor(
            self.executors,
            cast(Loads, self),
            self.calls.put,
            opener=self.opener,
            feed=self.said.append,
            on_abandon=lambda executor: self.said.append(("left behind", executor)),
            callbacks=Callbacks(
                on_advice=self.said.append,
                on_plan=lambda plan, took_ns: None,
                on_give_up=lambda: self.said.append("given up"),
                on_not_opened=lambda executor: self.said.append(("not opened", executor)),
                notify=lambda level, text: self.said.append((level, text)),
            ),
            clock_ns=self.clock_ns,
        )

    def clock_ns(self) -> int:
        """Each look takes a while."""
        self.now_ns += TOOK_NS
        return self.now_ns

    def use(self, executor: ExecutorId, loader: Loader) -> None:
        """Stand for `Loads`."""
        self.said.append(("loads with", executor, loader))

    def open(self) -> None:
        """Have it opened, and take in on the loop what came of that."""
        self.supervisor.carry_out(Open(CPU))
        self.calls.get(timeout=60)()


@pytest.mark.parametrize(
    ("order", "text"),
    [
        (
            Abandon(CPU, LossCause.HUNG, name(416), 1_500_000_000),
            f"a batch of {name(416)} did not end within 1.5 s",
        ),
        (
            Abandon(CPU, LossCause.HUNG, None, 0),
            "an operation other than a batch did not return",
        ),
        (
            Abandon(CPU, LossCause.FAILING, name(416), 0),
            f"3 batches in a row failed, the last of {name(416)} (out of memory)",
        ),
        (
            Abandon(CPU, LossCause.REFUSING, name(416), 0),
            f"its server refused 5 batches in a row, the last of {name(416)} (out of memory)",
        ),
        (
            Abandon(CPU, LossCause.LOADING, None, 60_000_000_000),
            "weights did not load within 60 s",
        ),
        (
            Abandon(CPU, LossCause.OPENING, None, 60_000_000_000, wedged=True),
            "opening it again did not end within 60 s; its device needs another process",
        ),
    ],
)
def test_a_lost_executor_is_left_behind_and_people_are_told_why(order: Abandon, text: str) -> None:
    calls = Supervised()
    calls.supervisor.failed(CPU, "out of memory")
    calls.supervisor.carry_out(order)
    wedged = "; it is wedged and is not opened again" if order.wedged else ""
    assert calls.said == [
        ("left behind", CPU),
        ("error", f"cpu/0 is lost: {text}{wedged}"),
        *([("not opened", CPU)] if order.wedged else []),
    ]
    assert calls.supervisor.last_losses == {CPU: text}
    assert calls.supervisor.last_errors[CPU].text == text
    # While it is being opened, its thread was left behind when it was lost.
    assert calls.old.abandoned == (order.cause is not LossCause.OPENING)


def test_one_that_is_opened_takes_the_place_before_the_core_orders_anything() -> None:
    new, loader = Counted(), cast(Loader, object())
    found = Reopened(new, PROFILES, LIMITED, loader, ("face does not run on it any more",))
    calls = Supervised(lambda _: replace(found, on_use=lambda: calls.said.append("use")))
    calls.open()
    assert calls.executors == {CPU: new}
    assert calls.said == [
        ("loads with", CPU, loader),
        "use",
        ("info", f"cpu/0 is back: {new.device}"),
        ("error", "face does not run on it any more"),
        ExecutorStarted(CPU, PROFILES, TOOK_NS, LIMITED),
    ]


def test_what_has_changed_while_it_was_opened_is_not_what_it_is_taken_into_use_with() -> None:
    found = Reopened(Counted(), PROFILES, present=lambda: PROFILES[:1])
    calls = Supervised(lambda _: found)
    calls.open()
    assert calls.said[-1] == ExecutorStarted(CPU, PROFILES[:1], TOOK_NS)


def test_one_without_a_limit_of_memory_loads_nothing() -> None:
    calls = Supervised(lambda _: Reopened(Counted(), PROFILES))
    calls.open()
    assert [type(said) for said in calls.said] == [tuple, ExecutorStarted]


@pytest.mark.parametrize(
    ("opener", "text"),
    [(None, "it cannot be opened again"), (ModelError("no"), "no"), (KeyError("x"), "'x'")],
)
def test_one_that_cannot_be_opened_is_told_to_everybody(
    opener: Exception | None, text: str
) -> None:
    def fails(executor: ExecutorId) -> Reopened:
        assert opener is not None
        raise opener

    calls = Supervised(None if opener is None else fails)
    calls.open()
    assert calls.said == [
        ("warning", f"cpu/0 cannot be opened again: {text}"),
        OpenFailed(CPU),
        ("not opened", CPU),
    ]
    assert calls.supervisor.last_errors[CPU].text == text
    assert calls.executors == {CPU: calls.old}


def test_the_end_of_all_hope_is_passed_on() -> None:
    calls = Supervised()
    calls.supervisor.carry_out(ExitProcess())
    assert calls.said == ["given up"]


def test_one_for_which_no_thread_can_be_started_counts_as_not_opened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    calls = Supervised(lambda _: pytest.fail("it is not opened"))
    monkeypatch.setattr(threading.Thread, "start", full)
    calls.supervisor.carry_out(Open(CPU))
    text = "no thread could be started (can't start new thread)"
    assert calls.said == [
        ("warning", f"cpu/0 cannot be opened again: {text}"),
        OpenFailed(CPU),
        ("not opened", CPU),
    ]


@pytest.mark.parametrize("where", ["loader", "on_use"])
def test_one_that_is_open_counts_as_not_opened_where_what_it_needs_has_no_thread(
    monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    def full(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    new, loader = Counted(), cast(Loader, object())
    found = Reopened(new, PROFILES, LIMITED, loader)
    if where == "loader":
        monkeypatch.setattr(Supervised, "use", full)
    else:
        monkeypatch.setattr(Supervised, "use", lambda *_: None)
        found = replace(found, on_use=full)
    calls = Supervised(lambda _: found)
    calls.open()
    text = "no thread could be started (can't start new thread)"
    assert calls.said == [
        ("warning", f"cpu/0 cannot be opened again: {text}"),
        OpenFailed(CPU),
        ("not opened", CPU),
    ]
    assert calls.executors == {CPU: calls.old}
    assert new.abandoned == 1
