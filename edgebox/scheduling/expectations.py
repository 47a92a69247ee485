"""Decides the expected time of an application's requests, for every part of the box alike.

Admission, planning, the page and the API use these answers. The first of these that applies is
used: what was learned of the application on the variant; if it was never (or hardly, or not
recently) seen there, what was learned of it on the variant of the same family where it was seen
last, because what makes a picture slow at one size makes it slow at another; the profile. What was
measured on single requests at another size outweighs what was inferred from batches of several at
this one: of few batches, the inference keeps the tail of the profile. The times are those of the
profile as corrected for drift; the documentation of each method says whether the slowdown is
included. Pure.

Differs from Orloj (section 3.2), where distributions are used for batching only: Orloj has no
planner and admits everything.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from edgebox.domain.model_family import QUANTILES, ExecutorId, LatencyProfile, Variant, VariantName
from edgebox.scheduling.batch_times import BatchTimes
from edgebox.scheduling.distributions import SAMPLES_MIN, EmpiricalDistribution, Floats
from edgebox.scheduling.expected_latencies import Latencies, Row
from edgebox.scheduling.learning import Learning

PROFILE_CHANGE_MIN = 0.1
"""A learned profile is replaced only if a new one differs by this share: plans do not follow noise.

Ablation, changes of variant among 8 cameras of a machine that is 1.5 times slow from the start or
from second 10 on, four seeds each, 25 s: at 0 they are 6 and 15, at .05 1 and 25, at .1 2 and 14,
at .2 0 and 16, at .6 1 and 12; without learned profiles 1 and 12.
"""

STALE_NS = 60_000_000_000
"""What was learned on a variant is ignored if the application has been seen on others for this long
since. Otherwise one bad minute would exclude it from a variant for ever."""

_KEPT_MAX = 4096
"""Number of cached answers; clients choose the names of applications, which are unbounded."""

_COMPARED = (QUANTILES.index(0.5), QUANTILES.index(0.9))

Profiles = Mapping[ExecutorId, Mapping[VariantName, LatencyProfile]]


@dataclass(frozen=True, slots=True)
class SingleRequestTimes:
    """The times of a request in a batch of its own on the fastest executor, slowdown included."""

    low_ns: float
    """The low quantile: with less time left the request has expired."""
    usual_ns: float
    """The median. A variant is preferred to a smaller one only if this much time is left. For an
    application with few samples it is the low quantile of the samples, if that is less, so that the
    application is admitted until more is known."""
    high_ns: float


_Version = tuple[int, int]
"""The versions of the expected times and of the learned ones."""


class _Answers:
    """Cached answers."""

    def __init__(self) -> None:
        self.single_requests: dict[tuple[VariantName, str], SingleRequestTimes | None] = {}
        self.estimated: _Version = -1, -1
        """When `single_requests` were estimated."""
        self.learned: dict[
            tuple[ExecutorId, VariantName, str], tuple[_Version, LatencyProfile, LatencyProfile]
        ] = {}
        """For each key: when it was estimated, the executor's profile, and the learned one."""


