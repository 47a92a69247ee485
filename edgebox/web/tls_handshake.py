"""TLS handshakes of connections that count, and have their deadline, from when they are accepted.

A server of asyncio or uvloop that is given a certificate tells nobody of a connection before its
handshake has ended. So it is given none here: each connection that it has accepted is taken from
it, as a descriptor of its own, and handed to what begins TLS on a socket.
"""

import asyncio
import contextlib
import os
import socket
import ssl
from collections.abc import Callable
from typing import Protocol, cast


class Accepted(Protocol):
    """A connection, whose other methods are those of `asyncio.Protocol`."""

    @property
    def begun(self) -> bool:
        """Whether `connection_made` was called, with a transport that speaks TLS."""
        ...

    def accepted(self, transport: asyncio.BaseTransport, abort: Callable[[], None]) -> bool:
        """Count a connection on which nothing was received; return whether it may stay.

        Args:
            transport: of the connection.
            abort: ends it at once, until it is made.
        """
        ...

    def connection_lost(self, exc: BaseException | None) -> None:
        """End; it may never have been made."""
        ...


class Handshakes:
    """The handshakes under way of one server."""

    def __init__(self, tls: ssl.SSLContext, timeout_s: float) -> None:
        """Begin TLS with a certificate; each handshake may take `timeout_s`."""
        self._tls = tls
        self._timeout_s = timeout_s
        self._under_way: dict[asyncio.Task[None], Callable[[], None]] = {}

    def accepting(self, connection: Accepted) -> asyncio.Protocol:
        """Return the protocol that a connection is accepted with."""
        return _Accepting(self, connection)

    def begin(self, stream: socket.socket, connection: Accepted, abort: Callable[[], None]) -> None:
        """Begin TLS on a connection that was accepted."""
        task = asyncio.get_running_loop().create_task(self._shake(stream, connection, abort))
        self._under_way[task] = abort
        task.add_done_callback(self._under_way.pop)

    def close(self) -> None:
        """End all that are under way."""
        for abort in self._under_way.values():
            abort()

    async def _shake(
        self, stream: socket.socket, connection: Accepted, abort: Callable[[], None]
    ) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: cast("asyncio.Protocol", connection),
                stream,
                ssl=self._tls,
                ssl_handshake_timeout=self._timeout_s,
            )
        except OSError:  # of ssl as well: the other side speaks no TLS, takes too long or hung up
            pass
        finally:
            if not connection.begun:
                abort()
                connection.connection_lost(None)


class _Accepting(asyncio.Protocol):
    """Counts a connection, and takes it from the server."""

    def __init__(self, handshakes: Handshakes, connection: Accepted) -> None:
        self._handshakes = handshakes
        self._connection = connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin the handshake, unless there are too many connections: an answer would need it."""
        server_side = cast("asyncio.Transport", transport)
        stream: socket.socket | None = None

        def abort() -> None:
            """Have the loop find the connection at its end, which whoever has it then closes."""
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.shutdown(socket.SHUT_RDWR)

        try:
            if self._connection.accepted(transport, abort):
                descriptor: int = transport.get_extra_info("socket").fileno()
                stream = socket.socket(fileno=os.dup(descriptor))
                self._handshakes.begin(stream, self._connection, abort)
        except OSError:  # there are no more descriptors
            self._connection.connection_lost(None)
        finally:
            server_side.abort()
