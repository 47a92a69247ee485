"""Stores learned execution times, so that they survive restarts.

Work belongs to a model's fingerprint, whatever executor it was learned on; drift belongs to an
executor's fingerprint. Both have an age by the wall clock; the reader decides what it means.
Cameras choose the names of applications, so the oldest rows are deleted when there are too many.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from edgebox.domain.learned import FACTOR_LIMITS, LearnedDrift, LearnedWork
from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.storage.damage import name_of, sound
from edgebox.storage.writer import Writer

WORK_ROWS_MAX = 2_000
"""Largest number of rows; each has half a kilobyte."""
DRIFT_ROWS_MAX = 2_000
VALUES_MAX = 1_000
_NS_PER_MS = 1_000_000
_AGE_MAX_MS = 10 * 366 * 86_400_000
"""Largest age; what was learned becomes worthless much earlier."""
WORK_MAX = 1e3
"""Largest valid value: a batch that took longer would have been abandoned."""

_FEWER = """DELETE FROM {0} WHERE learned_at_ms <
    (SELECT learned_at_ms FROM {0} ORDER BY learned_at_ms DESC LIMIT 1 OFFSET ?)"""


class LearnedRows:
    """The two tables. As in `Writer`, recording never waits and never raises."""

    def __init__(self, writer: Writer, now_ms: Callable[[], int]) -> None:
        self._writer = writer
        self._now_ms = now_ms

    def record_work(self, fingerprint: str, learned: LearnedWork) -> None:
        """Replace an application's row on a variant."""
        self._writer.record(
            "INSERT OR REPLACE INTO learned_work (fingerprint, variant, app, work, learned_at_ms)"
            " VALUES (?, ?, ?, ?, ?)",
            fingerprint, learned.variant, learned.app,
            np.minimum(learned.work, WORK_MAX).astype("<f4").tobytes(),
            self._at_ms(learned.age_ns),
        )  # fmt: skip

    def record_drift(self, fingerprint: str, learned: LearnedDrift) -> None:
        """Replace a variant's row on an executor; a factor of 1 needs no row."""
        key = (fingerprint, learned.executor, learned.variant)
        if learned.factor == 1:
            self._writer.record(
                "DELETE FROM learned_drift"
                " WHERE fingerprint = ? AND executor = ? AND variant = ?", *key,
            )  # fmt: skip
            return
        self._writer.record(
            "INSERT OR REPLACE INTO learned_drift"
            " (fingerprint, executor, variant, factor, learned_at_ms) VALUES (?, ?, ?, ?, ?)",
            *key, learned.factor, self._at_ms(learned.age_ns),
        )  # fmt: skip

    def forget_surplus(self) -> None:
        """Delete the oldest rows above the limit."""
        self._writer.record(_FEWER.format("learned_work"), WORK_ROWS_MAX - 1)
        self._writer.record(_FEWER.format("learned_drift"), DRIFT_ROWS_MAX - 1)

    async def load_work(self, variants: Mapping[VariantName, str]) -> list[LearnedWork]:
        """Return the rows of some variants, each with the fingerprint of its model.

        Raises:
            StorageError: the database cannot be read.
        """
        (rows,) = await self._writer.read(
            ("SELECT fingerprint, variant, app, work, learned_at_ms FROM learned_work", ())
        )
        ours = [row for row in rows if variants.get(row[1]) == row[0]]
        return sound(ours, self._work_of, "learned execution times", 2)

    async def load_drifts(
        self, executors: Mapping[tuple[ExecutorId, VariantName], str]
    ) -> list[LearnedDrift]:
        """Return the rows of variants on executors, each with that executor's fingerprint.

        Raises:
            StorageError: the database cannot be read.
        """
        (rows,) = await self._writer.read(
            ("SELECT fingerprint, executor, variant, factor, learned_at_ms FROM learned_drift", ())
        )
        ours = [row for row in rows if executors.get((row[1], row[2])) == row[0]]
        return sound(ours, self._drift_of, "drift factors", 2)

    def _work_of(self, row: Sequence[Any]) -> LearnedWork:
        _, variant, app, blob, at_ms = row
        work = np.frombuffer(blob, "<f4").astype(np.float64)
        if not 1 <= len(work) <= VALUES_MAX or not np.isfinite(work).all():
            raise ValueError(f"{len(work)} values, or one that is no number")
        if not -1 <= work[0] <= work[-1] <= WORK_MAX or (np.diff(work) < 0).any():
            raise ValueError("values out of range or out of order")
        age_ns = self._age_ns(at_ms)
        return LearnedWork(VariantName(variant), name_of(app), tuple(work.tolist()), age_ns)

    def _drift_of(self, row: Sequence[Any]) -> LearnedDrift:
        _, executor, variant, factor, at_ms = row
        low, high = FACTOR_LIMITS
        # The core bounds factors, so a value outside was never written.
        if not low <= factor <= high:
            raise ValueError(f"the factor {factor!r}")
        age_ns = self._age_ns(at_ms)
        return LearnedDrift(ExecutorId(executor), VariantName(variant), float(factor), age_ns)

    def _at_ms(self, age_ns: int) -> int:
        return self._now_ms() - age_ns // _NS_PER_MS

    def _age_ns(self, at_ms: int) -> int:
        """Return an age; 0 for a row from the future, after the clock was set back."""
        return min(max(0, self._now_ms() - int(at_ms)), _AGE_MAX_MS) * _NS_PER_MS
