"""Limits repeated notices in log and database: the first few of a period, then a count.

Without a clock: its owner ends each period.
"""

import logging
from collections import Counter

NOTICES_PER_MINUTE = 20
"""Notices of one camera, or of one address before its hello."""
_FAILED_BATCHES_PER_MINUTE = 10
"""Failed batches logged for a variant on an executor."""


class RepeatLimiter:
    """Counts the notices of each source within a period."""

    def __init__(self, passed_max: int) -> None:
        """Let the first `passed_max` of each source and period through."""
        self._passed_max = passed_max
        self._came: Counter[str] = Counter()

    def passes(self, source: str) -> bool:
        """Count one more; return whether to publish it."""
        self._came[source] += 1
        return self._came[source] <= self._passed_max

    def end_period(self) -> dict[str, int]:
        """Return how many of each source were held back, if any, and begin a period."""
        came, self._came = self._came, Counter()
        return {
            source: count - self._passed_max
            for source, count in came.items()
            if count > self._passed_max
        }


class FailedBatches:
    """Logs batches that fail, the first few of each minute."""

    def __init__(
        self, log: logging.Logger, level: int = logging.ERROR, what: str = "failed"
    ) -> None:
        """Write into this log, at a level, what has happened to them."""
        self._log, self._level, self._what = log, level, what
        self._repeats = RepeatLimiter(_FAILED_BATCHES_PER_MINUTE)

    def tell(self, source: str, why: BaseException | str) -> None:
        """Log why a batch failed; the source is a variant on an executor."""
        if self._repeats.passes(source):
            self._log.log(self._level, "batch of %s %s: %s", source, self._what, why)

    def end_minute(self) -> None:
        """Log how many failures were held back in this minute."""
        for source, count in self._repeats.end_period().items():
            self._log.log(
                self._level, "%d more batches of %s %s within a minute", count, source, self._what
            )
