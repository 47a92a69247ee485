"""Wakes the core at the instant it waits for, however often that moves."""

import asyncio
import time

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
