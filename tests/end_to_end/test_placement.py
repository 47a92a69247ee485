"""First stages that run at the camera: real box, real daemon, real models, a slow uplink."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from edgebox.app.composition import App
from edgebox.camera.daemon import Camera
from edgebox.camera.local_model import LocalModelError, fetch
from edgebox.domain.model_family import FamilyName
from edgebox.domain.requests import CameraId, StagePlacement
from edgebox.link.detected_frames import DetectedFrame, SentCrop, SentDetection
from edgebox.link.messages import FrameHeader, Welcome, decode_from_box
from edgebox.link.placement_offer import PlacementOffer
from edgebox.link.shaping import BandwidthTrace
from edgebox.media.jpeg import encode, probe
from edgebox.runtime.frames import Answer
from tests.conftest import PATIENCE_S
from tests.end_to_end.running import (
    assert_counts_agree,
    gone,
    running,
    streaming,
    unharmed_bystander,
    until,
)
from tests.end_to_end.streets import street_jpeg, street_picture
from tests.end_to_end.test_pipelines import PIPELINE, SIZE_PX, Seen, street, watched

pytestmark = pytest.mark.usefixtures("few_sizes")


@pytest.fixture
async def app(tmp_path: Path, database: Path) -> AsyncIterator[App]:
    file = tmp_path / "edgebox.toml"
    file.write_text(PIPELINE)
    async with running(database, file=file) as app:
        yield app


def placed(seen: Seen) -> list[Answer]:
    answers = [ending for _, ending, _ in seen if isinstance(ending, Answer)]
    return [answer for answer in answers if answer.placement is StagePlacement.CAMERA]


def placing(
    app: App, tmp_path: Path, rate_hz: float = 4.0, **options: Any
) -> AbstractAsyncContextManager[Camera]:
    """Stream a street from a camera that may detect, and keeps what it fetches in "cache"."""
    cache = tmp_path / "cache"
    source = street(rate_hz)
    return streaming(
        app, "gate", rate_hz=rate_hz, source=source, answered=False, cache=cache, **options
    )


async def test_boxes_and_crops_are_answered_as_pictures_are(app: App, tmp_path: Path) -> None:
    seen = watched(app)
    found: list[dict[str, object]] = []
    async with placing(
        app,
        tmp_path,
        pipeline="traffic",
        detect="always",
        on_result=lambda result: found.append(orjson.loads(result.encode())),
        link=BandwidthTrace.constant(0.5),
    ) as camera:
        await until(
            lambda: sum(bool(answer.stages) for answer in placed(seen)) >= 3,
            "three answers with what later stages say",
        )
    await gone(app, "gate")
    summary = camera.summary()
    assert summary.detected > 0
    assert_counts_agree(app, summary)
    family = app.box.families[FamilyName("street")]
    for answer in placed(seen):
        assert answer.variant in {variant.name for variant in family.variants}
        for said in answer.stages:
            assert said.variant.startswith("vehicles-")
            assert family.labels[answer.detections.labels[said.object]] in {"car", "bus", "truck"}
            inner, outer = answer.detections.boxes[said.object], said.detections.boxes[0]
            assert (outer[:2] <= inner[:2] + 4).all(), "a crop is the object with a margin"
            assert (outer[2:] >= inner[2:] - 4).all()
    documents = [each for each in found if each.get("placement") == "camera"]
    assert len(documents) >= 3
    driver = app.box.driver
    assert driver.frames_pending == 0
    assert driver.decisions.timeline.failure == ""
    for frame, ending, _ in seen:
        if isinstance(ending, Answer) and ending.placement is StagePlacement.CAMERA:
            assert frame.request.size_bytes < 60_000
    # The model was fetched once and is kept by its checksum.
    assert len(list((tmp_path / "cache").glob("*/street.onnx"))) == 1
    connected = driver.scheduler._adaptation.cameras
    assert CameraId("gate") not in connected


async def test_a_family_alone_needs_no_box_time(app: App, tmp_path: Path) -> None:
    seen = watched(app)
    async with placing(app, tmp_path, family="street", detect="always"):
        await until(lambda: len(placed(seen)) >= 8, "eight answers")
        connected = app.box.driver.scheduler._adaptation.cameras[CameraId("gate")]
        assert connected.box_share < 1, "planning counts what runs on the box"
    for answer in placed(seen):
        assert not answer.stages
        assert answer.timing.queue_ns == 0
        assert answer.timing.inference_ns > 0


async def test_on_a_slow_link_boxes_are_quicker_than_pictures(app: App, tmp_path: Path) -> None:
    seen = watched(app)
    async with placing(
        app,
        tmp_path,
        family="street",
        rate_hz=2.0,
        detect="auto",
        link=BandwidthTrace.constant(0.1),
    ) as camera:
        await until(lambda: len(placed(seen)) >= 2, "two frames that were detected at the camera")
    await gone(app, "gate")
    summary = camera.summary()
    assert 0 < summary.detected < summary.sent, "the first frames went as pictures"
    assert_counts_agree(app, summary)


async def test_nothing_is_fetched_unless_it_is_ordered(app: App, tmp_path: Path) -> None:
    seen = watched(app)
    remarks: list[str] = []
    async with placing(app, tmp_path, pipeline="traffic", detect="never", on_remark=remarks.append):
        await until(lambda: len(seen) >= 3, "three frames")
    assert not placed(seen)
    assert not (tmp_path / "cache").exists()


async def welcomed(app: App, socket: aiohttp.ClientWebSocketResponse, **more: object) -> Welcome:
    hello = {
        "type": "hello", "versions": [1], "camera": "gate", "slo_ms": 30_000,
        "width_px": SIZE_PX[0], "height_px": SIZE_PX[1], "pipeline": "traffic", **more,
    }  # fmt: skip
    await socket.send_str(orjson.dumps(hello).decode())
    welcome = decode_from_box((await socket.receive()).data)
    assert isinstance(welcome, Welcome)
    return welcome


async def answer_to(socket: aiohttp.ClientWebSocketResponse, *types: str) -> dict[str, object]:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            document = orjson.loads((await socket.receive()).data)
            if document["type"] in types:
                return dict(document)


CAR = SentDetection(1, 0.9, (100.0, 100.0, 300.0, 250.0))


async def test_broken_messages_get_one_clear_error_and_harm_nobody(app: App) -> None:
    jpeg = encode(street_picture(11, *SIZE_PX)[100:250, 100:300], 90)
    crop = SentCrop(0, 0, (100, 100, 300, 250), jpeg)
    number = 0

    def message(*crops: SentCrop, variant: int = 0) -> bytes:
        nonlocal number
        number += 1
        header = FrameHeader(number, 10**9, 10**9, *SIZE_PX, number)
        return DetectedFrame(0, variant, (CAR,), crops).encode(header)

    async with (
        unharmed_bystander(app),
        aiohttp.ClientSession() as client,
        client.ws_connect(f"{app.url}/v1/stream") as socket,
    ):
        welcome = await welcomed(app, socket, placement=True)
        assert welcome.placement is not None
        assert [str(each.stage.name) for each in welcome.placement.stages] == ["vehicle"]
        bad: list[tuple[bytes, str]] = [
            (message(crop, crop), "twice"),
            (message(variant=200), "variant"),
            (message(crop)[:-5], "JPEG"),
            (message(SentCrop(0, 0, crop.area_px, b"no picture")), "crop 0"),
        ]
        for each, said in bad:
            await socket.send_bytes(each)
            drop = await answer_to(socket, "drop", "result")
            assert (drop["type"], drop.get("reason")) == ("drop", "invalid")
            assert said in str(drop["message"])
        await socket.send_bytes(message(crop)[:40])
        assert (await answer_to(socket, "error"))["code"] == "bad_message"
        # A crop that begins as a JPEG and is none: its frame is answered without it.
        broken = SentCrop(0, 0, crop.area_px, jpeg[: len(jpeg) // 3])
        await socket.send_bytes(message(broken))
        assert (await answer_to(socket, "drop", "result"))["type"] in {"drop", "result"}
        await socket.send_bytes(message(crop))
        result = await answer_to(socket, "drop", "result")
        assert result["type"] == "result", result
        assert result["placement"] == "camera"
        found = result["detections"]
        assert isinstance(found, list)
        assert "vehicle" in found[0]["stages"]
    assert app.box.driver.decisions.timeline.failure == ""


async def test_a_camera_that_did_not_ask_is_told_and_goes_on(app: App) -> None:
    async with (
        aiohttp.ClientSession() as client,
        client.ws_connect(f"{app.url}/v1/stream") as socket,
    ):
        welcome = await welcomed(app, socket)
        assert welcome.placement is None
        header = FrameHeader(1, 1, 1, *SIZE_PX, 1)
        await socket.send_bytes(DetectedFrame(0, 0, (CAR,), ()).encode(header))
        error = await answer_to(socket, "error")
        assert "placement" in str(error["message"])
        picture = street_jpeg(11, *SIZE_PX)
        assert probe(picture) == SIZE_PX
        await socket.send_bytes(FrameHeader(2, 10**9, 10**9, *SIZE_PX, 2).encode() + picture)
        assert (await answer_to(socket, "result", "drop"))["type"] == "result"


async def test_what_is_fetched_is_what_was_offered(app: App, tmp_path: Path) -> None:
    family = app.box.families[FamilyName("street")]
    assert family.manifest is not None
    stream = app.url.replace("http", "ws") + "/v1/stream"
    names = tuple(variant.name for variant in family.variants)
    async with aiohttp.ClientSession() as client:
        fetched = await fetch(
            client, stream, PlacementOffer(family.manifest.sha256, names), tmp_path
        )
        assert fetched.labels == family.labels
        assert fetched.sha256 == family.sha256
        other = PlacementOffer("0" * 64, names)
        with pytest.raises(LocalModelError, match="404"):
            await fetch(client, stream, other, tmp_path)
        # What was damaged in the cache is fetched again.
        kept = fetched.model_files[0].path
        kept.write_bytes(b"damaged")
        again = await fetch(client, stream, PlacementOffer(family.manifest.sha256, names), tmp_path)
        again.model_files[0].check()
        left = await asyncio.to_thread(lambda: list(tmp_path.glob("**/*.part")))
        assert not left
