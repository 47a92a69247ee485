"""Several boxes on real sockets: cameras are redirected, moved, and survive the loss of a box."""

import asyncio
import contextlib
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from edgebox.app.composition import App
from edgebox.camera.daemon import Camera
from edgebox.domain.requests import CameraId
from edgebox.media.sources import PictureSource
from tests.conftest import PROFILE_S, copied
from tests.end_to_end.fleets import SECRET, fleet, up
from tests.end_to_end.program import start
from tests.end_to_end.running import (
    CLOSED,
    PICTURE,
    SIZE_PX,
    SLO_MS,
    assert_adds_up,
    free_port,
    running,
    streaming,
    texts,
    until,
)

RECOVERY_S = 9.0
"""It takes 4 s at most where the machine is idle; a camera that is alone waits for 10 s."""


def connected(box: App, name: str) -> bool:
    record = box.box.cameras.get(CameraId(name))
    return record is not None and record.connected


@contextlib.asynccontextmanager
async def plain_camera(box: App, name: str, rate_hz: float) -> AsyncIterator[None]:
    """Have a camera connected meanwhile that knows no redirects and sends nothing."""
    hello = {
        "type": "hello", "versions": [1], "camera": name, "rate_hz": rate_hz,
        "width_px": 320, "height_px": 180,
    }  # fmt: skip
    async with (
        aiohttp.ClientSession() as client,
        client.ws_connect(f"{box.url}/v1/stream") as socket,
    ):
        await socket.send_json(hello)
        assert (await socket.receive_json())["type"] == "welcome"
        yield


def filled(box: App) -> contextlib.AbstractAsyncContextManager[None]:
    """Have a box be full meanwhile: a camera asks for more than it can do."""
    return plain_camera(box, "hungry", 1000.0)


async def test_cameras_are_sent_to_the_emptier_box_if_they_know_redirects(database: Path) -> None:
    async with fleet(database) as (first, second):
        remarks: list[str] = []
        async with (
            filled(first),
            plain_camera(first, "old", 5.0),
            streaming(first, "gate", rate_hz=5.0, on_remark=remarks.append) as gate,
        ):
            assert connected(first, "old")
            assert not connected(second, "old")
            assert connected(second, "gate")
            assert not connected(first, "gate")
            assert any(remark.startswith("sent to") for remark in remarks)
        summary = gate.summary()
        assert_adds_up(summary.captured, summary.on_time, summary.late, summary.dropped)
        assert summary.reconnects == 0


async def test_a_connected_camera_moves_when_its_box_fills_up_and_when_it_stops(
    database: Path,
) -> None:
    async with fleet(database) as (first, second):
        remarks: list[str] = []
        source = PictureSource(SIZE_PX, 5.0, lambda number: PICTURE)
        gate = Camera(source, first.url, name="gate", slo_ms=SLO_MS, on_remark=remarks.append)
        run = asyncio.create_task(gate.run())
        await until(lambda: gate.summary().on_time >= 1, "its first answer")
        home, other = (first, second) if connected(first, "gate") else (second, first)
        async with filled(home):
            await until(lambda: connected(other, "gate"), "its move")
            answered = gate.summary().on_time
            await until(lambda: gate.summary().on_time > answered, "an answer there")
        stopping = asyncio.create_task(other.stop())
        await until(lambda: connected(home, "gate"), "its way back")
        await stopping
        assert any("about to stop" in remark for remark in remarks)
        gate.stop()
        summary = await run
        assert summary.reconnects == 2
        assert_adds_up(summary.captured, summary.on_time, summary.late, summary.dropped)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
