"""Listens for ZeroMQ clients, and lets no message through that is too long.

ZeroMQ bounds each part of a message but not how many parts there are, and it keeps them all until
the last one has come; a part of 34 bytes may keep the 8 KiB that it was read with. So clients
connect to this endpoint, which passes their bytes on to a ZeroMQ socket in a private folder and
follows where messages begin and end: ZMTP 3, rfc.zeromq.org/spec/23. What has come of a message
counts as a body that is held, and must be complete in time like one.
"""

import asyncio
import contextlib
import errno
import socket
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from edgebox.config.detector_section import IPC
from edgebox.domain.errors import ConfigError, EdgeboxError, InvalidInputError, TooLargeError
from edgebox.web.connections import TooManyConnectionsError
from edgebox.web.private_folder import PrivateFolder
from edgebox.web.request_limits import BodyHolding, RequestLimits

CONNECTIONS_MAX = 64
"""Each may have two messages: one that comes, and one that waits for the box."""
PARTS_MAX = 16
"""Of one message: a request has three, and one more for each proxy on its way."""
FRAMES_PER_S = 3_000
"""Of one client, commands included, whatever their size: each costs the event loop 1.5 us. A client
that waits for its answers sends some four for each picture."""
_READ_BYTES = 1 << 18
_GREETING_BYTES = 64
_SIGNATURE, _MAJOR_AT, _MAJOR_MIN = 0xFF, 10, 3
_MORE, _LONG, _COMMAND = 1, 2, 4
_WHY: dict[int | None, str] = {
    None: "the path is too long for a socket",  # which has no number
    errno.ENOENT: "its folder is missing",
    errno.EADDRINUSE: "another program listens there",
    errno.EADDRNOTAVAIL: "this machine has no such address",
}


class TooFastError(EdgeboxError):
    """A client sends more frames than the box takes."""

    code = "too_fast"


class MessageMeter:
    """Follows the bytes of one client, and adds up the parts of each message. Pure."""

    def __init__(self, bytes_max: int, now_s: float) -> None:
        """Begin a connection; the parts of a message may have `bytes_max` together."""
        self._bytes_max = bytes_max
        self._head = bytearray()
        """What has come of the greeting, or of the header of a frame."""
        self._greeted = False
        self._content_left = 0
        self._flags = 0
        """Of the present frame."""
        self._command_bytes = 0
        """Of the present frame, if it is a command."""
        self._message_bytes = 0
        self._message_parts = 0
        self.unfinished_bytes = 0
        """What has come of a message, or of a command, that is not complete."""
        self._frames_left = float(FRAMES_PER_S)
        """Frames that may come at once, saved up for a second."""
        self._at_s = now_s

    def feed(self, data: bytes, now_s: float) -> None:
        """Take the next bytes, at an instant of a monotonic clock.

        Raises:
            TooLargeError: a message is too long.
            TooFastError: there are too many frames.
            InvalidInputError: it is not ZMTP 3.
        """
        saved = self._frames_left + (now_s - self._at_s) * FRAMES_PER_S
        self._frames_left, self._at_s = min(FRAMES_PER_S, saved), now_s
        at = 0
        while at < len(data):
            if self._content_left:
                step = min(self._content_left, len(data) - at)
                self._content_left -= step
                self.unfinished_bytes += step
                if not self._content_left:
                    self._end_frame()
            else:
                step = min(self._head_bytes() - len(self._head), len(data) - at)
                self._head += data[at : at + step]
                if len(self._head) == self._head_bytes():
                    self._take_head()
            at += step

    def _head_bytes(self) -> int:
        """Return how long the present head is, as far as is known."""
        if not self._greeted:
            return _GREETING_BYTES
        if not self._head:
            return 1
        return 9 if self._head[0] & _LONG else 2

    def _take_head(self) -> None:
        head, self._head = self._head, bytearray()
        if not self._greeted:
            if head[0] != _SIGNATURE or head[_MAJOR_AT] < _MAJOR_MIN:
                raise InvalidInputError("this is not ZMTP 3, as ZeroMQ speaks it since 4.0")
            self._greeted = True
            return
        self._frames_left -= 1
        if self._frames_left < 0:
            raise TooFastError(f"more than {FRAMES_PER_S} frames a second over ZeroMQ")
        self._flags, size = head[0], int.from_bytes(head[1:], "big")
        self._content_left = size
        if self._flags & _COMMAND:
            self._take_command(size)
        else:
            self._take_part(size)
        if not size:
            self._end_frame()

    def _take_command(self, size: int) -> None:
        """Take the header of a command, which may come between parts, and is not kept.

        One that says that more follows is against the protocol, and some would be kept.
        """
        if self._flags & _MORE:
            raise InvalidInputError("a command over ZeroMQ says that more of it follows")
        if size > self._bytes_max:
            raise self._too_large()
        self._command_bytes = size

    def _take_part(self, size: int) -> None:
        self._message_bytes += size
        self._message_parts += 1
        if self._message_bytes > self._bytes_max:
            raise self._too_large()
        if self._message_parts > PARTS_MAX:
            raise TooLargeError(f"a message over ZeroMQ has more than {PARTS_MAX} parts")

    def _end_frame(self) -> None:
        if self._flags & _COMMAND:
            self.unfinished_bytes -= self._command_bytes
        elif not self._flags & _MORE:
            self.unfinished_bytes = self._message_bytes = self._message_parts = 0

    def _too_large(self) -> TooLargeError:
        return TooLargeError(
            f"a message over ZeroMQ has more than {self._bytes_max} bytes (limits.frame_bytes_max)"
        )


