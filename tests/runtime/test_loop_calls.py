"""Wakes the core at the instant it waits for, however often that moves."""

import asyncio
import time
from functools import partial

import pytest

from edgebox.runtime.loop_calls import LoopCalls
from tests.conftest import PATIENCE_S

MS = 1_000_000


class Waiting:
    """Calls on the running loop, and when each wake-up came."""

    def __init__(self) -> None:
        self.woken_ns: list[int] = []
        self._woken = asyncio.Event()
        self.calls = LoopCalls(self._wake, time.monotonic_ns)
        self.calls.bind()

    def _wake(self) -> None:
        self.woken_ns.append(time.monotonic_ns())
        self._woken.set()

    async def woken(self) -> int:
        async with asyncio.timeout(PATIENCE_S):
            await self._woken.wait()
        return self.woken_ns[-1]


async def test_an_instant_that_moves_to_later_wakes_once_and_then() -> None:
    waiting = Waiting()
    now_ns = time.monotonic_ns()
    for later in range(20):
        waiting.calls.wake_at(now_ns + (5 + later) * MS)
    assert await waiting.woken() >= now_ns + 24 * MS
    assert len(waiting.woken_ns) == 1


async def test_an_instant_that_moves_to_sooner_does_not_wait_for_the_first() -> None:
    waiting = Waiting()
    waiting.calls.wake_at(time.monotonic_ns() + 3600 * 1000 * MS)
    waiting.calls.wake_at(time.monotonic_ns() + 1 * MS)
    await waiting.woken()


async def test_nobody_is_woken_for_an_instant_that_is_not_waited_for_any_more() -> None:
    waiting = Waiting()
    waiting.calls.wake_at(time.monotonic_ns() + 1 * MS)
    waiting.calls.wake_at(None)
    fired = asyncio.Event()
    asyncio.get_running_loop().call_later(0.02, fired.set)
    await fired.wait()
    assert waiting.woken_ns == []
    waiting.calls.wake_at(time.monotonic_ns())
    await waiting.woken()
    waiting.calls.wake_at(time.monotonic_ns())
    waiting.calls.stop()
    await asyncio.sleep(0.005)
    assert len(waiting.woken_ns) == 1


async def test_reports_of_threads_are_called_in_order_whoever_asks_first() -> None:
    waiting, heard = Waiting(), list[int]()

    def report(number: int) -> None:
        heard.append(number)
        waiting.calls.catch_up()  # as when the core is told of it

    for number in range(3):
        waiting.calls.from_thread(partial(report, number))
    waiting.calls.catch_up()
    assert heard == [0, 1, 2]
    waiting.calls.from_thread(partial(report, 3))
    await asyncio.sleep(0)
    assert heard == [0, 1, 2, 3]


async def test_work_that_ended_is_heard_of_before_what_else_was_reported() -> None:
    waiting, heard = Waiting(), list[str]()
    for report, text in (
        (waiting.calls.from_thread, "a plan"),
        (waiting.calls.ended, "a batch"),
        (waiting.calls.from_thread, "a picture"),
        (waiting.calls.ended, "the next batch"),
    ):
        report(partial(heard.append, text))
    waiting.calls.catch_up()
    assert heard == ["a batch", "the next batch", "a plan", "a picture"]
    waiting.calls.ended(partial(heard.append, "the last batch"))
    await asyncio.sleep(0)
    assert heard[-1] == "the last batch"


async def test_a_report_that_raises_is_logged_and_keeps_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    waiting, heard = Waiting(), list[str]()
    waiting.calls.from_thread(lambda: 1 // 0)  # type: ignore[arg-type]
    waiting.calls.from_thread(lambda: heard.append("the next"))
    await asyncio.sleep(0)
    assert heard == ["the next"]
    assert "division" in caplog.text


async def test_a_report_while_reports_are_called_is_called_too() -> None:
    waiting, heard = Waiting(), list[str]()
    waiting.calls.from_thread(lambda: waiting.calls.from_thread(lambda: heard.append("the second")))
    for _ in range(2):
        await asyncio.sleep(0)
    assert heard == ["the second"]
