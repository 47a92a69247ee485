"""Owns the ledger: every live request with its stage and camera, and every running batch. Pure."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.domain.requests import BatchId, CameraId, DropReason, Outcome, Request, RequestId
from edgebox.scheduling.events import Drop, Finish, Infer


class Stage(Enum):
    """The stage of a live request."""

    PREPARING = "preparing"
    READY = "ready"
    RUNNING = "running"


@dataclass(slots=True)
class LiveRequest:
    """A request that has not ended."""

    request: Request
    variant: VariantName
    stage: Stage = Stage.PREPARING
    departed: bool = False
    """Whether its camera left while it ran; the request then ends with its batch."""
    ready_ns: int = 0
    """When it was prepared."""

    def ended(self, batch: BatchId, now_ns: int) -> Finish | Drop:
        """Return the outcome of this request, whose batch has just come back."""
        if self.departed:
            return Drop(self.request.id, DropReason.DEPARTED)
        on_time = now_ns <= self.request.deadline_ns
        return Finish(self.request.id, batch, Outcome.ON_TIME if on_time else Outcome.LATE)


@dataclass(frozen=True, slots=True)
class RunningBatch:
    """The batch that an executor runs."""

    infer: Infer
    started_ns: int


class Ledger:
    """Every live request, once. Waiting ones are also listed by camera, oldest first."""

    def __init__(self) -> None:
        self.live: dict[RequestId, LiveRequest] = {}
        self.running: dict[ExecutorId, RunningBatch] = {}
        self.waiting_by_camera: dict[CameraId, dict[RequestId, None]] = {}
        self.waiting = 0
        self.ready: dict[VariantName, Counter[str]] = {}
        """The number of prepared requests that wait for a batch, by variant and application."""

    @property
    def variants(self) -> set[VariantName]:
        """The variants of all live requests."""
        return {live.variant for live in self.live.values()}

    def admit(self, request: Request, variant: VariantName) -> None:
        """Add a new request."""
        self.live[request.id] = LiveRequest(request, variant)
        self.waiting_by_camera.setdefault(request.camera, {})[request.id] = None
        self.waiting += 1

    def prepared(self, live: LiveRequest, now_ns: int) -> None:
        """Note that a request may now be put into a batch."""
        live.stage, live.ready_ns = Stage.READY, now_ns
        self.ready.setdefault(live.variant, Counter())[live.request.app] += 1

    def start(self, infer: Infer, now_ns: int) -> None:
        """Move a batch's members from waiting to running."""
        for member in infer.requests:
            live = self.live[member]
            self._no_longer_waits(live)
            live.stage = Stage.RUNNING
        self.running[infer.executor] = RunningBatch(infer, now_ns)

    def finish(self, executor: ExecutorId) -> list[LiveRequest]:
        """Remove the members of an executor's batch and return them."""
        return [self.live.pop(member) for member in self.running.pop(executor).infer.requests]

    def end_waiting(self, request: RequestId) -> None:
        """Remove a waiting request."""
        self._no_longer_waits(self.live.pop(request))

    def all_waiting(self) -> list[RequestId]:
        """Return all waiting requests, oldest first."""
        return [r for r, live in self.live.items() if live.stage is not Stage.RUNNING]

    def waiting_of(self, camera: CameraId) -> Iterable[RequestId]:
        """Return a camera's waiting requests, oldest first; do not change the ledger while
        iterating."""
        return self.waiting_by_camera.get(camera, ())

    def depart(self, camera: CameraId) -> None:
        """Mark the running requests of a camera that left."""
        for batch in self.running.values():
            for member in batch.infer.requests:
                live = self.live[member]
                if live.request.camera == camera:
                    live.departed = True

    def _no_longer_waits(self, live: LiveRequest) -> None:
        request = live.request
        of_camera = self.waiting_by_camera[request.camera]
        del of_camera[request.id]
        if not of_camera:
            del self.waiting_by_camera[request.camera]
        self.waiting -= 1
        if live.stage is Stage.READY:
            ready = self.ready[live.variant]
            ready[request.app] -= 1
            if not ready[request.app]:
                del ready[request.app]
            if not ready:
                del self.ready[live.variant]
