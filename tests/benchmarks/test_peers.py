"""The load generator and the figures of the comparison with other servers."""

import asyncio
import base64
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from benchmarks.ingest import quantiles_ms
from benchmarks.peers.__main__ import Ended, answered, recovery_s
from benchmarks.peers.client import Load
from benchmarks.peers.known import PEERS

MS = 1_000_000


async def ended_of(answer: Any, **what: Any) -> Ended:
    """Return what the generator says of a server that answers so."""
    app = web.Application()
    app.router.add_post("/predict", answer)
    async with TestServer(app) as server:
        order = {
            "host": "127.0.0.1",
            "port": server.port,
            "path": "/predict",
            "headers": {"X-Asked": "yes"},
            "body": base64.b64encode(b"picture").decode(),
        }
        return await Load({**order, **what}).run()


async def test_so_many_requests_are_in_flight_and_no_more() -> None:
    now = most = 0

    async def answer(request: web.Request) -> web.Response:
        nonlocal now, most
        assert await request.read() == b"picture"
        assert request.headers["X-Asked"] == "yes"
        now += 1
        most = max(most, now)
        await asyncio.sleep(0)
        now -= 1
        return web.Response(body=b"x" * 100_000)

    ended = await ended_of(answer, in_flight=3, seconds=0.3)
    assert most == 3
    assert len(ended) >= 3
    assert {status for _, _, status in ended} == {200}


async def test_arrivals_do_not_wait_for_answers() -> None:
    held = asyncio.Event()
    asked = 0

    async def answer(request: web.Request) -> web.Response:
        nonlocal asked
        asked += 1
        if asked == 20:
            held.set()
        await held.wait()
        return web.Response(status=503)

    ended = await ended_of(answer, rates_hz=[[200.0, 0.5]])
    assert len(ended) == asked > 20
    assert {status for _, _, status in ended} == {503}
    assert all(0 <= at_s < 0.5 for at_s, _, _ in ended)


async def test_a_server_that_hangs_up_has_not_answered() -> None:
    async def answer(request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    ended = await ended_of(answer, rates_hz=[[100.0, 0.2]])
    assert ended
    assert {status for _, _, status in ended} == {-1}


def test_only_answers_in_time_count() -> None:
    ended: Ended = [(0.0, 5 * MS, 200), (0.1, 15 * MS, 200), (0.2, 5 * MS, 503), (0.3, 5 * MS, -1)]
    assert answered(ended, 10 * MS) == 1
    assert quantiles_ms([3 * MS, MS, 2 * MS])["p50"] == 2.0


@pytest.mark.parametrize(("bad_s", "expected"), [(2.0, 0.0), (2.35, 0.4), (9.0, None)])
def test_recovery_is_the_first_tenth_of_a_second_that_is_in_time(
    bad_s: float, expected: float | None
) -> None:
    ended: Ended = [(at / 100, (50 if at / 100 < bad_s else 1) * MS, 200) for at in range(500)]
    assert recovery_s(ended, 2.0, 10 * MS) == expected


def test_each_peer_has_a_question_and_a_way_to_start() -> None:
    for peer in PEERS.values():
        path, headers, body = peer.ask()
        assert path.startswith("/")
        assert "Content-Type" in headers
        assert body
        assert bool(peer.command) != bool(peer.config)
