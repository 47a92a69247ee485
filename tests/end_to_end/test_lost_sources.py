"""`edgebox camera` at a network camera that is off, or that goes off: it waits, and says so."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from edgebox.app.composition import App
from edgebox.domain.requests import CameraId
from edgebox.media import losses
from edgebox.runtime.camera_record import CameraRecord
from tests.end_to_end.browsing import eventually
from tests.end_to_end.running import SLO_MS, counts_of, get_json, running, texts, until
from tests.end_to_end.sources import rtsp, write_video

pytestmark = pytest.mark.usefixtures("few_sizes")


def record_of(app: App) -> CameraRecord:
    return app.box.cameras[CameraId("gate")]


async def seen_camera(app: App) -> dict[str, Any]:
    _, state = await get_json(app, "/v1/state")
    camera: dict[str, Any]
    [camera] = state["cameras"]
    return camera


async def test_the_daemon_waits_for_its_source_and_the_box_learns_of_it(
    database: Path, tmp_path: Path
) -> None:
    video = write_video(tmp_path / "video.mkv", "h264")
    async with running(database) as app, rtsp(video, "h264", "ann", "secret") as server:
        await server.stop()
        daemon = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "edgebox", "camera", server.url, "--server", app.url,
            "--name", "gate", "--slo-ms", f"{SLO_MS:g}", "--source-username", "ann",
            stderr=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL,
            env={**os.environ, "EDGEBOX_SOURCE_PASSWORD": "secret"},
        )  # fmt: skip
        try:
            assert daemon.stderr is not None
            first = (await daemon.stderr.readline()).decode()
            assert first.startswith("source lost since ")
            assert ": connection refused; trying again. To do: check that the camera is on" in first
            for _ in range(2):
                await server.start(video, "h264", "ann", "secret")
                before = counts_of(app, "gate").on_time

                def answers(seen: int = before) -> bool:
                    return counts_of(app, "gate").on_time > seen

                await until(answers, "answers")
                await server.stop()
                await until(lambda: bool(record_of(app).source_trouble), "what the box is told")
            assert any("gate says: source lost" in text for text in texts(app))
            assert app.box.connected == 1
            camera = await eventually(
                lambda: seen_camera(app), lambda seen: seen["grade"] == "lost", "the grade"
            )
            assert camera["trouble"].startswith("source lost since ")
            (remedy,) = camera["remedies"]
            assert remedy["action"] == "check_source"
            assert remedy["text"] in (losses.REFUSED.remedy, losses.ENDED.remedy)
        finally:
            daemon.terminate()
            await daemon.wait()
        assert not any("secret" in text for text in texts(app))
