"""aiohttp and ONNX Runtime, and nothing else."""

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor

import uvloop
from aiohttp import web

from benchmarks.peers.servers.session import infer, load


def app() -> web.Application:
    """Return the server."""
    session, thread = load(), ThreadPoolExecutor(1)

    async def answer(request: web.Request) -> web.Response:
        body = await request.read()
        loop = asyncio.get_running_loop()
        return web.Response(body=await loop.run_in_executor(thread, infer, session, body))

    server = web.Application(client_max_size=1 << 24)
    server.router.add_post("/predict", answer)
    return server


if __name__ == "__main__":
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    web.run_app(app(), host="127.0.0.1", port=int(sys.argv[4]), print=None, access_log=None)
