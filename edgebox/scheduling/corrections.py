"""Owns the profiles as corrected by what batches take: measured times a factor per variant.

Pure. When the batches of a variant have drifted (`drift`), its profile is multiplied by their
ratio. So are those of the executor's other variants: a hot chip slows all of them, and one that is
left as it was would look like a bargain to the planner; but a variant that has run enough meanwhile
gets its own ratio. Near 1 a factor becomes 1: the profile as it was measured holds again.

Why profiles are multiplied and not measured anew: docs/decisions/0010-residency-and-drift.md.
"""

from collections.abc import Mapping, Sequence

from edgebox.domain.models import ExecutorId, LatencyProfile, VariantName
from edgebox.scheduling.calibration import Calibration
from edgebox.scheduling.drift import FAST, SLOW, Drifted, Watch
from edgebox.scheduling.events import TellDrift
from edgebox.scheduling.latencies import Latencies
from edgebox.scheduling.ledger import RunningBatch
from edgebox.scheduling.parameters import SchedulerParameters

FACTOR_LIMITS = (1 / 8, 64.0)
NEAR = 0.1
"""A factor that is within this of 1 is 1."""


class Corrections:
    """What each executor's profiles are multiplied by, and the watches that decide it."""

    def __init__(
        self, parameters: SchedulerParameters, latencies: Latencies, calibration: Calibration
    ) -> None:
        self._slowdown_quantile = parameters.slowdown_quantile
        self._latencies = latencies
        self._calibration = calibration
        self._measured: dict[ExecutorId, dict[VariantName, LatencyProfile]] = {}
        self._watches: dict[ExecutorId, dict[VariantName, Watch]] = {}
        self.factors: dict[ExecutorId, dict[VariantName, float]] = {}
        """By executor and variant; 1 where not named."""

    def executor_started(self, executor: ExecutorId, profiles: Sequence[LatencyProfile]) -> None:
        """Take in an executor and believe its profiles."""
        self._measured[executor] = {p.variant: p for p in profiles if p.quantiles_ns}
        self._watches[executor] = {variant: Watch() for variant in self._measured[executor]}
        self.factors[executor] = {}

    def executor_stopped(self, executor: ExecutorId) -> None:
        """Forget an executor."""
        del self._measured[executor], self._watches[executor], self.factors[executor]

    def batch_completed(self, batch: RunningBatch, took_ns: int, now_ns: int) -> list[TellDrift]:
        """Learn from a batch; where it shows a drift, correct profiles and say so."""
        executor, variant, size = batch.infer.executor, batch.infer.variant, batch.infer.batch_size
        profile = self._latencies.known(executor)[variant]
        expected_ns = profile.quantile_ns(size, self._slowdown_quantile)
        elapsed_ns = now_ns - batch.started_ns
        self._calibration.batch_completed(executor, expected_ns, took_ns, elapsed_ns, now_ns)
        expected_ns = profile.quantile_ns(size, 0.5)
        drifted = self._watches[executor][variant].add(took_ns / max(1, expected_ns), now_ns)
        if drifted is None:
            return []
        before = self.factors[executor]
        after = {
            name: _bounded(
                before.get(name, 1.0)
                * (drifted.ratio if name == variant else _ratio(watch, drifted))
            )
            for name, watch in self._watches[executor].items()
        }
        self._correct(executor, after)
        return [TellDrift(executor, variant, drifted.ratio, after[variant], drifted.since_ns)]

    def _correct(self, executor: ExecutorId, factors: Mapping[VariantName, float]) -> None:
        self.factors[executor] = {name: factor for name, factor in factors.items() if factor != 1}
        measured = self._measured[executor]
        self._latencies.correct(
            executor,
            {
                name: measured[name].scaled(f) if f != 1 else measured[name]
                for name, f in factors.items()
            },
        )
        self._calibration.profiles_corrected(executor)
        for watch in self._watches[executor].values():
            watch.clear()


def _ratio(watch: Watch, of_another: Drifted) -> float:
    """Return what a variant's profile is multiplied by when another one's has drifted."""
    own = watch.since(of_another.seen_ns)
    if own is None:
        return of_another.ratio
    return own if own > SLOW or own < FAST else 1.0


def _bounded(factor: float) -> float:
    low, high = FACTOR_LIMITS
    return 1.0 if abs(factor - 1) <= NEAR else min(max(factor, low), high)
