"""Decides the figures of a run of cameras: misses, accuracy, latencies, changes of variant. Pure.

A captured frame that is not answered in time is a miss, whatever the cause: late, dropped at the
box, or never sent. Frames of a camera that left before their answer are not counted. Accuracy
counts a miss as 0. A picture that was sent smaller than its variant's input has an accuracy
interpolated between the variants of its family at that size, so that enlarging it gains nothing.
"""

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from edgebox.domain.model_family import Variant, VariantName
from edgebox.domain.requests import CameraId, DropReason, Outcome
from edgebox.simulation.report import DEPARTED, Ended, Report
from edgebox.simulation.scenario import Scenario

PARTS = ("sending", "waiting", "running", "all")
"""The parts of a frame's time: until it is at the box, until its batch starts, the batch, and the
total with the way back."""


@dataclass(slots=True)
class Tally:
    """The outcomes of some frames."""

    captured: int = 0
    on_time: int = 0
    late: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    """By reason, at the camera and at the box."""
    departed: int = 0
    accuracy_sum: float = 0.0
    mismatches: int = 0
    changes: int = 0
    refused: int = 0
    connected_s: float = 0.0
    parts_ms: dict[str, list[float]] = field(default_factory=lambda: {part: [] for part in PARTS})

    def add(self, other: "Tally") -> None:
        """Add the counts of other frames."""
        self.captured += other.captured
        self.on_time += other.on_time
        self.late += other.late
        self.dropped += other.dropped
        self.departed += other.departed
        self.accuracy_sum += other.accuracy_sum
        self.mismatches += other.mismatches
        self.changes += other.changes
        self.refused += other.refused
        self.connected_s += other.connected_s
        for part, values in other.parts_ms.items():
            self.parts_ms[part] += values

    def figures(self) -> dict[str, Any]:
        """Return the figures for programs."""
        counted = self.captured - self.departed
        answered = self.on_time + self.late
        return {
            "captured": self.captured,
            "on_time": self.on_time,
            "late": self.late,
            "dropped": dict(sorted(self.dropped.items())),
            "departed": self.departed,
            "miss_rate": _share(counted - self.on_time, counted),
            "accuracy": _share(self.accuracy_sum, counted),
            "accuracy_on_time": _share(self.accuracy_sum, self.on_time),
            "mismatches": self.mismatches,
            "mismatch_rate": _share(self.mismatches, answered),
            "changes_per_camera_minute": round(_share(60 * self.changes, self.connected_s), 3),
            "refused": self.refused,
            "latency_ms": {part: _spread(values) for part, values in self.parts_ms.items()},
        }


