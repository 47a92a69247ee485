"""Owns the stages of a request and what moves it from one to the next: one table. Pure.

Every change of a request's stage is a row of `TRANSITIONS`, and there is no other. A report that
fits no row (a picture decoded after its request ended, a batch of an executor that was lost
meanwhile) never gets here: the Scheduler counts it as stale and ignores it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from edgebox.domain.errors import InvariantViolation
from edgebox.domain.requests import DropReason


class Stage(StrEnum):
    """Where a request is on its way through the box."""

    RECEIVED = "received"
    """It has arrived whole; admission decides about it in the same call of the core."""
    PREPARING = "preparing"
    """It waits for a decoding thread or is being decoded."""
    READY = "ready"
    """It is decoded and waits for a batch."""
    RUNNING = "running"
    """Its batch runs."""
    CANCELLED = "cancelled"
    """Its batch runs, but nobody waits for it any more: its camera or program has left."""
    UNNEEDED = "unneeded"
    """Its batch runs, but the frame that it is a crop of was answered without it."""
    ENDED = "ended"
    """It was answered or dropped."""


WAITING = (Stage.PREPARING, Stage.READY)
"""The stages in which it can still be dropped at once."""


class Cause(StrEnum):
    """What moves a request: a fact that was reported, or a decision of the core."""

    ADMITTED = "admitted"
    """It is expected to be in time."""
    REFUSED = "refused"
    """Admission lets it in nowhere; the reason is admission's."""
    PREPARED = "prepared"
    """It was decoded."""
    REJECTED = "rejected"
    """It is no picture that can be decoded, says a decoding thread or what ran its batch."""
    DISPLACED = "displaced"
    """A newer frame took its place."""
    EXPIRED = "expired"
    """It can no longer meet its deadline."""
    TRIAL_EXPIRED = "trial expired"
    """It was let in as a trial, and no executor was idle in time."""
    DEPARTED = "departed"
    """Its camera left."""
    SHUTDOWN = "shutdown"
    """The box is stopping."""
    DISPATCHED = "dispatched"
    """An executor was given its batch."""
    COMPLETED = "completed"
    """Its batch completed."""
    FAILED = "failed"
    """Its batch failed or had no answer to it, or the executor was lost or stopped."""
    RUNS_AGAIN = "runs again"
    """What ran its batch has ended, or had too much to do for it, and it can still be answered in
    time."""
    OVERLOADED = "overloaded"
    """The server of its executor had too much to do, and nothing can answer it in time."""
    FRAME_ENDED = "frame ended"
    """The frame that it is a crop of ended without it."""


@dataclass(frozen=True, slots=True)
class Transition:
    """Where a cause leads; a request that ends without a reason to drop it is answered."""

    to: Stage
    reason: DropReason | None = None


def _dropped(
    reason: DropReason, cause: Cause, *stages: Stage
) -> dict[tuple[Stage, Cause], Transition]:
    return {(stage, cause): Transition(Stage.ENDED, reason) for stage in stages}


def _ends_batch(reason: DropReason, stage: Stage) -> dict[tuple[Stage, Cause], Transition]:
    """Return what becomes of a request in a batch that nobody waits for, however the batch ends."""
    causes = Cause.COMPLETED, Cause.FAILED, Cause.OVERLOADED, Cause.REJECTED
    return {(stage, cause): Transition(Stage.ENDED, reason) for cause in causes}


TRANSITIONS: Mapping[tuple[Stage, Cause], Transition] = {
    (Stage.RECEIVED, Cause.ADMITTED): Transition(Stage.PREPARING),
    (Stage.RECEIVED, Cause.REFUSED): Transition(Stage.ENDED),
    (Stage.PREPARING, Cause.PREPARED): Transition(Stage.READY),
    **_dropped(DropReason.INVALID, Cause.REJECTED, Stage.PREPARING, Stage.RUNNING),
    **_dropped(DropReason.OVERLOAD, Cause.DISPLACED, *WAITING),
    **_dropped(DropReason.QUEUE, Cause.EXPIRED, *WAITING),
    **_dropped(DropReason.INFEASIBLE, Cause.TRIAL_EXPIRED, *WAITING),
    **_dropped(DropReason.DEPARTED, Cause.DEPARTED, *WAITING),
    **_dropped(DropReason.SHUTDOWN, Cause.SHUTDOWN, *WAITING),
    (Stage.READY, Cause.DISPATCHED): Transition(Stage.RUNNING),
    (Stage.RUNNING, Cause.DEPARTED): Transition(Stage.CANCELLED),
    (Stage.RUNNING, Cause.FRAME_ENDED): Transition(Stage.UNNEEDED),
    (Stage.RUNNING, Cause.COMPLETED): Transition(Stage.ENDED),
    **_dropped(DropReason.FAILED, Cause.FAILED, Stage.RUNNING),
    (Stage.RUNNING, Cause.RUNS_AGAIN): Transition(Stage.READY),
    **_dropped(DropReason.OVERLOAD, Cause.OVERLOADED, Stage.RUNNING),
    **_ends_batch(DropReason.DEPARTED, Stage.CANCELLED),
    **_ends_batch(DropReason.QUEUE, Stage.UNNEEDED),
}


def transition(stage: Stage, cause: Cause) -> Transition:
    """Return the row for a cause.

    Raises:
        InvariantViolation: there is none; a defect of the caller.
    """
    found = TRANSITIONS.get((stage, cause))
    if found is None:
        raise InvariantViolation(f"a request that is {stage} cannot be {cause}")
    return found
