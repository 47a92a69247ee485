"""Decides what an application's requests are expected to take: one answer for all who ask.

Admission, planning, the page and the API ask here. What was learned of the application on the
variant counts; of one that was never (or hardly, or not lately) seen there, what was learned of it
on the variant of the same family where it was seen last, because what makes a picture slow at one
size makes it slow at another; of one that was seen nowhere, the profile. Times are those of the
profile as corrected for drift; `slowdown` comes on top where it says so. Pure.

Differs from Orloj (section 3.2), where distributions decide batches only: there nobody plans, and
all that arrives is admitted.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from edgebox.domain.model_family import QUANTILES, ExecutorId, LatencyProfile, Variant, VariantName
from edgebox.scheduling.batch_times import BatchTimes
from edgebox.scheduling.distributions import EmpiricalDistribution, Floats
from edgebox.scheduling.expected_latencies import Latencies, Row
from edgebox.scheduling.learning import Learning

NEWS = 0.1
"""A learned profile stays until a new one differs by this share: plans must not follow noise.

Ablation, changes of variant among 8 cameras of a machine that is 1.5 times slow from the start or
from second 10 on, four seeds each, 25 s: at 0 they are 6 and 15, at .05 1 and 25, at .1 2 and 14,
at .2 0 and 16, at .6 1 and 12; without learned profiles 1 and 12."""

STALE_NS = 60_000_000_000
"""What was learned on a variant counts no more when the application has been seen on others for so
long since: otherwise a bad minute would bar it from a variant for ever."""

_KEPT_MAX = 4096
"""Answers that are kept: names of applications come from outside, without end."""

_COMPARED = (QUANTILES.index(0.5), QUANTILES.index(0.9))

Profiles = Mapping[ExecutorId, Mapping[VariantName, LatencyProfile]]


@dataclass(frozen=True, slots=True)
class Alone:
    """What one request takes alone, on the executor that is quickest with it, slowdown included."""

    low_ns: float
    """It hardly ever takes less: with less time left a request is given up."""
    usual_ns: float
    """What must be left for a variant to be preferred to a smaller one: the median. Of an
    application that is hardly known the low quantile of what was seen, if that is less: it gets the
    benefit of the doubt."""
    high_ns: float


_Version = tuple[int, int]
"""Of the expected times and of what was learned."""


class Expectations:
    """Answers by application, kept until something is learned."""

    def __init__(self, latencies: Latencies, learning: Learning) -> None:
        self._latencies = latencies
        self._learning = learning
        self._siblings: dict[VariantName, Sequence[VariantName]] = {}
        self._alone: dict[tuple[VariantName, str], tuple[_Version, Alone | None]] = {}
        self._learned: dict[
            tuple[ExecutorId, VariantName, str], tuple[_Version, LatencyProfile, LatencyProfile]
        ] = {}

    def offer(self, variants: Iterable[Variant]) -> None:
        """Take in which variants there are."""
        families: dict[str, list[VariantName]] = {}
        for variant in variants:
            families.setdefault(variant.family, []).append(variant.name)
        self._siblings = {name: names for names in families.values() for name in names}

    def alone(self, variant: VariantName, app: str) -> Alone | None:
        """Return what a request takes alone; None where the variant is not in memory."""
        version = self._version
        known = self._alone.get((variant, app))
        if known is None or known[0] != version:
            if len(self._alone) >= _KEPT_MAX:
                self._alone.clear()
            known = self._alone[variant, app] = version, self._take_alone(variant, app)
        return known[1]

    def profile(self, executor: ExecutorId, variant: VariantName, app: str) -> LatencyProfile:
        """Return what batches of an application take, in the form of a profile.

        The profile itself, where nothing else was learned or that is nearly the same.

        Raises:
            KeyError: the executor has no such variant.
        """
        base = self._latencies.known(executor)[variant]
        key = executor, variant, app
        version = self._version
        known = self._learned.get(key)
        if known is not None and known[0] == version and known[1] is base:
            return known[2]
        learned = self._take_profile(base, variant, app)
        before = base if known is None or known[1] is not base else known[2]
        if not _differs(learned, before):
            learned = before
        if len(self._learned) >= _KEPT_MAX:
            self._learned.clear()
        self._learned[key] = version, base, learned
        return learned

    def high_ns(
        self, executor: ExecutorId, variant: VariantName, app: str, size: int, others: float
    ) -> int:
        """Return what a batch of an application does not exceed at the high quantile.

        The executor's slowdown is in it, and what `others`, so many that run beside it, cost.
        """
        q = self._latencies.parameters.high_quantile
        learned = self.profile(executor, variant, app)
        factor = self._latencies.slowdown(executor) * learned.slowed(others)
        return round(learned.quantile_ns(size, q) * factor)

    def batch_ns(
        self,
        executor: ExecutorId,
        variant: VariantName,
        apps: Sequence[str],
        batch_size: int,
        q: float,
    ) -> int | None:
        """Return what a batch does not exceed with probability `q`, as the executors are now.

        Its slowdown is in it, and what those that run beside it cost. By the longest of its members
        where any of their applications is known on the variant; else by the slowest of them.

        Args:
            executor: where.
            variant: what.
            apps: the application of each member, at least one.
            batch_size: a profiled size.
            q: 0.5: what it usually takes.

        Returns:
            ns; None where the executor is not there or has not loaded the variant.
        """
        if executor not in self._latencies or variant not in self._latencies.profiles(executor):
            return None
        own: float | None = None
        if any(self._learning.is_known(variant, app) for app in apps):
            own = self._learning.quantile_ns(executor, variant, apps, batch_size, q)
        if own is None:
            each = (self.profile(executor, variant, app) for app in frozenset(apps))
            own = max(profile.quantile_ns(batch_size, q) for profile in each)
        slower = self._latencies.slowdown(executor) * self._latencies.slowed(executor, variant)
        return round(own * slower)

    def usual_batch_ns(
        self, executor: ExecutorId, variant: VariantName, apps: Sequence[str], batch_size: int
    ) -> int | None:
        """Return the median of what a batch takes; the rest as `batch_ns`."""
        return self.batch_ns(executor, variant, apps, batch_size, 0.5)

    def alone_on(self, executor: ExecutorId, variant: VariantName, app: str) -> tuple[int, int]:
        """Return P50 and P99 of one request alone on an executor, slowdown included."""
        profile, slowdown = self.profile(executor, variant, app), self._latencies.slowdown(executor)
        p50, p99 = (profile.quantile_ns(profile.batch_sizes[0], q) for q in (0.5, 0.99))
        return round(p50 * slowdown), round(p99 * slowdown)

    def learned(self, apps: Iterable[str], executors: Iterable[ExecutorId]) -> dict[str, Profiles]:
        """Return the profiles of those applications that do not take what the profiles say.

        About 30 us of CPU time for each that has changed: 4 ms for 16 applications on 8 variants
        (`python -m benchmarks.learning_cost`).
        """
        executors = list(executors)
        found: dict[str, Profiles] = {}
        for app in sorted(set(apps)):
            of: dict[ExecutorId, Mapping[VariantName, LatencyProfile]] = {}
            for executor in executors:
                known = self._latencies.known(executor)
                own = {
                    variant: profile
                    for variant, base in known.items()
                    if (profile := self.profile(executor, variant, app)) is not base
                }
                if own:
                    of[executor] = own
            if of:
                found[app] = of
        return found

    @property
    def _version(self) -> _Version:
        return self._latencies.version, self._learning.generation

    def _believed(self, variant: VariantName, app: str) -> EmpiricalDistribution | None:
        """Return the application's work on this variant, or where it is known best; None: unknown.

        Work is relative to a variant's profile, so it may be carried over.
        """
        others = (self._learning.distribution(s, app) for s in self._siblings.get(variant, ()))
        known = [other for other in others if other is not None and other.known]
        own = self._learning.distribution(variant, app)
        if own is not None and own.known:
            # What held once may be over, and is never seen again on a variant that is given up.
            news = max((other.seen_ns for other in known), default=0)
            if own.seen_ns >= news - STALE_NS:
                return own
        return max(known, key=lambda other: other.seen_ns, default=None)

    def _take_alone(self, variant: VariantName, app: str) -> Alone | None:
        row = self._latencies.best(variant)
        if row is None:
            return None
        parameters = self._latencies.parameters
        work = self._believed(variant, app)
        if work is not None:
            quantiles = (parameters.low_quantile, 0.5, parameters.high_quantile)
            usual = work.signed_quantile(0.5)
            low, median, high = (
                self._quickest_ns(variant, work.signed_quantile(q), usual) for q in quantiles
            )
            return Alone(low, median, high)
        return self._doubted(row, variant, app)

    def _doubted(self, row: Row, variant: VariantName, app: str) -> Alone:
        low, median, high = float(row.low_ns[0]), float(row.median_ns[0]), float(row.high_ns[0])
        seen = self._learning.distribution(variant, app)
        if seen is not None and seen.samples:
            q = self._latencies.parameters.low_quantile
            low = min(low, self._quickest_ns(variant, seen.signed_quantile(q)))
            median = min(median, low)
        return Alone(low, median, high)

    def _counted_twice(self, executor: ExecutorId, times: BatchTimes, usual: float) -> float:
        """Return the part of an executor's slowdown that learned times already have in them.

        While an executor is slow, what runs on it looks long. Both can only be told apart later
        (`attribution`); until then one of them counts, the larger.
        """
        size = times.sizes[0]
        longer = times.profiled_ns(size, usual) / max(1.0, times.profiled_ns(size, 1.0))
        return min(self._latencies.slowdown(executor), max(1.0, longer))

    def _quickest_ns(self, variant: VariantName, work: float, usual: float = 1.0) -> float:
        """Return what so much work takes alone on the executor that is quickest with it."""
        return min(
            times.profiled_ns(times.sizes[0], work)
            * self._latencies.slowdown(executor)
            / self._counted_twice(executor, times, usual)
            for executor in self._latencies.executors(variant)
            if (times := self._learning.times(executor, variant)) is not None
        )

    def _take_profile(self, base: LatencyProfile, variant: VariantName, app: str) -> LatencyProfile:
        """Return what batches take, of a variant that is not in memory too: it may be loaded."""
        work = self._believed(variant, app)
        times = self._learning.known_times(base.executor, variant)
        if work is None or times is None:
            return base
        learned_ns = times.profiled_each_ns(work.signed_quantiles(_of_longest(times.sizes)))
        profiled_ns = np.array([base.quantiles_ns[size] for size in times.sizes])
        # At each quantile apart: a machine that is slow now and then is so in the tail only.
        longer = np.maximum(1.0, learned_ns / np.maximum(1, profiled_ns))
        rows = np.rint(learned_ns / np.minimum(self._latencies.slowdown(base.executor), longer))
        told = (tuple(row) for row in rows.astype(np.int64).tolist())
        return replace(base, quantiles_ns=dict(zip(times.sizes, told, strict=True)))


@lru_cache(maxsize=64)
def _of_longest(sizes: tuple[int, ...]) -> Floats:
    """Return which quantile of one request has each of `QUANTILES` of the longest of so many."""
    shares: Floats = np.array(QUANTILES) ** (1 / np.array(sizes))[:, None]
    return shares


def _differs(one: LatencyProfile, other: LatencyProfile) -> bool:
    """Say whether two profiles differ enough to be worth a change, at any batch size."""
    return one is not other and any(
        abs(one.quantiles_ns[size][at] - times[at]) > NEWS * times[at]
        for size, times in other.quantiles_ns.items()
        for at in _COMPARED
    )
