"""A camera whose messages are there already does not keep others from their turn."""

import asyncio

import pytest
from aiohttp import ClientConnectionResetError, WSMessage, WSMsgType, web

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


async def test_a_ping_of_a_camera_that_is_gone_ends_its_messages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    coming = iter([WSMessage(WSMsgType.PING, b"", None), WSMessage(WSMsgType.CLOSED, None, None)])

    async def received(*_: object) -> WSMessage:
        return next(coming)

    async def closing(*_: object) -> None:
        raise ClientConnectionResetError("Cannot write to closing transport")

    monkeypatch.setattr(web.WebSocketResponse, "receive", received)
    monkeypatch.setattr(web.WebSocketResponse, "pong", closing)
    socket = CameraSocket(1_000, lambda: 0, lambda sent_ns, received_ns: None, lambda: None)
    assert (await socket.next_message()).type is WSMsgType.CLOSED
