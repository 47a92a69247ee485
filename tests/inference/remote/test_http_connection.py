"""One kept connection: real sockets, and servers that end it, hang or are not there."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from edgebox.config.secret_values import secret
from edgebox.domain.errors import ModelError
from edgebox.inference.remote.http_connection import (
    BrokenError,
    NotThereError,
    ServerAddress,
    ServerConnection,
    UnreachableError,
)

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@contextmanager
def answering(*connections: Callable[[socket.socket], None]) -> Iterator[str]:
    """Serve so many connections, one after the other; return the address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            for each in connections:
                client, _ = listener.accept()
                with client:
                    each(client)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/proxy/"
        thread.join()


def answer(client: socket.socket) -> None:
    request = b""
    while not request.endswith(b"\r\n\r\n"):
        request += client.recv(65_536)
    assert request.startswith(b"GET /proxy/v2 HTTP/1.1\r\n")
    assert b"Authorization: Bearer secret\r\n" in request
    client.sendall(OK)


def end(client: socket.socket) -> None:
    client.recv(65_536)


def connection(url: str) -> ServerConnection:
    return ServerConnection(ServerAddress(url, token=lambda: "secret"))


def test_a_connection_is_kept_and_made_again_when_the_server_has_ended_it() -> None:
    def answer_twice(client: socket.socket) -> None:
        answer(client)
        answer(client)

    with answering(answer_twice, answer) as url:
        server = connection(url)
        for _ in range(3):
            reply = server.ask("GET", "/v2")
            assert (reply.status, reply.body) == (200, b"ok")
        server.close()


def test_a_new_connection_that_ends_is_not_tried_again() -> None:
    with answering(end) as url:
        server = connection(url)
        with pytest.raises(
            UnreachableError, match=r"127.0.0.1:\d+.* cannot be reached: .* with https://"
        ):
            server.ask("GET", "/v2")


def test_a_server_that_ends_after_its_last_connections_is_not_there_any_more() -> None:
    """They may still be accepted while it ends."""

    def answer_and_end(client: socket.socket) -> None:
        answer(client)
        end(client)

    listener = socket.create_server(("127.0.0.1", 0))
    server = connection(f"http://127.0.0.1:{listener.getsockname()[1]}/proxy/")

    def serve() -> None:
        with listener.accept()[0] as client:
            answer_and_end(client)
        with listener.accept()[0] as client:
            listener.close()
            end(client)

    thread = threading.Thread(target=serve)
    thread.start()
    server.ask("GET", "/v2")
    with pytest.raises(NotThereError, match="cannot be reached: connection refused"):
        server.ask("GET", "/v2")
    thread.join()


def test_a_server_without_tls_is_told_as_such() -> None:
    def plain(client: socket.socket) -> None:
        client.recv(65_536)
        client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with answering(plain) as url:
        server = connection(url.replace("http://", "https://"))
        with pytest.raises(UnreachableError, match="it does not answer with TLS"):
            server.ask("GET", "/v2")


@pytest.mark.parametrize(
    ("code", "message", "advice"),
    [
        (18, "self-signed certificate", "or the ca_file that signed it"),
        (20, "unable to get local issuer certificate", "or the ca_file that signed it"),
        (10, "certificate has expired", "give the server another one"),
        (64, "IP address mismatch, certificate is not valid for 'x'.", "give the server another"),
    ],
)
def test_advice_fits_what_is_wrong_with_a_certificate(
    monkeypatch: pytest.MonkeyPatch, code: int, message: str, advice: str
) -> None:
    error = ssl.SSLCertVerificationError(1, "it failed")
    error.verify_code, error.verify_message = code, message

    def fail(self: ServerConnection) -> None:
        raise error

    monkeypatch.setattr(ServerConnection, "_connect", fail)
    with pytest.raises(UnreachableError, match=advice) as raised:
        connection("https://x").ask("GET", "/v2")
    assert f"({message.rstrip('.')});" in str(raised.value)


def test_what_does_not_answer_in_time_is_given_up() -> None:
    done = threading.Event()

    def hang(client: socket.socket) -> None:
        done.wait()

    with answering(hang) as url:
        server = connection(url)
        with pytest.raises(UnreachableError, match="no answer in time"):
            server.ask("GET", "/v2", limit_s=0.05)
        done.set()


