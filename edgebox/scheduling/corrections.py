"""Owns the profiles as corrected by what batches take: measured times a factor per variant.

Pure. Batches are held against what is *learnt* of their applications (`learning`), as it was when
they were last found to agree with it. When those of a variant have left it (`drift`), or else every
`CHECKED_EVERY` batches, it is asked what explains them: another speed of the executor, or other
requests (`attribution`). Other requests are none of its business: what was learnt since is believed
from then on. For another speed the profile is multiplied by the ratio, and so are all learnt times,
because they are relative to it; what was learnt meanwhile of the applications that only seemed to
have changed is undone. So are multiplied the executor's other variants: a hot chip slows all of
them, and one that is left as it was would look like a bargain to the planner; but a variant that
has run enough meanwhile gets its own ratio, and where one contradicts, those that have not run stay
as they are. Of each that is multiplied is undone what was learnt since, or it would count twice.
What applications of other variants contradict is no speed either (`drift_evidence`).
Near 1 a factor becomes 1: the profile as it was measured holds again.

Why profiles are multiplied and not measured anew: docs/decisions/0010-residency-and-drift.md.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from edgebox.domain.learned import FACTOR_LIMITS
from edgebox.domain.model_family import ExecutorId, LatencyProfile, VariantName
from edgebox.scheduling import drift_evidence
from edgebox.scheduling.attribution import Attribution, Ran, Seen, attribute_together
from edgebox.scheduling.batch_times import BatchTimes
from edgebox.scheduling.calibration import Calibration, Spell
from edgebox.scheduling.drift import WINDOW, DriftDetector, Drifted
from edgebox.scheduling.drift_evidence import Watched
from edgebox.scheduling.events import Infer, ReportDrift
from edgebox.scheduling.expected_latencies import Latencies
from edgebox.scheduling.learning import Learning
from edgebox.scheduling.ledger import RunningBatch
from edgebox.scheduling.scheduler_parameters import SchedulerParameters

NEAR = 0.1
"""A factor that is within this of 1 is 1."""

CHECKED_EVERY = 2 * WINDOW
"""Batches between two looks at what the sign test cannot see: a slower machine whose requests have
become quicker at the same time.

