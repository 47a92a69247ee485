"""What a camera says of a server that opens no WebSocket."""

import aiohttp
import pytest
from aiohttp import web

from edgebox.camera.daemon import _refused
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
            with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
                await client.ws_connect(f"ws://127.0.0.1:{port}/v1/stream")
        return _refused(caught.value)
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
