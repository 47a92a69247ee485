"""Keeps what repeats itself from filling log and database: the first few, then how many more.

No clock: whoever owns it says when a period ends.
"""

import logging
from collections import Counter

NOTICES_PER_MINUTE = 20
"""Of one camera, or of one address that has not said hello."""
_FAILED_BATCHES_PER_MINUTE = 10
"""Of a variant on an executor: each picture that a model cannot take makes one fail."""


class Repeats:
    """Counts what comes from each source within a period."""

    def __init__(self, told_max: int) -> None:
        """Let the first `told_max` of each source and period through."""
        self._told_max = told_max
        self._came: Counter[str] = Counter()

    def passes(self, source: str) -> bool:
        """Count one more; say whether it is to be told."""
        self._came[source] += 1
        return self._came[source] <= self._told_max

    def end_period(self) -> dict[str, int]:
        """Return how many of each source were not told, where there were any; begin anew."""
        came, self._came = self._came, Counter()
        return {
            source: count - self._told_max
            for source, count in came.items()
            if count > self._told_max
        }


class FailedBatches:
    """Logs batches that fail, the first few of each minute."""

    def __init__(self, log: logging.Logger) -> None:
        """Write into this log."""
        self._log = log
        self._repeats = Repeats(_FAILED_BATCHES_PER_MINUTE)

    def tell(self, source: str, error: BaseException) -> None:
        """Say why a batch of a variant on an executor, the source, has failed."""
        if self._repeats.passes(source):
            self._log.error("batch of %s failed: %s", source, error)

    def end_minute(self) -> None:
        """Say how many were not told in the minute that ends."""
        for source, count in self._repeats.end_period().items():
            self._log.error("%d more batches of %s failed within a minute", count, source)