@pytest.mark.parametrize("begin", [OK[:-2], b"HTTP/1.1 200 OK\r\nX: "], ids=["body", "headers"])
@pytest.mark.parametrize("close", [b"", b"Connection: close\r\n"], ids=["kept", "closed"])
def test_an_answer_that_trickles_is_given_up(begin: bytes, close: bytes) -> None:
    given_up = threading.Event()
    head, _, rest = begin.partition(b"\r\n")

    def trickle(client: socket.socket) -> None:
        client.recv(65_536)
        client.sendall(head + b"\r\n" + close + rest.replace(b"Length: 2", b"Length: 9999"))
        with contextlib.suppress(OSError):  # the other side ends it
            while not given_up.wait(0.01):
                client.sendall(b"x")

    with answering(trickle) as url:
        server = connection(url)
        with pytest.raises(UnreachableError, match="no answer in time"):
            server.ask("GET", "/v2", limit_s=0.2)
        given_up.set()


def test_an_answer_without_a_length_ends_with_its_connection() -> None:
    def answer_and_end(client: socket.socket) -> None:
        client.recv(65_536)
        client.sendall(b"HTTP/1.1 200 OK\r\n\r\nok")

    with answering(answer_and_end, answer_and_end) as url:
        server = connection(url)
        assert [server.ask("GET", "/v2").body for _ in range(2)] == [b"ok", b"ok"]


@pytest.mark.parametrize("limit_s", [600, None])
@pytest.mark.parametrize("body", [b"", bytes(64 << 20)], ids=["answer", "taken"])
def test_another_thread_can_end_the_wait(limit_s: float | None, body: bytes) -> None:
    """For an answer, or for a server to take the request."""
    waits, ended = threading.Event(), threading.Event()

    def hang(client: socket.socket) -> None:
        client.recv(65_536)
        waits.set()
        ended.wait()

    with answering(hang) as url:
        server = connection(url)
        failed: list[Exception] = []

        def ask() -> None:
            try:
                server.ask("POST", "/v2", [body], limit_s=limit_s)
            except UnreachableError as error:
                failed.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        waits.wait()
        server.shut()
        thread.join()
        ended.set()
        assert failed
        with pytest.raises(UnreachableError):
            server.ask("GET", "/v2")


def test_a_token_is_not_shown() -> None:
    assert "secret" not in repr(ServerAddress("http://x", token=partial(str, "secret")))


def test_each_connection_reads_the_token_anew() -> None:
    sent: list[bytes] = []

    def note(client: socket.socket) -> None:
        request = b""
        while not request.endswith(b"\r\n\r\n"):
            request += client.recv(65_536)
        sent.append(request)
        client.sendall(OK)

    tokens = ["before", "after"]
    with answering(note, note) as url:
        address = ServerAddress(url, token=iter(tokens).__next__)
        for _ in tokens:
            server = ServerConnection(address)
            assert server.ask("GET", "/v2").status == 200
            server.close()
    for request, token in zip(sent, tokens, strict=True):
        assert f"Authorization: Bearer {token}\r\n".encode() in request


def test_a_token_that_cannot_be_read_any_more_is_an_error_of_the_executor(tmp_path: Path) -> None:
    file = tmp_path / "gone"
    with pytest.raises(ModelError, match=r"^x\.token_file: .*gone cannot be read"):
        ServerConnection(ServerAddress("http://x", token=partial(secret, "x.token", str(file), "")))
    with pytest.raises(ModelError, match=r"^token_file: a token is one word"):
        ServerConnection(ServerAddress("http://x", token=lambda: "two words"))


def test_an_answer_that_is_cut_off_is_none_and_the_next_one_is_whole() -> None:
    def cut_off(client: socket.socket) -> None:
        client.recv(65_536)
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nok")

    with answering(cut_off, answer) as url:
        server = connection(url)
        with pytest.raises(BrokenError, match=r"cannot be reached: it ended .* in the middle"):
            server.ask("GET", "/v2")
        assert server.ask("GET", "/v2").body == b"ok"
        server.close()


@pytest.mark.parametrize("line_end", [b"\r\n", b""])
def test_what_is_no_http_is_told_without_its_bytes(line_end: bytes) -> None:
    told = threading.Event()

    def say(client: socket.socket) -> None:
        client.recv(65_536)
        client.sendall(b"\x1b[2J\x9f\xff no HTTP" + line_end)
        told.wait()

    with answering(say) as url:
        server = connection(url)
        try:
            with pytest.raises(BrokenError) as raised:
                server.ask("GET", "/v2")
        finally:
            told.set()
        assert str(raised.value) == f"{url} cannot be reached: what it answers is no HTTP"
        server.close()


def test_an_answer_that_is_too_long_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgebox.inference.remote.http_connection.BODY_BYTES_MAX", 1)
    with answering(answer) as url:
        server = connection(url)
        with pytest.raises(ModelError, match="answers more than"):
            server.ask("GET", "/v2")
