"""A box that a proxy serves under a path: pages, cameras and programs find it there."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from edgebox.app.composition import App
from edgebox.camera.daemon import Camera
from edgebox.client import subscribe
from edgebox.domain.requests import CameraId
from tests.end_to_end.browsing import PATIENCE_MS, new_page, street, tile_of
from tests.end_to_end.running import SLO_MS, running, until

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),  # the browser's
    pytest.mark.usefixtures("few_sizes"),
]

PREFIX = b"/street/1"
CLIENT = "192.0.2.7"
"""Whom the proxy says that it serves."""


@contextlib.asynccontextmanager
async def proxied(app: App) -> AsyncIterator[str]:
    """Serve the box under `PREFIX`, and nothing beside it; give the address."""

    async def serve(near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError), contextlib.closing(back):
            head = await near.readuntil(b"\r\n\r\n")
            method, path, rest = head.split(b" ", 2)
            if not path.startswith(PREFIX + b"/"):
                back.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                return
            # One request a connection, so that each one's path is seen here.
            rest = rest.replace(b"\r\n", f"\r\nX-Forwarded-For: {CLIENT}\r\n".encode(), 1)
            if b"upgrade: websocket" not in rest.lower():
                rest = rest.replace(b"\r\n", b"\r\nConnection: close\r\n", 1)
                rest = rest.replace(b"Connection: keep-alive\r\n", b"")
            far, there = await asyncio.open_connection("127.0.0.1", app.port)
            with contextlib.closing(there):
                there.write(b" ".join((method, path.removeprefix(PREFIX), rest)))
                await asyncio.gather(pump(near, there), pump(far, back))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    try:
        yield f"http://{host}:{port}{PREFIX.decode()}/"
    finally:
        server.close()


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()
    writer.close()


@pytest.mark.parametrize("place", ["", "#/settings", "#/scheduler", "#/models", "camera"])
async def test_pages_work_under_a_path(database: Path, browser: Browser, place: str) -> None:
    async with running(database) as app, proxied(app) as url:
        page, complaints = await new_page(browser)
        await page.goto(url + place)
        await expect(page.locator("main")).to_be_visible(timeout=PATIENCE_MS)
        if place != "camera":
            await expect(page.get_by_test_id("connection")).to_have_text("Live")
        if not place:
            line = page.get_by_test_id("empty").locator("code")
            await expect(line).to_contain_text(url.replace("http", "ws", 1).rstrip("/"))
        assert complaints == []


async def test_cameras_and_programs_find_a_box_under_a_path(
    database: Path, browser: Browser
) -> None:
    async with (
        running(database, server__trusted_proxies=("127.0.0.1",)) as app,
        proxied(app) as url,
    ):
        camera = Camera(name="gate", server=url.replace("http", "ws", 1), slo_ms=SLO_MS, **street())
        run = asyncio.create_task(camera.run())
        try:
            await until(lambda: camera.summary().on_time >= 1, "its first answer")
            assert app.box.cameras[CameraId("gate")].address == CLIENT
            async with (
                asyncio.timeout(PATIENCE_MS / 1e3),
                contextlib.aclosing(subscribe(url)) as messages,
            ):
                kinds = [(await anext(messages))["type"] for _ in range(2)]
            assert kinds == ["subscribed", "result"]
            page, _ = await new_page(browser)
            await page.goto(url)
            await expect(tile_of(page, "gate").locator("canvas[data-frames]")).to_be_visible()
        finally:
            camera.stop()
            await run
