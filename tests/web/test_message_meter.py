"""Messages of ZeroMQ are followed through its frames, however their bytes arrive."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.errors import InvalidInputError, TooLargeError
from edgebox.web.zmq_endpoint import MessageMeter

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01NULL" + bytes(48)
BYTES_MAX = 1_000
PART = 64
"""What a part counts beside its content."""

MESSAGES = st.lists(st.lists(st.integers(0, 600), min_size=1, max_size=6), max_size=8)
CUTS = st.lists(st.integers(1, 300), min_size=1, max_size=50)


def frame(size: int, *, more: bool = False, command: bool = False, long: bool = False) -> bytes:
    is_long = long or size > 255
    flags = more | 2 * is_long | 4 * command
    return bytes([flags]) + size.to_bytes(8 if is_long else 1, "big") + bytes(size)


def message(sizes: list[int]) -> bytes:
    last = len(sizes) - 1
    return b"".join(frame(size, more=at < last) for at, size in enumerate(sizes))


def feed(meter: MessageMeter, data: bytes, cuts: list[int]) -> None:
    for number in range(len(data)):
        if not data:
            return
        cut = cuts[number % len(cuts)]
        meter.feed(data[:cut])
        data = data[cut:]


@given(MESSAGES, CUTS)
def test_the_first_message_that_is_too_long_is_refused_and_none_before(
    messages: list[list[int]], cuts: list[int]
) -> None:
    meter = MessageMeter(BYTES_MAX)
    feed(meter, GREETING + frame(40, command=True), cuts)
    for sizes in messages:
        if sum(sizes) + PART * len(sizes) > BYTES_MAX:
            with pytest.raises(TooLargeError, match="more than 1000 bytes"):
                feed(meter, message(sizes), cuts)
            return
        feed(meter, message(sizes), cuts)


@given(CUTS)
def test_commands_between_the_parts_neither_count_nor_begin_a_new_message(cuts: list[int]) -> None:
    meter = MessageMeter(BYTES_MAX)
    feed(meter, GREETING, cuts)
    half = frame(300, more=True) + frame(900, command=True)
    feed(meter, half + half, cuts)
    with pytest.raises(TooLargeError):
        feed(meter, half, cuts)


def test_a_length_is_refused_before_its_content_comes() -> None:
    meter = MessageMeter(BYTES_MAX)
    meter.feed(GREETING)
    with pytest.raises(TooLargeError):
        meter.feed(b"\x02" + (2**63).to_bytes(8, "big"))


@pytest.mark.parametrize("greeting", [b"GET / HTTP/1.1\r\n" + bytes(48), b"\xff" + bytes(63)])
def test_another_protocol_is_refused(greeting: bytes) -> None:
    with pytest.raises(InvalidInputError, match="not ZMTP 3"):
        MessageMeter(BYTES_MAX).feed(greeting)
