"""Owns what is known of execution times: per variant and application, and per executor.

Pure. The profile is the prior; samples of requests that ran alone replace it, and served batches
calibrate how long batches take (Orloj, section 3.2, the long-term feedback loop). Samples are
amounts of work relative to the profile's, so what was learnt of a variant outlives the loss of an
executor, and a profile that is measured anew.
"""

from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from edgebox.domain.model_family import ExecutorId, LatencyProfile, VariantName
from edgebox.scheduling.applications import MIXED_WINDOW, OTHERS, Applications
from edgebox.scheduling.attribution import Seen
from edgebox.scheduling.batch_times import BatchTimes
from edgebox.scheduling.censored import Belief, Mixed, infer
from edgebox.scheduling.distributions import (
    SAMPLES_ENOUGH,
    SAMPLES_MIN,
    EmpiricalDistribution,
)
from edgebox.scheduling.events import Infer
from edgebox.scheduling.expected_latencies import Latencies
from edgebox.scheduling.surprise import SURPRISE, is_rare, surprise
from edgebox.scheduling.work import Longest, WorkTable, tabulate

REFRESH_SAMPLES = 64
"""A table is built anew after so many samples."""

_TELLING = frozenset((1, 2, 4, 8, SAMPLES_MIN, 32, 64))
"""And when an application has so many: the first of them tell most."""

READ_SHARE = 8
"""They are made use of when so large a part of them is new."""

SURPRISE_WINDOW = 16

SURPRISE_SPACING_NS = 500_000_000
"""Of an application's batches at most one in so long is asked: a busy spell is not many."""

_REFERENCE_QUANTILES = [(at + 0.5) / 64 for at in range(64)]


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of an application's requests when they run alone."""

    samples: int
    """How many are remembered."""
    newest_ns: int
    """When the last of them was taken; 0 if there is none."""
    high_ns: float
    """What one takes at the high quantile; before there are samples, by the profile."""


@dataclass(frozen=True, slots=True)
class _Timed:
    profile: LatencyProfile
    times: BatchTimes


@dataclass(frozen=True, slots=True)
class Reference:
    """What was known of a variant's applications at some time."""

    table: WorkTable
    """Its distributions are frozen."""
    samples: tuple[int, ...]
    """Of each application."""
    believed: tuple[bool, ...]
    """Whether what was seen of it was believed, and not the prior."""
    replaced: int
    """`Learning.replaced` then."""

    def known(self, app: int) -> list[float]:
        """Return equally likely amounts of work of an application; none if it was hardly known."""
        if app >= len(self.samples) or self.samples[app] < SAMPLES_MIN:
            return []
        known: list[float] = self.distribution(app).values.tolist()
        return known

    def distribution(self, app: int) -> EmpiricalDistribution:
        """Return the relative work of an application, frozen."""
        return self.table.ranked[int(self.table.rank[app])]

    def seen(self, apps: Sequence[int], size: int, took_ns: float) -> Seen:
        """Return a batch of some applications that ran, by what was known then.

        Args:
            apps: index of each member's application.
            size: index of its padded size.
            took_ns: its execution.
        """
        owner = max(apps, key=lambda app: int(self.table.rank[app]))
        return Seen(owner, self.table.longest(apps), size, took_ns)


