"""A small box to schedule on: a family of square variants, two executors, cameras, pipelines."""

from collections.abc import Iterable
from dataclasses import replace
from functools import cache

from edgebox.domain.model_family import (
    ExecutorId,
    FamilyName,
    LatencyProfile,
    Variant,
    VariantName,
)
from edgebox.domain.pipelines import Pipeline, PipelineName, PipelineStage, StageName
from edgebox.domain.requests import Camera, CameraId
from edgebox.scheduling.policies import make_policy
from edgebox.scheduling.scheduler import Scheduler, SchedulerParameters

MS = 1_000_000
CPU = ExecutorId("cpu/0")
LARGE = 1_000_000
"""Pixels; more than any variant has."""
STREET = FamilyName("street")
SPREAD = (0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2, 1.5, 2.0)
"""Quantiles of a batch's time in units of its median: P5 is 0.9, P99 is 1.5."""
MEDIAN_MS = {128: 2, 256: 8, 320: 12, 416: 20, 608: 40}
ACCURACY = {128: 0.28, 256: 0.45, 320: 0.52, 416: 0.57, 608: 0.6}


def name(px: int) -> VariantName:
    return VariantName(f"street-{px}")


FAMILY = tuple(Variant(name(px), STREET, px, px, accuracy) for px, accuracy in ACCURACY.items())


def row(median_ms: float) -> tuple[int, ...]:
    return tuple(round(median_ms * MS * k) for k in SPREAD)


def profile(
    px: int,
    executor: ExecutorId = CPU,
    sizes: Iterable[int] = (1, 2, 4),
    gain: float = 0.0,
) -> LatencyProfile:
    """Batches cost their size times the single one, less a `gain` of 0 (CPU) to 1 (for free)."""
    rows = {n: row(MEDIAN_MS[px] * (1 + (n - 1) * (1 - gain))) for n in sizes}
    return LatencyProfile(name(px), executor, rows)


def camera(  # noqa: PLR0917
    of: str = "gate-1",
    slo_ms: int = 300,
    rate_hz: float = 10,
    size: tuple[int, int] = (1280, 720),
    min_accuracy: float = 0.0,
    min_rate_hz: float = 0.0,
    app: str = "default",
) -> Camera:
    return Camera(
        CameraId(of),
        app,
        STREET,
        slo_ms * MS,
        rate_hz,
        size[0],
        size[1],
        min_accuracy,
        min_rate_hz,
    )


EXECUTORS = (ExecutorId("cpu/0"), ExecutorId("cuda:0/0"))
CAMERAS = ("gate-1", "gate-2", "gate-3")
PARAMETERS = SchedulerParameters(camera_pending_max=3, box_pending_max=6, sample_share=0.2)
FIND, READ, CHECK = StageName("find"), StageName("read"), StageName("check")


def pipeline(*stages: tuple[StageName, int | None]) -> Pipeline:
    """Return a chain of stages, each with the side in px of its largest variant."""
    names = [stage for stage, _ in stages]
    chain = [
        PipelineStage(
            stage, STREET, tuple(names[at - 1 : at]), variant=None if px is None else name(px)
        )
        for at, (stage, px) in enumerate(stages)
    ]
    return Pipeline(PipelineName("gates"), tuple(chain))


PIPELINES = (
    None,
    pipeline((FIND, None), (READ, 128)),
    pipeline((FIND, None), (READ, None), (CHECK, 256)),
    pipeline((FIND, None), (CHECK, 128), (READ, 320)),
)


VARIANTS = "+variants"
"""Ends the name of a policy where waiting requests may run on smaller variants."""


def fresh(policy: str) -> Scheduler:
    parameters = replace(PARAMETERS, variant_per_batch=policy.endswith(VARIANTS))
    return Scheduler(parameters, make_policy(policy.removesuffix(VARIANTS)))


@cache
def profiles(executor: ExecutorId, loaded: int) -> tuple[LatencyProfile, ...]:
    """Return the profiles of a mask of variants: the same objects again, as a box gives them."""
    gain = 0.3 if executor == EXECUTORS[0] else 0.9
    return tuple(
        profile(px, executor, gain=gain) for at, px in enumerate(MEDIAN_MS) if loaded >> at & 1
    )
