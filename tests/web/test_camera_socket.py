"""A camera whose messages are there already does not keep others from their turn."""

import asyncio

from aiohttp import WSMessage, WSMsgType

from edgebox.web.camera_socket import CameraSocket


class Buffered(CameraSocket):
    """A socket on which there always is a message, as aiohttp hands it out."""

    async def receive(self, timeout: float | None = None) -> WSMessage:  # noqa: ASYNC109
        return WSMessage(WSMsgType.TEXT, b"{}", None)


async def test_others_have_their_turns_while_messages_are_there() -> None:
    socket = Buffered(1_000, lambda: 0, lambda sent_ns, received_ns: None, lambda: None)
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
