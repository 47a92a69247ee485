"""The page's WebSocket, spoken to as the page does: documents, live frames, slow viewers."""

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
from jsonschema import Draft202012Validator

from edgebox.app.composition import App
from edgebox.link import receipts
from edgebox.media.jpeg import probe
from tests.conftest import PATIENCE_S
from tests.end_to_end.running import (
    closed,
    get_json,
    running,
    streaming,
    unharmed_bystander,
    until,
)

pytestmark = pytest.mark.usefixtures("few_sizes")


@contextlib.asynccontextmanager
async def viewing(app: App) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    async with aiohttp.ClientSession() as client, client.ws_connect(f"{app.url}/v1/ui") as page:
        yield page


async def next_frame(page: aiohttp.ClientWebSocketResponse) -> tuple[dict[str, Any], bytes]:
    """Return the next live frame's header and JPEG."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            message = await page.receive()
            if message.type is aiohttp.WSMsgType.BINARY:
                (length,) = struct.unpack_from("<I", message.data)
                return orjson.loads(message.data[4 : 4 + length]), message.data[4 + length :]
            assert message.type is aiohttp.WSMsgType.TEXT, message


async def next_document(page: aiohttp.ClientWebSocketResponse) -> dict[str, Any]:
    """Return the next text message."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            message = await page.receive()
            if message.type is aiohttp.WSMsgType.TEXT:
                document: dict[str, Any] = orjson.loads(message.data)
                return document


async def test_messages_have_the_documented_fields_and_no_others(database: Path) -> None:
    async with running(database) as app, streaming(app, "gate"), viewing(app) as page:
        described = closed((await get_json(app, "/v1/openapi.json"))[1])
        references = described["x-websockets"]["/v1/ui"]["x-messages"]
        messages = (await next_document(page), (await next_frame(page))[0])
        for reference, message in zip(references, messages, strict=True):
            schema = {**reference, "components": described["components"]}
            Draft202012Validator(schema).validate(message)


async def test_a_viewer_gets_documents_and_frames(database: Path) -> None:
    async with running(database) as app, streaming(app, "gate"), viewing(app) as page:
        document = await next_document(page)
        assert document["type"] == "state"
        assert document["cameras"][0]["id"] == "gate"
        header, jpeg = await next_frame(page)
        assert header["camera"] == "gate"
        assert (header["width_px"], header["height_px"]) == (320, 180)
        assert header["variant"].startswith("street-")
        assert header["outcome"] == "on_time"
        assert header["total_ms"] > 0
        width_px, height_px = probe(jpeg)
        assert width_px <= 320
        assert height_px <= 180
        again, _ = await next_frame(page)
        assert again["frame"] > header["frame"]


async def test_a_viewer_watches_what_it_asks_for(database: Path) -> None:
    async with (
        running(database) as app,
        streaming(app, "gate"),
        streaming(app, "door"),
        viewing(app) as page,
    ):
        await page.send_json({"type": "watch", "cameras": ["door"], "max_hz": 30})
        await until(lambda: len(app.box.shown.latest) == 2, "frames of both")
        # What was under way when it asked comes first; both cameras send at the same rate.
        alike = 0
        while alike < 10:
            alike = alike + 1 if (await next_frame(page))[0]["camera"] == "door" else 0


async def test_a_viewer_that_watches_nobody_gets_documents_alone(database: Path) -> None:
    async with running(database) as app, viewing(app) as page:
        async with streaming(app, "gate"):
            header, _ = await next_frame(page)
            await page.send_json({"type": "watch", "cameras": []})
            for _ in range(2):  # a frame may have been under way
                await next_document(page)
            kinds = [(await page.receive()).type for _ in range(3)]
            assert kinds == [aiohttp.WSMsgType.TEXT] * 3
        await page.send_json({"type": "watch", "cameras": ["gate"]})
        last, _ = await next_frame(page)
        assert last["frame"] > header["frame"]
        await page.send_json({"type": "watch", "cameras": []})
        await page.send_json({"type": "watch", "cameras": ["gate"]})
        again, _ = await next_frame(page)
        assert again["frame"] == last["frame"], "its latest, although it is gone"


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("nonsense", "JSON"),
        ('{"type": "look"}', "watch.type"),
        ('{"type": "watch", "max_hz": 1000}', "watch.max_hz must be a number"),
        ('{"type": "watch", "cameras": "all"}', "watch.cameras"),
    ],
)
async def test_a_viewer_that_asks_wrongly_is_told(database: Path, said: str, message: str) -> None:
    async with running(database) as app, unharmed_bystander(app), viewing(app) as page:
        await page.send_str(said)
        async with asyncio.timeout(PATIENCE_S):
            while (answer := await next_document(page))["type"] != "error":
                pass
        assert message in answer["message"]
        assert (await next_document(page))["type"] == "state"


async def test_a_viewer_that_does_not_read_delays_nobody(database: Path) -> None:
    async with running(database) as app, unharmed_bystander(app), viewing(app) as page:
        assert page._response.connection is not None
        transport: Any = page._response.connection.transport
        transport.pause_reading()
        async with viewing(app) as other:
            for _ in range(5):
                await next_frame(other)
        transport.abort()


async def test_nothing_is_kept_for_viewers_that_are_gone(database: Path) -> None:
    async with running(database) as app, streaming(app, "gate"):
        async with viewing(app) as page:
            await next_frame(page)
            assert app.box.shown.viewers == 1
        await until(lambda: app.box.shown.viewers == 0, "the viewer to leave")
        assert not app.box.shown.latest


@pytest.mark.parametrize("path", ["/v1/ui", "/v1/results"])
@pytest.mark.parametrize("kind", ["text", "ping"])
async def test_a_flood_of_small_messages_ends_its_connection_only(
    database: Path, monkeypatch: pytest.MonkeyPatch, path: str, kind: str
) -> None:
    monkeypatch.setattr(receipts, "SMALL_FRAMES_PER_S", 0)  # however long sending takes
    async with (
        running(database) as app,
        unharmed_bystander(app),
        aiohttp.ClientSession() as client,
        client.ws_connect(app.url + path, max_msg_size=0) as page,
    ):
        with contextlib.suppress(ConnectionError):
            for _ in range(receipts.SMALL_FRAMES_BURST + 1):
                await (page.send_str("{}") if kind == "text" else page.ping())
        async with asyncio.timeout(PATIENCE_S):
            while (message := await page.receive()).type is not aiohttp.WSMsgType.CLOSE:
                assert message.type is not aiohttp.WSMsgType.CLOSED
        assert page.close_code == 1008
        assert "WebSocket frames a second" in str(message.extra)
