"""A camera whose messages are there already does not keep others from their turn."""

import asyncio

import pytest
from aiohttp import WSMessage, WSMsgType, web

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
