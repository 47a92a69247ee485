"""Who does not speak HTTP gets one clear answer, and nobody else notices."""

import asyncio
import contextlib
import json
import logging
import ssl
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import aiohttp
import pytest
from aiohttp import web

from edgebox.config.config_file import LimitParameters, ServerParameters
from edgebox.domain.errors import EdgeboxError
from edgebox.web import listening as listening_module
from edgebox.web.connections import Connections
from edgebox.web.listening import headers_complete, listen, sending
from edgebox.web.refusal_pacing import RefusalBudget
from edgebox.web.tls import tls_context
from tests.conftest import PATIENCE_S
from tests.end_to_end.running import until

TLS_HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100)


LARGE_BYTES = 64 << 20
"""More than the buffers of two sockets hold."""


async def _answer_at_length(_: web.Request) -> web.Response:
    return web.Response(body=bytes(LARGE_BYTES))


async def _answer_in_pieces(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    sent_bytes = 0
    with sending(request, lambda: sent_bytes):
        while sent_bytes < LARGE_BYTES:
            await response.write(bytes(1 << 20))
            sent_bytes += 1 << 20
    return response


async def _greet(_: web.Request) -> web.Response:
    return web.Response(text="hello")


class Listening:
    """A server with the limits of a test."""

    def __init__(self, limits: LimitParameters) -> None:
        self.limits = limits
        self.port = 0
        self.refused: list[EdgeboxError] = []
        self.connections = Connections(
            limits, lambda peer: peer, lambda address, error: self.refused.append(error)
        )
        self.held = asyncio.Event()
        """Ends the answer to /wait."""
        self.waiting = 0
        """Requests for /wait that came."""
        self.file = Path()
        """The answer to /file."""

    async def send_file(self, request: web.Request) -> web.FileResponse:
        return web.FileResponse(self.file)

    async def wait(self, request: web.Request) -> web.Response:
        self.waiting += 1
        await self.held.wait()
        return web.Response(text="waited")


@contextlib.asynccontextmanager
async def listening(tls: ssl.SSLContext | None = None, **limits: float) -> AsyncIterator[Listening]:
    server = Listening(replace(LimitParameters(), **limits))  # type: ignore[arg-type]
    app = web.Application(middlewares=[headers_complete])
    app.router.add_get("/", _greet)
    app.router.add_get("/large", _answer_at_length)
    app.router.add_get("/file", server.send_file)
    app.router.add_get("/pieces", _answer_in_pieces)
    app.router.add_get("/wait", server.wait)
    runner = web.AppRunner(app)
    await runner.setup()
    socket = await listen(
        runner,
        "127.0.0.1",
        0,
        backlog=64,
        connections=server.connections,
        limits=server.limits,
        budget=RefusalBudget(),
        tls=tls,
    )
    server.port = socket.port
    yield server
    socket.close()
    await runner.cleanup()


@pytest.fixture
async def port() -> AsyncIterator[int]:
    async with listening() as server:
        yield server.port


async def said_to(port: int, request: bytes) -> tuple[bytes, dict[str, object]]:
    """Return the head and the document of the answer, after which the box has hung up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    async with asyncio.timeout(PATIENCE_S):
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    document: dict[str, object] = json.loads(body)
    return head, document


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\nHost: box\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: box\r\nX-Null: \x00\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: box\r\nX-Long: " + b"x" * 9000 + b"\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: box\r\nContent-Length: -1\r\n\r\n",
        b"\x00" * 100 + b"\r\n\r\n",
        TLS_HELLO,
    ],
    ids=["long line", "null", "long header", "negative length", "zeros", "TLS"],
)
async def test_what_is_no_http_gets_a_problem_document(
    port: int, request_bytes: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as bystander:
        head, problem = await said_to(port, request_bytes)
        async with bystander.get("/") as answer:
            assert await answer.text() == "hello"
    assert head.split()[1] == b"400"
    assert b"content-type: application/problem+json" in head.lower()
    assert (problem["status"], problem["code"]) == (400, "bad_request")
    assert len(str(problem["detail"])) < 300
    (line,) = [record for record in caplog.records if record.name.startswith("edgebox")]
    assert line.levelno == logging.INFO
    assert not any(record.exc_info for record in caplog.records)
    assert "\n" not in line.getMessage()


async def test_who_hangs_up_early_is_not_worth_a_word(
    port: int, caplog: pytest.LogCaptureFixture
) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HT")
    writer.close()
    await writer.wait_closed()
    async with aiohttp.ClientSession() as client, client.get(f"http://127.0.0.1:{port}/") as answer:
        assert answer.status == 200
    assert caplog.records == []


GET = b"GET / HTTP/1.1\r\nHost: box\r\n\r\n"


async def opened(server: Listening) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", server.port)


async def rest_of(reader: asyncio.StreamReader) -> bytes:
    """Return what is said until the box hangs up."""
    async with asyncio.timeout(PATIENCE_S):
        with contextlib.suppress(ConnectionError):
            return await reader.read()
    return b""


async def test_headers_that_never_end_are_answered_and_hung_up_on() -> None:
    async with listening(header_timeout_s=0.3) as server:
        reader, writer = await opened(server)
        writer.write(GET[:-2] + b"X-Slow: ")
        head, _, body = (await rest_of(reader)).partition(b"\r\n\r\n")
        assert head.split()[1] == b"408"
        assert json.loads(body)["code"] == "slow_headers"
        writer.close()


async def test_a_later_request_has_the_same_time_and_a_silent_connection_gets_no_answer() -> None:
    async with listening(header_timeout_s=0.3, keep_alive_s=3600) as server:
        reader, writer = await opened(server)
        silent, silent_writer = await opened(server)
        writer.write(GET)
        assert (await reader.readuntil(b"hello")).split()[1] == b"200"
        writer.write(GET[:10])
        assert (await rest_of(reader)).split()[1] == b"408"
        assert await rest_of(silent) == b""
        writer.close()
        silent_writer.close()


async def test_an_idle_connection_is_closed_and_a_busy_one_is_not() -> None:
    async with listening(keep_alive_s=0.3, header_timeout_s=0.3) as server:
        busy, busy_writer = await opened(server)
        busy_writer.write(GET.replace(b"/ ", b"/wait "))
        idle, idle_writer = await opened(server)
        idle_writer.write(GET)
        said = await rest_of(idle)
        assert said.split()[1] == b"200"
        assert said.endswith(b"hello")
        server.held.set()
        await busy.readuntil(b"waited")
        busy_writer.close()
        idle_writer.close()


async def test_the_rest_of_a_refused_body_begins_no_request() -> None:
    async with listening(header_timeout_s=0.2, keep_alive_s=0.5) as server:
        reader, writer = await opened(server)
        writer.write(GET[:-2] + b"Content-Length: 10\r\n\r\n")
        assert (await reader.readuntil(b"hello")).split()[1] == b"200"
        writer.write(bytes(10))
        assert await rest_of(reader) == b"", "it is idle, and no 408 is due"
        writer.close()


@pytest.mark.parametrize("what", ["large", "file", "pieces"])
async def test_who_does_not_read_its_answer_is_hung_up_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, what: str
) -> None:
    monkeypatch.setattr(listening_module, "BYTES_PER_S_MIN", LARGE_BYTES * 10)
    async with listening(body_timeout_s=0.3) as server:
        server.file = tmp_path / "large"
        with server.file.open("wb") as file:
            file.truncate(LARGE_BYTES)
        reader, writer = await opened(server)
        writer.write(GET.replace(b"/ ", f"/{what} ".encode()))
        await reader.readuntil(b"\r\n\r\n")
        await until(lambda: not server.connections.count, "the box to hang up")
        await until(lambda: asyncio.all_tasks() == {asyncio.current_task()}, "what sends to end")
        assert len(await rest_of(reader)) < LARGE_BYTES
        writer.close()


async def test_connections_beyond_an_addresss_share_are_refused_and_idle_ones_give_way() -> None:
    async with listening(cameras_max=1, connections_max=16) as server:
        waiting = [await opened(server) for _ in range(9)]  # 1 + 16 / 2
        for _, writer in waiting:
            writer.write(GET.replace(b"/ ", b"/wait "))
        await until(lambda: server.waiting == len(waiting), "all requests")
        refused, refused_writer = await opened(server)
        said = await rest_of(refused)
        assert said.split()[1] == b"503"
        assert b"too_many_connections" in said
        assert b"an address may have 9" in said
        assert [error.code for error in server.refused] == ["too_many_connections"]
        server.held.set()
        for reader, _ in waiting:
            await reader.readuntil(b"waited")
        # All wait for their next request now: the oldest gives way.
        reader, writer = await opened(server)
        writer.write(GET)
        await reader.readuntil(b"hello")
        assert await rest_of(waiting[0][0]) == b""
        waiting[1][1].write(GET)
        await waiting[1][0].readuntil(b"hello")
        assert len(server.refused) == 1
        # So do those that never send a request.
        silent = [await opened(server) for _ in range(20)]
        last, last_writer = await opened(server)
        last_writer.write(GET)
        await last.readuntil(b"hello")
        assert len(server.refused) == 1
        for _, each in [
            *waiting,
            *silent,
            (reader, writer),
            (refused, refused_writer),
            (last, last_writer),
        ]:
            each.close()


@pytest.mark.parametrize("reads", [True, False])
async def test_what_gives_way_sends_the_rest_of_its_answer_for_a_while(
    monkeypatch: pytest.MonkeyPatch, reads: bool
) -> None:
    monkeypatch.setattr(listening_module, "_LINGERING_S", PATIENCE_S if reads else 0.1)
    async with listening(cameras_max=1, connections_max=16) as server:
        reader, writer = await opened(server)
        await until(partial(counts, server, 1), "it to count")
        (connection,) = server.connections._open
        assert isinstance(connection, listening_module.Protocol)
        transport = cast("asyncio.Transport", connection.transport)
        transport.write(bytes(LARGE_BYTES))
        assert transport.get_write_buffer_size()
        others = [await opened(server) for _ in range(9)]  # 1 + 16 / 2
        await until(lambda: connection not in server.connections._open, "it to give way")
        if reads:
            assert len(await rest_of(reader)) == LARGE_BYTES
        await until(lambda: not transport.get_write_buffer_size(), "it to be aborted")
        for _, each in [*others, (reader, writer)]:
            each.close()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    made = tls_context(ServerParameters(tls="self-signed"), tmp_path_factory.mktemp("tls"))
    assert made is not None
    return made[0]


async def greeted_over_tls(server: Listening) -> asyncio.StreamWriter:
    """Return a connection on which a request was answered, which was sent with the handshake."""
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=trusting)
    writer.write(GET)
    async with asyncio.timeout(PATIENCE_S):
        await reader.readuntil(b"hello")
    return writer


def counts(server: Listening, connections: int) -> bool:
    return server.connections.count == connections


async def test_a_connection_counts_before_its_handshake_and_gives_way(
    certificate: ssl.SSLContext,
) -> None:
    async with listening(certificate, cameras_max=1, connections_max=16) as server:
        silent = []
        for at in range(9):  # 1 + 16 / 2
            silent.append(await opened(server))
            await until(partial(counts, server, at + 1), "it to count")
        writer = await greeted_over_tls(server)
        assert await rest_of(silent[0][0]) == b""
        assert server.connections.count == 9
        assert server.refused == []
        for _, each in [*silent, (None, writer)]:
            each.close()
        await until(lambda: not server.connections.count, "all to be gone")


async def test_one_connection_too_many_is_hung_up_on_before_its_handshake(
    certificate: ssl.SSLContext,
) -> None:
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    async with listening(certificate, cameras_max=1, connections_max=16) as server:
        url = f"https://127.0.0.1:{server.port}"
        connector = aiohttp.TCPConnector(ssl=trusting, limit=0)
        async with aiohttp.ClientSession(url, connector=connector) as client:
            asking = [asyncio.create_task(client.get("/wait")) for _ in range(9)]
            await until(lambda: server.waiting == len(asking), "all requests")
            reader, writer = await opened(server)
            assert await rest_of(reader) == b""
            writer.close()
            assert [error.code for error in server.refused] == ["too_many_connections"]
            server.held.set()
            for each in asking:
                assert await (await each).text() == "waited"


@pytest.mark.parametrize("said", [b"", TLS_HELLO[:30], GET], ids=["nothing", "a part", "no TLS"])
async def test_a_handshake_that_never_ends_is_hung_up_on(
    certificate: ssl.SSLContext, said: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with listening(certificate, header_timeout_s=0.3) as server:
        reader, writer = await opened(server)
        writer.write(said)
        await rest_of(reader)
        await until(lambda: not server.connections.count, "it to be gone")
        writer.close()
        (await greeted_over_tls(server)).close()
    assert caplog.records == []


async def test_handshakes_under_way_end_with_the_server(certificate: ssl.SSLContext) -> None:
    async with listening(certificate) as server:
        reader, writer = await opened(server)
        await until(lambda: server.connections.count == 1, "it to count")
    assert await rest_of(reader) == b""
    writer.close()


CLOSING_S = 30.0
"""For which the event loops wait for the other side's end of TLS."""


async def test_what_gives_way_is_closed_though_its_client_does_not_agree(
    certificate: ssl.SSLContext,
) -> None:
    """A TLS connection is closed by both sides, for which the other one would be waited."""
    async with listening(certificate, cameras_max=1, connections_max=16) as server:
        kept = [await greeted_over_tls(server) for _ in range(9)]
        for each in kept:
            each.transport.pause_reading()  # type: ignore[attr-defined]  # so it never agrees
        sockets: dict[Any, Any] = {
            each: each.transport.get_extra_info("socket")  # type: ignore[attr-defined]
            for each in server.connections._open
        }
        began_s = asyncio.get_running_loop().time()
        last = await greeted_over_tls(server)
        (gone,) = set(sockets) - server.connections._open
        await until(lambda: sockets[gone].fileno() < 0, "its descriptor to be free")
        assert asyncio.get_running_loop().time() - began_s < CLOSING_S / 2
        for each in [*kept, last]:
            each.transport.abort()