Ablation, requests of a known application that are lost beside an unknown long one, four seeds
(`python -m benchmarks.learning`, that scene): `adaptive` loses 118, 180, 96 and 7 of about 1,790 at
64, 128 and 256 alike; `edf`, which reckons with the slowdown only, 935, 882, 990 and 1,145 at 64,
and 603, 510, 704 and 557 at 256, where informed it loses 511, 449, 456 and 567."""

NEWEST = WINDOW // 4
"""Of the batches that agree with what is known, so many must do so by themselves."""

RATIO_TOLERANCE = 1.1
"""The median ratio is finer than the bins of `attribution`; it counts where it is so near."""


class Corrections:
    """What each executor's profiles are multiplied by, and the watches that decide it."""

    def __init__(
        self,
        parameters: SchedulerParameters,
        latencies: Latencies,
        learning: Learning,
        calibration: Calibration,
    ) -> None:
        self._slowdown_quantile = parameters.slowdown_quantile
        self._after_ns = parameters.drift_after_ns
        self._latencies = latencies
        self._learning = learning
        self._calibration = calibration
        self._measured: dict[ExecutorId, dict[VariantName, LatencyProfile]] = {}
        self._watched: dict[ExecutorId, dict[VariantName, Watched]] = {}
        self._ratios: dict[ExecutorId, dict[str, float]] = {}
        """By application, the last batch's time by that of the reference."""
        self.factors: dict[ExecutorId, dict[VariantName, float]] = {}
        """By executor and variant; 1 where not named."""

    def executor_started(self, executor: ExecutorId, profiles: Sequence[LatencyProfile]) -> None:
        """Take in an executor and believe its profiles.

        Of one that was there before, what its profiles were multiplied by holds on, unless they
        were measured anew: then they are those of the executor as it is now.
        """
        before, factors = self._measured.get(executor), self.factors.get(executor, {})
        self._measured[executor] = {p.variant: p for p in profiles if p.quantiles_ns}
        self._watched[executor] = {
            variant: Watched(DriftDetector(self._after_ns)) for variant in self._measured[executor]
        }
        self.factors[executor] = {}
        self._ratios[executor] = {}
        held = {
            variant: factors[variant]
            for variant, measured in self._measured[executor].items()
            if variant in factors and (before is None or before.get(variant) == measured)
        }
        if held:
            self._correct(executor, held)

    def executor_stopped(self, executor: ExecutorId) -> None:
        """Stop watching an executor; what its profiles are multiplied by holds when it is back."""
        del self._watched[executor], self._ratios[executor]

    def batch_completed(
        self, batch: RunningBatch, apps: Sequence[str], took_ns: int, now_ns: int
    ) -> list[ReportDrift]:
        """Learn from a batch; where it shows a drift, correct profiles and say so.

        Called before `Learning.completed`: the batch is held against what was known before it.
        `took_ns` is its execution, as if the other executors had rested.
        """
        infer = batch.infer
        executor, variant, size = infer.executor, infer.variant, infer.batch_size
        profile = self._latencies.known(executor)[variant]
        times = self._learning.times(executor, variant)
        if times is None:
            expected_ns = profile.quantile_ns(size, self._slowdown_quantile)
            self._calibration.batch_completed(executor, expected_ns, took_ns, now_ns)
            return []
        watched = self._watched[executor][variant]
        indices = [self._learning.app(variant, app) for app in apps]
        reference = watched.reference
        if (
            reference is None
            or max(indices) >= len(reference.samples)
            or reference.replaced != self._learning.replaced(variant)
        ):
            watched.begin_anew(agreed=reference is None)
            reference = watched.reference = watched.own = self._learning.reference(variant)
            watched.known_ns = now_ns
            if watched.agreed_since_ns is None:
                watched.agreed_since_ns = now_ns
        seen = reference.seen(indices, times.sizes.index(size), took_ns)
        # No executor is slow because of requests that are known to be long.
        expected_ns = round(self._expected_ns(times, infer, seen, indices))
        self._calibration.batch_completed(executor, expected_ns, took_ns, now_ns)
        watched.seen.append((seen, now_ns))
        usual_ns = times.profiled_ns(size, seen.longest.quantile(0.5))
        drifted = watched.watch.add(took_ns / max(1.0, usual_ns), now_ns)
        watched.unchecked += 1
        if drifted is None and watched.unchecked < CHECKED_EVERY:
            return []
        return self._look(executor, variant, drifted, now_ns)

    def _expected_ns(
        self, times: BatchTimes, batch: Infer, seen: Seen, apps: Sequence[int]
    ) -> float:
        """Return the time to hold a batch against: that of `slowdown_quantile`.

        It is that of the reference. Of an application of which nothing was known then, only how
        others fare tells a long one from a slow executor: where one of them took less of its own
        time, the difference is no slowdown, for an executor is slow with all of them. Then it is
        held against what was known of it first, and until then against its own samples.
        """
        executor, variant, size = batch.executor, batch.variant, batch.batch_size
        watched, q = self._watched[executor][variant], self._slowdown_quantile
        reference, own = watched.reference, watched.own
        assert reference is not None
        assert own is not None
        usual_ns = times.profiled_ns(size, seen.longest.quantile(q))
        owner, ratios = self._learning.name(variant, seen.app), self._ratios[executor]
        ratios[owner] = ratio = seen.took_ns / max(1.0, usual_ns)
        common = min((of for name, of in ratios.items() if name != owner), default=ratio)
        if reference.believed[seen.app] or common >= ratio:
            return usual_ns
        distributions = self._learning.distributions(variant)
        if any(distributions[app].known and not own.believed[app] for app in apps):
            own = watched.own = self._learning.reference(variant, own)
        hardly_known = (distributions[app] for app in frozenset(apps) if not own.believed[app])
        samples = (of.sampled_quantile(q) for of in hardly_known if of.samples)
        own_ns = times.profiled_ns(size, max(own.table.longest(apps).quantile(q), *samples, 0.0))
        return max(usual_ns, min(own_ns, seen.took_ns / max(1.0, common)))

    def confirmed_ns(self, executor: ExecutorId, variant: VariantName) -> int | None:
        """Return when batches last agreed with a variant's corrected profile; None: none did."""
        watched = self._watched.get(executor, {}).get(variant)
        return watched.confirmed_ns if watched else None

    def _look(
        self, executor: ExecutorId, variant: VariantName, drifted: Drifted | None, now_ns: int
    ) -> list[ReportDrift]:
        """Find out what explains a variant's last batches."""
        watched = self._watched[executor][variant]
        times = self._learning.times(executor, variant)
        assert times is not None
        watched.unchecked = 0
        seen = [each for each, _ in watched.seen]
        of = times.profile_fixed_ns, times.profile_slope_ns
        found = drift_evidence.attributed(watched, Ran(seen, *of))
        if found.factor == 1:
            newest = drift_evidence.attributed(watched, Ran(seen[-NEWEST:], *of))
            watched.suspected, watched.confirmed_ns = None, now_ns
            # What has only just begun to change must not be believed before it is understood.
            if not found.shifted and not newest.shifted:
                watched.begin_anew(agreed=True)
            elif drifted is not None:
                watched.watch.clear()
            return []
        if drifted is None:
            drifted, watched.suspected = (
                watched.suspected,
                Drifted(found.factor, watched.seen[0][1], now_ns),
            )
            if drifted is None or now_ns - drifted.seen_ns < self._after_ns:
                watched.suspected = drifted or watched.suspected
                watched.unchecked = WINDOW
                return []
        every = self._watched[executor]
        others = drift_evidence.factors_of_others(
            self._learning, executor, every, variant, found, drifted
        )
        if not all(drift_evidence.alike(factor, found.factor) for factor in others.values()):
            self._believe_learned(executor, variant, now_ns)
            return []
        report = self._drifted(executor, variant, found, drifted)
        return [replace(report, apps=tuple(sorted({*report.apps, *others})))]

    def _believe_learned(self, executor: ExecutorId, variant: VariantName, now_ns: int) -> None:
        """Hold batches against what was learned: the profile holds, and requests have changed.

        So it is with the other variants of which all that ran was unknown before.
        """
        every = self._watched[executor]
        alone = not every[variant].believed(every[variant].apps)
        for name, watched in every.items():
            unknown = not watched.believed(watched.apps)
            if name == variant or (alone and unknown and watched.seen):
                watched.confirmed_ns = now_ns
                watched.begin_anew()

    def _drifted(
        self, executor: ExecutorId, variant: VariantName, found: Attribution, drifted: Drifted
    ) -> ReportDrift:
        """Multiply profiles by what was found."""
        near = 1 / RATIO_TOLERANCE < drifted.ratio / found.factor < RATIO_TOLERANCE
        ratio = drifted.ratio if near else found.factor
        every = self._watched[executor]
        untold = drift_evidence.untold(self._learning, every, variant, found, drifted)
        own = {name: None if untold[name] else every[name].ratio(drifted) for name in untold}
        contradicted = 1.0 in own.values()
        before = self.factors[executor]
        after = {}
        for name in every:
            times = ratio if name == variant else own[name]
            if times is None:
                times = 1.0 if contradicted else ratio
            after[name] = _bounded(before.get(name, 1.0) * times)
        others = {name for name, factor in after.items() if factor != before.get(name, 1.0)}
        self._undo(executor, variant, others - {variant}, found, untold, drifted.since_ns)
        changed = every[variant].apps - found.agreeing
        longer = after[variant] / before.get(variant, 1.0)
        for app in changed:  # what was learned of it since is relative to the profile of before
            since_ns = self._of_unknown_speed_ns(executor, variant, app, drifted.since_ns)
            self._learning.rescale(executor, variant, app, since_ns, 1 / longer)
        for name, of_other in untold.items():
            longer = after[name] / before.get(name, 1.0)
            for app in of_other:
                self._learning.rescale(executor, name, app, 0, 1 / longer)
        self._correct(executor, after)
        apps = self._learning.names(variant, found.agreeing)
        return ReportDrift(executor, variant, ratio, after[variant], drifted.since_ns, apps)

    def _undo(  # noqa: PLR0917
        self,
        executor: ExecutorId,
        variant: VariantName,
        others: Iterable[VariantName],
        found: Attribution,
        untold: Mapping[VariantName, frozenset[int]],
        since_ns: int,
    ) -> None:
        """Forget what looked like long requests on an executor while it was slow.

        Of the variant that showed it, and of the others that are multiplied with it: in what was
        learnt of them since, the slowness is, too. An application that has really changed keeps
        what was learnt.
        """
        every, learning = self._watched[executor], self._learning
        for app in sorted(found.agreeing):
            of_app_ns = self._of_unknown_speed_ns(executor, variant, app, since_ns)
            learning.undo(executor, variant, [app], of_app_ns, every[variant].reference)
        seen = every[variant].apps
        changed = learning.names(variant, seen - found.agreeing)
        for other in sorted(others):
            of = every[other]
            # One that is newer may have been slow already.
            before = of.reference if of.known_ns <= since_ns else None
            apps = learning.apps(other, without=(*changed, *learning.names(other, untold[other])))
            learning.undo(executor, other, apps, since_ns, before)

    def _of_unknown_speed_ns(
        self, executor: ExecutorId, variant: VariantName, app: int, since_ns: int
    ) -> int:
        """Return from when on what an executor told of an application may be due to its drift.

        Of one of which nothing was known when the reference was made, all that it told.
        """
        reference = self._watched[executor][variant].reference
        return since_ns if reference is not None and reference.believed[app] else 0

    def spell_over(self, executor: ExecutorId, spell: Spell) -> None:
        """Forget what was learnt while an executor was slow for moments, if it was the executor.

        What it had learnt looks like long requests as soon as its slowdown is gone. If other
        requests explain the batches, what was learnt holds; so does what was learnt of
        applications of which nothing was known before: they may always have been long, unless
        their batches outside the spell say otherwise.
        """
        ran = {}
        for variant, watched in self._watched[executor].items():
            times = self._learning.times(executor, variant)
            if times is None or not watched.seen:
                continue
            seen = [each for each, _ in watched.seen]
            every = Ran(seen, times.profile_fixed_ns, times.profile_slope_ns)
            if telling := drift_evidence.telling(watched, every, spell):
                ran[variant] = replace(every, batches=telling)
        if not ran:
            return
        slow: set[str] = set()
        changed: set[str] = set()
        for variant, found in zip(ran, attribute_together(list(ran.values())), strict=True):
            if found.factor <= 1:
                return
            apps = {seen.app for seen in ran[variant].batches}
            slow.update(self._learning.names(variant, found.agreeing))
            changed.update(self._learning.names(variant, apps - found.agreeing))
        for variant, watched in self._watched[executor].items():
            others = self._learning.apps(variant, without=changed)
            of = [app for app in others if self._learning.name(variant, app) in slow]
            # One that is newer may have been slow already.
            before = watched.reference if watched.known_ns <= spell.since_ns else None
            self._learning.undo(executor, variant, of, spell.since_ns, before)
            if before is None:
                watched.begin_anew()  # a reference of what is forgotten now

    def restore(self, factors: Mapping[tuple[ExecutorId, VariantName], float]) -> None:
        """Believe factors that held before a restart, of those not there when they come."""
        given: dict[ExecutorId, dict[VariantName, float]] = {}
        for (executor, variant), factor in factors.items():
            if (bounded := _bounded(factor)) != 1:
                given.setdefault(executor, {})[variant] = bounded
        for executor, of in given.items():
            if executor in self._watched:
                measured = self._measured[executor]
                self._correct(executor, {name: of.get(name, 1.0) for name in measured})
            else:
                self.factors[executor] = of

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
        self._learning.corrected(executor)
        self._calibration.profiles_corrected(executor)
        self._ratios[executor] = {}
        for watched in self._watched[executor].values():
            watched.begin_anew()


def _bounded(factor: float) -> float:
    low, high = FACTOR_LIMITS
    return 1.0 if abs(factor - 1) <= NEAR else min(max(factor, low), high)
