"""GET /v1/results on a real box: what programs are told, and that slow ones harm nobody."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from edgebox.app.composition import App
from edgebox.domain.requests import CameraId
from edgebox.media.sources import PictureSource
from edgebox.runtime.camera_record import CameraRecord
from edgebox.runtime.frames import FrameResult, PendingFrame
from edgebox.web import results_stream
from edgebox.web.feed import SUBSCRIBERS_MAX
from tests.conftest import PATIENCE_S
from tests.end_to_end.running import running, streaming, unharmed_bystander, until
from tests.end_to_end.streets import street_picture
from tests.end_to_end.wire import WireCamera

pytestmark = pytest.mark.usefixtures("few_sizes")


@pytest.fixture
async def app(database: Path) -> AsyncIterator[App]:
    street_picture(3, 640, 360)  # painted while no box waits
    async with running(database) as app:
        yield app


@contextlib.asynccontextmanager
async def street_camera(app: App, name: str) -> AsyncIterator[None]:
    # So few that a busy machine, too, has time for the largest variant, which sees the most.
    source = PictureSource((640, 360), 2.0, lambda number: street_picture(3, 640, 360))
    async with streaming(app, name, source=source, rate_hz=2.0):
        yield


Socket = aiohttp.ClientWebSocketResponse


@contextlib.asynccontextmanager
async def subscribed(app: App, query: str = "") -> AsyncIterator[tuple[Socket, dict[str, Any]]]:
    """Subscribe; give the socket and the first message."""
    async with (
        aiohttp.ClientSession() as client,
        client.ws_connect(f"{app.url}/v1/results?{query}") as socket,
    ):
        yield socket, await next_message(socket)


async def next_message(
    socket: Socket, wanted: Callable[[dict[str, Any]], bool] = lambda document: True
) -> dict[str, Any]:
    """Return the next message that is wanted."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            document: dict[str, Any] = orjson.loads(await socket.receive_str())
            if wanted(document):
                return document


async def test_results_say_what_the_camera_was_told_and_when(app: App) -> None:
    async with subscribed(app, "outcome=on_time&outcome=dropped") as (socket, first):
        assert first["type"] == "subscribed"
        assert first["outcomes"] == ["on_time", "dropped"]
        assert first["families"]["street"]["labels"][0] == "person"
        assert first["families"]["street"]["categories"][0] == {"id": 1, "name": "person"}
        async with WireCamera(app, "gate") as camera:
            await until(lambda: len(camera.pings()) >= 2, "its clock to be known")
            before_ms = time.time() * 1e3
            answered = await camera.result(await camera.frame())
            after_ms = time.time() * 1e3
            result = await next_message(socket)
            rtt_ns = app.box.cameras[CameraId("gate")].link.clock.rtt_ns
            broken = await camera.frame(b"no picture")
            dropped = await next_message(socket, lambda document: document["type"] == "drop")
    assert (result["type"], result["camera"], result["app"]) == ("result", "gate", "default")
    assert (result["family"], result["frame"]) == ("street", answered.frame)
    assert (result["outcome"], result["variant"]) == ("on_time", answered.variant)
    assert (result["width_px"], result["height_px"]) == (320, 180)
    assert result["timing_ms"]["batch_size"] == 1
    assert result["timing_ms"]["total"] == pytest.approx(answered.timing.total_ms, abs=0.1)
    # The camera's clock is known within half a round trip; instants are told in whole ms.
    assert rtt_ns is not None
    error_ms = rtt_ns / 2e6 + 1
    assert before_ms - error_ms <= result["captured_at_ms"] <= after_ms + error_ms
    assert dropped["frame"] == broken
    assert (dropped["outcome"], dropped["reason"]) == ("dropped", "invalid")
    assert "not a JPEG" in dropped["message"]


