"""Counts latencies in buckets of 2 %, so that those of several cameras can be added up.

Bucket k holds what is nearest to 1.02^k ms; a quantile read from it is right to 1 %. Pure.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping

_LOG_STEP = math.log(1.02)
_LEAST_MS = 0.01

QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}


def bucket(latency_ms: float) -> str:
    """Return the bucket of a latency, as it stands in JSON."""
    return str(round(math.log(max(latency_ms, _LEAST_MS)) / _LOG_STEP))


def added(histograms: Iterable[Mapping[str, int]]) -> Counter[str]:
    """Return the counts of some histograms together."""
    total: Counter[str] = Counter()
    for histogram in histograms:
        total.update(histogram)
    return total


def quantiles_ms(histogram: Mapping[str, int]) -> dict[str, float]:
    """Return the nearest-rank `QUANTILES` of a histogram; empty when it counts nothing."""
    last = sum(histogram.values()) - 1
    if last < 0:
        return {}
    ordered = sorted((int(key), count) for key, count in histogram.items())
    out = {}
    for name, q in QUANTILES.items():
        rank = round(q * last)
        for key, count in ordered:
            rank -= count
            if rank < 0:
                out[name] = round(math.exp(key * _LOG_STEP), 2)
                break
    return out
