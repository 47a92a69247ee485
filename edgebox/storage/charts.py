"""Composes charts: levels, steps and columns. Pure.

A chart has a maximum number of points. Its step is the smallest of `STEPS_MS` that complies, and
the rows come from the coarsest level whose step is not longer. Rows of coarser levels are sums of
finer ones, so the figures are the same with less reading. Times that this level lacks come from
another level, as a segment with its own step.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson

from edgebox.domain.latency_histogram import HISTORY_BUCKETS, PARTS, buckets_at
from edgebox.storage.levels import COUNTS, DROPPED, HOUR, MINUTE, NUMBERS, SECOND, Level
from edgebox.storage.packing import Ints, unpacked
from edgebox.storage.periods import CLASS_FRAMES, CODES, TrackedCount, most_seen, tracked_key

POINTS_MIN, POINTS_MAX = 10, 2_000
CHART_CLASSES_MAX = 8
"""Classes that a chart shows: those seen most."""
SPAN_MAX_MS = 3_660 * 86_400_000

_S, _MIN, _H, _DAY = 1_000, 60_000, 3_600_000, 86_400_000
STEPS_MS = (
    *(s * _S for s in (1, 2, 5, 10, 15, 30)),
    *(m * _MIN for m in (1, 2, 5, 10)),
    # No longer steps from minutes: they would need thousands of rows.
    *(h * _H for h in (1, 2, 3, 6, 12)),
    *(d * _DAY for d in (1, 2, 5, 10, 30, 100, 400)),
)
_QUANTILES = {"p50": 0.50, "p99": 0.99}


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a chart: whole steps of rows of one level. Instants are Unix milliseconds."""

    level: Level
    begin_ms: int
    end_ms: int
    step_ms: int

    @property
    def points(self) -> int:
        """Number of steps; the end may cut off the last."""
        return -(-(self.end_ms - self.begin_ms) // self.step_ms)

    @property
    def rows(self) -> tuple[int, int]:
        """Range of its level's steps, without the last."""
        step_ms = self.level.step_ms
        return self.begin_ms // step_ms, -(-self.end_ms // step_ms)


@dataclass(frozen=True, slots=True)
class Kept:
    """The range of each level's rows. Unix milliseconds."""

    second_ms: int | None
    """The oldest second; None: there is none."""
    minute_ms: int | None
    """The oldest minute; None: there is none."""
    hour_ms: int | None
    """The oldest hour; None: there is none."""
    until_ms: int
    """Minutes and hours contain everything before this instant."""


def step_for(span_ms: int, points: int) -> int:
    """Return the step for a span with at most `points` points."""
    # Two segments may begin within a step, and the span itself may.
    needed_ms = -(-span_ms // (points - 3))
    return STEPS_MS[min(bisect_left(STEPS_MS, needed_ms), len(STEPS_MS) - 1)]


def segments(from_ms: int, to_ms: int, points: int, kept: Kept) -> list[Segment]:
    """Return the segments of a chart, oldest first.

    Args:
        from_ms: its beginning; the chart may begin up to a step earlier.
        to_ms: its end.
        points: largest number of steps, at least `POINTS_MIN`.
        kept: the rows that exist.
    """
    step_ms = step_for(to_ms - from_ms, points)
    begin_ms = from_ms - from_ms % step_ms
    # The finest first. Times that minutes lack come from seconds, whatever the step.
    seconds_ms = kept.until_ms
    if step_ms < MINUTE.step_ms:
        seconds_ms = min(seconds_ms, _seconds_ms(kept, begin_ms, to_ms))
    bounds = [(SECOND, seconds_ms)]
    if step_ms < HOUR.step_ms:
        # An hour is never split, because it has one row.
        hour_ms = min(seconds_ms, to_ms) // HOUR.step_ms * HOUR.step_ms
        bounds.append((MINUTE, min(_minutes_ms(kept, begin_ms, to_ms), hour_ms)))
    bounds.append((HOUR, begin_ms))
    found = []
    end_ms = to_ms
    for level, bound_ms in bounds:
        since_ms = max(begin_ms, bound_ms)
        if since_ms < end_ms:
            since_ms -= since_ms % level.step_ms
            found.append(Segment(level, since_ms, end_ms, max(step_ms, level.step_ms)))
            end_ms = since_ms
    return found[::-1]


def _seconds_ms(kept: Kept, begin_ms: int, to_ms: int) -> int:
    """Return the instant from which seconds are as complete as minutes."""
    if kept.second_ms is not None and kept.second_ms <= begin_ms:
        return begin_ms
    # The minute in which they begin may have more, from before a restart.
    return _first_step(kept.second_ms, MINUTE, to_ms)


def _minutes_ms(kept: Kept, begin_ms: int, to_ms: int) -> int:
    """Return the instant from which minutes are as complete as hours."""
    first_ms = _first_step(kept.minute_ms, HOUR, to_ms)
    if kept.minute_ms is None or kept.hour_ms is None:
        return first_ms
    # In the same hour no minute has been deleted yet.
    return begin_ms if kept.hour_ms > kept.minute_ms - HOUR.step_ms else first_ms


def _first_step(since_ms: int | None, coarser: Level, otherwise_ms: int) -> int:
    """Return the first whole step of the next level from an instant on."""
    return otherwise_ms if since_ms is None else -(-since_ms // coarser.step_ms) * coarser.step_ms


@dataclass(slots=True)
class ChartColumns:
    """The steps of one segment, added up."""

    at_ms: Ints
    """Beginning of each step, (points,)."""
    sums: dict[str, list[int | None]]
    """Sums of `levels.NUMBERS`; None where there are no rows."""
    counts: dict[str, list[Counter[str]]]
    """Sums of `levels.COUNTS`."""
    latencies: Ints
    """(points, CODES)."""


def drawn(
    segment: Segment, summed: Sequence[Sequence[Any]], counted: Sequence[Sequence[Any]]
) -> ChartColumns:
    """Return the steps of a segment from the rows of `levels.summing` and `levels.counting`."""
    points, first = segment.points, segment.rows[0]
    per_step = segment.step_ms // segment.level.step_ms
    sums: dict[str, list[int | None]] = {column: [None] * points for column in NUMBERS}
    for step, *row in summed:
        for column, value in zip(NUMBERS, row, strict=True):
            sums[column][step] = value
    steps = np.array([(row[0] - first) // per_step for row in counted], np.int64)
    counts = {column: [Counter[str]() for _ in range(points)] for column in COUNTS}
    for step, (_, *objects, _) in zip(steps.tolist(), counted, strict=True):
        for column, of in zip(COUNTS, objects, strict=True):
            if of != "{}":
                counts[column][step].update(orjson.loads(of))
    latencies = unpacked([row[-1] for row in counted], steps, (points, CODES))
    at_ms = segment.begin_ms + segment.step_ms * np.arange(points)
    return ChartColumns(at_ms, sums, counts, latencies)


def columns(parts: Sequence[ChartColumns]) -> dict[str, Any]:
    """Return the series of docs/reference/http-api.md, `at_ms` included."""
    sums = {name: [v for part in parts for v in part.sums[name]] for name in NUMBERS}
    latencies = np.concatenate([part.latencies for part in parts])
    there = [value is not None for value in sums["covered_ms"]]
    variants, tracked, classes = (_counts(parts, column, there) for column in COUNTS)
    answered = _plus(sums["on_time"], sums["late"])
    return {
        "at_ms": [int(at) for part in parts for at in part.at_ms],
        "covered_ms": sums["covered_ms"],
        "connected": _ratio(sums["connected_ms"], sums["covered_ms"], 1, 3),
        **{name: sums[name] for name in ("captured", "accepted", "on_time", "late", "mismatches")},
        "dropped": {
            reason: sums[column] for column, reason in DROPPED.items() if any(sums[column])
        },
        "fps": _ratio(answered, sums["covered_ms"], 1e3, 2),
        "latency_ms": _quantiles(latencies),
        "variants": variants,
        **_tracked(tracked),
        "classes": _classes(classes),
        "width_px": _ratio(sums["width_px_sum"], answered, 1, 1),
        "received_bps": _ratio(sums["received_bytes"], sums["covered_ms"], 8e3, 0),
        "bandwidth_bps": {
            "measured": {
                "mean": _ratio(sums["measured_bits"], sums["measured_busy_us"], 1e6, 0),
                "min": sums["measured_least_bps"],
                "max": sums["measured_most_bps"],
            },
            "estimated": {
                "mean": _ratio(sums["estimated_sum_bps"], sums["estimated_count"], 1, 0),
                "min": sums["estimated_least_bps"],
                "max": sums["estimated_most_bps"],
            },
        },
    }


def _counts(
    parts: Sequence[ChartColumns], column: str, there: Sequence[bool]
) -> dict[str, list[int | None]]:
    """Return a column of `levels.COUNTS` as one series for each key; None: there are no rows."""
    steps = [counts for part in parts for counts in part.counts[column]]
    return {
        name: [counts[name] if here else None for counts, here in zip(steps, there, strict=True)]
        for name in sorted(set().union(*steps))
    }


def _tracked(counts: Mapping[str, list[int | None]]) -> dict[str, Any]:
    """Return the mean number of objects in each zone, and the crossings of each line."""
    keys = [key.split("/", 1) for key in counts]
    frames, objects, crossed_in, crossed_out = (
        {name: counts[tracked_key(of, name)] for key, name in keys if key == of}
        for of in TrackedCount
    )
    return {
        "zones": {name: _ratio(objects[name], of, 1, 3) for name, of in frames.items()},
        "lines": {name: {"in": of, "out": crossed_out[name]} for name, of in crossed_in.items()},
    }


def _classes(counts: Mapping[str, list[int | None]]) -> dict[str, list[float | None]]:
    """Return the mean number of objects of the classes that were seen most, these first."""
    totals = {label: sum(n or 0 for n in column) for label, column in counts.items()}
    frames = counts.get(CLASS_FRAMES, [])
    labels = [label for label in most_seen(totals, CHART_CLASSES_MAX) if label != CLASS_FRAMES]
    return {label: _ratio(counts[label], frames, 1, 3) for label in labels}


def _plus(some: Sequence[int | None], more: Sequence[int | None]) -> list[int | None]:
    return [None if a is None or b is None else a + b for a, b in zip(some, more, strict=True)]


def _ratio(
    above: Sequence[int | None], below: Sequence[int | None], unit: float, digits: int
) -> list[float | None]:
    """Return above / below x unit, rounded; None where there is nothing below."""
    return [
        None if a is None or not b else round(a / b * unit, digits)
        for a, b in zip(above, below, strict=True)
    ]


def _quantiles(latencies: Ints) -> dict[str, dict[str, list[float | None]]]:
    """Return each quantile of each part of each step, (steps, CODES), by nearest rank."""
    counts = latencies.reshape(len(latencies), len(PARTS), HISTORY_BUCKETS.count)
    answers = counts.sum(axis=2)
    values_ms = np.array(HISTORY_BUCKETS.values_ms)
    found: dict[str, dict[str, list[float | None]]] = {}
    for name, q in _QUANTILES.items():
        ranks = np.maximum(1, np.ceil(q * answers - 1e-9)).astype(np.int64)
        ms = np.round(values_ms[buckets_at(counts, ranks)], 2)
        found[name] = {
            part: [
                value if there else None
                for value, there in zip(ms[:, at].tolist(), answers[:, at].tolist(), strict=True)
            ]
            for at, part in enumerate(PARTS)
        }
    return found