class Expectations:
    """Expected times by application, cached until something new is learned.

    An answer depends on when it is estimated, since a little is learned all the time. So those for
    the page and the API are cached apart from those for decisions. Otherwise who asks would change
    decisions, and a journal could not repeat them.
    """

    def __init__(self, latencies: Latencies, learning: Learning) -> None:
        self._latencies = latencies
        self._learning = learning
        self._siblings: dict[VariantName, Sequence[VariantName]] = {}
        self.deciding = False
        """Whether it is the Scheduler that asks, for a decision."""
        self._for_decisions, self._for_others = _Answers(), _Answers()

    def offer(self, variants: Iterable[Variant]) -> None:
        """Set the available variants."""
        families: dict[str, list[VariantName]] = {}
        for variant in variants:
            families.setdefault(variant.family, []).append(variant.name)
        self._siblings = {name: names for names in families.values() for name in names}
        self._for_decisions, self._for_others = _Answers(), _Answers()

    def single_request(self, variant: VariantName, app: str) -> SingleRequestTimes | None:
        """Return a request's time in a batch of its own; None if no executor holds the variant."""
        key = variant, app
        version = self._latencies.version, self._learning.generation
        answers = self._for_decisions
        if answers.estimated == version and key in answers.single_requests:
            return answers.single_requests[key]
        if not self.deciding:
            answers = self._for_others
            if answers.estimated == version and key in answers.single_requests:
                return answers.single_requests[key]
        if answers.estimated != version or len(answers.single_requests) >= _KEPT_MAX:
            answers.single_requests.clear()
            answers.estimated = version
        known = answers.single_requests[key] = self._estimate_single_request(variant, app)
        return known

    def profile(self, executor: ExecutorId, variant: VariantName, app: str) -> LatencyProfile:
        """Return the times of an application's batches as a profile.

        It is the executor's profile itself if nothing else was learned, or nearly the same.

        Raises:
            KeyError: the executor has no such variant.
        """
        base = self._latencies.known(executor)[variant]
        key = executor, variant, app
        version = self._version
        answers = self._for_decisions
        known = answers.learned.get(key)
        if known is not None and known[0] == version and known[1] is base:
            return known[2]
        before = base if known is None or known[1] != base or known[2] is known[1] else known[2]
        if not self.deciding:
            answers = self._for_others
            known = answers.learned.get(key)
            if known is not None and known[0] == version and known[1] is base:
                return known[2]
        learned = self._estimate_profile(base, variant, app)
        if not _differs(learned, before):
            learned = before
        if len(answers.learned) >= _KEPT_MAX:
            answers.learned.clear()
        answers.learned[key] = version, base, learned
        return learned

    def high_ns(
        self, executor: ExecutorId, variant: VariantName, app: str, size: int, others: float
    ) -> int:
        """Return the high quantile of the time of an application's batch.

        It includes the executor's slowdown and the interference of `others` running executors.
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
        *,
        threads: int = 0,
    ) -> int | None:
        """Return the `q` quantile of the time of a batch, in the executors' present state.

        It includes the slowdown and the interference of running executors. If any member's
        application was measured on the variant, the distribution of the longest member is used;
        otherwise the slowest application counts.

        Args:
            executor: where it runs.
            variant: what it runs.
            apps: the application of each member, at least one.
            batch_size: a profiled size.
            q: the quantile; 0.5: the median.
            threads: CPU threads that it computes with; 0: all.

        Returns:
            ns; None if the executor does not exist or has not loaded the variant.
        """
        if executor not in self._latencies or variant not in self._latencies.profiles(executor):
            return None
        own: float | None = None
        distinct = frozenset(apps)
        if any(self._learning.is_known(variant, app) for app in distinct):
            own = self._learning.quantile_ns(executor, variant, apps, batch_size, q)
        if own is None:
            each = (self.profile(executor, variant, app) for app in distinct)
            own = max(profile.quantile_ns(batch_size, q) for profile in each)
        slower = self._latencies.slowdown(executor) * self._latencies.slowed(executor, variant)
        slower *= self._latencies.profiles(executor)[variant].core_factor(batch_size, threads)
        return round(own * slower)

    def usual_batch_ns(
        self,
        executor: ExecutorId,
        variant: VariantName,
        apps: Sequence[str],
        batch_size: int,
        threads: int = 0,
    ) -> int | None:
        """Return the median time of a batch; see `batch_ns`."""
        return self.batch_ns(executor, variant, apps, batch_size, 0.5, threads=threads)

    def single_request_percentiles(
        self, executor: ExecutorId, variant: VariantName, app: str
    ) -> tuple[int, int] | None:
        """Return P50 and P99 of a batch of one request on an executor, slowdown included.

        None: the executor has stopped, or does not run the variant.
        """
        if executor not in self._latencies or variant not in self._latencies.known(executor):
            return None
        profile, slowdown = self.profile(executor, variant, app), self._latencies.slowdown(executor)
        p50, p99 = (profile.quantile_ns(profile.batch_sizes[0], q) for q in (0.5, 0.99))
        return round(p50 * slowdown), round(p99 * slowdown)

    def worst_ns(self, variant: VariantName, app: str, requests: int, q: float) -> int | None:
        """Return the summed quantiles of the fewest batches of so many requests of an application.

        It is that of the executor where this is least, its slowdown included. None: no executor
        can run the variant now.
        """
        worst_ns = (
            round(
                self.profile(executor, variant, app).in_batches_ns(requests, q)
                * self._latencies.slowdown(executor)
            )
            for executor in self._latencies.executors(variant)
        )
        return min(worst_ns, default=None)

    def learned(self, apps: Iterable[str], executors: Iterable[ExecutorId]) -> dict[str, Profiles]:
        """Return the learned profiles of the applications that differ from the executors' profiles.

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

    def _known_work(self, variant: VariantName, app: str) -> EmpiricalDistribution | None:
        """Return an application's work on this variant, or where it is best known; None: unknown.

        Work is relative to a variant's profile, so it applies to other variants of the family.
        """
        others = (self._learning.distribution(s, app) for s in self._siblings.get(variant, ()))
        known = [other for other in others if other is not None and other.known]
        own = self._learning.distribution(variant, app)
        if own is None or not own.known:
            return max(known, key=_seen_ns, default=None)
        # Old measurements may no longer hold, and a variant that is avoided gets no new ones.
        newest_ns = max(own.seen_ns, *map(_seen_ns, known), 0)
        recent = [other for other in known if other.seen_ns >= newest_ns - STALE_NS]
        if own.seen_ns < newest_ns - STALE_NS:
            return max(recent, key=_seen_ns)
        if own.samples >= SAMPLES_MIN:
            return own
        measured = (other for other in recent if other.samples >= SAMPLES_MIN)
        return max(measured, key=_seen_ns, default=own)

    def _estimate_single_request(self, variant: VariantName, app: str) -> SingleRequestTimes | None:
        row = self._latencies.best(variant)
        if row is None:
            return None
        parameters = self._latencies.parameters
        work = self._known_work(variant, app)
        if work is not None:
            quantiles = (parameters.low_quantile, 0.5, parameters.high_quantile)
            usual = work.signed_quantile(0.5)
            low, median, high = (
                self._quickest_ns(variant, work.signed_quantile(q), usual) for q in quantiles
            )
            return SingleRequestTimes(low, median, high)
        return self._estimate_unmeasured(row, variant, app)

    def _estimate_unmeasured(self, row: Row, variant: VariantName, app: str) -> SingleRequestTimes:
        low, median, high = float(row.low_ns[0]), float(row.median_ns[0]), float(row.high_ns[0])
        seen = self._learning.distribution(variant, app)
        if seen is not None and seen.samples:
            q = self._latencies.parameters.low_quantile
            low = min(low, self._quickest_ns(variant, seen.signed_quantile(q)))
            median = min(median, low)
        return SingleRequestTimes(low, median, high)

    def _counted_twice(self, executor: ExecutorId, times: BatchTimes, usual: float) -> float:
        """Return the part of an executor's slowdown that learned times already contain.

        While an executor is slow, the requests it runs look long. The two can be told apart only
        later (`attribution`); until then only the larger one counts.
        """
        size = times.sizes[0]
        longer = times.profiled_ns(size, usual) / max(1.0, times.profiled_ns(size, 1.0))
        return min(self._latencies.slowdown(executor), max(1.0, longer))

    def _quickest_ns(self, variant: VariantName, work: float, usual: float = 1.0) -> float:
        """Return the time of this much work in a batch of its own on the fastest executor."""
        return min(
            times.profiled_ns(times.sizes[0], work)
            * self._latencies.slowdown(executor)
            / self._counted_twice(executor, times, usual)
            for executor in self._latencies.executors(variant)
            if (times := self._learning.times(executor, variant)) is not None
        )

    def _estimate_profile(
        self, base: LatencyProfile, variant: VariantName, app: str
    ) -> LatencyProfile:
        """Return the times of batches, also for a variant that is not in memory."""
        work = self._known_work(variant, app)
        times = self._learning.known_times(base.executor, variant)
        if work is None or times is None:
            return base
        learned_ns = times.profiled_each_ns(work.signed_quantiles(_of_longest(times.sizes)))
        profiled_ns = np.array([base.quantiles_ns[size] for size in times.sizes])
        # Separately at each quantile: a machine that is slow at times is slow only in the tail.
        longer = np.maximum(1.0, learned_ns / np.maximum(1, profiled_ns))
        rows = np.rint(learned_ns / np.minimum(self._latencies.slowdown(base.executor), longer))
        quantiles = (tuple(row) for row in rows.astype(np.int64).tolist())
        return replace(base, quantiles_ns=dict(zip(times.sizes, quantiles, strict=True)))


def _seen_ns(distribution: EmpiricalDistribution) -> int:
    return distribution.seen_ns


@lru_cache(maxsize=64)
def _of_longest(sizes: tuple[int, ...]) -> Floats:
    """Return the quantile of one request that equals each of `QUANTILES` of the longest."""
    shares: Floats = np.array(QUANTILES) ** (1 / np.array(sizes))[:, None]
    return shares


def _differs(one: LatencyProfile, other: LatencyProfile) -> bool:
    """Say whether two profiles differ enough, at any batch size, to replace one by the other."""
    return one is not other and any(
        abs(one.quantiles_ns[size][at] - times[at]) > PROFILE_CHANGE_MIN * times[at]
        for size, times in other.quantiles_ns.items()
        for at in _COMPARED
    )
