"""Frames whose first stage ran at their camera: what is read is what was sent, or one error."""

import struct
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.errors import InvalidInputError
from edgebox.link.detected_frames import (
    CROP_BYTES,
    DETECTION_BYTES,
    DETECTIONS_MAX,
    DetectedFrame,
    Limits,
    SentCrop,
    SentDetection,
    detected_header,
)
from edgebox.link.messages import FrameHeader
from edgebox.link.protocol import DETECTED_HEADER_BYTES

WIDTH_PX, HEIGHT_PX = 1280, 720
HEADER = FrameHeader(7, 1_000, 2_000, WIDTH_PX, HEIGHT_PX, 9)
LIMITS = Limits(labels=5, variants=3, crops_max=(4, 2))


def f32(value: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


@st.composite
def detections(draw: st.DrawFn) -> SentDetection:
    x1, y1 = draw(st.integers(0, WIDTH_PX - 1)), draw(st.integers(0, HEIGHT_PX - 1))
    x2, y2 = draw(st.integers(x1 + 1, WIDTH_PX)), draw(st.integers(y1 + 1, HEIGHT_PX))
    score = f32(draw(st.floats(0, 1, width=32)))
    return SentDetection(draw(st.integers(0, LIMITS.labels - 1)), score, (x1, y1, x2, y2))


@st.composite
def frames(draw: st.DrawFn) -> DetectedFrame:
    found = tuple(draw(st.lists(detections(), max_size=12)))
    crops = []
    for stage, most in enumerate(LIMITS.crops_max):
        rows = draw(st.permutations(range(len(found))))
        for row in rows[: draw(st.integers(0, most))]:
            left, top = draw(st.integers(0, WIDTH_PX - 1)), draw(st.integers(0, HEIGHT_PX - 1))
            area = left, top, draw(st.integers(left + 1, WIDTH_PX)), HEIGHT_PX
            crops.append(SentCrop(stage, row, area, draw(st.binary(min_size=1, max_size=30))))
    took_us = draw(st.integers(0, 2**32 - 1))
    return DetectedFrame(took_us * 1_000, draw(st.integers(0, 2)), found, tuple(crops))


def read(message: bytes, limits: Limits = LIMITS) -> tuple[FrameHeader, DetectedFrame]:
    header, content = detected_header(message)
    return header, DetectedFrame.decode(message, header, content, limits)


@given(frames())
def test_what_is_read_is_what_was_sent(frame: DetectedFrame) -> None:
    message = frame.encode(HEADER)
    header, found = read(message)
    assert header == HEADER
    assert (found.took_ns, found.variant) == (frame.took_ns, frame.variant)
    assert found.detections == frame.detections
    assert [(c.stage, c.detection, c.area_px, bytes(c.jpeg)) for c in found.crops] == [
        (c.stage, c.detection, c.area_px, c.jpeg) for c in frame.crops
    ]


@given(frames(), st.data())
def test_a_message_cut_short_or_with_more_behind_it_is_refused(
    frame: DetectedFrame, data: st.DataObject
) -> None:
    message = frame.encode(HEADER)
    with pytest.raises(InvalidInputError):
        read(message[: data.draw(st.integers(0, len(message) - 1))])
    with pytest.raises(InvalidInputError):
        read(message + b"\0")


def is_sound(frame: DetectedFrame) -> bool:
    """Judge a message's content by the rules of the protocol."""
    pairs = [(crop.stage, crop.detection) for crop in frame.crops]
    within = all(
        0 <= x1 < x2 <= WIDTH_PX and 0 <= y1 < y2 <= HEIGHT_PX
        for x1, y1, x2, y2 in [d.box for d in frame.detections] + [c.area_px for c in frame.crops]
    )
    return (
        within
        and frame.variant < LIMITS.variants
        and len(frame.detections) <= DETECTIONS_MAX
        and all(d.label < LIMITS.labels and 0 <= d.score <= 1 for d in frame.detections)
        and len(set(pairs)) == len(pairs)
        and all(row < len(frame.detections) for _, row in pairs)
        and all(
            stage < len(LIMITS.crops_max)
            and sum(other == stage for other, _ in pairs) <= LIMITS.crops_max[stage]
            for stage, _ in pairs
        )
        and all(len(crop.jpeg) > 0 for crop in frame.crops)
    )


@given(frames(), st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=6))
def test_changed_bytes_give_a_sound_frame_or_one_error(
    frame: DetectedFrame, changes: list[tuple[int, int]]
) -> None:
    message = bytearray(frame.encode(HEADER))
    for at, value in changes:
        # Other bytes of the 32 are those of any frame's header.
        places = [0, 1, 2, 3, *range(32, len(message))]
        message[places[at % len(places)]] = value
    try:
        _, found = read(bytes(message))
    except InvalidInputError as error:
        assert "\n" not in str(error)
        return
    assert is_sound(found)


