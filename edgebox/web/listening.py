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
from dataclasses import replace
from http import HTTPStatus
from typing import Any, cast

import aiohttp
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from edgebox.config.config_file import LimitParameters
from edgebox.domain.errors import EdgeboxError
from edgebox.web.connections import Connections
from edgebox.web.problems import CONTENT_TYPE, bad_request, problem_document_bytes
from edgebox.web.refusal_pacing import HEAD_COST, WHOLE_COST, RefusalBudget, Rests
from edgebox.web.repeated_requests import (
    HEADERS_END,
    VALID_S,
    Refusal,
    RepeatedRequest,
    repeated_request,
)
from edgebox.web.request_limits import BYTES_PER_S_MIN
from edgebox.web.tls_handshake import Handshakes

_log = logging.getLogger(__name__)
_MESSAGE_MAX = 200
"""Longest error message of the parser, which quotes the input."""
_UNREAD_MAX = 65_536
"""Bytes of refusals that a client has not read yet, from which on it gets no more."""
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
        self,
        server: web.Server,
        connections: Connections,
        limits: LimitParameters,
        budget: RefusalBudget,
        **how: Any,
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
        self._abort: Callable[[], None] | None = None
        """Ends the connection at once, once it is accepted."""
        self._refusal: EdgeboxError | None = None
        """Why there is one connection too many."""
        self.begun = False
        """Whether requests are read: it was not refused, and its handshake has ended."""
        self._received = False
        """Whether anything of the present request was received."""
        self._answering = False
        self._headers_timer: asyncio.TimerHandle | None = None
        self._ends_with_client: asyncio.Task[Any] | None = None
        """What is cancelled when the connection is lost."""
        self.peer: str | None = None
        """The address of the other side."""
        self._between = True
        """Whether everything received belongs to requests that were answered."""
        self._answered_body: aiohttp.StreamReader | None = None
        """Of the request before the present one; its end may be still to come."""
        self._first = b""
        """What was received first of the present request."""
        self._received_bytes = 0
        """What was received since then."""
        self._skipped_bytes = 0
        """What is still to come of a request that was refused."""
        self._repeated: RepeatedRequest | None = None
        self._rests = Rests(budget)
        self._rest_timer: asyncio.TimerHandle | None = None
        self._ahead = b""
        """What was received before the connection's rest."""
        self._refusal_cost = 0
        """Of the refusal that is being sent."""

    def accepted(self, transport: asyncio.BaseTransport, abort: Callable[[], None]) -> bool:
        """Count the connection, on which nothing was received; return whether it may stay.

        Args:
            transport: of the connection.
            abort: ends it at once, until it is made.
        """
        peername = transport.get_extra_info("peername")
        self.peer = peername[0] if isinstance(peername, tuple) else None
        self._abort = abort
        self._refusal = self._connections.opened(self)
        if self._refusal is None:
            self._connections.idle(self)
        return self._refusal is None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, unless there are too many connections."""
        stream = cast("asyncio.Transport", transport)
        # With TLS it was accepted before the handshake.
        if self._abort is None and not self.accepted(transport, stream.abort):
            assert self._refusal is not None
            stream.write(_raw(self._refusal))
            stream.close()
            return
        self._abort = stream.abort
        self.begun = True
        super().connection_made(transport)
        self._start_headers_timer()

    def connection_lost(self, exc: BaseException | None) -> None:
        """End."""
        self._connections.closed(self)
        if self.begun:
            self._stop_headers_timer()
            self._stop_rest_timer()
            if self._ends_with_client is not None:
                self._ends_with_client.cancel()
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse; headers must be complete in time from their first byte on."""
        if not self.begun:
            return
        if self._skipped_bytes or (self._between and self._repeated is not None):
            data = self._refuse_repetition_first(data)
            if not data:
                return
        if self._between:
            self._between, self._first, self._received_bytes = False, data, 0
        self._received_bytes += len(data)
        # The HTTP library calls this with nothing, too, when it reads on.
        if data and not self._answering and not self._is_of_refused_body():
            self._received = True
            if self._headers_timer is None:
                self._start_headers_timer()
        super().data_received(data)

    def _is_of_refused_body(self) -> bool:
        """Return whether what comes belongs to a request that was answered before its end."""
        return self._answered_body is not None and not self._answered_body.is_eof()

    def _refuse_repetition_first(self, data: bytes) -> bytes:
        """Refuse what data begin with, if it repeats an earlier request and would be refused.

        Returns what is to be parsed. What came ahead of the answer is read after the rest, or when
        the loop has done what else is due: a read can have thousands of repetitions.
        """
        rest_s = 0.0
        if not self._skipped_bytes:
            length = self._refuse_repetition(data)
            if length is None:
                return data
            self._skipped_bytes = length
            rest_s = self._rests.refused(HEAD_COST, asyncio.get_running_loop().time())
        skipped = min(self._skipped_bytes, len(data))
        self._skipped_bytes -= skipped
        if rest_s or skipped < len(data):
            self._read_later(data[skipped:], rest_s)
        return b""

    def _refuse_repetition(self, data: bytes) -> int | None:
        """Return the length of the request that was refused; None: it was not."""
        repeated, transport = self._repeated, self.transport
        if repeated is None or transport is None or transport.is_closing():
            return None
        if asyncio.get_running_loop().time() > repeated.until_s:
            self._repeated = None
            return None
        length = repeated.length(data)
        if length is None or transport.get_write_buffer_size() > _UNREAD_MAX:
            return None  # a client that reads no answers is held up by the HTTP library
        if (said := repeated.refusal()) is None:
            return None
        transport.write(said)
        return length

    def may_repeat(self, start_bytes: int, body_bytes_max: int, refusal: Refusal) -> None:
        """Refuse repetitions of the present request by their head (`repeated_request`)."""
        now_s = asyncio.get_running_loop().time()
        if self._repeated is not None and self._repeated.length(self._first) is not None:
            self._repeated = replace(self._repeated, until_s=now_s + VALID_S, refusal=refusal)
        else:
            self._repeated = repeated_request(
                self._first, start_bytes, body_bytes_max, now_s, refusal
            )

    def refused_picture(self) -> None:
        """Let the connection rest after the answer if refusals are many."""
        self._refusal_cost = WHOLE_COST

    def _read_later(self, ahead: bytes, rest_s: float) -> None:
        """Read nothing for a while, and then first what has been received ahead."""
        # uvloop's transports are of no class of asyncio.
        reading = cast("asyncio.ReadTransport", self.transport)
        reading.pause_reading()
        self._ahead = ahead
        later = asyncio.get_running_loop().call_later
        self._rest_timer = later(rest_s, self._read_on, reading)

    def _read_on(self, reading: asyncio.ReadTransport) -> None:
        self._rest_timer = None
        ahead, self._ahead = self._ahead, b""
        if not reading.is_closing():
            reading.resume_reading()
            if ahead:
                self.data_received(ahead)

    def _stop_rest_timer(self) -> None:
        if self._rest_timer is not None:
            self._rest_timer.cancel()
            self._rest_timer = None

    def headers_complete(self) -> None:
        """Note that a request has begun to be answered."""
        self._answering = True
        self._connections.busy(self)
        self._stop_headers_timer()

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send an answer; abort the connection if its client receives too slowly."""
        cost, self._refusal_cost = self._refusal_cost, 0
        try:
            with self.sending(lambda: resp.content_length or 0):
                sent = await super().finish_response(request, resp, start_time)
        finally:
            self._answering = self._received = False
            self._answered_body = request.content
            headers_end = self._first.find(HEADERS_END)
            length = headers_end + len(HEADERS_END) + (request.content_length or 0)
            self._between = headers_end >= 0 and self._received_bytes == length
            self._first = b""
            self._connections.idle(self)
        if not cost:
            self._rests.answered()
        elif rest_s := self._rests.refused(cost, asyncio.get_running_loop().time()):
            await asyncio.sleep(rest_s)  # requests that came ahead wait, too
        return sent

    @contextlib.contextmanager
    def cancelling(self) -> Iterator[None]:
        """Cancel the present task if the client leaves meanwhile."""
        self._ends_with_client = asyncio.current_task()
        try:
            yield
        finally:
            self._ends_with_client = None

    def give_way(self) -> None:
        """Close for another connection: at once, since an end that the client agrees to may take
        long; only the rest of an answer is sent for a while."""
        transport, abort = self.transport, self._abort
        self.force_close()
        if abort is None:
            return
        if transport is not None and transport.get_write_buffer_size():
            asyncio.get_running_loop().call_later(_LINGERING_S, abort)
        else:
            abort()

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
    return raw_answer(error, CONTENT_TYPE, problem_document_bytes(error), close=True)


def raw_answer(
    error: EdgeboxError, content_type: str, body: bytes, *, close: bool = False
) -> bytes:
    """Return an answer that is sent without the HTTP library."""
    head = (
        f"HTTP/1.1 {error.http_status} {HTTPStatus(error.http_status).phrase}\r\n"
        f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"
        f"{'Connection: close' if close else 'X-Content-Type-Options: nosniff'}\r\n\r\n"
    )
    return head.encode("ascii") + body


def may_repeat(
    request: web.Request, start_bytes: int, body_bytes_max: int, refusal: Refusal
) -> None:
    """Refuse repetitions of a request that has been checked by their head, as long as there is no
    time for them.

    Args:
        request: it was received whole.
        start_bytes: as many bytes of its body decide what it asks for.
        body_bytes_max: longer ones are checked as a whole.
        refusal: returns the answer to one that would be refused now; None: it would not.
    """
    if isinstance(request.protocol, Protocol):
        request.protocol.may_repeat(start_bytes, body_bytes_max, refusal)


def refused_picture(request: web.Request) -> None:
    """Tell the connection that its program's picture is refused for want of time."""
    if isinstance(request.protocol, Protocol):
        request.protocol.refused_picture()


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


