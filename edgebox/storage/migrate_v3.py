"""Migrates minutes of earlier releases. Pure; SQLite calls it during the migration.

They stored P50 and P99 of each part instead of counts by bucket. The migration creates counts with
these quantiles: all answers at P50, except the slowest percent at P99. Quantiles of one minute stay
right; those of many minutes together are approximate.
"""

from collections import Counter

import numpy as np
import orjson

from edgebox.domain.latency_histogram import HISTORY_BUCKETS, PARTS
from edgebox.storage.packing import packed
from edgebox.storage.periods import CODES


def counts(objects: str) -> str:
    """Return a JSON list of objects with counts as one object with their sums."""
    total: Counter[str] = Counter()
    for one in orjson.loads(objects):
        total.update(one)
    return orjson.dumps(total).decode()


def latencies(minutes: str) -> bytes:
    """Return packed counts of a JSON list of `[answers, {"p50": {"total": ms}, "p99": ...}]`."""
    made_up = np.zeros(CODES, np.int64)
    for answers, quantiles in orjson.loads(minutes):
        if not answers or not quantiles:
            continue
        slowest = answers // 100 + 1
        for name, count in (("p50", answers - slowest), ("p99", slowest)):
            parts = quantiles[name]
            ns = np.array([parts.get(part, 0.0) * 1e6 for part in PARTS]).astype(np.int64)
            codes = HISTORY_BUCKETS.of_ns(ns) + np.arange(len(PARTS)) * HISTORY_BUCKETS.count
            made_up[codes] += count
    return packed(made_up)
