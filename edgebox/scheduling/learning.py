"""Owns what is known of execution times: per variant and application, and per executor.

Pure. The profile is the prior; samples of requests that ran alone replace it, and served batches
calibrate how long batches take (Orloj, section 3.2, the long-term feedback loop). Samples are
amounts of work relative to the profile's, so what was learnt of a variant is void when one of its
profiles is replaced by another.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from edgebox.domain.models import ExecutorId, LatencyProfile, VariantName
from edgebox.scheduling.batch_times import BatchTimes
from edgebox.scheduling.distributions import EmpiricalDistribution
from edgebox.scheduling.events import Infer
from edgebox.scheduling.latencies import Latencies
from edgebox.scheduling.policy import Known
from edgebox.scheduling.work import WorkTable, tabulate

REFRESH_SAMPLES = 64
"""A table is built anew after so many samples."""


@dataclass(slots=True)
class _Applications:
    """The applications of one variant."""

    prior: list[float]
    index: dict[str, int] = field(default_factory=dict)
    distributions: list[EmpiricalDistribution] = field(default_factory=list)
    table: WorkTable | None = None
    news: int = 0


@dataclass(frozen=True, slots=True)
class _Timed:
    profile: LatencyProfile
    times: BatchTimes


class Learning:
    """Distributions of work per variant and application, batch times per variant and executor."""

    def __init__(self, latencies: Latencies) -> None:
        self._latencies = latencies
        self._applications: dict[VariantName, _Applications] = {}
        self._timed: dict[tuple[ExecutorId, VariantName], _Timed] = {}
        self._running: dict[ExecutorId, list[str]] = {}

    def times(self, executor: ExecutorId, variant: VariantName) -> BatchTimes | None:
        """Return the batch times of a variant on an executor; None where it is not loaded."""
        profile = self._latencies.profiles(executor).get(variant)
        if profile is None:
            return None
        timed = self._timed.get((executor, variant))
        if timed is None or timed.profile is not profile:
            replaced = timed is not None and timed.profile != profile
            timed = self._timed[executor, variant] = _Timed(profile, BatchTimes(profile))
            if replaced:
                self._forget(variant, timed.times.prior_work)
        return timed.times

    def _forget(self, variant: VariantName, prior: list[float]) -> None:
        """Begin anew with a variant; its applications keep their indices."""
        of = self._applications.get(variant)
        if of is not None:
            of.prior = prior
            of.table = None
            for distribution in of.distributions:
                distribution.reset(prior)

    def app(self, variant: VariantName, name: str) -> int:
        """Return an application's index among those of a variant, which grows as they come."""
        of = self._of(variant)
        at = of.index.get(name)
        if at is None:
            at = of.index[name] = len(of.index)
            horizon_ns = self._latencies.parameters.sample_horizon_ns
            of.distributions.append(EmpiricalDistribution(of.prior, horizon_ns=horizon_ns))
            of.table = None
        return at

    def table(self, variant: VariantName) -> WorkTable:
        """Return how much work each application of a variant is, as lately learnt."""
        of = self._of(variant)
        if of.table is None or of.news >= REFRESH_SAMPLES:
            of.table = tabulate(of.distributions)
            of.news = 0
        return of.table

    def distributions(self, variant: VariantName) -> Sequence[EmpiricalDistribution]:
        """Return the relative work of each application (1: the profile's median), by index."""
        return self._of(variant).distributions

    def quickest_ns(self, variant: VariantName, app: int) -> float:
        """Return the least time a request can take on any executor; 0 where there is none."""
        executors = self._latencies.executors(variant)
        if not executors:
            return 0.0
        times = [self.times(executor, variant) for executor in executors]
        table = self.table(variant)
        least = float(table.least[table.rank[app]])
        return min(of.batch_ns(0, least) for of in times if of is not None)

    def known(self, executor: ExecutorId, variant: VariantName, name: str) -> Known | None:
        """Return what is known of an application; None where the variant is not loaded."""
        times = self.times(executor, variant)
        if times is None:
            return None
        distribution = self._of(variant).distributions[self.app(variant, name)]
        work = distribution.quantile(self._latencies.parameters.high_quantile)
        return Known(distribution.samples, distribution.newest_ns, times.batch_ns(0, work))

    def sampled(
        self, executor: ExecutorId, variant: VariantName, name: str, took_ns: float, now_ns: int
    ) -> None:
        """Learn from a request that ran alone on a box with nothing else to do."""
        times = self.times(executor, variant)
        if times is not None:
            self._learn(variant, name, times.work_when_idle(took_ns), now_ns)

    def _learn(self, variant: VariantName, name: str, work: float, now_ns: int) -> None:
        of = self._of(variant)
        distribution = of.distributions[self.app(variant, name)]
        turns = distribution.turns
        if distribution.add(work, now_ns):
            of.news += 1
        if distribution.turns != turns:
            of.table = None

    def started(self, executor: ExecutorId, apps: Sequence[str]) -> None:
        """Remember whose requests an executor runs."""
        self._running[executor] = list(apps)

    def completed(self, batch: Infer, took_ns: int, now_ns: int) -> None:
        """Learn from a batch; one of a single request is a sample as well."""
        apps = self._running.pop(batch.executor, [])
        times = self.times(batch.executor, batch.variant)
        if times is None or batch.batch_size not in times.sizes or len(apps) == 0:
            return
        table = self.table(batch.variant)
        ranks = table.rank[[self.app(batch.variant, name) for name in apps]]
        cdf = np.exp(table.log_cdf[ranks].sum(axis=0))
        longest = table.greatest - float(cdf @ table.weights)
        times.served(batch.batch_size, longest, took_ns, now_ns)
        if len(apps) == batch.batch_size == 1:
            self._learn(batch.variant, apps[0], times.work_of(took_ns), now_ns)

    def _of(self, variant: VariantName) -> _Applications:
        of = self._applications.get(variant)
        if of is None:
            executors = self._latencies.executors(variant)
            times = self.times(executors[0], variant) if executors else None
            if times is None:
                return _Applications([1.0])
            of = self._applications[variant] = _Applications(times.prior_work)
        return of
