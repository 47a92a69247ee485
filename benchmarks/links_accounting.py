"""Converts a real run to the simulator's report, and measures the costs of its components.

The cameras' records become a report like the simulator's, so that the same function computes the
figures of both runs. The box's journal contains the costs of its components. Pure.
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from benchmarks.links_run import RealRun, counted_until_ns
from edgebox.camera.accounting import LOST
from edgebox.domain.model_family import QUANTILES, ExecutorId, LatencyProfile, VariantName
from edgebox.domain.requests import CameraId, DropReason, Outcome, Request, RequestId
from edgebox.link.bandwidth import OVERHEAD_BYTES, REFERENCE_PX
from edgebox.link.shaping import ShapedLink
from edgebox.link.transit import compute_deadline_ns
from edgebox.runtime.entries import JournalEntry
from edgebox.scheduling.actions import ComputePlan, Infer
from edgebox.scheduling.events import BatchCompleted, PlanComputed, RequestPrepared
from edgebox.simulation.report import UNDELIVERED, Ended, Report, Unsent
from edgebox.simulation.scenario import Hardware, Scenario
from edgebox.simulation.simulated_cameras import PictureBytes, SimulatedCamera

Record = Mapping[str, Any]
"""A line of `edgebox camera --frames`."""

_SENDER = f"{DropReason.SENDER}:"
_LEAST, _MOST = 0.05, 0.95
"""Quantiles that stand for the least and the most that something takes."""
_SAMPLES_MIN = 5
_BATCHES_MIN = 100
"""Fewer tell nothing of a P99; then the slowdown alone counts."""


def report_of(run: RealRun, scenario: Scenario) -> Report:
    """Return what a real run leaves behind, instants counted from the scenario's beginning.

    A frame is on time or late by its camera's own clock, which is the truth; in the simulator the
    box's word is as good.
    """
    report = Report()
    for spec in scenario.cameras:
        until_ns = run.began_ns + counted_until_ns(spec, scenario)
        counted = [of for of in run.frames[spec.camera.id] if of["captured_ns"] < until_ns]
        for record in counted:
            _take_in(record, spec, run.began_ns, report)
        advised = [record["advised"] for record in counted if record["advised"] is not None]
        report.changes[spec.camera.id] = sum(a != b for a, b in pairwise(advised))
    if scenario.hardware is not None:
        for executor in scenario.hardware.profiles:
            share = busy_share(run.journal, executor, run.began_ns, scenario.duration_ns)
            report.busy[executor] = [(0, round(share * scenario.duration_ns))]
    return report


def _take_in(record: Record, spec: SimulatedCamera, began_ns: int, report: Report) -> None:
    camera = spec.camera
    captured_ns = record["captured_ns"] - began_ns
    report.captured[camera.id] += 1
    reason: str | None = record["reason"]
    if reason is not None and (reason.startswith(_SENDER) or reason == LOST):
        why = UNDELIVERED if reason == LOST else reason.removeprefix(_SENDER)
        report.lost.append(Unsent(camera.id, captured_ns, why))
        report.unsent[camera.id] += 1
        return
    # What is on its way back counts as the link's, as in the simulator.
    at_ns = record["ended_ns"] - began_ns - spec.rtt_ns // 2
    timing = record["timing_ms"] or {"network": 0.0, "queue": 0.0}
    arrival_ns = captured_ns + round(timing["network"] * 1e6)
    report.ended.append(
        Ended(
            Request(
                id=RequestId(record["frame"]),
                camera=camera.id,
                app=camera.app,
                captured_ns=captured_ns,
                arrival_ns=arrival_ns,
                deadline_ns=compute_deadline_ns(captured_ns, camera.slo_ns, spec.rtt_ns // 2),
                width_px=record["width_px"],
                height_px=record["height_px"],
                size_bytes=record["size_bytes"],
                advised=record["advised"],
            ),
            record["variant"],
            Outcome(record["outcome"]),
            None if reason is None else DropReason(reason),
            at_ns,
            arrival_ns + round(timing["queue"] * 1e6),
        )
    )


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch that came back."""

    executor: ExecutorId
    variant: VariantName
    batch_size: int
    started_ns: int
    took_ns: int
    known_ns: int
    """When the scheduler knew."""


def batches(journal: Iterable[JournalEntry]) -> list[Batch]:
    """Return the batches that started and came back while the journal was kept."""
    running: dict[ExecutorId, tuple[Infer, int]] = {}
    found = []
    for entry in journal:
        event = entry.event
        if isinstance(event, BatchCompleted) and event.executor in running:
            infer, started_ns = running.pop(event.executor)
            found.append(
                Batch(
                    event.executor,
                    infer.variant,
                    infer.batch_size,
                    started_ns,
                    event.took_ns,
                    entry.now_ns,
                )
            )
        for action in entry.actions:
            if isinstance(action, Infer):
                running[action.executor] = action, entry.now_ns
    return found