async def test_filters_by_camera_class_and_score(app: App) -> None:
    async with street_camera(app, "gate-2"), street_camera(app, "door"):
        query = "camera=gate-*&camera=porch&class=car&score_min=0.6&empty=false"
        async with subscribed(app, query) as (socket, _):
            for _ in range(3):
                result = await next_message(socket)
                assert result["camera"] == "gate-2"
                assert {found["label"] for found in result["detections"]} == {"car"}
                assert min(found["score"] for found in result["detections"]) >= 0.6
        async with subscribed(app, "class=bus&class=truck&score_min=1") as (socket, _):
            assert (await next_message(socket))["detections"] == []


async def test_a_message_changes_the_filter_and_the_form(app: App) -> None:
    async with (
        street_camera(app, "gate"),
        street_camera(app, "door"),
        subscribed(app, "camera=gate&format=supervision") as (socket, _),
    ):
        result = await next_message(socket)
        assert result["image"] == {"width": 640, "height": 360}
        assert {"x", "y", "width", "height", "confidence", "class", "class_id"} == set(
            result["predictions"][0]
        )
        await socket.send_json({"type": "subscribe", "cameras": ["door"], "format": "coco"})
        changed = await next_message(socket, lambda document: document["type"] != "result")
        assert (changed["type"], changed["cameras"]) == ("subscribed", ["door"])
        assert changed["connected"] == ["door"]
        assert changed["score_min"] == 0.3
        result = await next_message(socket)
        assert result["camera"] == "door", "nothing of the old filter comes after the answer"
        assert result["images"] == [{"id": result["frame"], "width": 640, "height": 360}]
        assert result["annotations"][0]["image_id"] == result["frame"]


async def test_a_wrong_message_is_told_and_changes_nothing(app: App) -> None:
    async with unharmed_bystander(app), subscribed(app) as (socket, _):
        for said, about in (
            ("nonsense", "JSON"),
            ('{"type": "look"}', "subscribe"),
            ('{"type": "subscribe", "max_hz": -1}', "subscribe.max_hz must be a number"),
            ('{"type": "subscribe", "classes": ["unicorn"]}', "finds unicorn; they find bus, car"),
        ):
            await socket.send_str(said)
            answer = await next_message(socket, lambda document: document["type"] != "result")
            assert answer["type"] == "error"
            assert about in answer["message"]
        await socket.send_bytes(b"\x00")
        assert (await next_message(socket, lambda document: document["type"] == "error"))["message"]
        assert (await next_message(socket))["camera"] == "bystander"


async def test_the_pace_is_thinned_without_counting_as_skipped(app: App) -> None:
    async with (
        streaming(app, "gate", rate_hz=20.0),
        subscribed(app, "max_hz=4") as (socket, first),
    ):
        assert first["max_hz"] == 4
        began_s = time.monotonic()
        for _ in range(6):
            assert (await next_message(socket))["type"] == "result"
        assert time.monotonic() - began_s >= 5 / 4 / 2  # 5 / 20 if nothing were left out


