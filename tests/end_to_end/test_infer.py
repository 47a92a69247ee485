"""POST /v1/infer and the rest of HTTP on a real box: answers, and what bad requests are told."""

import asyncio
import io
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from PIL import Image
from yarl import URL

from edgebox.app.composition import App
from edgebox.config.config_file import load
from edgebox.domain.model_family import VariantName
from edgebox.domain.requests import CameraId
from edgebox.link.protocol import NAME_PATTERN
from edgebox.runtime.frames import ONE_SHOT_CAMERA, Answer
from edgebox.scheduling.events import CameraDisconnected
from tests.conftest import PATIENCE_S, settings
from tests.end_to_end.running import (
    get_json,
    post,
    running,
    streaming,
    unharmed_bystander,
    until,
)
from tests.end_to_end.streets import street_jpeg
from tests.end_to_end.wire import JPEG, jpeg_claiming

FRAME_BYTES_MAX = 400_000


@pytest.fixture
async def app(database: Path) -> AsyncIterator[App]:
    async with running(database, limits__frame_bytes_max=FRAME_BYTES_MAX) as app:
        yield app


@pytest.fixture(scope="module")
def street() -> bytes:
    return street_jpeg(3)


async def test_a_picture_of_a_street_is_understood(app: App, street: bytes) -> None:
    status, answer = await post(app, street, {"deadline_ms": 30_000, "variant": "street-608"})
    assert status == 200
    assert answer["variant"] == "street-608"
    assert (answer["width_px"], answer["height_px"]) == (1280, 720)
    assert answer["outcome"] == "on_time"
    timing = answer["timing_ms"]
    assert timing["batch_size"] == 1
    assert timing["network"] == timing["return"] == 0
    assert timing["total"] >= timing["queue"] + timing["inference"] - 0.02
    scores = [found["score"] for found in answer["detections"]]
    assert scores == sorted(scores, reverse=True)
    assert scores, "a street full of people and cars, and nothing was seen"
    labels = (await get_json(app, "/v1/state"))[1]["box"]["labels"]
    for found in answer["detections"]:
        x1, y1, x2, y2 = found["box"]
        assert 0 <= x1 < x2 <= 1280
        assert 0 <= y1 < y2 <= 720
        assert labels[found["label_id"]] == found["label"]
        assert found["score"] >= 0.3


async def test_boxes_come_as_corners_or_as_corner_and_size(app: App, street: bytes) -> None:
    query = {"deadline_ms": 30_000, "variant": "street-608"}
    corners = (await post(app, street, query))[1]["detections"]
    sizes = (await post(app, street, {**query, "boxes": "xywh"}))[1]["detections"]
    assert len(corners) == len(sizes) > 0
    for (x1, y1, x2, y2), (x, y, width, height) in zip(
        (found["box"] for found in corners), (found["box"] for found in sizes), strict=True
    ):
        assert (x, y) == (x1, y1)
        assert width == pytest.approx(x2 - x1, abs=0.11)
        assert height == pytest.approx(y2 - y1, abs=0.11)


async def test_a_lower_score_shows_more(app: App, street: bytes) -> None:
    query = {"deadline_ms": 30_000, "variant": "street-608"}
    few = (await post(app, street, {**query, "score_min": 0.6}))[1]["detections"]
    many = (await post(app, street, {**query, "score_min": 0.1}))[1]["detections"]
    assert len(few) < len(many)
    assert min(found["score"] for found in many) >= 0.1


async def test_without_a_variant_the_deadline_and_the_picture_choose(app: App) -> None:
    street = street_jpeg(3, 640, 360)
    largest = (await post(app, street, {"deadline_ms": 30_000}))[1]["variant"]
    assert largest == "street-608"
    small = (await post(app, JPEG, {"deadline_ms": 30_000}))[1]["variant"]
    assert small == "street-320", "enlarging a picture buys nothing"


async def test_times_are_learned_for_the_application_that_is_named(app: App) -> None:
    async def learned() -> dict[str, int]:
        state = (await get_json(app, "/v1/state"))[1]
        return {row["app"]: row["count"] for row in state["box"]["applications"]}

    query = {"deadline_ms": 30_000, "variant": "street-320"}
    assert (await post(app, JPEG, query))[0] == 200
    for _ in range(2):
        assert (await post(app, JPEG, {**query, "app": "night"}))[0] == 200
    assert await learned() == {"http": 1, "night": 2}


