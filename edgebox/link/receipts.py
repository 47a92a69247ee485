"""Decides when the bytes of each WebSocket message were received, and which are passed on.

It parses the headers of WebSocket frames (RFC 6455, section 5.2) as their bytes are read. The time
over which a message's bytes were spread is what `transit.py` uses as its transmission time. Bytes
that are no WebSocket frames are no error here: the reader of the messages detects them, and a
receipt that does not match its message is not returned.

Every frame costs the box time, whatever its size, so small frames are rate-limited. They are
counted here, before any other processing.

A binary message that is not wanted is cut down to its first bytes, those of a frame's header, when
its first byte arrives: what follows is neither kept, assembled nor unmasked.

Pure: the bytes and the instants are arguments. O(frames in the bytes) per read.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from edgebox.link.protocol import FRAME_HEADER_BYTES

_BINARY = 0x2
_CONTROL = 0x8
"""The smallest control opcode; close, ping and pong may come between a message's frames."""
_FINAL_BIT, _OPCODE_BITS, _MASK_BIT, _LENGTH_BITS = 0x80, 0x0F, 0x80, 0x7F
_LENGTH_BYTES = {126: 2, 127: 8}

SMALL_FRAME_BYTES = 1_024
"""A smaller frame is rate-limited; larger ones are limited by the network."""
SMALL_FRAMES_PER_S = 3_000
"""A camera at the protocol's highest rate sends 1,000 frames and answers as many pings."""
SMALL_FRAMES_BURST = 3_000
"""Frames that may arrive at once: those that a network delayed for a second."""
_SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class MessageReceipt:
    """The instants at which the bytes of one message were received."""

    size_bytes: int
    """The payload, without the headers of its frames."""
    first_ns: int
    """The read that returned its first byte."""
    first_bytes: int
    """The bytes of it that this read returned."""
    last_ns: int
    """The read that returned its last byte."""
    cut: bool = False
    """Whether only its first bytes were passed on."""

    @property
    def passed_bytes(self) -> int:
        """The size of the message that was passed on."""
        return min(self.size_bytes, FRAME_HEADER_BYTES) if self.cut else self.size_bytes


