"""The listening socket, its connections, and the answer to requests that are not HTTP.

A request that cannot be parsed never reaches a route, so the middleware cannot answer it with a
problem document. The HTTP library would log a stack trace each time, with which anybody could fill
the log.
"""

import asyncio
import contextlib
import logging
import ssl
from collections.abc import Callable, Iterator
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from edgebox.config.config_file import LimitParameters
from edgebox.domain.errors import EdgeboxError
from edgebox.web.connections import Connections
from edgebox.web.problems import bad_request, problem_document_bytes
from edgebox.web.request_limits import BYTES_PER_S_MIN

_log = logging.getLogger(__name__)
_MESSAGE_MAX = 200
"""Longest error message of the parser, which quotes the input."""
_LINGERING_S = 2.0
"""How long the rest of a refused body is read, for clients that read no answer before its end."""

_NONE: Any = None
"""Disables the log of requests: the library accepts None, but its annotation does not."""


class SlowHeadersError(EdgeboxError):
    """A request's headers did not arrive in time."""

    http_status = 408
    code = "slow_headers"
    title = "The headers did not arrive in time"


class Protocol(web.RequestHandler):
    """One connection.

    It is refused if there are too many, closed if headers arrive or answers leave too slowly, and
    answers malformed requests with a problem document.
    """

    def __init__(
        self, server: web.Server, connections: Connections, limits: LimitParameters, **how: Any
    ) -> None:
        """Take the arguments of aiohttp's handler."""
        super().__init__(
            server,
            access_log=_NONE,
            auto_decompress=False,  # `bodies.py` does it outside the event loop
            keepalive_timeout=limits.keep_alive_s,
            lingering_time=_LINGERING_S,
            **how,
        )
        self._connections = connections
        self._limits = limits
        self._refused = False
        self._received = False
        """Whether anything of the present request was received."""
        self._answering = False
        self._headers_timer: asyncio.TimerHandle | None = None
        self._ends_with_client: asyncio.Task[Any] | None = None
        """What is cancelled when the connection is lost."""
        self.peer: str | None = None
        """The address of the other side."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, unless there are too many connections."""
        peername = transport.get_extra_info("peername")
        self.peer = peername[0] if isinstance(peername, tuple) else None
        if (error := self._connections.opened(self)) is not None:
            assert isinstance(transport, asyncio.Transport)
            self._refused = True
            transport.write(_raw(error))
            transport.close()
            return
        super().connection_made(transport)
        self._connections.idle(self)
        self._start_headers_timer()

    def connection_lost(self, exc: BaseException | None) -> None:
        """End."""
        if not self._refused:
            self._stop_headers_timer()
            self._connections.closed(self)
            if self._ends_with_client is not None:
                self._ends_with_client.cancel()
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse; headers must be complete in time from their first byte on."""
        if self._refused:
            return
        if not self._answering:
            self._received = True
            if self._headers_timer is None:
                self._start_headers_timer()
        super().data_received(data)

    def headers_complete(self) -> None:
        """Note that a request has begun to be answered."""
        self._answering = True
        self._connections.busy(self)
        self._stop_headers_timer()

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send an answer; abort the connection if its client receives too slowly."""
        try:
            with self.sending(lambda: resp.content_length or 0):
                return await super().finish_response(request, resp, start_time)
        finally:
            self._answering = self._received = False
            self._connections.idle(self)

    @contextlib.contextmanager
    def cancelling(self) -> Iterator[None]:
        """Cancel the present task if the client leaves meanwhile."""
        self._ends_with_client = asyncio.current_task()
        try:
            yield
        finally:
            self._ends_with_client = None

    def give_way(self) -> None:
        """Close, for another connection."""
        self.force_close()

    @contextlib.contextmanager
    def sending(self, size_bytes: Callable[[], int]) -> Iterator[None]:
        """Abort the connection, and what sends, if its client receives too slowly meanwhile.

        `size_bytes`: returns the size; that of a file is known once it is opened.
        """
        loop = asyncio.get_running_loop()
        sender = asyncio.current_task()
        assert sender is not None
        began_s = loop.time()
        timer: asyncio.TimerHandle | None = None

        def check() -> None:
            nonlocal timer
            left_s = began_s + self._limits.body_timeout_s + size_bytes() / BYTES_PER_S_MIN
            left_s -= loop.time()
            if left_s > 0:
                timer = loop.call_later(left_s, check)
            elif self.transport is not None:
                sender.cancel()  # asyncio's sendfile() would wait for the closed socket for ever
                self.transport.abort()

        check()
        try:
            yield
        finally:
            if timer is not None:
                timer.cancel()

    def _start_headers_timer(self) -> None:
        self._headers_timer = asyncio.get_running_loop().call_later(
            self._limits.header_timeout_s, self._headers_are_late
        )

    def _stop_headers_timer(self) -> None:
        if self._headers_timer is not None:
            self._headers_timer.cancel()
            self._headers_timer = None

    def _headers_are_late(self) -> None:
        self._headers_timer = None
        if self._answering or self.transport is None or self.transport.is_closing():
            return
        if self._received:
            limit_s = self._limits.header_timeout_s
            late = f"the headers did not arrive within {limit_s:g} s (limits.header_timeout_s)"
            self.transport.write(_raw(SlowHeadersError(late)))
        self.force_close()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer and close; log a stack trace only for errors of the box."""
        if not isinstance(exc, HttpProcessingError) or request.writer.output_size > 0:
            return super().handle_error(request, status, exc, message)
        said = " ".join(exc.message.split())[:_MESSAGE_MAX]
        _log.info("%s sent what is no HTTP: %s", request.remote, said)
        answer = bad_request(f"this is no HTTP request that the box understands: {said}")
        answer.force_close()
        return answer


def _raw(error: EdgeboxError) -> bytes:
    """Return an answer to a connection that has no complete request."""
    reason, body = problem_document_bytes(error)
    head = (
        f"HTTP/1.1 {error.http_status} {reason}\r\nContent-Type: application/problem+json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode("ascii") + body


def cancelled_with_client(request: web.Request) -> contextlib.AbstractContextManager[None]:
    """Return a context in which the present task is cancelled if its client leaves."""
    protocol = request.protocol
    return protocol.cancelling() if isinstance(protocol, Protocol) else contextlib.nullcontext()


def sending(
    request: web.Request, size_bytes: Callable[[], int]
) -> contextlib.AbstractContextManager[None]:
    """Return a context in which a client that receives too slowly is hung up on.

    `size_bytes`: returns what has been sent so far.
    """
    protocol = request.protocol
    if isinstance(protocol, Protocol):
        return protocol.sending(size_bytes)
    return contextlib.nullcontext()


@web.middleware
async def headers_complete(request: web.Request, handler: Any) -> web.StreamResponse:
    """Tell the connection that its request has begun to be answered."""
    if isinstance(request.protocol, Protocol):
        request.protocol.headers_complete()
    response: web.StreamResponse = await handler(request)
    return response


async def listen(
    runner: web.AppRunner,
    host: str,
    port: int,
    *,
    backlog: int,
    connections: Connections,
    limits: LimitParameters,
    tls: ssl.SSLContext | None = None,
) -> asyncio.Server:
    """Listen for an application.

    Raises:
        OSError: the address cannot be listened on.
    """
    server = runner.server
    assert server is not None
    loop = asyncio.get_running_loop()
    return await loop.create_server(
        lambda: Protocol(server, connections, limits, loop=loop),
        host,
        port,
        backlog=backlog,
        ssl=tls,
    )
