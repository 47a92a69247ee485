"""Pictures that are made to take long: refused undecoded, or decoded at nobody else's expense."""

import asyncio
import base64
import threading
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from edgebox.domain.model_family import Variant
from edgebox.domain.requests import DropReason
from edgebox.runtime import frame_decoder
from edgebox.runtime.frames import PendingFrame
from edgebox.runtime.preparation import CanvasPool, prepare
from tests.conftest import PATIENCE_S
from tests.end_to_end.running import counts_of, gone, post, running, unharmed_bystander, until
from tests.end_to_end.wire import JPEG, WireCamera
from tests.media.hostile import many_scans, with_header

pytestmark = pytest.mark.usefixtures("few_sizes")

SCANS = many_scans(1920, 1080, 60_000, scan_bytes=34)
SEGMENTS = with_header(JPEG, b"\xff\xe5\x00\x02" * 500_000)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list of whose pictures are decoded, as it grows."""
    seen: list[str] = []

    def noting(frame: PendingFrame, variant: Variant, canvases: CanvasPool) -> None:
        seen.append(frame.request.camera)
        prepare(frame, variant, canvases)

    monkeypatch.setattr(frame_decoder, "prepare", noting)
    return seen


@pytest.mark.parametrize(
    ("picture", "message"),
    [(SCANS, "in more than 100 scans"), (SEGMENTS, "more than 512 segments")],
    ids=["scans", "segments"],
)
async def test_a_camera_that_sends_them_is_told_and_takes_nobodys_time(
    database: Path, decoded: list[str], picture: bytes, message: str
) -> None:
    assert len(picture) >= 2_000_000
    async with running(database) as app:
        async with unharmed_bystander(app), WireCamera(app) as camera:
            for _ in range(10):
                notice = await camera.drop(await camera.frame(picture))
                assert notice.reason is DropReason.INVALID
                assert message in notice.message
            assert "gate" not in decoded
            await camera.result(await camera.frame())
        await gone(app, "gate")
        counts = counts_of(app, "gate")
        assert (counts.captured, counts.on_time, counts.pending) == (11, 1, 0)
        assert counts.dropped == {"invalid": 10}


async def test_programs_are_told(database: Path, decoded: list[str]) -> None:
    image = {"name": "image", "datatype": "BYTES", "shape": [1]}
    image["data"] = [base64.b64encode(many_scans(320, 240, 1_000)).decode()]
    async with running(database) as app, aiohttp.ClientSession() as client:
        status, problem = await post(app, SCANS)
        assert status == 400
        assert "in more than 100 scans" in problem["detail"]
        url = f"{app.url}/v2/models/street-128/infer"
        async with client.post(url, json={"inputs": [image]}) as said:
            assert said.status == 400
            assert "in more than 100 scans" in (await said.json(content_type=None))["error"]
    assert not decoded


async def test_decoding_that_never_ends_takes_one_camera_only(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever bounds the time of one picture: its sender alone waits for it."""
    released = threading.Event()
    begun: list[int] = []

    def endless(frame: PendingFrame, variant: Variant, canvases: CanvasPool) -> None:
        if frame.request.camera == "gate":
            begun.append(frame.number)
            released.wait()
        prepare(frame, variant, canvases)

    monkeypatch.setattr(frame_decoder, "prepare", endless)
    try:
        async with running(database, inference__decode_threads=2) as app:
            async with unharmed_bystander(app):
                async with WireCamera(app) as camera:
                    for _ in range(20):
                        await camera.frame()
                    await until(lambda: counts_of(app, "gate").captured == 20, "all to arrive")
                await gone(app, "gate")
            assert len(begun) == 1
            async with WireCamera(app) as camera:
                await camera.frame()
            async with asyncio.timeout(PATIENCE_S):
                await app.stop()
        counts: Any = counts_of(app, "gate")
        assert counts.captured == 21
        assert counts.pending == 0
    finally:
        released.set()
