"""Receipts against messages whose bytes are read in pieces of any size."""

import struct
from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.link.protocol import FRAME_HEADER_BYTES
from edgebox.link.receipts import (
    SMALL_FRAME_BYTES,
    SMALL_FRAMES_BURST,
    SMALL_FRAMES_PER_S,
    MessageReceipt,
    MessageReceipts,
)

SECOND = 1_000_000_000
TEXT, BINARY, CONTINUATION, PING, PONG = 1, 2, 0, 9, 10


def ws_frame(
    opcode: int, payload: bytes, *, final: bool = True, masked: bool = True, mask: bytes = b"\0" * 4
) -> bytes:
    """Return a frame as RFC 6455 has it; the mask may be of zeros."""
    size = len(payload)
    if size < 126:
        length, more = size, b""
    elif size < 65_536:
        length, more = 126, struct.pack(">H", size)
    else:
        length, more = 127, struct.pack(">Q", size)
    head = bytes([opcode | (0x80 if final else 0), length | (0x80 if masked else 0)])
    if not masked:
        return head + more + payload
    return head + more + mask + bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload))


@dataclass
class Sent:
    """One message's bytes on the wire, and where among them is what it carries."""

    wire: bytes
    carries: list[range]


def sent(opcode: int, parts: list[int], between: int | None, masked: bool) -> Sent:
    """Return a message in frames of these sizes, with a ping of a size before its last."""
    wire, carries = b"", []
    for number, size in enumerate(parts):
        kind = opcode if number == 0 else CONTINUATION
        final = number == len(parts) - 1
        if final and number > 0 and between is not None:
            wire += ws_frame(PING, b"p" * between, masked=masked)
        wire += ws_frame(kind, b"x" * size, final=final, masked=masked)
        carries.append(range(len(wire) - size, len(wire)))
    return Sent(wire, carries)


sizes = st.integers(0, 300) | st.sampled_from((125, 126, 65_535, 65_536))
messages = st.builds(
    sent,
    st.sampled_from((TEXT, BINARY)),
    st.lists(sizes, min_size=1, max_size=3),
    st.none() | st.integers(0, 125),
    st.booleans(),
)


@given(
    st.lists(messages, max_size=6),
    st.lists(st.integers(1, 9) | st.integers(1, 40_000)),
    st.integers(0, 125),
)
def test_receipts_are_what_the_definition_says(
    sent: list[Sent], reads: list[int], pong: int
) -> None:
    wire = b"".join(message.wire for message in sent) + ws_frame(PONG, b"p" * pong)
    cuts = [0]
    for size in reads:
        cuts.append(min(len(wire), cuts[-1] + size))
    cuts.append(len(wire))
    receipts = MessageReceipts()
    for number, (begin, end) in enumerate(pairwise(cuts)):
        receipts.read(wire[begin:end], number)
    at = 0
    for message in sent:
        first = bisect_right(cuts, at) - 1
        last = bisect_right(cuts, at + len(message.wire) - 1) - 1
        until = cuts[first + 1] - at
        first_bytes = sum(max(0, min(of.stop, until) - of.start) for of in message.carries)
        size = sum(map(len, message.carries))
        assert receipts.take(size) == MessageReceipt(size, first, first_bytes, last)
        at += len(message.wire)
    assert receipts.take(1) is None


@dataclass
class Part:
    """A frame of a message, and what it carries."""

    wire: bytes
    opcode: int
    payload: bytes
    final: bool


@st.composite
def parts_of_a_message(draw: st.DrawFn) -> list[Part]:
    """Return the frames of a message, with a ping before one of them."""
    kind = draw(st.sampled_from((TEXT, BINARY, BINARY)))
    payloads = draw(st.lists(st.binary(max_size=70), min_size=1, max_size=3))
    parts = []
    for number, payload in enumerate(payloads):
        opcode, final = kind if number == 0 else CONTINUATION, number == len(payloads) - 1
        mask = draw(st.binary(min_size=4, max_size=4))
        wire = ws_frame(opcode, payload, final=final, masked=draw(st.booleans()), mask=mask)
        parts.append(Part(wire, opcode, payload, final))
    if draw(st.booleans()):
        ping = Part(ws_frame(PING, b"ping", masked=False), PING, b"ping", True)
        parts.insert(draw(st.integers(0, len(parts) - 1)), ping)
    return parts


