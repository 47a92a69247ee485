"""The resolutions of history, and the statements that write and add up its rows.

A level's table has a row per step and name; `at` counts steps since 1970. Writing an existing row
adds to it, so a restart, a late timer or a wall clock that is set back neither corrupts nor loses
rows. In the file rows are ordered by time, then name: writes go to the end of the tree and
deletions to its beginning, which saves flash storage.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import orjson

from edgebox.domain.requests import CameraId, DropReason
from edgebox.storage.packing import Ints, added, packed
from edgebox.storage.periods import CODES, Period, most_seen


@dataclass(frozen=True, slots=True)
class Level:
    """One resolution of the history."""

    name: str
    step_ms: int

    @property
    def table(self) -> str:
        """The table with its rows."""
        return f"history_{self.name}"


SECOND = Level("second", 1_000)
MINUTE = Level("minute", 60_000)
HOUR = Level("hour", 3_600_000)

DROPPED = {f"dropped_{reason.value}": reason.value for reason in DropReason}
"""Column to drop reason."""

SUMS = (
    "covered_ms", "connected_ms", "captured", "accepted", "on_time", "late", "mismatches",
    *DROPPED, "width_px_sum", "received_bytes", "measured_bits", "measured_busy_us",
    "estimated_sum_bps", "estimated_count",
)  # fmt: skip
LEASTS = ("measured_least_bps", "estimated_least_bps")
MOSTS = ("measured_most_bps", "estimated_most_bps")
NUMBERS = (*SUMS, *LEASTS, *MOSTS)
"""The columns that SQL adds up."""
COUNTS = ("variants", "tracked", "classes")
"""The columns of JSON objects of counts."""
_ADDING_OF = {"classes": "added_classes"}
"""The function that adds a column of counts, if it is not `added_counts`."""
COLUMNS = (*NUMBERS, *COUNTS, "latencies")

NAME = "INSERT OR IGNORE INTO history_names (camera) VALUES (?)"


def adding(level: Level) -> str:
    """Return the statement that adds `values` to a row: `at`, the camera, then the columns."""
    table = level.table
    merged = [f"{c} = {table}.{c} + excluded.{c}" for c in SUMS]
    # min() and max() of two values return NULL if one is NULL.
    merged += [f"{c} = coalesce(min({table}.{c}, excluded.{c}), {table}.{c}, excluded.{c})"
               for c in LEASTS]  # fmt: skip
    merged += [f"{c} = coalesce(max({table}.{c}, excluded.{c}), {table}.{c}, excluded.{c})"
               for c in MOSTS]  # fmt: skip
    merged += [
        f"{c} = {_ADDING_OF.get(c, 'added_counts')}({table}.{c}, excluded.{c})" for c in COUNTS
    ]
    merged.append(f"latencies = added_latencies({table}.latencies, excluded.latencies)")
    return (
        f"INSERT INTO {table} (at, name, {', '.join(COLUMNS)})"
        f" VALUES (?, (SELECT id FROM history_names WHERE camera = ?){', ?' * len(COLUMNS)})"
        f" ON CONFLICT (at, name) DO UPDATE SET {', '.join(merged)}"
    )


ADDING = {level: adding(level) for level in (SECOND, MINUTE, HOUR)}


@dataclass(frozen=True, slots=True)
class _Packed:
    """Counts that are packed when they are bound, in the database's thread."""

    counts: Ints

    def __conform__(self, protocol: object) -> bytes:
        return packed(self.counts)


def values(camera: CameraId, period: Period) -> tuple[Any, ...]:
    """Return the parameters of `adding` after `at`."""
    measured, estimated = period.measured, period.estimated
    return (
        camera, period.covered_ms, period.connected_ms, period.captured, period.accepted,
        period.on_time, period.late, period.mismatches,
        *(period.dropped[reason] for reason in DROPPED.values()),
        period.width_px_sum, period.received_bytes, measured.total, measured.weight,
        estimated.total, estimated.weight, measured.least, estimated.least,
        measured.most, estimated.most,
        orjson.dumps(period.variants).decode(), orjson.dumps(period.tracked).decode(),
        orjson.dumps(most_seen(period.classes)).decode(),
        _Packed(period.latencies),
    )  # fmt: skip


def summing(level: Level) -> str:
    """Return the query of added rows by group: (begin, width, begin, end, camera) to one each."""
    picked = [f"sum({c})" for c in SUMS]
    picked += [f"min({c})" for c in LEASTS] + [f"max({c})" for c in MOSTS]
    return (
        f"SELECT (at - ?) / ? AS step, {', '.join(picked)} FROM {level.table}"
        " WHERE at >= ? AND at < ? AND name = (SELECT id FROM history_names WHERE camera = ?)"
        " GROUP BY step ORDER BY step"
    )


def counting(level: Level) -> str:
    """Return the query of columns that SQL cannot add: (begin, end, camera) to (at, ...) rows."""
    return (
        f"SELECT at, {', '.join(COUNTS)}, latencies FROM {level.table}"
        " WHERE at >= ? AND at < ? AND name = (SELECT id FROM history_names WHERE camera = ?)"
    )


def added_counts(one: str, other: str) -> str:
    """Return two JSON objects of counts as one; called by SQLite."""
    counts = Counter(orjson.loads(one))
    counts.update(orjson.loads(other))
    return orjson.dumps(counts).decode()


def added_classes(one: str, other: str) -> str:
    """Return two JSON objects of `Period.classes` as one that is bounded; called by SQLite."""
    counts = Counter(orjson.loads(one))
    counts.update(orjson.loads(other))
    return orjson.dumps(most_seen(counts)).decode()


def added_latencies(one: bytes, other: bytes) -> bytes:
    """Return packed counts of both; called by SQLite."""
    return added(one, other, CODES)