@pytest.mark.parametrize(
    ("body", "query", "error", "message"),
    [
        (JPEG, {"deadline_ms": 1, "variant": "street-608"}, "503 infeasible", "too little time"),
        (JPEG, {"variant": "street-999"}, "404 unknown", "it has street-128, "),
        (JPEG, {"family": "cats"}, "404 unknown", "no model family 'cats'; there are street"),
        (JPEG, {"deadline_ms": "soon"}, "400 invalid", "deadline_ms must be a number from 1"),
        (JPEG, {"deadline_ms": "nan"}, "400 invalid", "deadline_ms must be a number from 1"),
        (JPEG, {"score_min": 2}, "400 invalid", "score_min must be a number from 0 to 1"),
        (JPEG, {"app": "a b"}, "400 invalid", "app must be 1 to 64 letters, digits"),
        (JPEG, {"app": ""}, "400 invalid", "app must be 1 to 64 letters, digits"),
        (JPEG, {"boxes": "polygons"}, "400 invalid", "boxes must be xyxy or xywh"),
        (JPEG, {"format": "xml"}, "400 invalid", "format must be native, coco or supervision"),
        (JPEG, {"format": "coco", "boxes": "xyxy"}, "400 invalid", "coco has boxes of its own"),
        (JPEG, {"format": "coco", "image_id": "-1"}, "400 invalid", "image_id must be a whole"),
        (JPEG[: len(JPEG) // 2], {}, "400 invalid", "truncated"),
        (b"hello", {}, "400 invalid", "not a JPEG"),
        (b"", {}, "400 invalid", "the body is empty; send a JPEG or a PNG"),
        (jpeg_claiming(30_000, 30_000), {}, "400 invalid", "30000 × 30000 px"),
        (
            bytes(FRAME_BYTES_MAX + 1),
            {},
            "413 too_large",
            "at most 400000 bytes (limits.frame_bytes_max)",
        ),
    ],
)
async def test_a_bad_request_is_told_why(
    app: App, body: bytes, query: dict[str, Any], error: str, message: str
) -> None:
    async with unharmed_bystander(app):
        status, answer = await post(app, body, query)
    assert f"{status} {answer['code']}" == error
    assert message in answer["detail"]


def png(size: tuple[int, int] = (64, 48), mode: str = "RGB") -> bytes:
    out = io.BytesIO()
    Image.new(mode, size).save(out, "PNG")
    return out.getvalue()


async def test_a_png_and_a_form_are_answered_like_the_jpeg(app: App, street: bytes) -> None:
    query = {"deadline_ms": "30000", "variant": "street-320"}
    _, expected = await post(app, street, query)
    shown = expected["detections"]
    assert shown
    with Image.open(io.BytesIO(street)) as picture:
        out = io.BytesIO()
        picture.resize((480, 270)).save(out, "PNG")
    form = aiohttp.FormData()
    form.add_field("note", "of the gate")
    form.add_field("image", street, filename="street.jpg", content_type="image/jpeg")
    async with aiohttp.ClientSession() as client:
        for body in (form, out.getvalue()):
            async with client.post(f"{app.url}/v1/infer", params=query, data=body) as response:
                answer = await response.json()
            assert response.status == 200
            if body is form:
                assert answer["detections"] == shown
                continue
            assert (answer["width_px"], answer["height_px"]) == (480, 270)
            assert answer["detections"][0]["label"] in {each["label"] for each in shown}


async def test_other_kinds_of_png_are_taken_and_broken_ones_are_told(app: App) -> None:
    for mode in ("L", "P", "RGBA", "1"):
        assert (await post(app, png(mode=mode), {"deadline_ms": 30_000}))[0] == 200
    bomb = png((20_000, 20_000), "1")
    async with unharmed_bystander(app):
        for body, message in (
            (png()[:60], "a broken or truncated PNG"),
            (png((20_000, 30), "1"), "a PNG of 20000 × 30 px: at most 8192 px a side"),
            (png((8_000, 8_000), "1"), "16.8 million pixels are taken; scale it down first"),
            (bomb, "too many pixels: at most 8192 px a side"),
        ):
            status, answer = await post(app, body)
            assert (status, answer["code"]) == (400, "invalid")
            assert message in answer["detail"]


async def test_a_body_without_a_length_is_bounded_too(app: App) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield bytes(FRAME_BYTES_MAX // 10)

    async with unharmed_bystander(app):
        try:
            status, answer = await post(app, endless())
        except aiohttp.ClientConnectionError:
            return  # cut off while still sending: also an end
    assert status == 413
    assert "limits.frame_bytes_max" in answer["detail"]


async def test_pages_of_other_sites_may_not_ask(app: App) -> None:
    async with unharmed_bystander(app):
        for origin in ("https://evil.example", "null"):
            status, answer = await post(app, JPEG, headers={"Origin": origin})
            assert status == 403
            assert answer["code"] == "foreign_origin"
            assert origin in answer["detail"]
        assert (await post(app, JPEG, headers={"Origin": app.url}))[0] == 200


async def test_many_at_once_are_all_answered_in_batches_or_refused(app: App) -> None:
    answers = await asyncio.gather(
        *(post(app, JPEG, {"deadline_ms": 30_000, "variant": "street-128"}) for _ in range(40))
    )
    assert {status for status, _ in answers} == {200}
    assert app.box.driver.frames_pending == 0


async def test_a_client_that_leaves_early_harms_nobody(app: App) -> None:
    async with unharmed_bystander(app), aiohttp.ClientSession() as client:
        pending = asyncio.create_task(client.post(f"{app.url}/v1/infer", data=JPEG))
        await until(lambda: app.box.driver.frames_pending > 0 or pending.done(), "the request")
        pending.cancel()
        await asyncio.gather(pending, return_exceptions=True)


async def test_the_picture_of_a_client_that_has_left_is_not_run(app: App) -> None:
    decode = app.box.driver.decoder.decode
    app.box.driver.decoder.decode = lambda frame, variant: None  # type: ignore[method-assign]
    try:
        async with aiohttp.ClientSession() as client:
            query = {"deadline_ms": 60_000}
            asked = client.post(f"{app.url}/v1/infer", data=JPEG, params=query)
            pending = asyncio.create_task(asked)
            await until(lambda: app.box.driver.frames_pending == 1, "the request")
            pending.cancel()
            await asyncio.gather(pending, return_exceptions=True)
        await until(lambda: app.box.driver.frames_pending == 0, "its end", 20.0)
    finally:
        app.box.driver.decoder.decode = decode  # type: ignore[method-assign]


async def test_health_readiness_and_state(app: App) -> None:
    assert await get_json(app, "/healthz") == (200, {"status": "ok"})
    status, readiness = await get_json(app, "/readyz")
    assert status == 200
    plan = readiness.pop("plan")
    assert plan["ok"]
    threads = readiness["decoding"].pop("threads")
    assert threads >= 1
    assert readiness == {
        "ready": True,
        "reason": "",
        "executors": {"ok": True, "states": {"cpu/0": "up"}},
        "decoding": {"ok": True, "hanging": 0},
        "database": {"ok": True, "reason": ""},
    }
    async with streaming(app, "gate"):
        status, state = await get_json(app, "/v1/state")
    assert status == 200
    assert state["type"] == "state"
    assert state["box"]["ready"]
    assert state["box"]["executors"][0]["id"] == "cpu/0"
    counts = state["box"]["counts"]
    ended = counts["on_time"] + counts["late"] + sum(counts["dropped"].values())
    assert counts["captured"] == ended + counts["pending"]
    assert [camera["id"] for camera in state["cameras"]] == ["gate"]
    assert state["cameras"][0]["advice"]["variant"].startswith("street-")
    assert state["cameras"][0]["latency_ms"]["p50"]["total"] > 0


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/nothing", 404),
        ("GET", "/v1/infer", 405),
        ("POST", "/v1/state", 405),
        ("GET", "/assets/../../../etc/passwd", 404),
        ("GET", "/assets/%2e%2e/index.html", 404),
        ("GET", "/v1/stream", 400),
        ("GET", "/v1/ui", 400),
    ],
)
async def test_wrong_addresses_get_json_and_no_secrets(
    app: App, method: str, path: str, status: int
) -> None:
    url = URL(app.url + path, encoded=True)
    async with (
        aiohttp.ClientSession() as client,
        client.request(method, url) as response,
    ):
        assert response.status == status
        assert (await response.json())["code"]
        assert "Traceback" not in await response.text()


async def test_the_page_is_served_with_its_headers(app: App) -> None:
    async with aiohttp.ClientSession() as client, client.get(app.url) as response:
        assert response.status == 200, "build the page first: make page"
        assert "text/html" in response.headers["Content-Type"]
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        policy = response.headers["Content-Security-Policy"]
        assert "default-src 'self'" in policy
        assert "base-uri 'none'" in policy
        assert "form-action 'none'" in policy
        assert "unsafe" not in policy
        assert "ws:" not in policy


async def test_a_box_that_is_still_starting_says_so(database: Path) -> None:
    app = App(load(None, settings(database)))
    await app.listen()
    try:
        status, ready = await get_json(app, "/readyz")
        assert (status, ready["ready"], ready["reason"]) == (503, False, "starting")
        status, answer = await post(app, JPEG)
        assert (status, answer["code"]) == (503, "not_ready")
        async with aiohttp.ClientSession() as client:
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await client.ws_connect(f"{app.url}/v1/stream")
        assert refused.value.status == 503
        assert (await get_json(app, "/v1/state"))[1]["box"]["ready_reason"] == "starting"
        await app.start()
        assert (await get_json(app, "/readyz"))[0] == 200
    finally:
        await app.stop()


async def test_other_programs_forms(app: App, street: bytes) -> None:
    query = {"deadline_ms": 30_000, "variant": "street-608"}
    native = (await post(app, street, query))[1]
    coco = (await post(app, street, {**query, "format": "coco", "image_id": 7}))[1]
    assert coco["images"] == [{"id": 7, "width": 1280, "height": 720}]
    assert coco["info"]["variant"] == "street-608"
    names = {category["id"]: category["name"] for category in coco["categories"]}
    labels = [found["label"] for found in native["detections"]]
    assert [names[one["category_id"]] for one in coco["annotations"]] == labels
    assert {one["image_id"] for one in coco["annotations"]} == {7}
    theirs = (await post(app, street, {**query, "format": "supervision"}))[1]
    assert theirs["image"] == {"width": 1280, "height": 720}
    assert theirs["outcome"] == "on_time"
    assert [one["class"] for one in theirs["predictions"]] == labels


async def test_a_camera_that_leaves_takes_no_requests_of_programs_along(
    app: App, street: bytes
) -> None:
    assert not NAME_PATTERN.fullmatch(ONE_SHOT_CAMERA)
    ended: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    app.box.submit_picture(
        street,
        (1280, 720),
        VariantName("street-608"),
        30_000,
        app="http",
        address="127.0.0.1",
        on_end=lambda _, ending: ended.set_result(ending),
    )
    app.box.driver.feed(CameraDisconnected(CameraId("http")))
    assert isinstance(await ended, Answer)


async def test_under_overload_repetitions_are_refused_and_what_is_answered_is_right(
    app: App,
) -> None:
    """Several pictures at once on each connection: some have time, and refusals are counted."""
    params: dict[str, str | int] = {"deadline_ms": 400, "variant": "street-608", "app": "flood"}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=24)) as client:

        async def ask() -> tuple[int, object]:
            async with client.post(f"{app.url}/v1/infer", data=JPEG, params=params) as said:
                answer = await said.json(content_type=None)
                return said.status, answer.get("code", answer.get("variant"))

        seen: set[tuple[int, object]] = set()

        async def rounds() -> None:
            while not {(200, "street-608"), (503, "overload")} <= seen:
                seen.update(await asyncio.gather(*(ask() for _ in range(24))))

        await asyncio.wait_for(rounds(), PATIENCE_S)
    expected: set[tuple[int, object]] = {(503, "queue"), (503, "infeasible")}
    assert seen - expected == {(200, "street-608"), (503, "overload")}
    assert (await get_json(app, "/v1/state"))[1]["box"]["refused"]["overload"] > 0
    assert (await post(app, JPEG, {"deadline_ms": 30_000}))[0] == 200