@given(
    st.lists(st.tuples(parts_of_a_message(), st.booleans()), max_size=6),
    st.lists(st.integers(1, 9) | st.integers(1, 200)),
)
def test_of_an_unwanted_frame_only_its_header_is_passed_on(
    messages: list[tuple[list[Part], bool]], reads: list[int]
) -> None:
    wire = b"".join(part.wire for parts, _ in messages for part in parts)
    answers = iter([wanted for parts, wanted in messages if any(p.opcode == BINARY for p in parts)])
    receipts = MessageReceipts(wanted=lambda size_bytes: next(answers))
    cuts = [0]
    for size in reads:
        cuts.append(min(len(wire), cuts[-1] + size))
    cuts.append(len(wire))
    passed = b"".join(receipts.read(wire[begin:end], 0) for begin, end in pairwise(cuts))
    expected = b""
    for parts, wanted in messages:
        if wanted or all(part.opcode != BINARY for part in parts):
            expected += b"".join(part.wire for part in parts)
            continue
        expected += b"".join(part.wire for part in parts if part.opcode == PING)
        carried = b"".join(part.payload for part in parts if part.opcode != PING)
        expected += ws_frame(BINARY, carried[:FRAME_HEADER_BYTES], masked=False)
    assert passed == expected
    for parts, wanted in messages:
        size = sum(len(part.payload) for part in parts if part.opcode != PING)
        cut = not wanted and any(part.opcode == BINARY for part in parts)
        receipt = receipts.take(min(size, FRAME_HEADER_BYTES) if cut else size)
        assert receipt is not None
        assert (receipt.size_bytes, receipt.cut) == (size, cut)


def test_a_message_that_does_not_fit_ends_the_receipts() -> None:
    receipts = MessageReceipts()
    receipts.read(ws_frame(TEXT, b"hello") + ws_frame(TEXT, b"again"), 1)
    assert receipts.take(7) is None
    assert receipts.take(5) is None
    receipts.read(ws_frame(TEXT, b"again"), 2)
    assert receipts.take(5) is None


@given(st.lists(st.binary(max_size=50), max_size=20), st.integers(0, 100))
def test_bytes_that_are_no_websocket_are_no_error(reads: list[bytes], size: int) -> None:
    receipts = MessageReceipts()
    for now_ns, data in enumerate(reads):
        receipts.read(data, now_ns)
    receipts.take(size)


@pytest.mark.parametrize(
    "small",
    [
        ws_frame(PING, b""),
        ws_frame(PONG, b"p" * 125),
        ws_frame(TEXT, b"{}"),
        ws_frame(BINARY, b"x" * (SMALL_FRAME_BYTES - 1)),
        ws_frame(CONTINUATION, b"", final=False),
    ],
)
def test_small_frames_are_rationed_whatever_they_are(small: bytes) -> None:
    receipts = MessageReceipts()
    receipts.read(small * SMALL_FRAMES_BURST, 7 * SECOND)
    assert not receipts.exceeded
    receipts.read(small * (SMALL_FRAMES_PER_S // 2), 7 * SECOND + SECOND // 2)
    assert not receipts.exceeded
    receipts.read(small, 7 * SECOND + SECOND // 2)
    assert receipts.exceeded
    receipts.read(small, 100 * SECOND)
    assert receipts.exceeded, "there is no way back"


def test_larger_frames_are_not_rationed() -> None:
    receipts = MessageReceipts()
    large = ws_frame(BINARY, b"x" * SMALL_FRAME_BYTES)
    for _ in range(4):
        receipts.read(large * SMALL_FRAMES_BURST, SECOND)
    assert not receipts.exceeded
