"""Owns the learned execution times: by variant and application, and by executor.

Pure. The profile is the prior; samples of requests that ran in batches of their own replace it, and
served batches calibrate how long batches take (Orloj, section 3.2, the long-term feedback loop).
Samples are amounts of work relative to the profile's, so what was learned of a variant outlives the
loss of an executor and a new measurement of the profile.
"""

from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from edgebox.domain.model_family import ExecutorId, LatencyProfile, VariantName
from edgebox.scheduling.actions import Infer
from edgebox.scheduling.applications import MULTI_BATCH_WINDOW, OTHER_APPS, Applications
from edgebox.scheduling.attribution import ObservedBatch
from edgebox.scheduling.batch_times import BatchTimes
from edgebox.scheduling.censored import AppEvidence, MultiRequestBatch, infer
from edgebox.scheduling.distributions import (
    SAMPLES_ENOUGH,
    SAMPLES_MIN,
    EmpiricalDistribution,
)
from edgebox.scheduling.expected_latencies import Latencies
from edgebox.scheduling.work import Longest, WorkTable, tabulate

REFRESH_SAMPLES = 64
"""A table is rebuilt after this many samples."""

_INFORMATIVE_COUNTS = frozenset((1, 2, 4, 8, SAMPLES_MIN, 32, 64))
"""A table is also rebuilt when an application reaches one of these numbers of samples, because the
first samples change the most."""

READ_SHARE = 8
"""Batches are used for inference when the new ones are one part in this many of all."""

_REFERENCE_QUANTILES = [(at + 0.5) / 64 for at in range(64)]


@dataclass(frozen=True, slots=True)
class Known:
    """The knowledge of an application's requests in batches of their own."""

    samples: int
    """The number of samples kept."""
    newest_ns: int
    """When the last one was taken; 0 if there is none."""
    high_ns: float
    """The high quantile of a request's time; without samples, by the profile."""


@dataclass(frozen=True, slots=True)
class _Timed:
    profile: LatencyProfile
    times: BatchTimes


@dataclass(frozen=True, slots=True)
class Reference:
    """The knowledge of a variant's applications at an instant."""

    table: WorkTable
    """The work table, with frozen distributions."""
    samples: tuple[int, ...]
    """The number of samples of each application."""
    measured: tuple[bool, ...]
    """Whether measurements of each application were used, and not the prior."""
    replaced: int
    """`Learning.replaced` at that instant."""

    def known(self, app: int) -> list[float]:
        """Return equally likely amounts of work of an application; none if it had few samples."""
        if app >= len(self.samples) or self.samples[app] < SAMPLES_MIN:
            return []
        known: list[float] = self.distribution(app).values.tolist()
        return known

    def distribution(self, app: int) -> EmpiricalDistribution:
        """Return the frozen relative work of an application."""
        return self.table.ranked[int(self.table.rank[app])]

    def seen(self, apps: Sequence[int], size: int, took_ns: float) -> ObservedBatch:
        """Return a batch that ran, with the expected work of its longest member by this reference.

        Args:
            apps: index of each member's application.
            size: index of its padded size.
            took_ns: its execution time.
        """
        owner = max(apps, key=self.table.rank_of.__getitem__)
        return ObservedBatch(owner, self.table.longest(apps), size, took_ns)


