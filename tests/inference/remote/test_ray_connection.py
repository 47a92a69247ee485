"""Channels to Ray clusters: what waits for a process that starts, and what does not."""

import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from edgebox.domain.errors import ModelError
from edgebox.inference.remote import ray_connection
from edgebox.inference.remote.ray_connection import RayChannel, open_channel
from tests.conftest import PATIENCE_S

SLOW = "slow"


class Process:
    """A process that starts when it may, without Ray."""

    started: list["Process"]
    waits: threading.Event
    goes_on: threading.Event
    fails = False
    is_alive = True

    def __init__(self, address: str) -> None:
        self.started.append(self)
        self.channels = 0
        if address == SLOW:
            self.waits.set()
            self.goes_on.wait()
        if self.fails:
            raise ModelError("no")

    def channel(self) -> RayChannel:
        ours, theirs = socket.socketpair()
        theirs.close()
        self.channels += 1
        return RayChannel(self, ours)  # type: ignore[arg-type]

    def stop(self) -> None:
        self.is_alive = False


@pytest.fixture(autouse=True)
def process(monkeypatch: pytest.MonkeyPatch) -> type[Process]:
    monkeypatch.setattr(ray_connection, "find_spec", lambda name: name)
    monkeypatch.setattr(ray_connection, "_RayProcess", Process)
    monkeypatch.setattr(ray_connection, "_clusters", {})
    monkeypatch.setattr(Process, "started", [], raising=False)
    monkeypatch.setattr(Process, "waits", threading.Event(), raising=False)
    monkeypatch.setattr(Process, "goes_on", threading.Event(), raising=False)
    return Process


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    pool = ThreadPoolExecutor()
    yield pool
    Process.goes_on.set()
    pool.shutdown()


def in_time(threads: ThreadPoolExecutor, call: Callable[[], object]) -> None:
    threads.submit(call).result(PATIENCE_S)


def test_nobody_waits_for_a_cluster_that_starts_but_those_who_want_it(
    threads: ThreadPoolExecutor,
) -> None:
    other = open_channel("other")
    slow = [threads.submit(open_channel, SLOW) for _ in range(2)]
    assert Process.waits.wait(PATIENCE_S)
    in_time(threads, other.close)
    in_time(threads, lambda: open_channel("other").close())
    assert not any(each.done() for each in slow)
    Process.goes_on.set()
    for each in slow:
        each.result(PATIENCE_S)
    # `other` twice, because its first process ended with its only channel; `slow` once.
    assert len(Process.started) == 3
    assert Process.started[1].channels == 2


def test_a_process_ends_with_its_last_channel() -> None:
    first, second = open_channel("any"), open_channel("any")
    (process,) = Process.started
    first.close()
    first.close()
    assert process.is_alive
    second.close()
    assert not process.is_alive


def test_a_cluster_that_refuses_is_not_asked_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Process, "fails", True)
    for _ in range(3):
        with pytest.raises(ModelError, match="no"):
            open_channel("any")
    assert len(Process.started) == 1
    monkeypatch.setattr(ray_connection, "_REFUSED_S", 0.0)
    monkeypatch.setattr(Process, "fails", False)
    open_channel("any").close()
    assert len(Process.started) == 2
