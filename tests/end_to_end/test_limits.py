"""Clients that hold what others need: bodies without end, too many requests, pages, connections."""

import asyncio
import contextlib
import gc
import sys
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from edgebox.app.composition import App
from edgebox.camera.daemon import Camera
from edgebox.domain.requests import CameraId
from edgebox.link.messages import Hello
from edgebox.media.sources import PictureSource
from tests.conftest import PATIENCE_S
from tests.end_to_end.program import SOURCE_TREE, configured, environment, finish, said
from tests.end_to_end.running import (
    PICTURE,
    SIZE_PX,
    SLO_MS,
    assert_unharmed,
    get_json,
    post,
    running,
    texts,
    unharmed_bystander,
    until,
)
from tests.end_to_end.wire import JPEG

pytestmark = pytest.mark.usefixtures("few_sizes")

MB = 1_000_000


class Sender:
    """A client that sends a body in pieces, and reads the answer."""

    def __init__(self, app: App, path: str, size_bytes: int) -> None:
        self._port = app.port
        self._head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{app.port}\r\n"
            f"Content-Type: application/octet-stream\r\nContent-Length: {size_bytes}\r\n\r\n"
        )
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def send(self, body: bytes) -> None:
        """Send more of the body, after the headers."""
        if self._writer is None:
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
            self._writer.write(self._head.encode())
        self._writer.write(body)
        with contextlib.suppress(ConnectionError):
            await self._writer.drain()

    async def answer(self) -> tuple[int, dict[str, Any]]:
        """Return the status and the document of the answer."""
        assert self._reader is not None
        async with asyncio.timeout(PATIENCE_S):
            head = await self._reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            return int(head.split()[1]), orjson.loads(await self._reader.readexactly(length))

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


async def test_unfinished_bodies_hold_a_bounded_amount_which_is_free_once_they_are_gone(
    database: Path,
) -> None:
    limits: dict[str, Any] = {"limits__frame_bytes_max": MB, "limits__bodies_max_mb": 16}
    async with running(database, **limits) as app:
        async with unharmed_bystander(app):
            part = bytes(2 * MB)
            tracemalloc.start()
            gc.collect()
            gc.disable()  # nothing may depend on it
            try:
                before = tracemalloc.get_traced_memory()[0]
                senders = [Sender(app, "/v2/models/street-128/infer", 4 * MB) for _ in range(20)]
                await asyncio.gather(*(sender.send(part) for sender in senders))
                # One address may hold half: four bodies of 2 MB.
                refusals = app.box.refusals.counts
                await until(lambda: refusals["too_busy"] >= 16, "the others to be refused")
                for sender in senders:
                    sender.close()

                def freed() -> bool:
                    return (
                        tracemalloc.get_traced_memory()[0] - before < 6 * MB
                    )  # all sent 24 MB at least

                await until(freed, "the bodies to be freed")
            finally:
                gc.enable()
                tracemalloc.stop()
        assert sum("too many requests" in text or "bodies" in text for text in texts(app)) == 1
        assert not texts(app, "error")
        status, _ = await post(app, JPEG, {"deadline_ms": SLO_MS})
        assert status == 200


async def test_a_body_that_does_not_come_is_not_waited_for(database: Path) -> None:
    async with running(database, limits__body_timeout_s=0.3) as app:
        sender = Sender(app, "/v1/infer", 1_000)
        await sender.send(b"x")
        status, problem = await sender.answer()
        assert (status, problem["code"]) == (408, "slow_body")
        sender.close()


async def test_requests_beyond_an_addresss_share_are_refused_and_health_is_told(
    database: Path,
) -> None:
    async with running(database, limits__requests_max=8) as app:
        async with unharmed_bystander(app):
            waiting = [Sender(app, "/v1/infer", len(JPEG)) for _ in range(4)]
            for sender in waiting:
                await sender.send(JPEG[:100])
            late = Sender(app, "/v1/infer", len(JPEG))
            while (await get_json(app, "/v1/state"))[0] == 200:
                pass
            await late.send(JPEG)
            status, problem = await late.answer()
            assert (status, problem["code"]) == (503, "too_busy")
            assert "limits.requests_max" in problem["detail"]
            for path in ("/healthz", "/readyz"):
                assert (await get_json(app, path))[0] == 200
            for sender in waiting:
                await sender.send(JPEG[100:])
                assert (await sender.answer())[0] == 200
            assert (await get_json(app, "/v1/state"))[0] == 200
            for sender in [*waiting, late]:
                sender.close()
        assert (await get_json(app, "/v1/state"))[1]["box"]["refused"]["too_busy"] >= 2


async def test_only_so_many_pages_may_be_open(database: Path) -> None:
    async with running(database, limits__viewers_max=4) as app, aiohttp.ClientSession() as client:
        url = f"{app.url}/v1/ui"
        pages = [await client.ws_connect(url) for _ in range(2)]
        async with client.get(url) as refused:
            assert refused.status == 503
            assert (await refused.json(content_type=None))["code"] == "too_many_viewers"
        await pages[0].close()
        await until(lambda: app.box.shown.viewers == 1, "the page to be gone")
        pages.append(await client.ws_connect(url))
        for page in pages:
            await page.close()


