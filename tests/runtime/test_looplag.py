"""How late the event loop does what is due, and who is told."""

import asyncio
import time

from edgebox.runtime.looplag import PERIOD_S, LoopLag


async def test_a_loop_that_is_blocked_tells_from_when_to_when() -> None:
    delays: list[tuple[int, int]] = []
    lag = LoopLag(lambda start_ns, end_ns: delays.append((start_ns, end_ns)))
    lag.start()
    await asyncio.sleep(0.03)
    blocked_ns = time.monotonic_ns()
    time.sleep(0.1)  # noqa: ASYNC251 - it blocks the loop on purpose
    freed_ns = time.monotonic_ns()
    await asyncio.sleep(0.03)
    lag.stop()
    # It is noticed within a period. On a busy machine there may be longer ones before and after it.
    assert any(start < blocked_ns + 2e9 * PERIOD_S and end >= freed_ns for start, end in delays), (
        delays
    )