class MessageReceipts:
    """The receipts of one connection's messages, in order."""

    def __init__(
        self, *, kept: bool = True, wanted: Callable[[int], bool] = lambda size_bytes: True
    ) -> None:
        """Start with a connection.

        Args:
            kept: whether receipts are wanted; the rate limit is applied in any case.
            wanted: called with the size of each binary message's first frame, when its header has
                arrived; returns whether to pass on the whole message.
        """
        self._wanted = wanted
        self._done: deque[MessageReceipt] = deque()
        self._lost = not kept
        """Whether the bytes read here do not match the messages, or receipts are not wanted."""
        self._header = bytearray()
        self._left_bytes = 0
        """Remaining bytes of the current frame."""
        self._frame_bytes = 0
        """Those of its payload."""
        self._control = False
        self._final = False
        self._mask = b""
        """That of the current frame; empty: it has none."""
        self._cut: bytearray | None = None
        """The first bytes of the current message, unmasked; None: it is passed on as it is."""
        self._first_ns: int | None = None
        """First byte of the current message; None: there is none."""
        self._first_bytes = 0
        self._size_bytes = 0
        self._ration = SMALL_FRAMES_BURST * _SECOND_NS
        """Small frames that may still arrive, times a second."""
        self._rationed_ns: int | None = None
        """When they were last counted."""

    @property
    def exceeded(self) -> bool:
        """Whether too many small frames have arrived; what follows is not read."""
        return self._ration < 0

    def read(self, data: bytes, now_ns: int) -> bytes:
        """Process the bytes of a read; return those to pass on: after `exceeded`, none."""
        if self.exceeded:
            return b""
        self._add_to_ration(now_ns)
        at = start = 0  # what is before `start` was passed on or left out
        passed: list[bytes] = []
        while at < len(data) and self._ration >= 0:
            if self._left_bytes == 0:
                began, held = at, self._held() if self._header else b""
                at = self._take_header(data, at, now_ns)
                if self._held() if self._header else self._leaves_out:
                    passed.append(data[start:began])
                    start = at
                elif held:
                    passed += (held, data[:at])
                    start = at
            else:
                passing = min(self._left_bytes, len(data) - at)
                self._take_payload(data, at, passing, now_ns)
                at += passing
                if self._leaves_out:
                    start = at
            if self._left_bytes == 0 and not self._header:
                passed += self._end_frame(now_ns)
        if not start:
            return data
        passed.append(data[start:])
        return b"".join(passed)

    def take(self, size_bytes: int) -> MessageReceipt | None:
        """Return the receipt of the next message, which was passed on with this payload size.

        None: not known.

        Once a size does not match, no receipt is known any more: the connection began with bytes
        that were not seen here.
        """
        if self._done and self._done[0].passed_bytes == size_bytes:
            return self._done.popleft()
        self._lost = True
        self._done.clear()
        return None

    def _add_to_ration(self, now_ns: int) -> None:
        before_ns, self._rationed_ns = self._rationed_ns, now_ns
        if before_ns is not None:
            more = max(0, now_ns - before_ns) * SMALL_FRAMES_PER_S
            self._ration = min(SMALL_FRAMES_BURST * _SECOND_NS, self._ration + more)

    @property
    def _leaves_out(self) -> bool:
        """Whether the bytes of the current frame are not passed on as they are."""
        return self._cut is not None and not self._control

    def _held(self) -> bytes:
        """Return the bytes of an incomplete header that may be that of an unwanted message.

        They are passed on, or not, once the header is complete.
        """
        header = self._header
        held = header and (
            header[0] & _OPCODE_BITS < _CONTROL
            if self._cut is not None
            else header[0] & _OPCODE_BITS == _BINARY
        )
        return bytes(header) if held else b""

    def _take_header(self, data: bytes, at: int, now_ns: int) -> int:
        """Process bytes of a frame's header; return the index after them."""
        header = self._header
        while at < len(data) and (missing := _header_bytes(header) - len(header)):
            header += data[at : at + missing]
            at = min(len(data), at + missing)
        opcode = header[0] & _OPCODE_BITS
        if opcode < _CONTROL and self._first_ns is None:
            self._first_ns, self._first_bytes, self._size_bytes = now_ns, 0, 0
        if len(header) < _header_bytes(header):
            return at
        self._final = bool(header[0] & _FINAL_BIT)
        self._control = opcode >= _CONTROL
        self._left_bytes = self._frame_bytes = _payload_bytes(header)
        self._mask = bytes(header[-4:]) if header[1] & _MASK_BIT else b""
        if opcode == _BINARY and not self._lost and not self._wanted(self._left_bytes):
            self._cut = bytearray()
        header.clear()
        if self._left_bytes < SMALL_FRAME_BYTES:
            self._ration -= _SECOND_NS
        return at

    def _take_payload(self, data: bytes, at: int, passing: int, now_ns: int) -> None:
        """Process bytes of a frame's payload."""
        if self._cut is not None and not self._control and len(self._cut) < FRAME_HEADER_BYTES:
            first = data[at : at + min(FRAME_HEADER_BYTES - len(self._cut), passing)]
            place = self._frame_bytes - self._left_bytes
            self._cut += _unmasked(first, self._mask, place) if self._mask else first
        self._left_bytes -= passing
        if not self._control:
            self._size_bytes += passing
            if self._first_ns == now_ns:
                self._first_bytes = self._size_bytes

    def _end_frame(self, now_ns: int) -> tuple[bytes, ...]:
        """End a frame; return what is passed on in place of a message that ends with it."""
        if self._control or not self._final or self._first_ns is None:
            return ()
        cut, self._cut = self._cut, None
        receipt = MessageReceipt(
            self._size_bytes, self._first_ns, self._first_bytes, now_ns, cut is not None
        )
        if not self._lost:
            self._done.append(receipt)
        self._first_ns = None
        return () if cut is None else (bytes((_FINAL_BIT | _BINARY, len(cut))) + bytes(cut),)


def _unmasked(masked: bytes, mask: bytes, place: int) -> bytes:
    """Return bytes that lie at this place of a frame's payload."""
    size = len(masked)
    key = (mask * (size // 4 + 2))[place % 4 :][:size]
    return (int.from_bytes(masked, "big") ^ int.from_bytes(key, "big")).to_bytes(size, "big")


def _header_bytes(header: bytearray) -> int:
    """Return the length of a frame's header, as far as its first bytes determine it."""
    if len(header) < 2:
        return 2
    masked = 4 if header[1] & _MASK_BIT else 0
    return 2 + _LENGTH_BYTES.get(header[1] & _LENGTH_BITS, 0) + masked


def _payload_bytes(header: bytearray) -> int:
    length = header[1] & _LENGTH_BITS
    more = _LENGTH_BYTES.get(length)
    return length if more is None else int.from_bytes(header[2 : 2 + more], "big")
