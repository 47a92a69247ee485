"""Messages of ZeroMQ are followed through its frames, however their bytes arrive."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.errors import InvalidInputError, TooLargeError
from edgebox.web.zmq_endpoint import FRAMES_PER_S, PARTS_MAX, MessageMeter, TooFastError

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01NULL" + bytes(48)
BYTES_MAX = 1_000

MESSAGES = st.lists(
    st.lists(st.integers(0, 600) | st.integers(0, 60), min_size=1, max_size=PARTS_MAX + 2),
    max_size=8,
)
CUTS = st.lists(st.integers(1, 300), min_size=1, max_size=50)


def frame(size: int, *, more: bool = False, command: bool = False) -> bytes:
    is_long = size > 255
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
        meter.feed(data[:cut], 0.0)
        data = data[cut:]


@given(MESSAGES, CUTS)
def test_the_first_message_that_is_too_long_is_refused_and_none_before(
    messages: list[list[int]], cuts: list[int]
) -> None:
    meter = MessageMeter(BYTES_MAX, 0.0)
    feed(meter, GREETING + frame(40, command=True), cuts)
    for sizes in messages:
        if sum(sizes) > BYTES_MAX or len(sizes) > PARTS_MAX:
            with pytest.raises(TooLargeError, match=f"more than (1000 bytes|{PARTS_MAX} parts)"):
                feed(meter, message(sizes), cuts)
            return
        feed(meter, message(sizes), cuts)


@given(MESSAGES, st.lists(st.integers(0, 300), max_size=3), CUTS, st.integers(0, 10_000))
def test_what_is_unfinished_is_what_has_come_of_a_message(
    messages: list[list[int]], commands: list[int], cuts: list[int], end: int
) -> None:
    """Counted frame by frame, beside the meter."""
    sent = [sizes for sizes in messages if sum(sizes) <= BYTES_MAX and len(sizes) <= PARTS_MAX]
    frames = list[tuple[bytes, int, bool, bool]]()  # with size, last, command
    for sizes in sent:
        for at, size in enumerate(sizes):
            last = at == len(sizes) - 1
            frames += [(frame(each, command=True), each, False, True) for each in commands]
            frames.append((frame(size, more=not last), size, last, False))
    meter = MessageMeter(BYTES_MAX, 0.0)
    feed(meter, (GREETING + b"".join(each for each, *_ in frames))[:end], cuts)
    left, unfinished = max(0, end - len(GREETING)), 0
    for data, size, last, command in frames:
        come, left = min(left, len(data)), max(0, left - len(data))
        head = len(data) - size
        if come < len(data):
            unfinished += max(0, come - head)
            break
        unfinished = 0 if last else unfinished + (0 if command else size)
    assert meter.unfinished_bytes == unfinished


@given(CUTS)
def test_commands_between_the_parts_neither_count_nor_begin_a_new_message(cuts: list[int]) -> None:
    meter = MessageMeter(BYTES_MAX, 0.0)
    feed(meter, GREETING, cuts)
    half = frame(300, more=True) + frame(900, command=True)
    feed(meter, half + half, cuts)
    feed(meter, half, cuts)
    with pytest.raises(TooLargeError):
        feed(meter, half, cuts)


def test_a_command_that_says_that_more_follows_is_refused() -> None:
    """ZeroMQ takes SUBSCRIBE for a part of the message then, and keeps it."""
    meter = MessageMeter(BYTES_MAX, 0.0)
    meter.feed(GREETING, 0.0)
    with pytest.raises(InvalidInputError, match="more of it follows"):
        meter.feed(frame(10, more=True, command=True), 0.0)


@pytest.mark.parametrize("command", [False, True])
def test_frames_have_a_rate(command: bool) -> None:
    meter = MessageMeter(BYTES_MAX, 0.0)
    meter.feed(GREETING, 0.0)
    second = frame(0, command=command) * FRAMES_PER_S
    for at_s in range(1, 5):
        meter.feed(second, float(at_s))
    with pytest.raises(TooFastError, match=f"more than {FRAMES_PER_S} frames a second"):
        meter.feed(second, 4.9)


def test_a_length_is_refused_before_its_content_comes() -> None:
    meter = MessageMeter(BYTES_MAX, 0.0)
    meter.feed(GREETING, 0.0)
    with pytest.raises(TooLargeError):
        meter.feed(b"\x02" + (2**63).to_bytes(8, "big"), 0.0)


@pytest.mark.parametrize("greeting", [b"GET / HTTP/1.1\r\n" + bytes(48), b"\xff" + bytes(63)])
def test_another_protocol_is_refused(greeting: bytes) -> None:
    with pytest.raises(InvalidInputError, match="not ZMTP 3"):
        MessageMeter(BYTES_MAX, 0.0).feed(greeting, 0.0)
