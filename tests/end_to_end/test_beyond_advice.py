"""A camera that sends far more often than it was advised to."""

import asyncio
from pathlib import Path

import pytest

from edgebox.link.messages import Ack, DropNotice, Result
from edgebox.runtime.frames import BEYOND_ADVICE
from tests.conftest import PATIENCE_S
from tests.end_to_end.running import (
    assert_adds_up,
    counts_of,
    running,
    unharmed_bystander,
    until,
)
from tests.end_to_end.wire import JPEG, WireCamera, upgrade_request, websocket_frame

pytestmark = pytest.mark.usefixtures("few_sizes")

BURST = 100
BURSTS_MAX = 100


def beyond(camera: WireCamera) -> list[DropNotice]:
    """Return what a camera was told of frames beyond its advice."""
    drops = (each for each in camera.received if isinstance(each, DropNotice))
    return [each for each in drops if each.message == BEYOND_ADVICE]


def ended(camera: WireCamera) -> list[int]:
    """Return the frames that a camera was told the end of."""
    return [each.frame for each in camera.received if isinstance(each, DropNotice | Result)]


async def test_each_frame_beyond_the_advice_is_answered_and_counted_and_others_are_unharmed(
    database: Path,
) -> None:
    async with (
        running(database) as app,
        unharmed_bystander(app),
        WireCamera(app, "greedy", slo_ms=500.0, rate_hz=5.0) as camera,
    ):
        sent = 0
        while not beyond(camera) and sent < BURST * BURSTS_MAX:
            for _ in range(BURST):
                await camera.frame()
            sent += BURST
        assert beyond(camera), "no burst was more than the box can answer at once"
        await until(lambda: not counts_of(app, "greedy").pending, "all frames to end")
        await until(lambda: len(ended(camera)) == sent, "what became of them")
        counts = counts_of(app, "greedy")
        assert_adds_up(counts.captured, counts.on_time, counts.late, counts.dropped)
        assert counts.captured == sent
        acked = [each for each in camera.received if isinstance(each, Ack)]
        assert [each.frame for each in acked] == list(range(1, sent + 1))
        assert sorted(ended(camera)) == list(range(1, sent + 1))
        refused = {each.frame for each in acked if not each.accepted}
        assert {each.frame for each in beyond(camera)} <= refused


async def test_a_hello_that_came_with_the_request_frees_nobody_from_the_advice(
    database: Path,
) -> None:
    async with running(database) as app:
        camera = WireCamera(app, "greedy", slo_ms=500.0, rate_hz=5.0)
        reader, writer = await asyncio.open_connection("127.0.0.1", app.port, limit=1 << 26)
        heard = asyncio.create_task(reader.readuntil(BEYOND_ADVICE.encode()))
        writer.write(upgrade_request(app) + websocket_frame(1, camera.hello.encode()))
        async with asyncio.timeout(PATIENCE_S):
            while not heard.done():
                for _ in range(BURST):
                    writer.write(websocket_frame(2, camera.header() + JPEG))
                await writer.drain()
                await asyncio.sleep(0)
        await heard
        writer.close()
        await camera.close()
        await until(lambda: not counts_of(app, "greedy").pending, "all frames to end")
        counts = counts_of(app, "greedy")
        assert_adds_up(counts.captured, counts.on_time, counts.late, counts.dropped)
