"""A camera whose messages are there already does not keep others from their turn."""

import asyncio

import pytest
from aiohttp import WSMessage, WSMsgType, web
from aiohttp.test_utils import TestClient, TestServer

from edgebox.web.camera_socket import CameraSocket


async def test_others_have_their_turns_while_messages_are_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def at_once(*_: object) -> WSMessage:
        return WSMessage(WSMsgType.TEXT, b"{}", None)

    # There always is a message, as aiohttp hands them out.
    monkeypatch.setattr(web.WebSocketResponse, "receive", at_once)
    socket = CameraSocket(1_000, lambda: 0, lambda sent_ns, received_ns: None, lambda: None)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    for _ in range(160):
        await socket.next_message()
    task.cancel()
    assert turns == 10


async def test_a_ping_of_a_camera_that_is_gone_ends_its_messages() -> None:
    heard = asyncio.get_running_loop().create_future()

    async def handle(request: web.Request) -> web.StreamResponse:
        socket = CameraSocket(1_000, lambda: 0, lambda sent_ns, received_ns: None, lambda: None)
        await socket.prepare(request)
        assert request.transport is not None
        for _ in range(10_000):
            if socket._reader is not None and socket._reader._buffer:  # the ping
                break
            await asyncio.sleep(0)
        request.transport.abort()
        try:
            heard.set_result((await socket.next_message()).type)
        except Exception as error:
            heard.set_exception(error)
        return socket

    app = web.Application()
    app.router.add_get("/", handle)
    async with TestClient(TestServer(app)) as client, client.ws_connect("/") as camera:
        await camera.ping()
        assert await heard not in (WSMsgType.PING, WSMsgType.TEXT, WSMsgType.BINARY)
