"""Decides the figures of a run of pipelines: objects answered in time, and what bounds them. Pure.

An object counts once for each last stage of its pipeline that takes it, when its crop is answered
in an answer that reaches the camera in time. (OctopInf, section IV-A, calls objects that arrive at
the sink in time each second the effective throughput.)
"""

from collections.abc import Iterator, Mapping
from statistics import fmean
from typing import Any

from edgebox.domain.model_family import FamilyName, LatencyProfile, VariantName
from edgebox.domain.pipelines import Pipeline, StageName
from edgebox.domain.requests import Outcome
from edgebox.simulation.report import Report
from edgebox.simulation.scenario import Hardware, Scenario
from edgebox.simulation.simulated_cameras import SimulatedCamera
from edgebox.simulation.simulated_pipelines import all_crops, crops_of_picture

_WINDOW_NS = 10_000_000_000
"""The bound is taken over windows of this length."""


def object_figures(report: Report, scenario: Scenario) -> dict[str, Any]:
    """Return the figures of a run, for programs."""
    counted_s = (scenario.duration_ns - scenario.warmup_ns) / 1e9
    specs = {spec.camera.id: spec for spec in scenario.cameras}
    last = {camera: _last(spec.camera.pipeline) for camera, spec in specs.items()}
    partial = frames = 0
    outcomes = dict.fromkeys(Outcome, 0)
    answered = dict.fromkeys(specs, 0)
    assert scenario.hardware is not None
    accuracy = {variant.name: variant.accuracy for variant in scenario.hardware.variants}
    right = 0.0
    for ended in report.ended:
        if ended.truly_captured_ns < scenario.warmup_ns:
            continue
        frames += 1
        outcomes[ended.outcome] += 1
        if ended.outcome is Outcome.ON_TIME and ended.work is not None:
            of = ended.request.camera
            partial += 0 if ended.work.complete else 1
            answered[of] += sum(ended.work.answered[stage] for stage in last[of])
            found = accuracy.get(ended.variant or VariantName(""), 0.0)
            right += found * sum(ended.work.right.get(stage, 0.0) for stage in last[of])
    spent = report.spent
    all_ns = spent.complete_ns + spent.partial_ns + spent.wasted_ns
    return {
        "objects_per_s": round(sum(answered.values()) / counted_s, 2),
        "objects_right_per_s": round(right / counted_s, 2),
        "objects_shown_per_s": round(sum(o for _, _, o in _frames(scenario)) / counted_s, 2),
        "objects_bound_per_s": round(objects_bound(scenario) / counted_s, 2),
        "cameras": {camera: round(number / counted_s, 2) for camera, number in answered.items()},
        "frames": {
            "at_box": frames,
            **{outcome.value: number for outcome, number in outcomes.items()},
            "partial": partial,
        },
        "executor_time": {
            "complete": round(spent.complete_ns / max(1.0, all_ns), 4),
            "partial": round(spent.partial_ns / max(1.0, all_ns), 4),
            "wasted": round(spent.wasted_ns / max(1.0, all_ns), 4),
        },
    }


def _last(pipeline: Pipeline | None) -> tuple[StageName, ...]:
    return () if pipeline is None else pipeline.last_stages


def objects_bound(scenario: Scenario) -> float:
    """Return how many objects no scheduler can exceed: those of the best frames that fit.

    Every frame takes at least the time that its first stage and its crops take in their most
    efficient batches, on the variants that take least of those that they may run on; executors that
    run side by side gain what their interference permits. In each window the frames with most
    objects per time are taken, the last one in part. The executors have the window and the longest
    SLO for its frames.
    """
    assert scenario.hardware is not None
    costs = _costs_ns(scenario.hardware)
    longest_ns = max(spec.camera.slo_ns for spec in scenario.cameras)
    windows: dict[int, list[tuple[float, int]]] = {}
    for at_ns, spec, objects in _frames(scenario):
        took_ns = _work_ns(scenario.hardware, costs, spec, at_ns)
        windows.setdefault(at_ns // _WINDOW_NS, []).append((took_ns, objects))
    total = 0.0
    for frames in windows.values():
        left_ns = (_WINDOW_NS + longest_ns) * _gain(scenario.hardware)
        for took_ns, objects in sorted(frames, key=lambda of: of[0] / max(of[1], 1e-9)):
            total += objects * min(1.0, left_ns / took_ns)
            left_ns -= took_ns
            if left_ns <= 0:
                break
    return total


def _frames(scenario: Scenario) -> Iterator[tuple[int, SimulatedCamera, int]]:
    """Yield every frame: when it is captured, its camera, and its objects."""
    for spec in scenario.cameras:
        at_ns = spec.opens_ns + spec.rtt_ns + spec.phase_ns
        last = _last(spec.camera.pipeline)
        closes_ns = min(spec.closes_ns or scenario.duration_ns, scenario.duration_ns)
        while at_ns < closes_ns:
            if at_ns >= scenario.warmup_ns:
                crops = _crops(spec, at_ns)
                yield at_ns, spec, sum(crops[stage] for stage in last)
            at_ns += round(1e9 / spec.camera.rate_hz)


def _crops(spec: SimulatedCamera, at_ns: int) -> Mapping[StageName, int]:
    pipeline = spec.camera.pipeline
    return all_crops(pipeline, crops_of_picture(pipeline, spec.objects, at_ns))


def _least_ns(
    hardware: Hardware,
    costs: Mapping[VariantName, float],
    family: FamilyName,
    largest: VariantName | None = None,
) -> float:
    """Return the least time of one picture on a family's variants, of those up to the largest."""
    of_family = [variant for variant in hardware.variants if variant.family == family]
    most = next((variant.pixels for variant in of_family if variant.name == largest), None)
    return min(
        costs[variant.name] for variant in of_family if most is None or variant.pixels <= most
    )


def _costs_ns(hardware: Hardware) -> dict[VariantName, float]:
    """Return the time of one picture in each variant's most efficient batch, alone."""
    costs: dict[VariantName, float] = {}
    for executor, profiles in hardware.profiles.items():
        slowdown = hardware.slowdown.get(executor, 1.0)
        for profile in profiles:
            cost = slowdown * min(_mean_ns(profile, size) / size for size in profile.batch_sizes)
            costs[profile.variant] = min(cost, costs.get(profile.variant, cost))
    return costs


def _mean_ns(profile: LatencyProfile, size: int) -> float:
    """Return the mean time of a batch: of quantiles with straight lines between them."""
    return fmean(profile.quantile_ns(size, (each + 0.5) / 100) for each in range(100))


def _work_ns(
    hardware: Hardware, costs: Mapping[VariantName, float], spec: SimulatedCamera, at_ns: int
) -> float:
    pipeline = spec.camera.pipeline
    if pipeline is None:
        return _least_ns(hardware, costs, spec.camera.family)
    took_ns = _least_ns(hardware, costs, pipeline.first.family, pipeline.first.variant)
    crops = _crops(spec, at_ns)
    for stage in pipeline.stages[1:]:
        of_crop_ns = _least_ns(hardware, costs, stage.family, stage.variant)
        took_ns += crops[stage.name] * of_crop_ns
    return took_ns


def _gain(hardware: Hardware) -> float:
    """Return how much more executors do side by side than one alone, as many as is best."""
    k = min(profile.interference for of in hardware.profiles.values() for profile in of)
    return max(n / (1 + k * (n - 1)) for n in range(1, len(hardware.profiles) + 1))
