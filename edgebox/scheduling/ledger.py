"""Owns the ledger: every live request with its stage and camera, and every running batch. Pure."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.domain.requests import BatchId, CameraId, DropReason, Outcome, Request, RequestId
from edgebox.scheduling.events import Drop, Finish, Infer
from edgebox.scheduling.request_stages import WAITING, Cause, Stage, transition


@dataclass(slots=True)
class LiveRequest:
    """A request that was admitted, until it has ended."""

    request: Request
    variant: VariantName
    stage: Stage = Stage.RECEIVED
    reason: DropReason | None = None
    """Why it was dropped; None: it lives, or was answered."""
    ready_ns: int = 0
    """When it was prepared."""

    @property
    def waits(self) -> bool:
        """Whether it has neither been given to an executor nor ended."""
        return self.stage in WAITING

    def move(self, cause: Cause) -> None:
        """Change its stage.

        Raises:
            InvariantViolation: this cause cannot move a request in its stage.
        """
        moved = transition(self.stage, cause)
        self.stage, self.reason = moved.to, moved.reason

    def ending(self, batch: BatchId, now_ns: int) -> Finish | Drop:
        """Return the outcome of this request, which has ended with its batch."""
        if self.reason is not None:
            return Drop(self.request.id, self.reason)
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
        live = self.live[request.id] = LiveRequest(request, variant)
        live.move(Cause.ADMITTED)
        self.waiting_by_camera.setdefault(request.camera, {})[request.id] = None
        self.waiting += 1

    def prepared(self, live: LiveRequest, now_ns: int) -> None:
        """Note that a request may now be put into a batch."""
        live.move(Cause.PREPARED)
        live.ready_ns = now_ns
        self.ready.setdefault(live.variant, Counter())[live.request.app] += 1

    def start(self, infer: Infer, now_ns: int) -> None:
        """Move a batch's members from waiting to running."""
        for member in infer.requests:
            live = self.live[member]
            self._no_longer_waits(live)
            live.move(Cause.DISPATCHED)
        self.running[infer.executor] = RunningBatch(infer, now_ns)

    def finish(self, executor: ExecutorId, cause: Cause) -> list[LiveRequest]:
        """End the members of an executor's batch and return them."""
        members = [self.live.pop(member) for member in self.running.pop(executor).infer.requests]
        for live in members:
            live.move(cause)
        return members

    def end_waiting(self, request: RequestId, cause: Cause) -> Drop:
        """End a waiting request and return its drop."""
        live = self.live.pop(request)
        self._no_longer_waits(live)
        live.move(cause)
        assert live.reason is not None
        return Drop(request, live.reason)

    def all_waiting(self) -> list[RequestId]:
        """Return all waiting requests, oldest first."""
        return [r for r, live in self.live.items() if live.waits]

    def waiting_of(self, camera: CameraId) -> Iterable[RequestId]:
        """Return a camera's waiting requests, oldest first; do not change the ledger while
        iterating."""
        return self.waiting_by_camera.get(camera, ())

    def depart(self, camera: CameraId) -> bool:
        """Cancel the running requests of a camera that left; say whether there are any."""
        running = [
            live
            for batch in self.running.values()
            for live in map(self.live.__getitem__, batch.infer.requests)
            if live.request.camera == camera and live.stage is Stage.RUNNING
        ]
        for live in running:
            live.move(Cause.DEPARTED)
        return bool(running)

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
