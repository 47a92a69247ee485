"""What counts as the repetition of a request; and connections that refuse repetitions."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from edgebox.config.config_file import LimitParameters
from edgebox.web.connections import Connections
from edgebox.web.listening import headers_complete, listen, may_repeat, refused_picture
from edgebox.web.refusal_pacing import REST_MIN_S, RefusalBudget
from edgebox.web.repeated_requests import VALID_S, RepeatedRequest, repeated_request
from tests.conftest import PATIENCE_S

BODY_BYTES_MAX = 1_000
ASKS = b"{asks}"
REFUSED = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 7\r\n\r\nrefused"


def request(
    body: bytes, *, path: bytes = b"/infer", more: bytes = b"", length: int | None = None
) -> bytes:
    return b"POST %s HTTP/1.1\r\nHost: box\r\nContent-Length: %d\r\nX-About: %d\r\n%s\r\n%s" % (
        path,
        len(body) if length is None else length,
        len(ASKS),
        more,
        body,
    )


def of(received: bytes) -> RepeatedRequest | None:
    return repeated_request(received, len(ASKS), BODY_BYTES_MAX, 0.0, lambda: REFUSED)


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_the_same_head_with_another_picture_is_a_repetition(one: bytes, other: bytes) -> None:
    repeated = of(request(ASKS + one))
    assert repeated is not None and repeated.until_s == VALID_S
    again = request(ASKS + other)
    assert repeated.length(again) == len(again)
    assert repeated.length(again + again) == len(again), "the next one is not part of it"


@pytest.mark.parametrize(
    "other",
    [
        request(ASKS, path=b"/other"),
        request(b"{axks}"),
        request(ASKS[:-1]),
        request(ASKS, more=b"Authorization: Bearer other\r\n"),
        request(ASKS, length=BODY_BYTES_MAX + 1),
        request(ASKS)[:-20],
        b"",
        b"POST",
        request(ASKS).replace(b"Content-Length: 6", b"Content-Length: six"),
        request(ASKS).replace(b"Content-Length: 6", b"Content-Length: "),
        request(ASKS).replace(b"Content-Length: 6", b"Content-Length: " + b"0" * 20 + b"6"),
    ],
)
def test_what_differs_is_none(other: bytes) -> None:
    repeated = of(request(ASKS))
    assert repeated is not None
    assert repeated.length(other) is None


@pytest.mark.parametrize(
    "first",
    [
        request(ASKS[:-1]),
        request(ASKS).replace(b"HTTP/1.1", b"HTTP/1.0"),
        request(ASKS).replace(b"Content-Length: 6\r\n", b""),
        *(
            request(ASKS, more=more + b"\r\n")
            for more in (
                b"Transfer-Encoding: chunked",
                b"content-encoding: gzip",
                b"Expect: 100-continue",
                b"Upgrade: websocket",
                b"Connection: close",
            )
        ),
        b"",
    ],
)
def test_what_says_more_of_its_body_or_connection_is_never_repeated(first: bytes) -> None:
    assert of(first) is None
    assert of(request(ASKS, more=b"Connection: keep-alive\r\n")) is not None


class Refusing:
    """A server that answers what it is asked, and refuses repetitions if it is told so."""

    def __init__(self) -> None:
        self.refuses = False
        self.answered: list[bytes] = []
        self.refused = 0
        self.port = 0
        self.budget = RefusalBudget()

    async def answer(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.answered.append(body)
        if request.path == "/refused":
            refused_picture(request)
            return web.Response(status=503)
        if request.path == "/infer":
            may_repeat(request, len(ASKS), BODY_BYTES_MAX, self._refusal)
        return web.Response(body=body)

    def _refusal(self) -> bytes | None:
        self.refused += self.refuses
        return REFUSED if self.refuses else None


@pytest.fixture
async def server() -> AsyncIterator[Refusing]:
    refusing, limits = Refusing(), replace(LimitParameters())
    app = web.Application(middlewares=[headers_complete])
    app.router.add_post("/infer", refusing.answer)
    app.router.add_post("/other", refusing.answer)
    app.router.add_post("/refused", refusing.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    connections = Connections(limits, lambda peer: peer, lambda address, error: None)
    socket = await listen(
        runner,
        "127.0.0.1",
        0,
        backlog=64,
        connections=connections,
        limits=limits,
        budget=refusing.budget,
    )
    refusing.port = socket.port
    yield refusing
    socket.close()
    await runner.cleanup()


class Client:
    """One connection."""

    def __init__(
        self, server: Refusing, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._server, self._reader, self.writer = server, reader, writer

    async def heard(self) -> tuple[int, bytes]:
        """Return the next answer."""
        async with asyncio.timeout(PATIENCE_S):
            head = await self._reader.readuntil(b"\r\n\r\n")
            length = next(
                int(line.split(b":")[1])
                for line in head.split(b"\r\n")
                if line.lower().startswith(b"content-length")
            )
            return int(head.split()[1]), await self._reader.readexactly(length)

    async def ask(self, *pieces: bytes) -> tuple[int, bytes]:
        """Send one request in pieces that arrive apart; return its answer."""
        for piece in pieces[:-1]:
            self.writer.write(piece)
            await self.writer.drain()
            async with connected(self._server) as other:  # it is read after the piece
                assert (await other.ask(request(b"", path=b"/nothing")))[0] == 404
        self.writer.write(pieces[-1])
        return await self.heard()


@contextlib.asynccontextmanager
async def connected(server: Refusing) -> AsyncIterator[Client]:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    yield Client(server, reader, writer)
    writer.close()


async def test_repetitions_are_refused_by_their_head_while_there_is_no_time(
    server: Refusing,
) -> None:
    async with connected(server) as client:
        assert await client.ask(request(ASKS + b"one")) == (200, ASKS + b"one")
        assert await client.ask(request(ASKS + b"two")) == (200, ASKS + b"two")
        server.refuses = True
        assert await client.ask(request(ASKS + b"three")) == (503, b"refused")
        assert await client.ask(request(ASKS + b"other", path=b"/other")) == (200, ASKS + b"other")
        server.refuses = False
        assert await client.ask(request(ASKS + b"four")) == (200, ASKS + b"four")
        assert server.answered == [ASKS + each for each in (b"one", b"two", b"other", b"four")]


async def test_the_rest_of_a_refused_body_is_skipped_however_it_arrives(server: Refusing) -> None:
    long = request(ASKS + bytes(900))
    async with connected(server) as client:
        await client.ask(request(ASKS))
        server.refuses = True
        assert await client.ask(long[:300], long[300:500], long[500:]) == (503, b"refused")
        client.writer.write(long + long + request(b"last", path=b"/other"))
        assert [await client.heard() for _ in range(3)] == [
            (503, b"refused"),
            (503, b"refused"),
            (200, b"last"),
        ]
    assert server.refused == 3


async def test_a_body_that_looks_like_a_request_is_none(server: Refusing) -> None:
    """What is not surely between two requests goes to the HTTP library."""
    inner = request(ASKS + b"inner")
    async with connected(server) as client:
        await client.ask(request(ASKS))
        server.refuses = True
        outer = request(inner, path=b"/other")
        head = outer[: -len(inner)]
        assert await client.ask(head, inner) == (200, inner)
        assert await client.ask(request(ASKS)) == (503, b"refused")
    assert server.answered == [ASKS, inner]


async def test_requests_that_came_ahead_are_answered_in_their_order(server: Refusing) -> None:
    async with connected(server) as client:
        await client.ask(request(ASKS))
        server.refuses = True
        both = request(b"one", path=b"/other") + request(ASKS + b"two")
        client.writer.write(both[:-4])
        await client.writer.drain()
        assert await client.heard() == (200, b"one")
        client.writer.write(both[-4:])
        assert await client.heard() == (200, ASKS + b"two")


async def test_who_asks_again_at_once_beyond_the_budget_is_read_later(server: Refusing) -> None:
    server.budget.left = -1e9
    loop = asyncio.get_running_loop()
    async with connected(server) as client:
        await client.ask(request(ASKS))
        server.refuses = True
        refused_after_s = loop.time()
        assert await client.ask(request(ASKS)) == (503, b"refused"), "this one comes at once"
        for rest_s in (REST_MIN_S, 2 * REST_MIN_S):  # from the refusal before
            asked_s = loop.time()
            assert await client.ask(request(ASKS)) == (503, b"refused")
            assert loop.time() - refused_after_s > 0.9 * rest_s
            refused_after_s = asked_s


async def test_who_asks_ahead_beyond_the_budget_is_read_after_the_last_rest(
    server: Refusing,
) -> None:
    """Several refusals of one read ask for several rests: the longest one counts."""
    server.budget.left = -1e9
    loop = asyncio.get_running_loop()
    async with connected(server) as client:
        await client.ask(request(ASKS))
        server.refuses = True
        began_s = loop.time()
        client.writer.write(4 * request(ASKS))
        for _ in range(4):
            await client.heard()
        server.refuses = False
        assert await client.ask(request(ASKS)) == (200, ASKS)
        assert loop.time() - began_s > 0.9 * 8 * REST_MIN_S


async def test_others_have_their_turn_between_repetitions_that_came_ahead(
    server: Refusing,
) -> None:
    turns, loop = 0, asyncio.get_running_loop()

    def turn() -> None:
        nonlocal turns
        turns += 1
        loop.call_soon(turn)

    async with connected(server) as client:
        await client.ask(request(ASKS))
        server.refuses = True
        client.writer.write(100 * request(ASKS))
        turn()
        for _ in range(100):
            assert await client.heard() == (503, b"refused")
    assert turns >= 100


async def test_requests_that_came_ahead_wait_for_the_rest_after_each_refusal(
    server: Refusing,
) -> None:
    server.budget.left = -1e9
    loop = asyncio.get_running_loop()
    async with connected(server) as client:
        client.writer.write(3 * request(b"", path=b"/refused"))
        assert (await client.heard())[0] == 503
        for rest_s in (REST_MIN_S, 2 * REST_MIN_S):
            began_s = loop.time()
            assert (await client.heard())[0] == 503
            assert loop.time() - began_s > 0.5 * rest_s