@given(st.binary(max_size=300))
def test_any_bytes_give_a_sound_frame_or_one_error(content: bytes) -> None:
    message = HEADER.encode(68, DETECTED_HEADER_BYTES) + content
    try:
        _, found = read(message)
    except InvalidInputError:
        return
    assert is_sound(found)


@given(frames(), st.frozensets(st.integers(0, 4), min_size=1), st.frozensets(st.integers(0, 4)))
def test_crops_of_objects_that_a_stage_does_not_take_are_refused(
    frame: DetectedFrame, first: frozenset[int], second: frozenset[int]
) -> None:
    limits = replace(LIMITS, labels_taken=(first, second))
    taken = [
        not limits.labels_taken[crop.stage]
        or frame.detections[crop.detection].label in limits.labels_taken[crop.stage]
        for crop in frame.crops
    ]
    if all(taken):
        assert read(frame.encode(HEADER), limits)[1].crops == read(frame.encode(HEADER))[1].crops
    else:
        with pytest.raises(InvalidInputError, match=f"crop {taken.index(False)}: stage . takes"):
            read(frame.encode(HEADER), limits)


CAR = SentDetection(1, 0.5, (10, 10, 60, 50))
CROP = SentCrop(0, 0, (5, 5, 65, 55), b"jpeg")


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (DetectedFrame(0, 3, (), ()), "variant"),
        (DetectedFrame(0, 0, (SentDetection(5, 0.5, CAR.box),), ()), "label"),
        (DetectedFrame(0, 0, (SentDetection(1, float("nan"), CAR.box),), ()), "score"),
        (DetectedFrame(0, 0, (SentDetection(1, 0.5, (10, 10, 10, 50)),), ()), "box"),
        (DetectedFrame(0, 0, (SentDetection(1, 0.5, (0, 0, float("nan"), 5)),), ()), "box"),
        (DetectedFrame(0, 0, (SentDetection(1, 0.5, (0, 0, 1281, 5)),), ()), "box"),
        (DetectedFrame(0, 0, (CAR,) * (DETECTIONS_MAX + 1), ()), "1000 detections"),
        (DetectedFrame(0, 0, (CAR,), (CROP, CROP)), "twice"),
        (DetectedFrame(0, 0, (CAR,), (SentCrop(2, 0, CROP.area_px, b"x"),)), "no stage"),
        (DetectedFrame(0, 0, (CAR,), (SentCrop(0, 1, CROP.area_px, b"x"),)), "no detection"),
        (DetectedFrame(0, 0, (CAR,), (SentCrop(0, 0, (9, 0, 9, 5), b"x"),)), "area"),
        (DetectedFrame(0, 0, (CAR,), (SentCrop(0, 0, CROP.area_px, b""),)), "JPEG"),
        (
            DetectedFrame(
                0, 0, (CAR,) * 5, tuple(SentCrop(0, at, CROP.area_px, b"x") for at in range(5))
            ),
            "stage 0 takes 4",
        ),
    ],
)
def test_each_rule_has_its_own_error(frame: DetectedFrame, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        read(frame.encode(HEADER))


def test_the_sizes_in_the_protocol_are_the_sizes_of_the_tables() -> None:
    assert (DETECTED_HEADER_BYTES, DETECTION_BYTES, CROP_BYTES) == (44, 28, 16)
    assert len(DetectedFrame(0, 0, (CAR,), (CROP,)).encode(HEADER)) == 44 + 28 + 16 + 4


def test_a_reader_skips_what_a_later_version_appends_to_the_header() -> None:
    def longer(header: bytes) -> bytes:
        return header[:2] + struct.pack("<H", DETECTED_HEADER_BYTES + 8) + header[4:]

    plain: Callable[[bytes], bytes] = longer
    message = DetectedFrame(5_000, 1, (CAR,), (CROP,)).encode(HEADER)
    at = DETECTED_HEADER_BYTES
    _, found = read(plain(message[:at]) + b"whatever" + message[at:])
    assert found.detections == (CAR,)