def busy_share(
    journal: Sequence[JournalEntry], executor: ExecutorId, began_ns: int, duration_ns: int
) -> float:
    """Return the share of time that an executor was busy, in what the journal has of a run."""
    if not journal:
        return 0.0
    from_ns = max(began_ns, journal[0].now_ns)
    until_ns = min(began_ns + duration_ns, journal[-1].now_ns)
    spans = ((b.started_ns, b.known_ns) for b in batches(journal) if b.executor == executor)
    busy_ns = sum(max(0, min(end, until_ns) - max(start, from_ns)) for start, end in spans)
    return busy_ns / max(1, until_ns - from_ns)


@dataclass(frozen=True, slots=True)
class CameraCosts:
    """The costs of a camera's components, and the times of its pictures."""

    encode_ns: tuple[int, int]
    weight: PictureBytes
    phase_ns: int
    """From its joining to its first picture."""
    jitter_ns: int
    """Up to so much later than a perfect link had it was a frame noticed at the box."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Measured costs that the simulator takes as parameters."""

    prepare_ns: tuple[int, int] | None
    overhead_ns: int | None
    planning_ns: int | None
    slowdown: Mapping[ExecutorId, float]
    """Of the mean of its batches against the profile's."""
    spread: Mapping[ExecutorId, tuple[float, ...]]
    """Quantiles of its batches' times against their profiles' medians; only if enough ran."""
    cameras: Mapping[CameraId, CameraCosts]

    def to_json(self) -> dict[str, Any]:
        """Return the values under the scenario's own keys."""
        return {
            "box": {
                "prepare_ms": self.prepare_ns and [_ms(ns) for ns in self.prepare_ns],
                "overhead_ms": self.overhead_ns and _ms(self.overhead_ns),
                "planning_ms": self.planning_ns and _ms(self.planning_ns),
            },
            "slowdown": {str(e): round(by, 3) for e, by in self.slowdown.items()},
            "spread": {str(e): [round(by, 3) for by in of] for e, of in self.spread.items()},
            "cameras": {
                str(camera): {
                    "encode_ms": [_ms(ns) for ns in costs.encode_ns],
                    "bytes_per_pixel": round(costs.weight.per_pixel, 4),
                    "bytes_exponent": round(costs.weight.exponent, 3),
                    "bytes_spread": round(costs.weight.spread, 3),
                    "phase_ms": _ms(costs.phase_ns),
                    "jitter_ms": _ms(costs.jitter_ns),
                }
                for camera, costs in self.cameras.items()
            },
        }


def measured(run: RealRun, scenario: Scenario, hardware: Hardware) -> Measured:
    """Return the measured costs of the components of box and cameras."""
    prepared = [e.event.took_ns for e in run.journal if isinstance(e.event, RequestPrepared)]
    ran = batches(run.journal)
    ratios = {
        executor: sorted(
            against_median(batch, profiles) for batch in ran if batch.executor == executor
        )
        for executor, profiles in hardware.profiles.items()
    }
    return Measured(
        _range(prepared),
        _median([batch.known_ns - batch.started_ns - batch.took_ns for batch in ran]),
        _median(_planning_ns(run.journal)),
        {
            executor: slowdown([b for b in ran if b.executor == executor], profiles)
            for executor, profiles in hardware.profiles.items()
        },
        {
            executor: tuple(of[round(q * (len(of) - 1))] for q in QUANTILES)
            for executor, of in ratios.items()
            if len(of) >= _BATCHES_MIN
        },
        {
            spec.camera.id: _costs(run.frames[spec.camera.id], spec, run.began_ns)
            for spec in scenario.cameras
        },
    )


def _planning_ns(journal: Iterable[JournalEntry]) -> list[int]:
    asked_ns, took = None, []
    for entry in journal:
        if isinstance(entry.event, PlanComputed) and asked_ns is not None:
            took.append(entry.now_ns - asked_ns)
            asked_ns = None
        if any(isinstance(action, ComputePlan) for action in entry.actions):
            asked_ns = entry.now_ns
    return took


def slowdown(ran: Sequence[Batch], profiles: Sequence[LatencyProfile]) -> float:
    """Return how much longer than by their profiles batches took in all; 1 if none ran."""
    of = {profile.variant: profile for profile in profiles}
    expected_ns = sum(mean_ns(of[batch.variant], batch.batch_size) for batch in ran)
    return sum(batch.took_ns for batch in ran) / expected_ns if expected_ns else 1.0


def against_median(batch: Batch, profiles: Sequence[LatencyProfile]) -> float:
    """Return what a batch took in units of its profile's median."""
    of = next(profile for profile in profiles if profile.variant == batch.variant)
    return batch.took_ns / of.quantile_ns(batch.batch_size, 0.5)


def spread_by(profile: LatencyProfile, ratios: Sequence[float]) -> LatencyProfile:
    """Return the profile with other quantiles, in units of its medians."""
    return LatencyProfile(
        profile.variant,
        profile.executor,
        {
            size: tuple(round(profile.quantile_ns(size, 0.5) * ratio) for ratio in ratios)
            for size in profile.batch_sizes
        },
    )


def mean_ns(profile: LatencyProfile, batch_size: int) -> float:
    """Return the mean of what the simulator draws for a batch."""
    steps = 200
    return sum(profile.quantile_ns(batch_size, (at + 0.5) / steps) for at in range(steps)) / steps


