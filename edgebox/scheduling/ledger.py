"""Owns the ledger: every live request with its stage and camera, and every running batch. Pure."""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.domain.pipelines import Pipeline, StageName
from edgebox.domain.requests import (
    BatchId,
    CameraId,
    DropReason,
    FrameId,
    Outcome,
    Request,
    RequestId,
)
from edgebox.scheduling.actions import Collect, Drop, Finish, Infer
from edgebox.scheduling.joins import JoinedFrame, Joins
from edgebox.scheduling.request_stages import WAITING, Cause, Stage, transition

_Key = TypeVar("_Key")
_UNANSWERED_CAUSES = {
    DropReason.OVERLOAD: Cause.OVERLOADED,
    DropReason.INVALID: Cause.REJECTED,
}
"""What ends a request that its batch had no answer to, by the reason for that; else, it failed."""


@dataclass(slots=True)
class LiveRequest:
    """A request that was admitted, until it has ended."""

    request: Request
    variant: VariantName
    pipeline: Pipeline | None = None
    """The pipeline whose first stage it is; None: there are no stages after it, or it is a crop."""
    stage: Stage = Stage.RECEIVED
    reason: DropReason | None = None
    """Why it was dropped; None: it lives, or was answered."""
    cause: Cause | None = None
    """What moved it last; of one whose answer nobody waits for any more, what made it so."""
    ready_ns: int = 0
    """When it was prepared."""
    due_ns: int = 0
    """Its deadline; of the first stage of a pipeline, the one that leaves time for the others."""
    variants: tuple[VariantName, ...] = ()
    """What it may run on, by falling size: larger ones than the variant that admission chose, that
    one, and smaller ones; empty: there is no choice."""
    larger: int = 0
    """How many of `variants` are larger than the one that admission chose."""
    runs_again: int = 0
    """How many of its batches ended with what ran them, or met a server with too much to do."""

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
        if self.stage not in (Stage.CANCELLED, Stage.UNNEEDED):
            self.cause = cause
        self.stage, self.reason = moved.to, moved.reason

    def drop(self) -> Drop:
        """Return how it ended; it has ended without an answer."""
        assert self.reason is not None and self.cause is not None
        return Drop(self.request.id, self.reason, self.cause)


def _finish(
    request: Request, batch: BatchId | None, now_ns: int, missing: Iterable[StageName] = ()
) -> Finish:
    on_time = now_ns <= request.deadline_ns
    outcome = Outcome.ON_TIME if on_time else Outcome.LATE
    return Finish(request.id, batch, outcome, tuple(missing))


@dataclass(frozen=True, slots=True)
class RunningBatch:
    """The batch that an executor runs."""

    infer: Infer
    """With the members that it still runs."""
    started_ns: int
    unanswered: int = 0
    """How many members it had no answer to."""
    rests_until_ns: int | None = None
    """Until when its executor rests, because a server has too much to do; None: it does not."""


