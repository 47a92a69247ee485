"""Cameras whose clocks jump, stand still or are missing are served."""

import asyncio
import time
from pathlib import Path

import pytest

from edgebox.domain.requests import CameraId, Request
from edgebox.link.messages import FrameHeader
from tests.end_to_end.running import (
    SIZE_PX,
    SLO_MS,
    running,
    texts,
    unharmed_bystander,
    until,
)
from tests.end_to_end.test_bad_cameras import RawCamera
from tests.end_to_end.wire import JPEG, WireCamera

pytestmark = pytest.mark.usefixtures("few_sizes")

HOUR_NS = 3_600_000_000_000


@pytest.mark.parametrize("jump_ns", [HOUR_NS, -HOUR_NS], ids=["forwards", "backwards"])
async def test_a_clock_that_jumps_is_followed(database: Path, jump_ns: int) -> None:
    async with running(database) as app:
        async with unharmed_bystander(app), WireCamera(app) as camera:
            camera.clock_ns = lambda: time.monotonic_ns() + 2 * HOUR_NS
            before = await camera.result(await camera.frame())
            await until(lambda: len(camera.pings()) >= 3, "some exchanges of the clock")
            camera.clock_ns = lambda: time.monotonic_ns() + 2 * HOUR_NS + jump_ns
            during = await camera.result(await camera.frame())
            await until(lambda: any("its clock jumped" in t for t in texts(app)), "the event")
            after = await camera.result(await camera.frame())
        for result in (before, during, after):
            assert result.outcome == "on_time"
            assert 0 <= result.timing.network_ms < SLO_MS
            assert result.timing.total_ms < SLO_MS
        assert "gate: its clock jumped; deadlines follow the new one" in texts(app, "warning")


@pytest.mark.parametrize("unit_ns", [1000, 10**15], ids=["microseconds", "stands still"])
async def test_what_is_no_clock_in_nanoseconds_costs_no_frame(database: Path, unit_ns: int) -> None:
    async with running(database) as app, unharmed_bystander(app), WireCamera(app) as camera:
        camera.clock_ns = lambda: time.monotonic_ns() // unit_ns
        said = "gate: its clock jumps all the time"
        await until(lambda: any(said in t for t in texts(app, "warning")), "the warning")
        for _ in range(3):
            result = await camera.result(await camera.frame())
            assert result.outcome == "on_time"
            await asyncio.sleep(1.1)  # a ping more


async def test_a_camera_without_a_clock_is_served(database: Path) -> None:
    async with running(database) as app, WireCamera(app) as camera:
        camera.answers_pings = False
        camera.clock_ns = lambda: 0
        result = await camera.result(await camera.frame())
        assert result.outcome == "on_time"
        link = app.box.cameras[CameraId("gate")].link
        # Its WebSocket answers pings of its own, so the way back is known all the same.
        await until(lambda: link.rtt_ns is not None, "an echo")
        assert link.clock.rtt_ns is None
        result = await camera.result(await camera.frame())
        assert result.outcome == "on_time"


async def test_the_bytes_of_a_frame_tell_when_it_was_captured(database: Path) -> None:
    """A camera without a clock, on a link that takes 200 ms for a frame."""
    received: list[tuple[int, Request]] = []
    async with running(database) as app:
        app.box.observers.add(
            lambda record, frame, ending: received.append((frame.number, frame.request))
        )
        raw = await RawCamera.connect(app)
        await raw.say_hello()
        answers = asyncio.create_task(raw.reader.read())
        captured_ns = []
        for number in range(5):
            data = FrameHeader(number, 0, 0, *SIZE_PX, number + 1).encode() + JPEG
            raw.message(2, data[:1], promised=len(data))
            captured_ns.append(time.monotonic_ns())
            piece = len(data) // 10
            for at in range(1, len(data), piece):
                await asyncio.sleep(0.02)
                raw.writer.write(data[at : at + piece])
        await until(lambda: len(received) == 5, "every frame to end")
        raw.writer.transport.abort()
        await asyncio.gather(answers, return_exceptions=True)
        bandwidth_bps = app.box.cameras[received[0][1].camera].link.bandwidth.newest()
    assert bandwidth_bps is not None
    ages_ms = [(request.arrival_ns - request.captured_ns) / 1e6 for _, request in received]
    # However busy the machine is, one of them was seen as it came.
    assert max(ages_ms) > 100
    for number, request in received:
        # A byte was here at first, which takes next to nothing.
        assert request.captured_ns >= captured_ns[number] - 5_000_000
        slo_ns = app.box.cameras[request.camera].camera.slo_ns
        assert request.deadline_ns <= request.captured_ns + slo_ns
