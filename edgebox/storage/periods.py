"""Figures of frames in a period of time; periods can be added up. Pure data.

All figures are sums, minima or maxima. So adding periods in any order and grouping gives the same
result, and roll-ups lose nothing.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from edgebox.domain.latency_histogram import HISTORY_BUCKETS, PARTS
from edgebox.domain.requests import CameraId

Ints = npt.NDArray[np.int64]

CODES = len(PARTS) * HISTORY_BUCKETS.count
"""Buckets of all parts, one part after the other: bucket b of part p has the code
p x HISTORY_BUCKETS.count + b."""

BOX = CameraId("")
"""Name of the periods of all cameras together; no camera may have it."""


class TrackedCount(StrEnum):
    """What is counted of a zone or a line."""

    ZONE_FRAMES = "frames"
    """Answered frames since the zone was drawn."""
    ZONE_OBJECTS = "objects"
    """Objects in the zone, added up over these frames."""
    CROSSED_IN = "in"
    """Crossings of a line inwards."""
    CROSSED_OUT = "out"


def tracked_key(count: TrackedCount, name: str) -> str:
    """Return the key of a count of a zone or line in `Period.tracked`."""
    return f"{count}/{name}"


CLASS_FRAMES = ""
"""Key of the answered frames in `Period.classes`; no class has it."""
CLASSES_MAX = 16
"""Classes that a stored row has: those seen most. It bounds the rows."""


def most_seen(classes: Mapping[str, int], most: int = CLASSES_MAX) -> dict[str, int]:
    """Return the counts of the classes that were seen most, and of the frames."""
    kept = sorted(classes.items(), key=lambda each: (each[0] != CLASS_FRAMES, -each[1], each[0]))
    return dict(kept[: most + (CLASS_FRAMES in classes)])


@dataclass(slots=True)
class Extent:
    """A mean rate as a fraction of sums, with its minimum and maximum."""

    total: int = 0
    weight: int = 0
    least: int | None = None
    most: int | None = None

    def take(self, amount: int, weight: int, rate: int) -> None:
        """Add one sample: `amount` by `weight`, with the rate `rate`."""
        self.add(Extent(amount, weight, rate, rate))

    def add(self, other: "Extent") -> None:
        """Add other samples."""
        self.total += other.total
        self.weight += other.weight
        if other.least is not None:
            self.least = other.least if self.least is None else min(self.least, other.least)
        if other.most is not None:
            self.most = other.most if self.most is None else max(self.most, other.most)


@dataclass(slots=True)
class Period:
    """One camera's frames, or those of all cameras, over some time."""

    covered_ms: int = 0
    """Counted time. Less than the period if the box or the camera was absent, more if the wall
    clock was set back."""
    connected_ms: int = 0
    """Connected time of the camera; for the box, of all cameras together."""
    captured: int = 0
    accepted: int = 0
    on_time: int = 0
    late: int = 0
    mismatches: int = 0
    """Answers from another variant than the one their camera was advised to use."""
    dropped: Counter[str] = field(default_factory=Counter)
    """Frames by drop reason."""
    variants: Counter[str] = field(default_factory=Counter)
    """Answered frames by variant."""
    tracked: Counter[str] = field(default_factory=Counter)
    """What tracking found out, by `tracked_key`."""
    classes: Counter[str] = field(default_factory=Counter)
    """Objects by class, added up over the answered frames, whose number is under `CLASS_FRAMES`."""
    width_px_sum: int = 0
    """Input widths of the answered frames."""
    received_bytes: int = 0
    measured: Extent = field(default_factory=Extent)
    """Measured uplink throughput of frames: bits by microseconds, rates in bit/s."""
    estimated: Extent = field(default_factory=Extent)
    """Estimated uplink bandwidth, sampled each second: bit/s by samples."""
    latencies: Ints = field(default_factory=lambda: np.zeros(CODES, np.int64))
    """Answered frames by bucket, (CODES,)."""

    def add(self, other: "Period", *, same_camera: bool = True) -> None:
        """Add another period.

        Bandwidths of different uplinks, and objects and zones of different cameras, do not add up:
        those of another camera are left out.
        """
        self.covered_ms += other.covered_ms
        self.connected_ms += other.connected_ms
        self.captured += other.captured
        self.accepted += other.accepted
        self.on_time += other.on_time
        self.late += other.late
        self.mismatches += other.mismatches
        self.dropped.update(other.dropped)
        self.variants.update(other.variants)
        self.width_px_sum += other.width_px_sum
        self.received_bytes += other.received_bytes
        if same_camera:
            self.tracked.update(other.tracked)
            self.classes.update(other.classes)
            self.measured.add(other.measured)
            self.estimated.add(other.estimated)
        self.latencies += other.latencies


Periods = Mapping[CameraId, Period]
"""By camera, and `BOX` for all of them."""


def latency_counts(latencies_ns: Ints) -> Ints:
    """Return latencies, (n, len(PARTS)), as counts by code, (CODES,)."""
    codes = HISTORY_BUCKETS.of_ns(latencies_ns) + np.arange(len(PARTS)) * HISTORY_BUCKETS.count
    return np.bincount(codes.ravel(), minlength=CODES)
