"""Owns the binary message of a frame whose first stage ran at its camera: boxes and crops.

The layout is in docs/reference/protocol.md. Everything in it is checked against the frame's size,
the family and the offer that the camera was given, so that whoever uses it need not. Pure: no
clock, no I/O; crops' JPEGs are neither copied nor read.
"""

import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from edgebox.domain.errors import InvalidInputError
from edgebox.domain.pipelines import CROPS_MAX
from edgebox.link.from_camera import FrameHeader
from edgebox.link.protocol import DETECTED_HEADER_BYTES, DETECTED_MESSAGE_TYPE, FRAME_HEADER_BYTES

DETECTIONS_MAX = 1_000
"""The most objects of one frame; their places fit in 16 bits."""
_HEADER_REST = struct.Struct("<IBxHHxx")
_DETECTION = struct.Struct("<HxxfffffI")
_CROP = struct.Struct("<BxHHHHHI")
_TOOK_MAX_US = 2**32 - 1
DETECTION_BYTES = _DETECTION.size
CROP_BYTES = _CROP.size

Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class SentDetection:
    """One object. Its box is x1, y1, x2, y2 in px of the camera's own picture."""

    label: int
    score: float
    box: Box


@dataclass(frozen=True, slots=True)
class SentCrop:
    """One object's crop for one later stage."""

    stage: int
    """The place of its stage in the offer."""
    detection: int
    """The place of its object in the message."""
    area_px: tuple[int, int, int, int]
    """Left, top, right and bottom in the camera's own picture."""
    jpeg: bytes | memoryview


@dataclass(frozen=True, slots=True)
class Limits:
    """What a message is checked against."""

    labels: int
    """The number of the family's labels."""
    variants: int
    """The number of variants that were offered."""
    crops_max: tuple[int, ...]
    """The most crops of each stage that was offered."""
    labels_taken: tuple[frozenset[int], ...] = ()
    """The labels whose objects each of these stages takes; empty: all."""


