"""Synthetic history for benchmarks and tests: periods and minutes as a box counts them."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from edgebox.domain.latency_histogram import PARTS
from edgebox.domain.requests import CameraId, DropReason
from edgebox.storage.periods import BOX, Extent, Period, Periods, latency_counts

_MEDIANS_MS = (25.0, 4.0, 9.0, 1.0)
_SPREADS = (0.4, 1.0, 0.15, 0.1)
VARIANTS = ("street-256", "street-320", "street-416")


def latencies_ns(
    rng: np.random.Generator, answers: int
) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Return parts of as many answers, (answers, len(PARTS)); the last is the sum of the others."""
    parts = np.exp(rng.normal(np.log(_MEDIANS_MS), _SPREADS, (answers, len(PARTS) - 1)))
    ms = np.concatenate((parts, parts.sum(axis=1, keepdims=True)), axis=1)
    return (ms * 1e6).astype(np.int64)


def period(rng: np.random.Generator, *, seconds: int = 60, rate_hz: int = 10) -> Period:
    """Return a camera's period at a rate, most frames of which were in time."""
    captured = seconds * rate_hz
    late, *lost = rng.binomial(captured, (0.005, 0.01, 0.01, 0.002)).tolist()
    answered = captured - sum(lost)
    reasons = (DropReason.SENDER, DropReason.QUEUE, DropReason.INFEASIBLE)
    variants = rng.multinomial(answered, (0.6, 0.4, 0.0)).tolist()
    rate_bps = rng.lognormal(np.log(5e6), 0.4, seconds).astype(int)
    size_bytes = 20_000 * (captured - lost[0])
    return Period(
        covered_ms=seconds * 1000,
        connected_ms=seconds * 1000,
        captured=captured,
        accepted=captured - sum(lost),
        on_time=answered - late,
        late=late,
        dropped=Counter({r.value: n for r, n in zip(reasons, lost, strict=True) if n}),
        variants=Counter({v: n for v, n in zip(VARIANTS, variants, strict=True) if n}),
        width_px_sum=256 * variants[0] + 320 * variants[1],
        received_bytes=size_bytes,
        measured=Extent(
            size_bytes * 8, size_bytes * 8 // 5, int(rate_bps.min()) - 9, int(rate_bps.max()) + 9
        ),
        estimated=Extent(int(rate_bps.sum()), seconds, int(rate_bps.min()), int(rate_bps.max())),
        latencies=latency_counts(latencies_ns(rng, answered)),
    )


def minute(pool: Sequence[Period], rng: np.random.Generator, cameras: int) -> Periods:
    """Return a minute of some cameras and the box, drawn from a pool."""
    drawn = rng.choice(len(pool), cameras)
    found: dict[CameraId, Period] = {BOX: Period(covered_ms=60_000)}
    for number, at in enumerate(drawn.tolist()):
        found[CameraId(f"gate-{number}")] = pool[at]
        found[BOX].add(pool[at], same_camera=False)
    found[BOX].covered_ms = 60_000
    return found
