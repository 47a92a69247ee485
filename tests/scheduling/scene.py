"""A small box to schedule on: a family of square variants, profiles, cameras, requests."""

from collections.abc import Iterable

from edgebox.domain.model_family import (
    ExecutorId,
    FamilyName,
    LatencyProfile,
    Variant,
    VariantName,
)
from edgebox.domain.requests import Camera, CameraId, Request, RequestId, UtilityStep
from edgebox.scheduling.edf import EarliestDeadlineFirst
from edgebox.scheduling.events import Action, Event, ExecutorStarted, Infer, VariantsAvailable
from edgebox.scheduling.invariants import check_invariants
from edgebox.scheduling.policy import BatchingPolicy
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


def request(
    at: int,
    deadline_ms: float,
    *,
    of: str = "gate-1",
    arrival_ms: float = 0,
    size: tuple[int, int] = (416, 234),
    variant: VariantName | None = None,
    later: Iterable[tuple[float, float]] = (),
    app: str = "default",
    advised: VariantName | None = None,
) -> Request:
    """Make a request; `later`: further deadlines in ms, and what an answer by them is worth."""
    arrival_ns, deadline_ns = round(arrival_ms * MS), round(deadline_ms * MS)
    return Request(
        RequestId(at),
        CameraId(of),
        app,
        arrival_ns,
        arrival_ns,
        deadline_ns,
        size[0],
        size[1],
        9000,
        variant,
        tuple(UtilityStep(round(by_ms * MS), utility) for by_ms, utility in later),
        advised,
    )


class Bench:
    """A Scheduler under test: every step checks the invariants."""

    def __init__(
        self,
        profiles: Iterable[LatencyProfile] | None = None,
        parameters: SchedulerParameters | None = None,
        policy: BatchingPolicy | None = None,
    ) -> None:
        # Most tests are about cameras that have a large variant.
        parameters = parameters or SchedulerParameters(first_pixels_max=LARGE)
        self.scheduler = Scheduler(parameters, policy or EarliestDeadlineFirst())
        if profiles is None:
            profiles = [profile(px) for px in MEDIAN_MS]
        by_executor: dict[ExecutorId, list[LatencyProfile]] = {}
        for one in profiles:
            by_executor.setdefault(one.executor, []).append(one)
        self(VariantsAvailable(FAMILY), 0)
        for executor, on in by_executor.items():
            self(ExecutorStarted(executor, tuple(on)), 0)

    def __call__(self, event: Event | None, at_ms: float) -> list[Action]:
        actions = self.scheduler.handle(event, round(at_ms * MS))
        check_invariants(self.scheduler)
        return actions


def infers(actions: Iterable[Action]) -> list[Infer]:
    return [action for action in actions if isinstance(action, Infer)]