class Learning:
    """Distributions of work per variant and application, batch times per variant and executor."""

    def __init__(self, latencies: Latencies) -> None:
        self._latencies = latencies
        self._applications: dict[VariantName, Applications] = {}
        self._timed: dict[tuple[ExecutorId, VariantName], _Timed] = {}
        self.generation = 0
        """Changes when so much was learned that answers may differ."""
        self._news = 0
        self._now_ns = 0

    def times(self, executor: ExecutorId, variant: VariantName) -> BatchTimes | None:
        """Return the batch times of a variant on an executor; None where it is not loaded."""
        loaded = variant in self._latencies.profiles(executor)
        return self.known_times(executor, variant) if loaded else None

    def known_times(self, executor: ExecutorId, variant: VariantName) -> BatchTimes | None:
        """Return the batch times of a variant, in memory or not; None where it has no profile."""
        profile = self._latencies.known(executor).get(variant)
        if profile is None:
            return None
        timed = self._timed.get((executor, variant))
        if timed is None or timed.profile is not profile:
            replaced = timed is not None and timed.profile != profile
            timed = self._timed[executor, variant] = _Timed(profile, BatchTimes(profile))
            of = self._applications.get(variant)
            if of is not None and (replaced or not of.profiled):
                of.believe(timed.times.prior_work)
                self.generation += 1
        return timed.times

    def times_now(
        self, executor: ExecutorId, variant: VariantName, now_ns: int = 0
    ) -> BatchTimes | None:
        """Return the batch times of a variant at the pace of now; None where it is not loaded.

        `now_ns` 0: when the last request came.
        """
        times = self.times(executor, variant)
        if times is not None:
            times.relax(max(now_ns, self._now_ns))
        return times

    def reference(self, variant: VariantName, held: Reference | None = None) -> Reference:
        """Return what is known of a variant's applications now.

        Args:
            variant: what.
            held: of the applications that it believes, what it says holds on; of this variant, and
                of the same applications.
        """
        distributions = self._of(variant).distributions
        stays = (False,) * len(distributions) if held is None else held.believed
        frozen = [
            held.distribution(app)
            if held is not None and stays[app]
            else EmpiricalDistribution([d.quantile(q) for q in _REFERENCE_QUANTILES])
            for app, d in enumerate(distributions)
        ]
        samples = tuple(d.samples for d in distributions)
        believed = tuple(d.known or stays[app] for app, d in enumerate(distributions))
        return Reference(tabulate(frozen), samples, believed, self.replaced(variant))

    def replaced(self, variant: VariantName) -> int:
        """Return how often an index has become that of another application."""
        return self._of(variant).replaced

    def corrected(self, executor: ExecutorId) -> None:
        """Take in that profiles of an executor were multiplied: what was learnt is with them.

        Work is relative to the profile. What was learnt of batches in the last seconds is part of
        the profile now.
        """
        for variant, profile in self._latencies.known(executor).items():
            timed = self._timed.get((executor, variant))
            if timed is not None and timed.profile is not profile:
                self._timed[executor, variant] = _Timed(profile, BatchTimes(profile))

    def undo(
        self,
        executor: ExecutorId,
        variant: VariantName,
        apps: Iterable[int],
        since_ns: int,
        reference: Reference | None,
    ) -> None:
        """Forget what an executor told of some applications since an instant: it had changed.

        What the reference knew of them is put back; None: nothing is known to have held before.
        What other executors told holds.
        """
        of = self._of(variant)
        for app in apps:
            before = [] if reference is None else reference.known(app)
            of.distributions[app].undo(executor, since_ns, before)
        held = (b for b in of.mixed if b.ended_ns < since_ns or b.executor != executor)
        of.mixed = deque(held, MIXED_WINDOW)
        of.surprises.clear()
        of.table = None
        self.generation += 1
        if of.mixed:
            self._infer(of)

    def rescale(
        self,
        executor: ExecutorId,
        variant: VariantName,
        app: int,
        since_ns: int,
        factor: float,
    ) -> None:
        """Multiply what an executor told of an application since an instant by a factor."""
        of = self._of(variant)
        of.distributions[app].rescale(executor, since_ns, factor)
        of.table = None
        self.generation += 1

    def app(self, variant: VariantName, name: str, now_ns: int = 0) -> int:
        """Return an application's index among those of a variant.

        It holds while a request of it was seen less than `APP_IDLE_NS` ago.

        Args:
            variant: what.
            name: of the application.
            now_ns: when a request of it was seen; 0: not later than anything told before.
        """
        self._now_ns = max(self._now_ns, now_ns)
        of = self._of(variant)
        at = of.index.get(name)
        if at is None:
            at = self._enter(of, name)
        of.used_ns[at] = self._now_ns
        return at

    def _enter(self, of: Applications, name: str) -> int:
        """Return the index of an application without one."""
        at = of.place(name, self._now_ns)
        if at is None:
            if OTHERS in of.index:
                return of.index[OTHERS]
            at, name = len(of.names), OTHERS
        horizon_ns = self._latencies.parameters.sample_horizon_ns
        of.enter(at, name, EmpiricalDistribution(of.prior, horizon_ns=horizon_ns))
        self.generation += 1
        return at

    def name(self, variant: VariantName, app: int) -> str:
        """Return the name of an application by its index; `OTHERS` for those that share it."""
        return self._of(variant).names[app]

    def names(self, variant: VariantName, apps: Iterable[int]) -> tuple[str, ...]:
        """Return the names of some applications, in the order of the alphabet."""
        names = self._of(variant).names
        return tuple(sorted(names[app] for app in frozenset(apps)))

    def apps(self, variant: VariantName, without: Collection[str]) -> list[int]:
        """Return the indices of a variant's applications, without some."""
        of = self._applications.get(variant)
        return [] if of is None else [at for name, at in of.index.items() if name not in without]

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

    def distribution(self, variant: VariantName, name: str) -> EmpiricalDistribution | None:
        """Return the relative work of an application; None where it was never seen.

        Of one without a place of its own, that of the others.
        """
        of = self._applications.get(variant)
        at = None if of is None else of.find(name)
        return None if of is None or at is None else of.distributions[at]

    def is_known(self, variant: VariantName, name: str) -> bool:
        """Say whether an application's work is measured, and not the profile's."""
        of = self.distribution(variant, name)
        return of is not None and (of.samples >= SAMPLES_MIN or of.inferred)

    def known_distributions(self) -> Iterator[tuple[VariantName, str, EmpiricalDistribution]]:
        """Yield the relative work of every application with a place, by variant and name."""
        for variant, of in self._applications.items():
            for name, at in of.index.items():
                if name != OTHERS:
                    yield variant, name, of.distributions[at]

    def restore(
        self, variant: VariantName, name: str, work: Iterable[float], taken_ns: int
    ) -> None:
        """Take in samples of an earlier start, where the application is new.

        The variant need not be in memory: it may be loaded later.
        """
        distribution = self.distribution(variant, name)
        if distribution is None or not distribution.samples:
            for each in work:
                self._learn("", variant, name, each, taken_ns)
            of = self._of(variant)
            if name in of.index:
                of.used_ns[of.index[name]] = taken_ns

    def quickest_ns(self, variant: VariantName, app: int) -> float:
        """Return the least time a request can take on any executor; 0 where there is none.

        By the profile and its slowdown, which fades on an idle executor, where that is less than
        by the pace of the last batches: if those were slow and no more ran, the pace is stale.
        """
        table = self.table(variant)
        least = float(table.least[table.rank[app]])
        return min(
            (
                min(
                    times.batch_ns(0, least),
                    times.profiled_ns(times.sizes[0], least) * self._latencies.slowdown(executor),
                )
                for executor in self._latencies.executors(variant)
                if (times := self.times_now(executor, variant)) is not None
            ),
            default=0.0,
        )

    def known(self, executor: ExecutorId, variant: VariantName, name: str) -> Known | None:
        """Return what is known of an application; None where the variant is not loaded."""
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
        """Return what a batch takes in the mean: the profile as corrected for drift, times work.

        What is known of each member's application counts; of a new one, the profile's work. It is
        that of an executor without slowdown: multiply by it, as everywhere (`Latencies`).

        Args:
            executor: where.
            variant: what.
            apps: the application of each member, at least one.
            batch_size: at most the largest profiled; padded to the next profiled one.

        Returns:
            ns; None where the executor does not hold the variant.
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
        """Return what a batch does not exceed with probability `q`; the rest as `expected_ns`."""
        times = self.times(executor, variant)
        if times is None:
            return None
        return times.profiled_ns(batch_size, self._longest(variant, apps).quantile(q))

    def _longest(self, variant: VariantName, apps: Sequence[str]) -> Longest:
        indices = self._indices(variant, apps)  # before the table: it may grow
        return self.table(variant).longest(indices)

    def _indices(self, variant: VariantName, apps: Sequence[str]) -> tuple[int, ...]:
        return tuple(self.app(variant, name) for name in apps)

    def sampled(
        self, executor: ExecutorId, variant: VariantName, name: str, took_ns: float, now_ns: int
    ) -> None:
        """Learn from a request that ran alone on a box with nothing else to do."""
        self._now_ns = max(self._now_ns, now_ns)
        times = self.times(executor, variant)
        if times is not None:
            self._learn(executor, variant, name, times.work_of(took_ns), now_ns)

    def _learn(
        self, source: str, variant: VariantName, name: str, work: float, now_ns: int
    ) -> None:
        of = self._of(variant)
        distribution = of.distributions[self.app(variant, name)]
        turns = distribution.turns
        if distribution.add(work, now_ns, source):
            of.news += 1
        self._news += 1
        tells = distribution.turns != turns or distribution.samples in _TELLING
        if distribution.inferred and distribution.samples >= SAMPLES_ENOUGH:
            distribution.infer(None)  # also where no more batches of several come
            tells = True
        if tells:
            of.table = None
        if tells or self._news >= REFRESH_SAMPLES:
            self.generation += 1
            self._news = 0

    def completed(self, batch: Infer, apps: Sequence[str], took_ns: int, now_ns: int) -> None:
        """Learn from a batch and its members' applications; one of a single is a sample too."""
        self._now_ns = max(self._now_ns, now_ns)
        times = self.times(batch.executor, batch.variant)
        if times is None or batch.batch_size not in times.sizes or len(apps) == 0:
            return
        longest = self._longest(batch.variant, apps)
        times.served(batch.batch_size, longest.mean, took_ns, now_ns)
        if len(apps) > 1:
            work = times.longest_work(batch.batch_size, took_ns)
            members = self._indices(batch.variant, apps)
            self._learn_mixed(batch.variant, Mixed(members, work, now_ns, batch.executor))
        if len(apps) == batch.batch_size == 1:
            self._learn(batch.executor, batch.variant, apps[0], times.work_of(took_ns), now_ns)

    def _learn_mixed(self, variant: VariantName, batch: Mixed) -> None:
        """Learn from a batch of several, where single requests tell too little."""
        of = self._of(variant)
        of.mixed.append(batch)
        of.unread += 1
        self._compare(of, batch)
        if of.unread >= min(REFRESH_SAMPLES, 1 + len(of.mixed) // READ_SHARE):
            self._infer(of)

    def _compare(self, of: Applications, batch: Mixed) -> None:
        """Note whether a batch contradicts the samples of whose requests should be its longest."""
        owner = max(batch.apps, key=lambda app: of.distributions[app].greatest)
        values = of.distributions[owner].sampled_values
        if len(values) < SAMPLES_MIN:
            return
        alike = batch.apps.count(owner) == len(batch.apps)
        row = of.surprises.setdefault((owner, alike), deque(maxlen=SURPRISE_WINDOW))
        if row and batch.ended_ns - row[-1][0] < SURPRISE_SPACING_NS:
            return
        members = batch.apps.count(owner)
        side, chance = surprise(values, members, len(batch.apps), batch.work)
        row.append((batch.ended_ns, side, chance))

    def _is_contradicted(self, of: Applications, app: int) -> bool:
        """Say whether batches contradict an application's samples."""
        for alike in (True, False):
            row = of.surprises.get((app, alike), ())
            quick = sum(side < 0 for _, side, _ in row)
            slow = sum(side > 0 for _, side, _ in row)
            if is_rare(quick, SURPRISE * len(row)) or is_rare(slow, sum(of for _, _, of in row)):
                return True
        return False

    def _overthrow(self, of: Applications, app: int) -> None:
        """Forget the samples of before the batches that contradict them, and their like."""
        rows = [of.surprises.pop((app, alike), deque()) for alike in (True, False)]
        since_ns = min(ended_ns for row in rows for ended_ns, side, _ in row if side)
        of.distributions[app].forget_before(since_ns)
        of.mixed = deque((b for b in of.mixed if b.ended_ns >= since_ns), MIXED_WINDOW)

    def _infer(self, of: Applications) -> None:
        """Make use of the batches."""
        of.unread = 0
        beliefs = {}
        for app in sorted({app for batch in of.mixed for app in batch.apps}):
            distribution = of.distributions[app]
            if self._is_contradicted(of, app):
                self._overthrow(of, app)
            known = distribution.samples >= SAMPLES_ENOUGH
            if known and distribution.inferred:
                distribution.infer(None)
                of.table = None
            beliefs[app] = Belief(
                of.prior, distribution.sampled_values, distribution.samples, known
            )
        if all(belief.fixed for belief in beliefs.values()):
            return
        members = Counter(app for batch in of.mixed for app in batch.apps)
        seen_ns = {app: batch.ended_ns for batch in of.mixed for app in batch.apps}
        for app, values in infer(of.mixed, beliefs).items():
            # Of so few the tail of the profile says more.
            if members[app] + beliefs[app].samples >= SAMPLES_MIN:
                of.distributions[app].infer(values, seen_ns.get(app, 0))
        of.table = None
        self.generation += 1

    def _of(self, variant: VariantName) -> Applications:
        of = self._applications.get(variant)
        if of is None:
            profile = self._latencies.any_profile(variant)
            prior = [1.0] if profile is None else BatchTimes(profile).prior_work
            of = self._applications[variant] = Applications(prior, profile is not None)
        return of
