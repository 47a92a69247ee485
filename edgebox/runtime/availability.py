"""Explains why a request cannot run now, and when that may change.

Pure: turns the state of supervision into sentences.
"""

import math
from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass

from edgebox.domain.model_family import ExecutorId, Variant, VariantName
from edgebox.domain.requests import DropReason
from edgebox.runtime.frames import BATCH_FAILED, DROP_MESSAGES, PendingFrame
from edgebox.scheduling.supervised import ExecutorState, Supervised


@dataclass(frozen=True, slots=True)
class AbsentExecutor:
    """An executor that the box started without."""

    because: str
    since_ns: int
    """Since when this is the reason, on the box's clock."""
    retry_ns: int | None
    """When it is tried again; None: that is being done."""


Executors = Mapping[ExecutorId, Supervised]


def executor_state(executor: ExecutorId, of: Supervised, now_ns: int) -> str:
    """Return an executor's state and what follows from it, as a sentence."""
    said = f"{executor} is {of.state.value}"
    if of.state is ExecutorState.WAITING and of.retry_ns is not None:
        left_s = math.ceil((of.retry_ns - now_ns) / 1e9)
        return f"{said}, and is opened again {f'in {left_s} s' if left_s > 0 else 'now'}"
    if of.state is ExecutorState.WEDGED:
        return f"{said}, and only a restart of edgebox helps"
    return said


def unserved_because(
    executors: Executors, now_ns: int, variants: Collection[VariantName] | None = None
) -> str:
    """Say why nothing can run now; empty: something can.

    Args:
        executors: all that were started, except those that were stopped on purpose.
        now_ns: the present, to compute the remaining wait.
        variants: one of these is needed; None: any variant will do.
    """
    holding = holders(executors, variants)
    if any(of.state is ExecutorState.UP for of in holding.values()):
        return ""
    states = "; ".join(executor_state(name, of, now_ns) for name, of in holding.items())
    runs_it = "" if variants is None else " that runs this model"
    return f"no executor{runs_it} is up: {states or 'none has it'}"


def dropped_because(
    frame: PendingFrame,
    reason: DropReason,
    lost: ExecutorId | None,
    *,
    executors: Executors,
    offered: Iterable[Variant],
    now_ns: int,
) -> str:
    """Say why a frame was dropped.

    Args:
        frame: it has ended.
        reason: as the core says.
        lost: the lost executor that had the frame; None: no executor had it.
        executors: as above.
        offered: all variants of the box.
        now_ns: as above.
    """
    if reason is DropReason.INVALID:
        return frame.invalid_because or DROP_MESSAGES[reason]
    if reason is not DropReason.FAILED:
        return DROP_MESSAGES[reason]
    if frame.failed_because:
        return frame.failed_because
    if lost is not None:
        state = executor_state(lost, executors[lost], now_ns)
        return f"{lost} was lost while it ran this batch: {state}"
    if frame.batched:
        return BATCH_FAILED
    wanted = [
        variant.name
        for variant in offered
        if variant.name == frame.request.variant or variant.family == frame.family
    ]
    return unserved_because(executors, now_ns, wanted) or DROP_MESSAGES[reason]


def is_wedged(executors: Executors, variants: Collection[VariantName]) -> bool:
    """Return whether nothing will run any of these again in this process."""
    holding = holders(executors, variants)
    return bool(holding) and all(of.state is ExecutorState.WEDGED for of in holding.values())


def holders(
    executors: Executors, variants: Collection[VariantName] | None = None
) -> dict[ExecutorId, Supervised]:
    """Return the executors that run any of these variants while they are up."""
    return {
        name: of
        for name, of in executors.items()
        if variants is None or not of.variants.isdisjoint(variants)
    }


def likely_executors(
    executors: Executors, running: Container[ExecutorId], variant: VariantName
) -> list[ExecutorId]:
    """Return where a request that arrives now will run: on one that is idle, else on any.

    Args:
        executors: as above.
        running: those that run something.
        variant: that the request is for.
    """
    up = [
        name for name, of in holders(executors, (variant,)).items() if of.state is ExecutorState.UP
    ]
    return [name for name in up if name not in running] or up