@dataclass(frozen=True, slots=True)
class DetectedFrame:
    """The content of a message after the frame's header."""

    took_ns: int
    """What the first stage took at the camera, from the frame's decision to its detections."""
    variant: int
    """The place of its variant in the offer."""
    detections: tuple[SentDetection, ...]
    crops: tuple[SentCrop, ...]

    @property
    def size_bytes(self) -> int:
        """Size of the whole message."""
        tables = len(self.detections) * DETECTION_BYTES + len(self.crops) * CROP_BYTES
        return DETECTED_HEADER_BYTES + tables + sum(len(crop.jpeg) for crop in self.crops)

    def encode(self, header: FrameHeader) -> bytes:
        """Return the whole message."""
        took_us = min(self.took_ns // 1_000, _TOOK_MAX_US)
        parts = [
            header.encode(DETECTED_MESSAGE_TYPE, DETECTED_HEADER_BYTES),
            _HEADER_REST.pack(took_us, self.variant, len(self.detections), len(self.crops)),
            *(_DETECTION.pack(d.label, d.score, *d.box, 0) for d in self.detections),
            *(_CROP.pack(c.stage, c.detection, *c.area_px, len(c.jpeg)) for c in self.crops),
            *(c.jpeg for c in self.crops),
        ]
        return b"".join(parts)

    @classmethod
    def decode(
        cls, message: bytes | memoryview, header: FrameHeader, content: memoryview, limits: Limits
    ) -> Self:
        """Read what follows the header of a frame.

        Args:
            message: the whole message.
            header: its header, as `detected_header` returns it.
            content: what follows the header.
            limits: what it is checked against.

        Raises:
            InvalidInputError: says what is wrong first.
        """
        took_us, variant, detections, crops = _HEADER_REST.unpack_from(message, FRAME_HEADER_BYTES)
        if variant >= limits.variants:
            raise InvalidInputError(
                f"variant must be one of the {limits.variants} that were offered, not {variant}"
            )
        tables_bytes = detections * DETECTION_BYTES + crops * CROP_BYTES
        crops_max = sum(limits.crops_max)
        if detections > DETECTIONS_MAX or crops > crops_max:
            raise InvalidInputError(
                f"a frame may have {DETECTIONS_MAX} detections and {crops_max} crops, not "
                f"{detections} and {crops}"
            )
        if tables_bytes > len(content):
            raise InvalidInputError(
                f"{detections} detections and {crops} crops need {tables_bytes} bytes, but there "
                f"are {len(content)}"
            )
        crops_at = detections * DETECTION_BYTES
        found = _read_detections(content[:crops_at], header, limits)
        cut = _read_crops(content[crops_at:tables_bytes], content[tables_bytes:], header)
        _check_crops(cut, found, limits)
        return cls(took_us * 1_000, variant, found, cut)


def detected_header(message: bytes | memoryview) -> tuple[FrameHeader, memoryview]:
    """Split a message into its header and the rest.

    Raises:
        InvalidInputError: as `FrameHeader.decode`.
    """
    return FrameHeader.decode(message, DETECTED_MESSAGE_TYPE, DETECTED_HEADER_BYTES)


def _read_detections(
    table: memoryview, header: FrameHeader, limits: Limits
) -> tuple[SentDetection, ...]:
    found = []
    for at, (label, score, x1, y1, x2, y2, _) in enumerate(_DETECTION.iter_unpack(table)):
        if label >= limits.labels:
            raise InvalidInputError(
                f"detection {at}: label must be below {limits.labels}, not {label}"
            )
        # Comparisons are false for what is not a number.
        if not 0 <= score <= 1:
            raise InvalidInputError(f"detection {at}: score must be from 0 to 1, not {score}")
        if not (0 <= x1 < x2 <= header.width_px and 0 <= y1 < y2 <= header.height_px):
            raise InvalidInputError(
                f"detection {at}: its box must have a width and a height and be within "
                f"{header.width_px} × {header.height_px} px, not {x1, y1, x2, y2}"
            )
        found.append(SentDetection(label, score, (x1, y1, x2, y2)))
    return tuple(found)


def _read_crops(
    table: memoryview, pictures: memoryview, header: FrameHeader
) -> tuple[SentCrop, ...]:
    crops, begin = [], 0
    for at, (stage, row, left, top, right, bottom, size) in enumerate(_CROP.iter_unpack(table)):
        if not (left < right <= header.width_px and top < bottom <= header.height_px):
            raise InvalidInputError(
                f"crop {at}: its area must have a width and a height and be within "
                f"{header.width_px} × {header.height_px} px, not {left, top, right, bottom}"
            )
        if not 0 < size <= len(pictures) - begin:
            raise InvalidInputError(
                f"crop {at}: its JPEG must have 1 to {len(pictures) - begin} bytes, not {size}"
            )
        jpeg = pictures[begin : begin + size]
        crops.append(SentCrop(stage, row, (left, top, right, bottom), jpeg))
        begin += size
    if begin != len(pictures):
        raise InvalidInputError(f"{len(pictures) - begin} bytes after the last crop")
    return tuple(crops)


def _check_crops(crops: Sequence[SentCrop], found: Sequence[SentDetection], limits: Limits) -> None:
    of_stages: Counter[int] = Counter()
    seen: set[tuple[int, int]] = set()
    for at, crop in enumerate(crops):
        if crop.stage >= len(limits.crops_max):
            raise InvalidInputError(f"crop {at}: there is no stage {crop.stage}")
        if crop.detection >= len(found):
            raise InvalidInputError(f"crop {at}: there is no detection {crop.detection}")
        taken = limits.labels_taken[crop.stage] if limits.labels_taken else frozenset()
        label = found[crop.detection].label
        if taken and label not in taken:
            raise InvalidInputError(
                f"crop {at}: stage {crop.stage} takes objects with the labels "
                f"{', '.join(map(str, sorted(taken)))}, not {label}"
            )
        if (crop.stage, crop.detection) in seen:
            raise InvalidInputError(f"crop {at}: it is there twice")
        seen.add((crop.stage, crop.detection))
        of_stages[crop.stage] += 1
        limit = min(limits.crops_max[crop.stage], CROPS_MAX)
        if of_stages[crop.stage] > limit:
            raise InvalidInputError(f"crop {at}: stage {crop.stage} takes {limit} crops of a frame")