class ZmqEndpoint:
    """An endpoint for ZeroMQ clients, in front of a socket that only this process can reach."""

    def __init__(
        self,
        endpoint: str,
        message_bytes_max: int,
        limits: RequestLimits,
        on_refused: Callable[[EdgeboxError], None],
    ) -> None:
        """Listen to nothing yet.

        Args:
            endpoint: "ipc://" and a path, or "tcp://" with an address and a port.
            message_bytes_max: longest message, all its parts together.
            limits: where what has come of messages counts as bodies.
            on_refused: called with what is wrong with a connection that is ended.

        Raises:
            ConfigError: there is no folder for temporary files.
        """
        self._endpoint = endpoint
        self._message_bytes_max = message_bytes_max
        self._limits = limits
        self._on_refused = on_refused
        try:
            self._folder = PrivateFolder("edgebox-zmq-")
        except OSError as error:
            raise ConfigError(f"zmq_detector needs a folder for temporary files: {error}") from None
        self._server: asyncio.Server | None = None
        self._relays: set[asyncio.Task[None]] = set()

    @property
    def path(self) -> Path | None:
        """The file of the endpoint; None: it has none."""
        return Path(self._endpoint.removeprefix(IPC)) if self._endpoint.startswith(IPC) else None

    @property
    def behind(self) -> str:
        """Where the ZeroMQ socket is to be bound that has the messages."""
        return f"{IPC}{self._behind}"

    @property
    def _behind(self) -> str:
        return f"{self._folder.path}/socket"

    async def start(self) -> None:
        """Listen; the socket behind is bound.

        Raises:
            ConfigError: it cannot be listened on.
        """
        try:
            if self.path is not None:
                self._server = await asyncio.start_unix_server(self._accept, sock=_bound(self.path))
            else:
                parts = urlsplit(self._endpoint)
                host = None if parts.hostname == "*" else parts.hostname
                self._server = await asyncio.start_server(self._accept, host, parts.port)
        except OSError as error:
            why = _WHY.get(error.errno) or (error.strerror or str(error)).lower()
            raise ConfigError(
                f"zmq_detector.endpoint: cannot listen on {self._endpoint}: {why}"
            ) from None

    async def stop(self) -> None:
        """Stop listening, and end all connections."""
        if self._server is not None:
            self._server.close()
        for relay in self._relays:
            relay.cancel()
        await asyncio.gather(*self._relays, return_exceptions=True)
        self._folder.remove()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._relays) >= CONNECTIONS_MAX:
            writer.transport.abort()
            said = f"{CONNECTIONS_MAX} clients are connected over ZeroMQ, and no more may be"
            self._on_refused(TooManyConnectionsError(said))
            return
        relay = asyncio.create_task(self._relay(reader, writer))
        self._relays.add(relay)
        relay.add_done_callback(self._relays.discard)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass bytes on in both directions until one side ends."""
        with contextlib.ExitStack() as ends:
            ends.callback(writer.transport.abort)
            try:
                behind, to_behind = await asyncio.open_unix_connection(self._behind)
            except OSError:
                return  # it stops
            ends.callback(to_behind.transport.abort)
            peername = writer.get_extra_info("peername")
            peer = peername[0] if isinstance(peername, tuple) else None
            address = self._limits.address_of(peer)
            holding = self._limits.holding(address, lambda error: None)  # told below
            ends.callback(holding.release)
            meter = MessageMeter(self._message_bytes_max, asyncio.get_running_loop().time())
            pumps = [
                asyncio.create_task(_pump_metered(reader, to_behind, meter, holding)),
                asyncio.create_task(_pump(behind, writer)),
            ]
            for pump in pumps:
                ends.callback(pump.cancel)
            done, _ = await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            for pump in done:
                if isinstance(error := pump.exception(), EdgeboxError):
                    self._on_refused(error)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass bytes on until there are no more."""
    with contextlib.suppress(OSError):
        while data := await reader.read(_READ_BYTES):
            writer.write(data)
            await writer.drain()


async def _pump_metered(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    meter: MessageMeter,
    holding: BodyHolding,
) -> None:
    """Pass a client's bytes on until there are no more.

    Raises:
        EdgeboxError: a message is too long, too slow, or more than may be held; or see
            `MessageMeter.feed`.
    """
    clock_s = asyncio.get_running_loop().time
    began_s = clock_s()
    try:
        async with asyncio.timeout(None) as limit:
            while data := await reader.read(_READ_BYTES):
                limit.reschedule(None)
                if not meter.unfinished_bytes:
                    began_s = clock_s()
                meter.feed(data, clock_s())
                holding.hold(meter.unfinished_bytes)
                writer.write(data)
                written_s = clock_s()
                await writer.drain()
                began_s += clock_s() - written_s  # the box's time, not the client's
                if meter.unfinished_bytes:
                    limit.reschedule(began_s + holding.allowed_s(meter.unfinished_bytes))
    except TimeoutError:
        raise holding.too_slow() from None
    except OSError:
        return


def _bound(path: Path) -> socket.socket:
    """Return a socket of this user's alone, bound to a file; what is there was left by a box.

    Raises:
        OSError: it cannot be made.
    """
    bound = socket.socket(socket.AF_UNIX)
    try:
        path.unlink(missing_ok=True)
        bound.bind(str(path))
        path.chmod(0o600)  # nobody can connect before it is listened on
    except BaseException:
        bound.close()
        raise
    return bound
