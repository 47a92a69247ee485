"""Who does not speak HTTP gets one clear answer, and nobody else notices."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web

from edgebox.web.listening import listen
from tests.conftest import PATIENCE_S

TLS_HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100)


async def _greet(_: web.Request) -> web.Response:
    return web.Response(text="hello")


@pytest.fixture
async def port() -> AsyncIterator[int]:
    app = web.Application()
    app.router.add_get("/", _greet)
    runner = web.AppRunner(app)
    await runner.setup()
    listening = await listen(runner, "127.0.0.1", 0, backlog=16)
    yield listening.sockets[0].getsockname()[1]
    listening.close()
    await runner.cleanup()


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
