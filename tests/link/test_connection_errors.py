"""Why a connection failed, as real sockets and libraries say it."""

import asyncio
import socket
import ssl

import aiohttp
import pytest

from edgebox.link.connection_errors import explained


async def failure_of(url: str) -> Exception:
    async with aiohttp.ClientSession() as client:
        with pytest.raises(aiohttp.ClientError) as raised:
            await client.get(url)
        return raised.value


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_libraries_and_bare_sockets_fail_in_the_same_words() -> None:
    port = closed_port()
    with pytest.raises(OSError, match="refused") as raised:
        socket.create_connection(("127.0.0.1", port), 60)
    said = explained(raised.value)
    assert said == "connection refused"
    assert explained(await failure_of(f"http://127.0.0.1:{port}")) == said
    with pytest.raises(OSError, match="Connect call failed") as raised:
        await asyncio.open_connection("127.0.0.1", port)
    assert explained(raised.value) == said


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (TimeoutError("timed out"), "no answer in time"),
        (TimeoutError(110, "Connection timed out"), "no answer in time"),
        (socket.gaierror(-2, "Name or service not known"), "name or service not known"),
        (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER]"), "[SSL: WRONG_VERSION_NUMBER]"),
        (OSError("Multiple exceptions"), "Multiple exceptions"),
        (ValueError("no"), "no"),
        (ConnectionResetError(), "connection reset by peer"),
        (
            aiohttp.ClientConnectionResetError("Cannot write to closing transport"),
            "connection reset by peer",
        ),
        (BrokenPipeError(), "broken pipe"),
    ],
)
def test_each_kind_has_its_words(error: Exception, said: str) -> None:
    assert explained(error) == said