class Listening:
    """What an application listens on."""

    def __init__(self, server: asyncio.Server, handshakes: Handshakes | None = None) -> None:
        """Begin with a server, and the handshakes of its connections if it has TLS."""
        self._server = server
        self._handshakes = handshakes

    @property
    def port(self) -> int:
        """The port that is listened on."""
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def close(self) -> None:
        """Accept no more connections; those whose requests are read stay."""
        self._server.close()
        if self._handshakes is not None:
            self._handshakes.close()


async def listen(
    runner: web.AppRunner,
    host: str,
    port: int,
    *,
    backlog: int,
    connections: Connections,
    limits: LimitParameters,
    budget: RefusalBudget,
    tls: ssl.SSLContext | None = None,
) -> Listening:
    """Listen for an application.

    Raises:
        OSError: the address cannot be listened on.
    """
    server = runner.server
    assert server is not None
    loop = asyncio.get_running_loop()

    def protocol() -> Protocol:
        return Protocol(server, connections, limits, budget, loop=loop)

    if tls is None:
        return Listening(await loop.create_server(protocol, host, port, backlog=backlog))
    handshakes = Handshakes(tls, limits.header_timeout_s)
    accepting = await loop.create_server(
        lambda: handshakes.accepting(protocol()), host, port, backlog=backlog
    )
    return Listening(accepting, handshakes)
