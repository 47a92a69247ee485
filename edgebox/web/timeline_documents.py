"""Writes the timeline's documents: the last minute as a whole, or increments.

`http-api.md` specifies them. Finished entries are written once and cached. Writing yields to
the loop regularly, so that frames are served in between.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
import orjson

from edgebox.domain.plans import Advice
from edgebox.runtime.box import Box
from edgebox.runtime.driver import Driver
from edgebox.runtime.timeline_recorder import Dropped, PlanChange, PlanRun, QueueSlot, RanBatch
from edgebox.storage.wall_clock import wall_clock_ms

NEWS_PERIOD_S = 0.25
_PER_SLICE = 64
"""Batches written before yielding to the loop: about a third of a millisecond."""
_PER_MESSAGE = 256
_DECISIONS_AGE_S = 1.0

T = TypeVar("T")


def instant_ms(at_ns: int) -> float:
    """Write an instant of the box's clock in milliseconds, to the microsecond."""
    return round(at_ns / 1e6, 3)


def batch_document(batch: RanBatch) -> dict[str, Any]:
    """Return one batch or sample; unknown values are None."""
    over = bool(batch.closed_ns)
    ran = bool(batch.started_ns)
    return {
        "batch": batch.id,
        "kind": "sample" if batch.sample else "batch",
        "executor": batch.executor,
        "variant": batch.variant,
        "size": len(batch.requests),
        "padded_size": batch.batch_size,
        "threads": batch.threads or None,
        "ordered_ms": instant_ms(batch.ordered_ns),
        "started_ms": instant_ms(batch.started_ns) if ran else None,
        "ended_ms": instant_ms(batch.ended_ns) if ran else None,
        "answered_ms": instant_ms(batch.closed_ns) if over else None,
        "expected_ms": None if batch.expected_ns is None else round(batch.expected_ns / 1e6, 3),
        "requests": [
            {
                "request": request.id,
                "camera": request.camera,
                "frame": request.frame,
                "stage": request.stage,
                "captured_ms": instant_ms(request.captured_ns),
                "arrived_ms": instant_ms(request.arrival_ns),
                "deadline_ms": instant_ms(request.deadline_ns),
                "outcome": batch.endings.get(request.id),
            }
            for request in batch.requests
        ],
    }


def _written(batch: RanBatch) -> orjson.Fragment:
    if not batch.written:
        batch.written = orjson.dumps(batch_document(batch))
    return orjson.Fragment(batch.written)


def drop_document(drop: Dropped) -> dict[str, Any]:
    """Return a request that was dropped before a batch."""
    request = drop.request
    return {
        "at_ms": instant_ms(drop.at_ns),
        "request": request.id,
        "camera": request.camera,
        "frame": request.frame,
        "stage": request.stage,
        "variant": drop.variant,
        "captured_ms": instant_ms(request.captured_ns),
        "arrived_ms": instant_ms(request.arrival_ns),
        "deadline_ms": instant_ms(request.deadline_ns),
        "reason": drop.reason.value,
    }


def change_document(change: PlanChange) -> dict[str, Any]:
    """Return a change of one camera's advice."""
    return {
        "at_ms": instant_ms(change.at_ns),
        "camera": change.camera,
        "before": None if change.before is None else _advised_size(change.before),
        "after": _advised_size(change.after),
        "reason": change.after.reason,
    }


def _advised_size(advice: Advice) -> dict[str, Any]:
    return {
        "variant": advice.variant,
        "width_px": advice.width_px,
        "height_px": advice.height_px,
        "rate_hz": advice.rate_hz,
    }


def _plan(run: PlanRun) -> dict[str, Any]:
    return {
        "asked_ms": instant_ms(run.asked_ns),
        "answered_ms": instant_ms(run.answered_ns),
        "utilisation": round(run.utilisation, 4),
    }


def _queue(slot: QueueSlot) -> list[Any]:
    return [instant_ms(slot.at_ns), slot.longest]


def decisions_document(taken_ns: Sequence[int]) -> dict[str, float] | None:
    """Return quantiles of the core's recent decision times; None before the first."""
    if not taken_ns:
        return None
    p50, p99, most = np.quantile(np.array(taken_ns), (0.5, 0.99, 1.0)) / 1e3
    return {
        "count": len(taken_ns),
        "p50": round(float(p50), 1),
        "p99": round(float(p99), 1),
        "max": round(float(most), 1),
    }


