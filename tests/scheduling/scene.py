"""The small box of the fault simulation, with requests for it and a Scheduler to test."""

from collections.abc import Iterable

from edgebox.domain.model_family import ExecutorId, LatencyProfile, VariantName
from edgebox.domain.requests import CameraId, Request, RequestId, UtilityStep
from edgebox.scheduling.actions import Action, Infer
from edgebox.scheduling.edf import EarliestDeadlineFirst
from edgebox.scheduling.events import Event, ExecutorStarted, VariantsAvailable
from edgebox.scheduling.invariants import check_invariants
from edgebox.scheduling.policy import BatchingPolicy
from edgebox.scheduling.scheduler import Scheduler, SchedulerParameters
from edgebox.simulation.faults.small_box import (
    ACCURACY,
    CPU,
    FAMILY,
    LARGE,
    MEDIAN_MS,
    MS,
    SPREAD,
    STREET,
    camera,
    name,
    profile,
    row,
)

__all__ = [
    "ACCURACY", "CPU", "FAMILY", "LARGE", "MEDIAN_MS", "MS", "SPREAD", "STREET",
    "Bench", "camera", "infers", "name", "profile", "request", "row",
]  # fmt: skip


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