async def test_a_second_upload_waits_for_the_first(database: Path) -> None:
    async with running(database, access__open_scope="admin") as app:
        first = Sender(app, "/v1/models?name=one", 1_000)
        await first.send(b"x")
        while True:
            second = Sender(app, "/v1/models?name=two", 1)
            await second.send(b"x")
            status, problem = await second.answer()
            second.close()
            if status == 409:
                break
        assert (problem["code"], "the file of one" in problem["detail"]) == ("busy", True)
        first.close()


@contextlib.asynccontextmanager
async def serving_with(
    home: Path, files_max: int, *arguments: str
) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """Run `edgebox serve` where a process may open so many files."""
    process = await asyncio.create_subprocess_exec(
        "/bin/sh", "-c", f'ulimit -n {files_max} && exec "$0" "$@"', sys.executable,
        *("-m", "edgebox", "serve", *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment(home),
        cwd=SOURCE_TREE,
    )  # fmt: skip
    try:
        line = await said(process, "ready in")
        yield process, line.split(" s: ")[1].strip()
    finally:
        if process.returncode is None:
            process.terminate()
            await finish(process)


async def test_a_box_with_few_descriptors_serves_its_cameras_whoever_connects(
    database: Path, tmp_path: Path
) -> None:
    file = configured(tmp_path, database, "[limits]", "pending_per_camera_max = 1000")
    source = PictureSource(SIZE_PX, 15.0, lambda number: PICTURE)
    async with serving_with(tmp_path, 200, "--config", str(file)) as (_, url):
        port = int(url.rsplit(":", 1)[1])
        camera = Camera(source, url, name="gate", rate_hz=15.0, slo_ms=SLO_MS)
        run = asyncio.create_task(camera.run())
        await until(lambda: camera.summary().on_time >= 1, "its first answer")
        others = [await asyncio.open_connection("127.0.0.1", port) for _ in range(400)]
        for _, writer in others[200:]:
            writer.write(b"GET / HTTP/1.1\r\n")
        answered = camera.summary().on_time
        await until(lambda: camera.summary().on_time >= answered + 5, "five more answers")
        # A new client is let in, and the box can open files.
        async with aiohttp.ClientSession() as client:
            async with client.get(f"{url}/v1/state") as answer:
                state = await answer.json()
            async with client.get(f"{url}/") as page:
                assert page.status in (200, 404)
        notices = [event["text"] for event in state["box"]["events"]]
        assert sum("connections are accepted, fewer than" in text for text in notices) == 1
        for _, writer in others:
            writer.close()
        camera.stop()
        await run
        assert_unharmed(camera.summary())


async def test_who_has_not_said_hello_holds_no_more_than_a_message(database: Path) -> None:
    async with running(database) as app:
        async with unharmed_bystander(app):
            head = (
                f"GET /v1/stream HTTP/1.1\r\nHost: 127.0.0.1:{app.port}\r\nUpgrade: websocket\r\n"
                "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n"
            ).encode()
            tracemalloc.start()
            # One message of 16 MB, masked with zeros.
            message = b"\x82\xff" + (16 * MB).to_bytes(8, "big") + bytes(4)
            before = tracemalloc.get_traced_memory()[0]
            pairs = [await asyncio.open_connection("127.0.0.1", app.port) for _ in range(5)]
            for reader, writer in pairs:
                writer.write(head)
                await reader.readuntil(b"\r\n\r\n")
                writer.write(message)
                for _ in range(15):
                    writer.write(bytes(MB))
                    await writer.drain()
            assert tracemalloc.get_traced_memory()[0] - before < 15 * MB
            tracemalloc.stop()
            for _, writer in pairs:
                writer.close()
        assert list(app.box.cameras) == ["bystander"]


async def test_endless_names_of_cameras_do_not_make_documents_endless(database: Path) -> None:
    async with running(database, limits__cameras_max=4) as app, unharmed_bystander(app):
        for address in ("127.0.0.2", "127.0.0.3", "127.0.0.4"):
            connector = aiohttp.TCPConnector(local_addr=(address, 0))
            async with aiohttp.ClientSession(connector=connector) as client:
                for number in range(8):
                    name = f"{address.replace('.', '-')}-{number}"
                    socket = await client.ws_connect(f"{app.url}/v1/stream")
                    await socket.send_str(Hello(name, *SIZE_PX).encode().decode())
                    assert orjson.loads((await socket.receive()).data)["type"] == "welcome"
                    await socket.close()
                    await gone_or_forgotten(app, name)
        _, state = await get_json(app, "/v1/state")
        # Two names for each camera that may be connected, and the one that is.
        assert len(state["cameras"]) == 9
        async with (
            aiohttp.ClientSession() as client,
            client.get(f"{app.url}/metrics") as answer,
        ):
            metrics = await answer.text()
        assert "127-0-0-2" not in metrics
        assert "127-0-0-4-7" in metrics


async def gone_or_forgotten(app: App, name: str) -> None:
    def has_left() -> bool:
        record = app.box.cameras.get(CameraId(name))
        return record is None or not record.connected

    await until(has_left, f"{name} to leave")