async def test_a_subscriber_that_does_not_read_misses_results_and_is_told(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However long a busy machine takes to send all this: so long may the subscriber stand still.
    for limit in ("_STALL_S", "_HEARTBEAT_S"):
        monkeypatch.setattr(results_stream, limit, PATIENCE_S)
    received: list[tuple[CameraRecord, PendingFrame, FrameResult]] = []

    def hear(record: CameraRecord, frame: PendingFrame, ending: FrameResult) -> None:
        received.append((record, frame, ending))

    async with (
        unharmed_bystander(app),
        subscribed(app, "empty=true") as (slow, _),
        subscribed(app) as (other, _),
    ):
        app.box.observers.add(hear)
        await until(lambda: bool(received), "a result to repeat")
        app.box.observers.remove(hear)
        record, frame, ending = received[0]
        assert slow._response.connection is not None
        transport: Any = slow._response.connection.transport
        transport.pause_reading()
        # Sockets on loopback hold megabytes, which a camera would need hours to fill.
        many = 0
        for _ in range(400):
            for _ in range(50):
                app.box.observers.notify(record, replace(frame, number=(many := many + 1)), ending)
            await asyncio.sleep(0.001)
        assert (await next_message(other))["type"] == "result"
        transport.resume_reading()
        got, skipped, newest = 0, 0, 0
        while newest < many:
            document = await next_message(slow)
            if document["type"] == "skipped":
                skipped += document["count"]
            elif document["frame"] > newest:
                got, newest = got + 1, document["frame"]
        assert skipped > 0
        assert newest == many, "the newest is never the one to go"
        assert got + skipped >= many


async def test_server_sent_events_for_curl(app: App) -> None:
    others = len(app.box.observers)
    async with streaming(app, "gate"), aiohttp.ClientSession() as client:
        url, accept = f"{app.url}/v1/results?camera=gate", {"Accept": "text/event-stream"}
        async with client.get(url, headers=accept) as response:
            assert response.status == 200
            assert response.content_type == "text/event-stream"
            documents: list[dict[str, Any]] = []
            async with asyncio.timeout(PATIENCE_S):
                while len(documents) < 3:
                    line = await response.content.readline()
                    if line.strip():
                        assert line.startswith(b"data: {")
                        documents.append(orjson.loads(line[6:]))
        assert [document["type"] for document in documents] == ["subscribed", "result", "result"]
        await until(lambda: len(app.box.observers) == others, "the box to notice that it has gone")


@pytest.mark.parametrize(
    ("query", "headers", "status", "message"),
    [
        ("", {}, 400, "Accept: text/event-stream"),
        ("cameras=x", {}, 400, "no parameter 'cameras'; there are camera, class, score_min"),
        ("max_hz=1&max_hz=2", {}, 400, "max_hz may be given once"),
        ("score_min=nan", {}, 400, "score_min must be a number from 0 to 1"),
        ("class=unicorn", {"Accept": "text/event-stream"}, 400, "no model family finds unicorn"),
        ("format=xml", {}, 400, "format must be native, coco or supervision"),
        ("outcome=lost", {}, 400, "outcome must be on_time, late or dropped"),
        ("max_hz=0", {}, 400, "max_hz must be a number from 0.001"),
        ("empty=maybe", {}, 400, "empty must be true or false"),
        ("", {"Origin": "https://evil.example"}, 403, "pages of https://evil.example"),
    ],
)
async def test_a_wrong_request_is_told_why(
    app: App, query: str, headers: dict[str, str], status: int, message: str
) -> None:
    others = len(app.box.observers)
    async with (
        aiohttp.ClientSession() as client,
        client.get(f"{app.url}/v1/results?{query}", headers=headers) as response,
    ):
        assert response.status == status
        assert message in await response.text()
    assert len(app.box.observers) == others


async def test_there_are_only_so_many_subscribers(app: App) -> None:
    others = len(app.box.observers)
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(SUBSCRIBERS_MAX):
            await stack.enter_async_context(subscribed(app))
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await stack.enter_async_context(subscribed(app))
        assert refused.value.status == 503
    await until(lambda: len(app.box.observers) == others, "everybody to have gone")


async def test_a_stopping_box_says_goodbye_at_once(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What a server grants those who do not leave by themselves.
    monkeypatch.setattr("edgebox.web.server._SHUTDOWN_S", 10 * PATIENCE_S)
    async with running(database) as app, aiohttp.ClientSession() as client:
        socket = await client.ws_connect(f"{app.url}/v1/results")
        await next_message(socket)
        async with asyncio.timeout(PATIENCE_S):
            stopping = asyncio.create_task(app.stop())
            message = await socket.receive()
            assert message.type is aiohttp.WSMsgType.CLOSE
            assert message.data == aiohttp.WSCloseCode.GOING_AWAY
            await stopping