class Learning:
    """Distributions of work per variant and application, batch times per variant and executor."""

    def __init__(self, latencies: Latencies) -> None:
        self._latencies = latencies
        self._applications: dict[VariantName, Applications] = {}
        self._timed: dict[tuple[ExecutorId, VariantName], _Timed] = {}
        self.generation = 0
        """Incremented when so much was learned that answers may differ."""
        self._samples_since_change = 0
        self._now_ns = 0

    def times(self, executor: ExecutorId, variant: VariantName) -> BatchTimes | None:
        """Return the batch times of a variant on an executor; None if it is not loaded."""
        loaded = variant in self._latencies.profiles(executor)
        return self.known_times(executor, variant) if loaded else None

    def known_times(self, executor: ExecutorId, variant: VariantName) -> BatchTimes | None:
        """Return the batch times of a variant, in memory or not; None if it has no profile."""
        profile = self._latencies.known(executor).get(variant)
        if profile is None:
            return None
        timed = self._timed.get((executor, variant))
        if timed is not None and timed.profile is profile:
            return timed.times
        if timed is not None and timed.profile == profile:
            # The same one, given again: whether by the same object must make no difference.
            timed = self._timed[executor, variant] = _Timed(profile, timed.times)
            return timed.times
        replaced = timed is not None
        timed = self._timed[executor, variant] = _Timed(profile, BatchTimes(profile))
        of = self._applications.get(variant)
        if of is not None and (replaced or not of.profiled):
            of.set_prior(timed.times.prior_work)
            self.generation += 1
        return timed.times

    def times_now(
        self, executor: ExecutorId, variant: VariantName, now_ns: int = 0
    ) -> BatchTimes | None:
        """Return the batch times of a variant at the present pace; None if it is not loaded.

        `now_ns` 0: the instant of the last request.
        """
        times = self.times(executor, variant)
        if times is not None:
            times.relax(max(now_ns, self._now_ns))
        return times

    def reference(self, variant: VariantName, held: Reference | None = None) -> Reference:
        """Return what is known of a variant's applications now.

        Args:
            variant: the variant.
            held: an earlier reference of this variant; its values stay for applications that it
                had measured. Others may have joined since.
        """
        distributions = self._of(variant).distributions
        stays = () if held is None else held.measured
        # Applications that came since ran on other executors only.
        stays += (False,) * (len(distributions) - len(stays))
        frozen = [
            held.distribution(app)
            if held is not None and stays[app]
            else EmpiricalDistribution([d.quantile(q) for q in _REFERENCE_QUANTILES])
            for app, d in enumerate(distributions)
        ]
        samples = tuple(d.samples for d in distributions)
        measured = tuple(d.known or stays[app] for app, d in enumerate(distributions))
        return Reference(tabulate(frozen), samples, measured, self.replaced(variant))

    def replaced(self, variant: VariantName) -> int:
        """Return how often an index was reassigned to another application."""
        return self._of(variant).replaced

    def corrected(self, executor: ExecutorId) -> None:
        """Apply a correction of an executor's profiles: learned work is relative to them.

        What was learned from the batches of the last seconds is part of the profile now.
        """
        for variant, profile in self._latencies.known(executor).items():
            timed = self._timed.get((executor, variant))
            if timed is not None and timed.profile != profile:
                self._timed[executor, variant] = _Timed(profile, BatchTimes(profile))

    def undo(
        self,
        executor: ExecutorId,
        variant: VariantName,
        apps: Iterable[int],
        since_ns: int,
        reference: Reference | None,
    ) -> None:
        """Forget what an executor's batches said of some applications since an instant.

        The reference's values are restored; None: nothing is known of the time before. What was
        learned from other executors stays.
        """
        of = self._of(variant)
        for app in apps:
            before = [] if reference is None else reference.known(app)
            of.distributions[app].undo(executor, since_ns, before)
        held = (b for b in of.multi_batches if b.ended_ns < since_ns or b.executor != executor)
        of.multi_batches = deque(held, MULTI_BATCH_WINDOW)
        of.tested.clear()
        of.table = None
        self.generation += 1
        if of.multi_batches:
            self._infer(of)

    def rescale(
        self,
        executor: ExecutorId,
        variant: VariantName,
        app: int,
        since_ns: int,
        factor: float,
    ) -> None:
        """Multiply an executor's measurements of an application since an instant by a factor."""
        of = self._of(variant)
        of.distributions[app].rescale(executor, since_ns, factor)
        of.table = None
        self.generation += 1

    def forget(self, variants: Collection[VariantName]) -> None:
        """Forget what was learned of some variants; the indices of their applications hold."""
        self._timed = {on: of for on, of in self._timed.items() if on[1] not in variants}
        for variant in self._applications.keys() & variants:
            of = self._applications[variant]
            of.prior, of.profiled = self._prior(variant)
            of.forget([self._unmeasured(of) for _ in of.names])
        self.generation += 1

    def app(self, variant: VariantName, name: str, now_ns: int = 0) -> int:
        """Return an application's index among those of a variant.

        It is valid while a request of the application was seen less than `APP_IDLE_NS` ago.

        Args:
            variant: the variant.
            name: of the application.
            now_ns: when a request of it was seen; 0: not later than any instant given before.
        """
        self._now_ns = max(self._now_ns, now_ns)
        of = self._of(variant)
        at = of.index.get(name)
        if at is None:
            at = self._enter(of, name)
        of.used_ns[at] = self._now_ns
        return at

    def _enter(self, of: Applications, name: str) -> int:
        """Return a new index for an application that has none."""
        at = of.find_slot(self._now_ns)
        if at is None:
            if OTHER_APPS in of.index:
                return of.index[OTHER_APPS]
            at, name = len(of.names), OTHER_APPS
        of.assign_slot(at, name, self._unmeasured(of))
        self.generation += 1
        return at

    def _unmeasured(self, of: Applications) -> EmpiricalDistribution:
        """Return the distribution of an application of which nothing is known."""
        horizon_ns = self._latencies.parameters.sample_horizon_ns
        return EmpiricalDistribution(of.prior, horizon_ns=horizon_ns)

    def name(self, variant: VariantName, app: int) -> str:
        """Return the name of an application by its index; `OTHER_APPS` for the shared slot."""
        return self._of(variant).names[app]

    def names(self, variant: VariantName, apps: Iterable[int]) -> tuple[str, ...]:
        """Return the names of some applications in alphabetical order."""
        names = self._of(variant).names
        return tuple(sorted(names[app] for app in frozenset(apps)))

    def apps(self, variant: VariantName, without: Collection[str]) -> list[int]:
        """Return the indices of a variant's applications, except some."""
        of = self._applications.get(variant)
        return [] if of is None else [at for name, at in of.index.items() if name not in without]

    def table(self, variant: VariantName) -> WorkTable:
        """Return the work of each application of a variant, rebuilt when enough was learned."""
        of = self._of(variant)
        if of.table is None or of.samples_since_table >= REFRESH_SAMPLES:
            of.table = tabulate(of.distributions)
            of.samples_since_table = 0
        return of.table

    def distributions(self, variant: VariantName) -> Sequence[EmpiricalDistribution]:
        """Return the relative work of each application (1: the profile's median), by index."""
        return self._of(variant).distributions

    def distribution(self, variant: VariantName, name: str) -> EmpiricalDistribution | None:
        """Return the relative work of an application; None if it was never seen.

        For an application without a slot, that of the shared slot.
        """
        of = self._applications.get(variant)
        at = None if of is None else of.find(name)
        return None if of is None or at is None else of.distributions[at]

    def is_known(self, variant: VariantName, name: str) -> bool:
        """Say whether an application's work was measured, and is not the profile's."""
        of = self.distribution(variant, name)
        return of is not None and (of.samples >= SAMPLES_MIN or of.inferred)

    def known_distributions(self) -> Iterator[tuple[VariantName, str, EmpiricalDistribution]]:
        """Yield the relative work of every application with a slot, by variant and name."""
        for variant, of in self._applications.items():
            for name, at in of.index.items():
                if name != OTHER_APPS:
                    yield variant, name, of.distributions[at]

    def restore(
        self, variant: VariantName, name: str, work: Iterable[float], taken_ns: int
    ) -> None:
        """Restore samples from before a restart, if the application is new.

        The variant need not be in memory: it may be loaded later.
        """
        distribution = self.distribution(variant, name)
        if distribution is None or not distribution.samples:
            for each in work:
                self._learn("", variant, self.app(variant, name), each, taken_ns)
            of = self._of(variant)
            if name in of.index:
                of.used_ns[of.index[name]] = taken_ns

    def quickest_ns(self, variant: VariantName, app: int) -> float:
        """Return the minimum time of a request on any executor; 0 if there is none.

        On each executor it is the smaller of two values: by the pace of the last batches, and by
        the profile with its slowdown, which fades on an idle executor. If the last batches were
        slow and none have run since, the pace is stale.
        """
        table = self.table(variant)
        least = table.least_of[app]
        quickest_ns: float | None = None
        for executor in self._latencies.executors(variant):
            times = self.times_now(executor, variant)
            if times is not None:
                by_profile_ns = times.profiled_ns(times.sizes[0], least)
                by_profile_ns *= self._latencies.slowdown(executor)
                here_ns = min(times.batch_ns(0, least), by_profile_ns)
                quickest_ns = here_ns if quickest_ns is None else min(quickest_ns, here_ns)
        return 0.0 if quickest_ns is None else quickest_ns

    def known(self, executor: ExecutorId, variant: VariantName, name: str) -> Known | None:
        """Return what is known of an application; None if the variant is not loaded."""
        times = self.times(executor, variant)
        if times is None:
            return None
        distribution = self.distribution(variant, name)
        if distribution is None:
            distribution = EmpiricalDistribution(self._of(variant).prior)
        work = distribution.signed_quantile(self._latencies.parameters.high_quantile)
        return Known(distribution.samples, distribution.newest_ns, times.batch_ns(0, work))

    def expected_ns(
        self, executor: ExecutorId, variant: VariantName, apps: Sequence[str], batch_size: int
    ) -> float | None:
        """Return the mean time of a batch: the profile as corrected for drift, times work.

        The learned work of each member's application is used; for a new one, the profile's. The
        slowdown is not included: multiply by it, as with all times of this class (`Latencies`).

        Args:
            executor: where it runs.
            variant: what it runs.
            apps: the application of each member, at least one.
            batch_size: at most the largest profiled; padded to the next profiled one.

        Returns:
            ns; None if the executor does not hold the variant.
        """
        times = self.times(executor, variant)
        if times is None:
            return None
        return times.profiled_ns(batch_size, self._longest(variant, apps).mean)

    def quantile_ns(
        self,
        executor: ExecutorId,
        variant: VariantName,
        apps: Sequence[str],
        batch_size: int,
        q: float,
    ) -> float | None:
        """Return the `q` quantile of the time of a batch; otherwise as `expected_ns`."""
        times = self.times(executor, variant)
        if times is None:
            return None
        return times.profiled_ns(batch_size, self._longest(variant, apps).quantile(q))

    def _longest(self, variant: VariantName, apps: Sequence[str]) -> Longest:
        indices = self.indices(variant, apps)  # before `table`, because this may add an application
        return self.table(variant).longest(indices)

    def indices(self, variant: VariantName, apps: Sequence[str]) -> tuple[int, ...]:
        """Return the index of each member's application, as `app` does."""
        if len(apps) == 1:
            return (self.app(variant, apps[0]),)
        at = {name: self.app(variant, name) for name in dict.fromkeys(apps)}
        return tuple([at[name] for name in apps])

    def sampled(
        self, executor: ExecutorId, variant: VariantName, name: str, took_ns: float, now_ns: int
    ) -> None:
        """Learn from a request that ran in a batch of its own on an otherwise idle box."""
        self._now_ns = max(self._now_ns, now_ns)
        times = self.times(executor, variant)
        if times is not None:
            app = self.app(variant, name)
            self._learn(executor, variant, app, times.work_of(took_ns), now_ns)

    def _learn(self, source: str, variant: VariantName, app: int, work: float, now_ns: int) -> None:
        of = self._of(variant)
        distribution = of.distributions[app]
        resets = distribution.resets
        if distribution.add(work, now_ns, source):
            of.samples_since_table += 1
        self._samples_since_change += 1
        informative = distribution.resets != resets or distribution.samples in _INFORMATIVE_COUNTS
        if distribution.inferred and distribution.samples >= SAMPLES_ENOUGH:
            distribution.infer(None)  # even if no more batches of several requests come
            informative = True
        if informative:
            of.table = None
        if informative or self._samples_since_change >= REFRESH_SAMPLES:
            self.generation += 1
            self._samples_since_change = 0

    def completed(
        self, batch: Infer, apps: Sequence[str], took_ns: int, now_ns: int, started_ns: int
    ) -> None:
        """Learn from a batch and its members' applications; a batch of one is a sample too.

        Args:
            batch: the batch.
            apps: of its members.
            took_ns: its time without the interference of other executors, and with all threads.
            now_ns: when it ended.
            started_ns: when it started.
        """
        self._now_ns = max(self._now_ns, now_ns)
        times = self.times(batch.executor, batch.variant)
        if times is None or batch.batch_size not in times.sizes or len(apps) == 0:
            return
        members = self.indices(batch.variant, apps)
        longest = self.table(batch.variant).longest(members)
        times.served(batch.batch_size, longest.mean, took_ns, now_ns)
        if len(apps) > 1:
            work = times.longest_work(batch.batch_size, took_ns)
            multi_batch = MultiRequestBatch(members, work, now_ns, batch.executor)
            self._learn_multi(batch.variant, multi_batch, started_ns)
        if len(apps) == batch.batch_size == 1:
            work = times.work_of(took_ns)
            self._learn(batch.executor, batch.variant, members[0], work, now_ns)

    def _learn_multi(self, variant: VariantName, batch: MultiRequestBatch, started_ns: int) -> None:
        """Learn from a batch of several requests, for applications with few samples."""
        of = self._of(variant)
        of.multi_batches.append(batch)
        of.unprocessed += 1
        of.compare(batch, started_ns)
        if of.unprocessed >= min(REFRESH_SAMPLES, 1 + len(of.multi_batches) // READ_SHARE):
            self._infer(of)

    def _infer(self, of: Applications) -> None:
        """Infer the work of applications with few samples from batches of several requests."""
        of.unprocessed = 0
        evidence_by_app = {}
        for app in sorted({app for batch in of.multi_batches for app in batch.apps}):
            distribution = of.distributions[app]
            if (since_ns := of.contradicted_since(app)) is not None:
                of.forget_contradicted(app, since_ns)
            known = distribution.samples >= SAMPLES_ENOUGH
            if known and distribution.inferred:
                distribution.infer(None)
                of.table = None
            evidence_by_app[app] = AppEvidence(
                of.prior, distribution.sampled_values, distribution.samples, known
            )
        if all(evidence.fixed for evidence in evidence_by_app.values()):
            return
        members = Counter(app for batch in of.multi_batches for app in batch.apps)
        seen_ns = {app: batch.ended_ns for batch in of.multi_batches for app in batch.apps}
        for app, values in infer(of.multi_batches, evidence_by_app).items():
            # With so few members, the profile describes the tail better.
            if members[app] + evidence_by_app[app].samples >= SAMPLES_MIN:
                of.distributions[app].infer(values, seen_ns.get(app, 0))
        of.table = None
        self.generation += 1

    def _of(self, variant: VariantName) -> Applications:
        of = self._applications.get(variant)
        if of is None:
            of = self._applications[variant] = Applications(*self._prior(variant))
        return of

    def _prior(self, variant: VariantName) -> tuple[list[float], bool]:
        """Return the work of a request of which nothing is known, and whether a profile says so."""
        profile = self._latencies.any_profile(variant)
        return ([1.0], False) if profile is None else (BatchTimes(profile).prior_work, True)