async def test_cameras_of_a_box_that_is_lost_are_served_by_the_other(
    tmp_path: Path, database: Path, how: signal.Signals
) -> None:
    """The lost box is another process, killed or silent; the camera has no token at the other.

    Both go by the same profiles: a camera stays at its box if that is no slower than the other.
    """
    port, lost_port = free_port(), free_port()
    (tmp_path / "secret").write_text(SECRET)
    (tmp_path / "lost").mkdir()
    lost = copied(database, tmp_path / "lost")
    config = lost.with_name("edgebox.toml")
    config.write_text(
        f"""
        server.port = {lost_port}
        access.open_to = "everybody"
        inference.profile_s = {PROFILE_S}
        storage.path = "{lost}"
        fleet.boxes = ["http://127.0.0.1:{port}"]
        fleet.secret_file = "../secret"
        executors = [{{device = "cpu"}}]
        """
    )
    options: dict[str, Any] = {
        "server__port": port,
        "fleet__boxes": [f"http://127.0.0.1:{lost_port}"],
        "fleet__secret_file": str(tmp_path / "secret"),
    }
    process = await start(tmp_path / "lost", "serve", "--config", str(config))
    try:
        async with running(database, **CLOSED, **options) as other:
            await until(lambda: len(up(other)) == 2, "reports")
            remarks: list[str] = []
            source = PictureSource(SIZE_PX, 5.0, lambda number: PICTURE)
            address = f"http://127.0.0.1:{lost_port}"
            gate = Camera(source, address, name="gate", slo_ms=SLO_MS, on_remark=remarks.append)
            run = asyncio.create_task(gate.run())
            await until(lambda: gate.summary().on_time >= 1, "its first answer")
            assert not connected(other, "gate"), remarks
            process.send_signal(how)
            began_s = time.monotonic()
            await until(lambda: connected(other, "gate"), "the other box")
            took_s = time.monotonic() - began_s
            assert other.fleet is not None
            left_out = other.fleet.left_out
            await until(lambda: address in left_out, "the page to say that it is away")
            before = gate.summary().on_time
            await until(lambda: gate.summary().on_time > before, "an answer there")
            gate.stop()
            summary = await run
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.communicate()
    assert took_s < RECOVERY_S, remarks
    assert summary.reconnects == 1, remarks
    assert_adds_up(summary.captured, summary.on_time, summary.late, summary.dropped)


async def test_boxes_with_other_secrets_are_left_out_with_one_clear_error(database: Path) -> None:
    secrets = (SECRET, "the secret of another fleet")
    async with fleet(database, secrets=secrets) as (first, second):

        def told(box: App) -> list[str]:
            return [text for text in texts(box, "warning") if "this fleet's secret" in text]

        await until(lambda: all(map(told, (first, second))), "warnings")
        assert "it does not know this fleet's secret" in told(first)[0]
        for box in (first, second):
            assert box.fleet is not None
            assert box.fleet.known.fresh(time.monotonic_ns()) == []
            (why,) = box.fleet.left_out.values()
            assert "this fleet's secret" in why
        async with streaming(first, "gate", rate_hz=5.0):
            assert connected(first, "gate")


async def test_a_box_that_cameras_cannot_reach_costs_each_of_them_one_move(database: Path) -> None:
    """It tells the others that it is there, and has room: no camera comes."""
    async with fleet(database) as (first, second):
        assert first.fleet is not None
        assert second.fleet is not None
        second.fleet.listens(f"http://127.0.0.1:{free_port()}", None)
        names = [first.fleet.name, second.fleet.name]
        await until(lambda: up(first) == names, "its report, and the end of the one before")
        remarks: list[str] = []
        async with (
            filled(first),
            streaming(first, "gate", rate_hz=5.0, on_remark=remarks.append) as gate,
        ):
            await until(lambda: gate.summary().on_time >= 20, "answers over some seconds")
            assert connected(first, "gate")
            assert sum(remark.startswith("sent to") for remark in remarks) == 1
        assert sum("gate was sent to box-1 at" in text for text in texts(first)) == 1
        summary = gate.summary()
        assert_adds_up(summary.captured, summary.on_time, summary.late, summary.dropped)