class Ledger:
    """Every live request, once. Waiting ones are also listed by camera, oldest first.

    Frames and crops of frames are listed apart, because the limits count frames.
    """

    def __init__(self) -> None:
        self.live: dict[RequestId, LiveRequest] = {}
        self.running: dict[ExecutorId, RunningBatch] = {}
        self.frames_by_camera: dict[CameraId, dict[RequestId, None]] = {}
        """Waiting frames."""
        self.crops_by_camera: dict[CameraId, dict[RequestId, None]] = {}
        """Waiting crops."""
        self.waiting = 0
        """The number of waiting requests: frames and crops."""
        self.frames_waiting = 0
        self.deadlines: dict[VariantName, dict[str, list[int]]] = {}
        """The last deadlines of waiting requests, frames and crops, by variant and application,
        rising; not of optional ones."""
        self.by_due: list[tuple[int, RequestId]] = []
        """The waiting requests that are not optional, by the deadline that they wait for."""
        self.crops_preparing = 0
        """The number of crops that are being cut."""
        self.to_spawn: Counter[CameraId] = Counter()
        """The number of frames by camera, waiting or running, whose first stage may spawn crops."""
        self.joins = Joins()
        """The frames whose crops are on their way."""
        self.ready: dict[VariantName, Counter[str]] = {}
        """The number of prepared requests that wait for a batch, by variant and application."""

    @property
    def variants(self) -> set[VariantName]:
        """The variants of all live requests."""
        return {live.variant for live in self.live.values()}

    def admit(
        self, request: Request, variant: VariantName, pipeline: Pipeline | None, due_ns: int
    ) -> None:
        """Add a new request.

        Args:
            request: the request.
            variant: that it is prepared for.
            pipeline: whose first stage it is; None: of none.
            due_ns: the deadline of its stage.
        """
        live = LiveRequest(request, variant, pipeline, due_ns=due_ns)
        self.live[request.id] = live
        live.move(Cause.ADMITTED)
        self._waits(live)
        self.crops_preparing += request.frame is not None
        if pipeline is not None:
            self.to_spawn[request.camera] += 1

    def prepared(self, live: LiveRequest, now_ns: int) -> None:
        """Note that a request may now be put into a batch."""
        live.move(Cause.PREPARED)
        live.ready_ns = now_ns
        self.crops_preparing -= live.request.frame is not None
        self._count_ready(live)

    def is_of_batch(self, crop: LiveRequest) -> bool:
        """Say whether a batch of the box has found what a crop shows; else its camera has."""
        frame = self.joins.of(crop.request)
        return frame is not None and frame.batch is not None

    def change_variant(self, live: LiveRequest, variant: VariantName) -> None:
        """Note that a prepared request is to run on another variant."""
        self._not_ready(live)
        self._forget_deadline(live)
        self._count_deadline(live.request, variant)
        live.variant = variant
        self._count_ready(live)

    def start(self, infer: Infer, now_ns: int) -> None:
        """Move a batch's members from waiting to running."""
        for member in infer.requests:
            live = self.live[member]
            self._no_longer_waits(live)
            live.move(Cause.DISPATCHED)
        self.running[infer.executor] = RunningBatch(infer, now_ns)

    def wait_again(self, executor: ExecutorId, request: RequestId, variant: VariantName) -> None:
        """Move a member of an executor's batch back to what waits, prepared, for a variant."""
        live = self.live[request]
        live.move(Cause.RUNS_AGAIN)
        live.runs_again += 1
        live.variant = variant
        self._leave_batch(executor, (request,))
        self._waits(live)
        lists, camera = self._lists(live.request), live.request.camera
        lists[camera] = dict.fromkeys(sorted(lists[camera]))  # it may be older than the others
        self._count_ready(live)

    def unanswered(
        self, executor: ExecutorId, requests: Iterable[RequestId], reason: DropReason
    ) -> list[LiveRequest]:
        """End those of these requests that are in an executor's batch still; return them.

        The batch had no answer to them, for that reason.
        """
        cause = _UNANSWERED_CAUSES.get(reason, Cause.FAILED)
        in_batch = self.running[executor].infer.requests
        leaving = [each for each in in_batch if each in frozenset(requests)]
        self._leave_batch(executor, leaving)
        members = [self._remove(member) for member in leaving]
        for live in members:
            live.move(cause)
            self.joins.ended(live.request, answered=False)
        return members

    def rests(self, executor: ExecutorId, until_ns: int) -> None:
        """Note that a server has too much to do for a batch, and until when its executor rests."""
        self.running[executor] = replace(self.running[executor], rests_until_ns=until_ns)

    def _leave_batch(self, executor: ExecutorId, requests: Collection[RequestId]) -> None:
        batch = self.running[executor]
        others = tuple(each for each in batch.infer.requests if each not in requests)
        self.running[executor] = replace(
            batch,
            infer=replace(batch.infer, requests=others),
            unanswered=batch.unanswered + len(requests),
        )

    def finish(
        self, executor: ExecutorId, cause: Cause, spawned: Iterable[Request] = ()
    ) -> list[LiveRequest]:
        """End the members of an executor's batch and return them.

        Args:
            executor: where the batch ran.
            cause: COMPLETED or FAILED.
            spawned: the crops of the members. Their frames wait for them from now on.
        """
        infer = self.running.pop(executor).infer
        members = [self._remove(member) for member in infer.requests]
        with_crops = {crop.frame for crop in spawned}
        for live in members:
            live.move(cause)
            joins = FrameId(live.request.id) in with_crops and live.reason is None
            if joins and live.pipeline is not None:
                self.joins.open(live.request, infer.batch, live.pipeline)
        self.joins.spawned(spawned)
        for live in members:
            self.joins.ended(live.request, answered=live.reason is None)
        return members

    def ending(self, live: LiveRequest, batch: BatchId, now_ns: int) -> Collect | Finish | Drop:
        """Return what becomes of a request that has ended with its batch."""
        request = live.request
        if live.reason is not None:
            return live.drop()
        if request.frame is not None or FrameId(request.id) in self.joins.frames:
            return Collect(request.id, batch)
        return _finish(request, batch, now_ns)

    def detected(
        self, request: Request, spawned: Iterable[Request], pipeline: Pipeline | None, now_ns: int
    ) -> Finish | None:
        """Add a frame whose first stage ran at its camera; return its end if it has no crops."""
        if pipeline is None or not spawned:
            return _finish(request, None, now_ns)
        self.joins.open(request, None, pipeline)
        self.joins.spawned(spawned)
        return None

    def end_frame(self, frame: JoinedFrame, now_ns: int) -> Finish:
        """End a frame none of whose crops waits any more; those that run are unneeded."""
        for crop in sorted(frame.pending):  # a restored set has another order
            frame.missing[self.live[crop].request.stage or StageName("")] = None
            self.live[crop].move(Cause.FRAME_ENDED)
        frame.missing |= dict.fromkeys(frame.uncut)
        self.joins.close(frame.id)
        return _finish(frame.request, frame.batch, now_ns, frame.missing)

    def end_waiting(self, request: RequestId, cause: Cause) -> Drop:
        """End a waiting request and return its drop."""
        live = self._remove(request)
        self._no_longer_waits(live)
        live.move(cause)
        self.joins.ended(live.request, answered=False)
        return live.drop()

    def all_waiting(self) -> list[RequestId]:
        """Return all waiting requests, oldest first."""
        return [r for r, live in self.live.items() if live.waits]

    def waiting_of(self, camera: CameraId) -> list[RequestId]:
        """Return a camera's waiting requests, oldest first, frames before crops."""
        return [*self.frames_by_camera.get(camera, ()), *self.crops_by_camera.get(camera, ())]

    def depart(self, camera: CameraId) -> bool:
        """Cancel the running requests of a camera that left; say whether there are any.

        None of its requests waits any more.
        """
        members = (each for batch in self.running.values() for each in batch.infer.requests)
        return self.cancel(each for each in members if self.live[each].request.camera == camera)

    def cancel(self, requests: Iterable[RequestId]) -> bool:
        """Cancel those of some requests that run; say whether there are any."""
        running = [live for each in requests if (live := self.live[each]).stage is Stage.RUNNING]
        for live in running:
            live.move(Cause.DEPARTED)
        return bool(running)

    def _remove(self, request: RequestId) -> LiveRequest:
        live = self.live.pop(request)
        if live.pipeline is not None:
            _decrement(self.to_spawn, live.request.camera)
        return live

    def _lists(self, request: Request) -> dict[CameraId, dict[RequestId, None]]:
        return self.frames_by_camera if request.frame is None else self.crops_by_camera

    def _waits(self, live: LiveRequest) -> None:
        request = live.request
        self._lists(request).setdefault(request.camera, {})[request.id] = None
        self.waiting += 1
        self.frames_waiting += request.frame is None
        self._count_deadline(request, live.variant)
        if not request.optional:
            insort(self.by_due, (live.due_ns, request.id))

    def _no_longer_waits(self, live: LiveRequest) -> None:
        request = live.request
        lists = self._lists(request)
        del lists[request.camera][request.id]
        if not lists[request.camera]:
            del lists[request.camera]
        self.waiting -= 1
        self.frames_waiting -= request.frame is None
        self._forget_deadline(live)
        if not request.optional:
            del self.by_due[bisect_left(self.by_due, (live.due_ns, request.id))]
        if live.stage is Stage.PREPARING:
            self.crops_preparing -= request.frame is not None
        if live.stage is Stage.READY:
            self._not_ready(live)

    def _count_deadline(self, request: Request, variant: VariantName) -> None:
        if not request.optional:
            by_app = self.deadlines.setdefault(variant, {})
            insort(by_app.setdefault(request.app, []), request.last_deadline_ns)

    def _forget_deadline(self, live: LiveRequest) -> None:
        request = live.request
        if not request.optional:
            by_app = self.deadlines[live.variant]
            deadlines = by_app[request.app]
            del deadlines[bisect_left(deadlines, request.last_deadline_ns)]
            if not deadlines:
                del by_app[request.app]
            if not by_app:
                del self.deadlines[live.variant]

    def _count_ready(self, live: LiveRequest) -> None:
        if live.variant not in self.ready:
            self.ready[live.variant] = Counter()
        self.ready[live.variant][live.request.app] += 1

    def _not_ready(self, live: LiveRequest) -> None:
        ready = self.ready[live.variant]
        _decrement(ready, live.request.app)
        if not ready:
            del self.ready[live.variant]


def _decrement(counter: Counter[_Key], key: _Key) -> None:
    counter[key] -= 1
    if not counter[key]:
        del counter[key]