class TimelineReader:
    """Reads the timeline incrementally, for one viewer."""

    def __init__(self, box: Box) -> None:
        """Begin with everything that is kept."""
        self._box = box
        self._begins = True
        self._batches = self._drops = self._changes = self._plans = self._queues = 0
        self._decided_s = -math.inf

    async def updates(self) -> AsyncIterator[bytes]:
        """Yield messages until nothing is new; the first message marks the beginning."""
        while self._box.ready:
            message, more = await self._next(self._box.driver)
            yield message
            if not more:
                return

    async def _next(self, driver: Driver) -> tuple[bytes, bool]:
        timeline = driver.decisions.timeline
        now_ns = driver.clock_ns()
        timeline.pass_time(now_ns)
        self._batches, batches = timeline.batches.after(self._batches, _PER_MESSAGE)
        self._drops, drops = timeline.drops.after(self._drops, _PER_MESSAGE)
        self._changes, changes = timeline.changes.after(self._changes, _PER_MESSAGE)
        self._plans, plans = timeline.plans.after(self._plans)
        self._queues, queues = timeline.queues.after(self._queues)
        # Read this before yielding to the loop: running batches may end meanwhile.
        running = [batch_document(batch) for batch in timeline.running.values()]
        document = {
            "type": "timeline",
            "begins": self._begins,
            **_about(driver, now_ns),
            "batches": await _in_slices(batches, _written),
            "running": running,
            "drops": await _in_slices(drops, drop_document),
            "changes": await _in_slices(changes, change_document),
            "plans": [_plan(run) for run in plans],
            "queues": [_queue(slot) for slot in queues],
        }
        now_s = now_ns / 1e9
        if now_s >= self._decided_s + _DECISIONS_AGE_S:
            self._decided_s = now_s
            document["decision_us"] = decisions_document(driver.decisions.durations_ns)
        self._begins = False
        more = max(len(batches), len(drops), len(changes)) == _PER_MESSAGE
        return orjson.dumps(document), more


async def timeline_document(
    driver: Driver, now_ns: int, from_ms: float, to_ms: float
) -> dict[str, Any]:
    """Return the entries that overlap a span, both instants included; yields to the loop."""
    timeline = driver.decisions.timeline
    timeline.pass_time(now_ns)
    _, batches = timeline.batches.after(0)
    _, drops = timeline.drops.after(0)
    _, changes = timeline.changes.after(0)
    _, plans = timeline.plans.after(0)
    _, queues = timeline.queues.after(0)

    def within(first_ns: int, last_ns: int) -> bool:
        # Compare as written, so that an instant from an answer can be used in the next query.
        return instant_ms(first_ns) <= to_ms and instant_ms(last_ns) >= from_ms

    running = [b for b in timeline.running.values() if within(b.ordered_ns, now_ns)]
    return {
        "from_ms": from_ms,
        "to_ms": to_ms,
        **_about(driver, now_ns),
        "decision_us": decisions_document(driver.decisions.durations_ns),
        "running": [batch_document(batch) for batch in running],
        "batches": await _in_slices(
            [b for b in batches if within(b.ordered_ns, b.closed_ns)], _written
        ),
        "drops": await _in_slices([d for d in drops if within(d.at_ns, d.at_ns)], drop_document),
        "changes": await _in_slices(
            [c for c in changes if within(c.at_ns, c.at_ns)], change_document
        ),
        "plans": [_plan(run) for run in plans if within(run.answered_ns, run.answered_ns)],
        "queues": [_queue(slot) for slot in queues if within(slot.at_ns, slot.at_ns)],
    }


def _about(driver: Driver, now_ns: int) -> dict[str, Any]:
    timeline = driver.decisions.timeline
    return {
        "now_ms": instant_ms(now_ns),
        "unix_ms": wall_clock_ms(),
        "failure": timeline.failure,
        "executors": timeline.executors,
        "variants": timeline.variants,
    }


async def _in_slices(items: Iterable[T], write: Callable[[T], Any]) -> list[Any]:
    written = []
    for number, item in enumerate(items, 1):
        written.append(write(item))
        if number % _PER_SLICE == 0:
            await asyncio.sleep(0)
    return written