def tallies(report: Report, scenario: Scenario) -> dict[CameraId, Tally]:
    """Count the outcomes of each camera's frames, those of the warm-up excluded."""
    hardware = scenario.hardware
    assert hardware is not None
    ladder = _Ladder(hardware.variants)
    specs = {spec.camera.id: spec for spec in scenario.cameras}
    tally_of = {camera: Tally() for camera in specs}
    for ended in report.ended:
        if ended.truly_captured_ns >= scenario.warmup_ns:
            spec = specs[ended.request.camera]
            _count(tally_of[ended.request.camera], ended, spec.rtt_ns // 2, ladder)
    for lost in report.lost:
        if lost.captured_ns >= scenario.warmup_ns:
            tally = tally_of[lost.camera]
            tally.captured += 1
            if lost.reason == DEPARTED:
                tally.departed += 1
            else:
                tally.dropped[f"{DropReason.SENDER}:{lost.reason}"] += 1
    for camera, spec in specs.items():
        closes_ns = min(spec.closes_ns or scenario.duration_ns, scenario.duration_ns)
        tally_of[camera].connected_s = max(0, closes_ns - spec.opens_ns) / 1e9
        tally_of[camera].changes = report.changes[camera]
        tally_of[camera].refused = report.refused[camera]
    return tally_of


def figures(report: Report, scenario: Scenario) -> dict[str, Any]:
    """Return the figures of a run, for programs."""
    by_camera = tallies(report, scenario)
    everything = Tally()
    for tally in by_camera.values():
        everything.add(tally)
    assert scenario.hardware is not None
    return {
        "seed": scenario.seed,
        "duration_s": scenario.duration_ns / 1e9,
        "warmup_s": scenario.warmup_ns / 1e9,
        "policy": {
            "batching": scenario.policy.batching,
            "bandwidth": scenario.policy.bandwidth,
            "sender": str(scenario.policy.sender),
        },
        "all": everything.figures(),
        "cameras": {str(camera): tally.figures() for camera, tally in by_camera.items()},
        "utilisation": {
            str(executor): _share(
                report.busy_until_ns(executor, scenario.duration_ns), scenario.duration_ns
            )
            for executor in scenario.hardware.profiles
        },
        "plans": report.plans,
    }


def _count(tally: Tally, ended: Ended, way_back_ns: int, ladder: "_Ladder") -> None:
    tally.captured += 1
    if ended.outcome is Outcome.DROPPED:
        if ended.reason is DropReason.DEPARTED:
            tally.departed += 1
        else:
            tally.dropped[str(ended.reason)] += 1
        return
    assert ended.variant is not None
    assert ended.started_ns is not None
    request = ended.request
    tally.mismatches += ended.variant != request.advised
    captured_ns = ended.truly_captured_ns
    if ended.outcome is Outcome.ON_TIME:
        tally.on_time += 1
        tally.accuracy_sum += ladder.accuracy(ended.variant, request.width_px, request.height_px)
    else:
        tally.late += 1
    parts = tally.parts_ms
    parts["sending"].append((request.arrival_ns - captured_ns) / 1e6)
    parts["waiting"].append((ended.started_ns - request.arrival_ns) / 1e6)
    parts["running"].append((ended.at_ns - ended.started_ns) / 1e6)
    parts["all"].append((ended.at_ns + way_back_ns - captured_ns) / 1e6)


class _Ladder:
    """The accuracy of each variant on pictures that do not fill its input."""

    def __init__(self, variants: Iterable[Variant]) -> None:
        self._by_name = {variant.name: variant for variant in variants}
        by_family: dict[str, list[Variant]] = defaultdict(list)
        for variant in self._by_name.values():
            by_family[variant.family].append(variant)
        self._rungs: Mapping[str, Sequence[Variant]] = {
            family: sorted(of, key=lambda v: v.pixels) for family, of in by_family.items()
        }
        self._known: dict[tuple[VariantName, int, int], float] = {}

    def accuracy(self, name: VariantName, width_px: int, height_px: int) -> float:
        """Return the accuracy of a variant on pictures of this size."""
        key = name, width_px, height_px
        if key not in self._known:
            self._known[key] = self._between(self._by_name[name], width_px, height_px)
        return self._known[key]

    def _between(self, ran_on: Variant, width_px: int, height_px: int) -> float:
        filled = max(width_px / ran_on.width_px, height_px / ran_on.height_px)
        if filled >= 1:
            return ran_on.accuracy
        rungs = [v for v in self._rungs[ran_on.family] if v.pixels <= ran_on.pixels]
        sides = [math.sqrt(variant.pixels) for variant in rungs]
        side = filled * sides[-1]
        above = bisect_left(sides, side)
        if above == 0:
            return rungs[0].accuracy * side / sides[0]
        low, high = rungs[above - 1], rungs[above]
        part = (side - sides[above - 1]) / (sides[above] - sides[above - 1])
        return min(ran_on.accuracy, low.accuracy + part * (high.accuracy - low.accuracy))


def _share(part: float, whole: float) -> float:
    return round(part / whole, 6) if whole else 0.0


def _spread(values: list[float]) -> dict[str, float]:
    if not values:
        return {"mean": 0.0, "p99": 0.0}
    ordered = sorted(values)
    return {
        "mean": round(sum(ordered) / len(ordered), 2),
        "p99": round(ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))], 2),
    }
