"""What waits to be sent to a camera: in order, bounded, never blocking, on a real WebSocket."""

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator
from typing import Any, cast

import aiohttp
import pytest
from aiohttp import web

from edgebox.web.outbox import Outbox
from tests.conftest import PATIENCE_S


@contextlib.asynccontextmanager
async def connected(
    messages_max: int, stall_s: float
) -> AsyncIterator[tuple[Outbox, aiohttp.ClientWebSocketResponse]]:
    """Connect an outbox to a client over loopback, with buffers as small as they get."""
    made: asyncio.Future[Outbox] = asyncio.get_running_loop().create_future()
    over = asyncio.Event()

    async def serve(request: web.Request) -> web.WebSocketResponse:
        answer = web.WebSocketResponse()
        await answer.prepare(request)
        assert request.transport is not None
        raw = request.transport.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        made.set_result(Outbox(answer, messages_max, stall_s))
        await over.wait()
        return answer

    application = web.Application()
    application.router.add_get("/", serve)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        async with aiohttp.ClientSession() as client, client.ws_connect(url) as peer:
            yield await made, peer
            over.set()
    finally:
        over.set()
        await runner.cleanup()


async def test_messages_arrive_in_order_and_close_lets_all_go_out() -> None:
    async with connected(100, 5) as (outbox, peer):
        run = asyncio.create_task(outbox.run())
        for number in range(50):
            outbox.put(str(number).encode())
        outbox.close()
        await run
        assert [await peer.receive_str() for _ in range(50)] == [str(n) for n in range(50)]
        assert not outbox.overrun


async def test_messages_put_later_wake_it_up() -> None:
    async with connected(100, 5) as (outbox, peer):
        run = asyncio.create_task(outbox.run())
        for text in ("one", "two"):
            await asyncio.sleep(0.02)
            outbox.put(text.encode())
            assert await peer.receive_str() == text
        outbox.close()
        await run


async def test_a_full_outbox_is_an_overrun_and_ends() -> None:
    async with connected(3, 5) as (outbox, _):
        for _ in range(4):
            outbox.put(b"x")
        assert outbox.overrun
        await asyncio.wait_for(outbox.run(), PATIENCE_S)


@pytest.mark.parametrize("stall_s", [0.2])
async def test_a_peer_that_does_not_read_is_an_overrun_after_the_stall(stall_s: float) -> None:
    async with connected(10_000, stall_s) as (outbox, peer):
        assert peer._response.connection is not None
        transport: Any = peer._response.connection.transport
        transport.pause_reading()
        for _ in range(2_000):
            outbox.put(b"x" * 10_000)
        began_s = time.monotonic()
        await asyncio.wait_for(outbox.run(), PATIENCE_S)
        assert outbox.overrun
        assert time.monotonic() - began_s >= stall_s
        transport.abort()


async def test_a_peer_that_reads_slowly_all_the_time_is_none() -> None:
    """The stall counts for each message, however many wait."""
    sent = 0

    class Slow:
        async def send_frame(self, message: bytes, kind: aiohttp.WSMsgType) -> None:
            nonlocal sent
            sent += 1
            await asyncio.sleep(0.02)

    outbox = Outbox(cast(web.WebSocketResponse, Slow()), 100, 0.5)
    for _ in range(40):
        outbox.put(b"x")
    outbox.close()
    await asyncio.wait_for(outbox.run(), PATIENCE_S)
    assert (sent, outbox.overrun) == (40, False)


async def test_a_peer_that_is_gone_ends_it_quietly() -> None:
    async with connected(10_000, 5) as (outbox, peer):
        run = asyncio.create_task(outbox.run())
        assert peer._response.connection is not None
        transport: Any = peer._response.connection.transport
        transport.abort()
        for _ in range(100):
            outbox.put(b"x" * 10_000)
            await asyncio.sleep(0)
            if run.done():
                break
        await asyncio.wait_for(run, PATIENCE_S)
        assert not outbox.overrun
