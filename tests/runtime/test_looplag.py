"""How late the event loop does what is due, and who is told."""

import asyncio
import time

from edgebox.runtime.looplag import LoopLag


async def test_a_loop_that_is_blocked_tells_from_when_to_when() -> None:
    told: list[tuple[int, int]] = []
    lag = LoopLag(lambda start_ns, end_ns: told.append((start_ns, end_ns)))
    lag.start()
    await asyncio.sleep(0.03)
    blocked_ns = time.monotonic_ns()
    time.sleep(0.1)  # noqa: ASYNC251 - it blocks the loop on purpose
    freed_ns = time.monotonic_ns()
    await asyncio.sleep(0.03)
    lag.stop()
    start_ns, end_ns = max(told, key=lambda stall: stall[1] - stall[0])
    assert start_ns < blocked_ns + 20_000_000
    assert end_ns >= freed_ns
