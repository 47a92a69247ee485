"""Snapshots to plan for, on the family and profiles of the scheduling tests."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from edgebox.domain.model_family import (
    QUANTILES,
    ExecutorId,
    LatencyProfile,
    Variant,
    VariantName,
)
from edgebox.domain.plans import Assignment, CameraSnapshot, PlanningSnapshot
from edgebox.domain.requests import Camera, LinkState
from tests.scheduling.scene import CPU, FAMILY, MEDIAN_MS, MS, camera, name, profile

FIXED_NS = 7 * MS


def link(
    mbps: float | None = 1000.0,
    rtt_ms: float = 2,
    bytes_per_pixel: float = 0.3,
    throughput_stability: float | None = None,
) -> LinkState:
    bandwidth_bps = None if mbps is None else mbps * 1e6
    return LinkState(bandwidth_bps, round(rtt_ms * MS), MS, bytes_per_pixel, throughput_stability)


def seen(
    of: Camera | None = None,
    link_: LinkState | None = None,
    has_px: int | None = None,
    overrun_ns: int | None = 0,
) -> CameraSnapshot:
    of = of or camera()
    current = None
    if has_px is not None:
        current = Assignment(of.id, name(has_px), of.rate_hz, 85, True, "")
    return CameraSnapshot(of, link_ or link(), current, overrun_ns=overrun_ns)


def steady(of: LatencyProfile) -> LatencyProfile:
    """Return a profile whose batches always take their P99, so that one figure says all."""
    rows = {size: (of.quantile_ns(size, 0.99),) * len(QUANTILES) for size in of.batch_sizes}
    return replace(of, quantiles_ns=rows)


def snapshot(
    cameras: Iterable[CameraSnapshot],
    *,
    executors: Sequence[ExecutorId] = (CPU,),
    gain: float = 0.0,
    slowdown: float = 1.0,
    variants: Sequence[Variant] = FAMILY,
) -> PlanningSnapshot:
    profiles: dict[ExecutorId, dict[VariantName, LatencyProfile]] = {
        e: {name(px): steady(profile(px, e, sizes=(1, 2, 4, 8), gain=gain)) for px in MEDIAN_MS}
        for e in executors
    }
    return PlanningSnapshot(
        taken_ns=0,
        cameras=tuple(cameras),
        variants=tuple(variants),
        profiles=profiles,
        slowdown=dict.fromkeys(executors, slowdown),
        fixed_ns=FIXED_NS,
    )
