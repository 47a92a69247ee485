"""What a camera says of a server that opens no WebSocket."""

import random

import aiohttp
import pytest
from aiohttp import web

from edgebox.camera.box_connection import BoxConnection
from edgebox.domain.errors import EdgeboxError


async def refusal(status: int) -> EdgeboxError:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=status)

    app = web.Application()
    app.router.add_get("/v1/stream", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        async with aiohttp.ClientSession() as client:
            connection = BoxConnection(f"127.0.0.1:{port}", None, None, random.Random(1))
            with pytest.raises(EdgeboxError) as caught:
                await connection.open(client)
        return caught.value
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (401, "pair the camera"),
        (404, "this is no edgebox"),
        (421, "server.allowed_hosts"),
        (503, "the box is starting"),
    ],
)
async def test_it_says_what_to_do(status: int, says: str) -> None:
    said = str(await refusal(status))
    assert says in said
    assert "Invalid response status" not in said