def _costs(records: Sequence[Record], spec: SimulatedCamera, began_ns: int) -> CameraCosts:
    encode_ns = [round(of["encode_ms"] * 1e6) for of in records if of["encode_ms"] is not None]
    first_ns = began_ns + spec.opens_ns + spec.rtt_ns
    return CameraCosts(
        _range(encode_ns) or spec.encode_ns,
        weight_of(records, spec.weight),
        phase_ns([of["captured_ns"] - first_ns for of in records], spec),
        jitter_ns(records, spec, began_ns),
    )


def jitter_ns(records: Sequence[Record], spec: SimulatedCamera, began_ns: int) -> int:
    """Return what makes frames as late as they were, were it drawn evenly from 0 to it.

    That is twice the mean of what they came later than by a perfect link. The most extreme are
    left out: those that a change of the link met half-way, and those that met a busy machine.
    """
    link = ShapedLink(spec.trace, began_ns + spec.opens_ns - spec.trace_start_ns)
    late_ns: list[float] = []
    for of in sorted((of for of in records if of["sent_ns"]), key=lambda of: int(of["sent_ns"])):
        there_ns = link.leaves_ns(of["sent_ns"], of["size_bytes"]) + spec.rtt_ns // 2
        if of["timing_ms"]:
            arrival_ns = of["captured_ns"] + of["timing_ms"]["network"] * 1e6
            late_ns.append(arrival_ns - there_ns)
    if len(late_ns) < _SAMPLES_MIN:
        return spec.jitter_ns
    ordered, cut = sorted(late_ns), round(len(late_ns) * _LEAST)
    return max(0, round(2 * statistics.mean(ordered[cut : len(ordered) - cut])))


def phase_ns(captured_ns: Sequence[int], spec: SimulatedCamera) -> int:
    """Return the phase of pictures that come once a period, most of them.

    Args:
        captured_ns: counted from where a camera without a phase takes its first picture.
        spec: the camera.
    """
    if not captured_ns:
        return spec.phase_ns
    period_ns = 1e9 / spec.camera.rate_hz
    whole = [round((at - captured_ns[0]) / period_ns) for at in captured_ns]
    offsets_ns = [at - n * period_ns for at, n in zip(captured_ns, whole, strict=True)]
    return max(0, round(statistics.median(offsets_ns)))


def weight_of(records: Iterable[Record], otherwise: PictureBytes) -> PictureBytes:
    """Return what a camera's pictures weighed: a straight line through the logarithms.

    Args:
        records: of frames sent and not.
        otherwise: what to say if too little was sent; its exponent if all sizes were alike.
    """
    points = [
        (
            math.log(of["width_px"] * of["height_px"] / REFERENCE_PX),
            math.log((of["size_bytes"] - OVERHEAD_BYTES) / (of["width_px"] * of["height_px"])),
        )
        for of in records
        if of["size_bytes"] is not None and of["size_bytes"] > OVERHEAD_BYTES
    ]
    if len(points) < _SAMPLES_MIN:
        return otherwise
    xs, ys = zip(*points, strict=True)
    exponent = otherwise.exponent
    if statistics.pstdev(xs) > 0.1:
        exponent = min(0.9, max(0.0, -statistics.linear_regression(xs, ys).slope))
    level = [y + exponent * x for x, y in points]
    return PictureBytes(math.exp(statistics.median(level)), exponent, statistics.pstdev(level))


def with_measured_costs(scenario: Scenario, found: Measured) -> Scenario:
    """Return the scenario with the costs measured in a real run."""
    assert scenario.hardware is not None
    plain = scenario.costs
    costs = replace(
        plain,
        slowdown=1.0,  # the executors' own, as measured, is all of it
        prepare_ns=found.prepare_ns or plain.prepare_ns,
        overhead_ns=plain.overhead_ns if found.overhead_ns is None else found.overhead_ns,
        planning_ns=plain.planning_ns if found.planning_ns is None else found.planning_ns,
    )
    cameras = []
    for spec in scenario.cameras:
        of = found.cameras[spec.camera.id]
        cameras.append(
            replace(
                spec,
                encode_ns=of.encode_ns,
                weight=of.weight,
                phase_ns=of.phase_ns,
                jitter_ns=of.jitter_ns,
            )
        )
    profiles = scenario.hardware.profiles
    hardware = replace(
        scenario.hardware,
        slowdown={e: by for e, by in found.slowdown.items() if e not in found.spread},
        taken={
            executor: tuple(spread_by(profile, ratios) for profile in profiles[executor])
            for executor, ratios in found.spread.items()
        },
    )
    return replace(scenario, costs=costs, cameras=tuple(cameras), hardware=hardware)


def _range(values_ns: Sequence[int]) -> tuple[int, int] | None:
    if not values_ns:
        return None
    ordered = sorted(values_ns)
    last = len(ordered) - 1
    return ordered[round(_LEAST * last)], ordered[round(_MOST * last)]


def _median(values_ns: Sequence[int]) -> int | None:
    return round(statistics.median(values_ns)) if values_ns else None


def _ms(ns: int) -> float:
    return round(ns / 1e6, 2)
