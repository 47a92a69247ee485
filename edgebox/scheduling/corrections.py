"""Owns the corrected profiles: the measured times multiplied by one factor per variant.

Pure. Batches are compared with what was *learned* of their applications (`learning`) when they last
agreed with it. When the batches of a variant have drifted from that (`drift`), and otherwise every
`CHECKED_EVERY` batches, `attribution` says what explains them: another speed of the executor, or
other requests.

A factor that applications on other variants contradict is no speed either (`drift_evidence`).

If the requests changed, nothing is corrected; what was learned since is used from then on. If the
speed changed, the profile is multiplied by the ratio. Learned times are relative to the profile, so
they change with it. What was learned meanwhile of applications that only seemed to have changed is
undone.

The executor's other variants are multiplied too: a hot chip slows all of them, and an uncorrected
one would look too cheap to the planner. A variant with enough batches of its own in that time gets
its own ratio; if one of these contradicts the drift, variants without batches stay unchanged. For
each corrected variant, what was learned since is undone, or it would count twice. A factor near 1
becomes 1: the profile as measured applies again.

docs/decisions/0010-residency-and-drift.md says why profiles are multiplied and not measured again.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from edgebox.domain.learned import FACTOR_LIMITS
from edgebox.domain.model_family import ExecutorId, LatencyProfile, VariantName
from edgebox.scheduling import drift_evidence
from edgebox.scheduling.actions import Infer, ReportDrift
from edgebox.scheduling.attribution import (
    Attribution,
    ObservedBatch,
    VariantBatches,
    attribute_together,
)
from edgebox.scheduling.batch_times import BatchTimes
from edgebox.scheduling.calibration import Calibration, SlowPeriod
from edgebox.scheduling.drift import HORIZON_NS, WINDOW, DriftDetector, Drifted
from edgebox.scheduling.drift_evidence import Watched
from edgebox.scheduling.expected_latencies import Latencies
from edgebox.scheduling.learning import Learning
from edgebox.scheduling.ledger import RunningBatch
from edgebox.scheduling.scheduler_parameters import SchedulerParameters

NEAR = 0.1
"""A factor within this distance of 1 is set to 1."""

CHECKED_EVERY = 2 * WINDOW
"""Batches between two checks for what the sign test cannot see: a slower machine whose requests
have become shorter at the same time.

Ablation, requests of a known application that are lost beside an unknown long one, four seeds
(`python -m benchmarks.learning`, that scene): `adaptive` loses 118, 180, 96 and 7 of about 1,790
with 64, 128 and 256 alike. `edf`, which uses the slowdown only, loses 935, 882, 990 and 1,145 with
64, and 603, 510, 704 and 557 with 256; if it knows the application it loses 511, 449, 456 and 567.
"""

NEWEST = WINDOW // 4
"""This many of the newest batches must also agree when they are checked on their own."""

RATIO_TOLERANCE = 1.1
"""The median ratio has a finer resolution than the bins of `attribution`; it is used if it is this
close."""


class Corrections:
    """The factor of every profile, and the detectors that decide it."""

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
        self._ratios: dict[ExecutorId, dict[str, tuple[float, int]]] = {}
        """By application, the last batch's time relative to the reference, and when that ended; the
        oldest first. Those within `HORIZON_NS` only: so long has an application a slot at least, so
        that there are not many, whatever names clients choose."""
        self.factors: dict[ExecutorId, dict[VariantName, float]] = {}
        """By executor and variant; 1 if not listed."""

    def executor_started(self, executor: ExecutorId, profiles: Sequence[LatencyProfile]) -> None:
        """Add an executor with its profiles.

        If it was there before, its factors still apply, except for profiles that were measured
        again: those describe the executor as it is now.
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

    def profiles_changed(self, executor: ExecutorId, profiles: Sequence[LatencyProfile]) -> None:
        """Replace the profiles of an executor.

        Those that stay keep their factors, and what their batches have shown. Where some were
        measured again, its slowdown is that of no profile any more, and is measured anew.
        """
        before, watched = self._measured[executor], self._watched[executor]
        measured = {p.variant: p for p in profiles if p.quantiles_ns}
        stays = {name for name, profile in measured.items() if before.get(name) == profile}
        self._measured[executor] = measured
        self._watched[executor] = {
            name: watched[name] if name in stays else Watched(DriftDetector(self._after_ns))
            for name in measured
        }
        factors = self.factors[executor]
        self.factors[executor] = {name: f for name, f in factors.items() if name in stays}
        known = self._latencies.known(executor)
        self._latencies.profiles_changed(
            executor, {name: known[name] if name in stays else p for name, p in measured.items()}
        )
        if any(name in before and name not in stays for name in measured):
            self._measure_slowdown_anew(executor)

    def executor_stopped(self, executor: ExecutorId) -> None:
        """Stop watching an executor; its factors apply again when it comes back."""
        del self._watched[executor], self._ratios[executor]

    def batch_completed(
        self, batch: RunningBatch, apps: Sequence[str], took_ns: int, now_ns: int
    ) -> list[ReportDrift]:
        """Learn from a batch; if it shows a drift, correct the profiles and report it.

        Called before `Learning.completed`, because the batch is compared with what was known before
        it. `took_ns` is its execution time with the interference of other executors removed.
        """
        infer = batch.infer
        executor, variant, size = infer.executor, infer.variant, infer.batch_size
        times = self._learning.times(executor, variant)
        if times is None:
            self.learn_speed(batch, took_ns, now_ns)
            return []
        watched = self._watched[executor][variant]
        indices = self._learning.indices(variant, apps)
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
        # Requests that are known to be long do not make an executor slow.
        expected_ns = round(self._expected_ns(times, infer, seen, indices, now_ns))
        self._calibration.batch_completed(executor, expected_ns, took_ns, now_ns)
        watched.seen.append((seen, now_ns))
        usual_ns = times.profiled_ns(size, seen.longest.quantile(0.5))
        drifted = watched.watch.add(took_ns / max(1.0, usual_ns), now_ns)
        watched.unchecked += 1
        if drifted is None and watched.unchecked < CHECKED_EVERY:
            return []
        return self._explain(executor, variant, drifted, now_ns)

    def learn_speed(self, batch: RunningBatch, took_ns: int, now_ns: int) -> None:
        """Learn from a batch how fast its executor is, and nothing of applications."""
        infer = batch.infer
        profile = self._latencies.known(infer.executor)[infer.variant]
        expected_ns = profile.quantile_ns(infer.batch_size, self._slowdown_quantile)
        self._calibration.batch_completed(infer.executor, expected_ns, took_ns, now_ns)

    def _expected_ns(
        self,
        times: BatchTimes,
        batch: Infer,
        seen: ObservedBatch,
        apps: Sequence[int],
        now_ns: int,
    ) -> float:
        """Return the expected time of a batch at `slowdown_quantile`.

        Normally that of the reference. An application that was unknown at the time of the reference
        may have long requests, or the executor may be slow; only other applications tell which. An
        executor is slow with all applications, so if another application takes a smaller multiple
        of its own time, the difference is no slowdown. Then the batch is compared with the first
        measurements of the unknown application, and before these exist with its own samples.
        """
        executor, variant, size = batch.executor, batch.variant, batch.batch_size
        watched, q = self._watched[executor][variant], self._slowdown_quantile
        reference, own = watched.reference, watched.own
        assert reference is not None
        assert own is not None
        usual_ns = times.profiled_ns(size, seen.longest.quantile(q))
        ratio = seen.took_ns / max(1.0, usual_ns)
        owner = self._learning.name(variant, seen.app)
        common = self._least_of_others(executor, owner, now_ns, default=ratio)
        self._ratios[executor][owner] = ratio, now_ns
        if reference.measured[seen.app] or common >= ratio:
            return usual_ns
        distributions = self._learning.distributions(variant)
        if any(distributions[app].known and not own.measured[app] for app in apps):
            own = watched.own = self._learning.reference(variant, own)
        hardly_known = (distributions[app] for app in frozenset(apps) if not own.measured[app])
        samples = (of.sampled_quantile(q) for of in hardly_known if of.samples)
        own_ns = times.profiled_ns(size, max(own.table.longest(apps).quantile(q), *samples, 0.0))
        return max(usual_ns, min(own_ns, seen.took_ns / max(1.0, common)))

    def _least_of_others(
        self, executor: ExecutorId, app: str, now_ns: int, default: float
    ) -> float:
        """Return the least ratio of other applications that ran recently; forget older ratios."""
        ratios = self._ratios[executor]
        ratios.pop(app, None)  # so that the newest is the last
        while ratios and ratios[oldest := next(iter(ratios))][1] < now_ns - HORIZON_NS:
            del ratios[oldest]
        return min((ratio for ratio, _ in ratios.values()), default=default)

    def confirmed_ns(self, executor: ExecutorId, variant: VariantName) -> int | None:
        """Return when batches last agreed with a variant's corrected profile; None: never."""
        watched = self._watched.get(executor, {}).get(variant)
        return watched.confirmed_ns if watched else None

    def _explain(
        self, executor: ExecutorId, variant: VariantName, drifted: Drifted | None, now_ns: int
    ) -> list[ReportDrift]:
        """Find the explanation of a variant's last batches and act on it."""
        watched = self._watched[executor][variant]
        times = self._learning.times(executor, variant)
        assert times is not None
        watched.unchecked = 0
        seen = [each for each, _ in watched.seen]
        of = times.profile_fixed_ns, times.profile_slope_ns
        found = drift_evidence.attributed(watched, VariantBatches(seen, *of))
        if found.factor == 1:
            newest = drift_evidence.attributed(watched, VariantBatches(seen[-NEWEST:], *of))
            watched.suspected, watched.confirmed_ns = None, now_ns
            # A change that has only just begun must not become part of the reference.
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
        elif watched.suspected is not None:
            # It began when the batches first showed it, also if the sign test needed longer.
            since_ns = min(drifted.since_ns, watched.suspected.since_ns)
            drifted = replace(drifted, since_ns=since_ns)
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
        alone = not every[variant].measured(every[variant].apps)
        for name, watched in every.items():
            unknown = not watched.measured(watched.apps)
            if name == variant or (alone and unknown and watched.seen):
                watched.confirmed_ns = now_ns
                watched.begin_anew()

    def _drifted(
        self, executor: ExecutorId, variant: VariantName, found: Attribution, drifted: Drifted
    ) -> ReportDrift:
        """Multiply the profiles by the factor that was found."""
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
        for app in changed:  # measurements since then are relative to the previous profile
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
        """Forget what an executor's slowness made look like long requests.

        This concerns the variant that showed it and the others that are corrected with it, because
        what was learned of them since includes the slowness. An application that has really changed
        keeps what was learned.
        """
        every, learning = self._watched[executor], self._learning
        for app in sorted(found.agreeing):
            of_app_ns = self._of_unknown_speed_ns(executor, variant, app, since_ns)
            learning.undo(executor, variant, [app], of_app_ns, every[variant].reference)
        seen = every[variant].apps
        changed = learning.names(variant, seen - found.agreeing)
        for other in sorted(others):
            of = every[other]
            # A newer reference may already include the slowness.
            before = of.reference if of.known_ns <= since_ns else None
            apps = learning.apps(other, without=(*changed, *learning.names(other, untold[other])))
            learning.undo(executor, other, apps, since_ns, before)

    def _of_unknown_speed_ns(
        self, executor: ExecutorId, variant: VariantName, app: int, since_ns: int
    ) -> int:
        """Return the instant from which measurements of an application may include the drift.

        For an application that was unknown at the time of the reference, that is all of them.
        """
        reference = self._watched[executor][variant].reference
        return since_ns if reference is not None and reference.measured[app] else 0

    def slow_period_ended(self, executor: ExecutorId, slow_period: SlowPeriod) -> None:
        """Forget what was learned in a slow period, if the executor was the cause.

        What was learned then looks like long requests as soon as the slowdown is gone. If other
        requests explain the batches, what was learned stays. So does what was learned of previously
        unknown applications: their requests may always have been long, unless batches outside the
        period say otherwise.
        """
        ran = {}
        for variant, watched in self._watched[executor].items():
            times = self._learning.times(executor, variant)
            if times is None or not watched.seen:
                continue
            seen = [each for each, _ in watched.seen]
            every = VariantBatches(seen, times.profile_fixed_ns, times.profile_slope_ns)
            if informative := drift_evidence.informative(watched, every, slow_period):
                ran[variant] = replace(every, batches=informative)
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
            # A newer reference may already include the slowness.
            before = watched.reference if watched.known_ns <= slow_period.since_ns else None
            self._learning.undo(executor, variant, of, slow_period.since_ns, before)
            if before is None:
                watched.begin_anew()  # the reference contains what was just forgotten

    def restore(self, factors: Mapping[tuple[ExecutorId, VariantName], float]) -> None:
        """Restore factors from before a restart, also for executors that have not started yet."""
        given: dict[ExecutorId, dict[VariantName, float]] = {}
        for (executor, variant), factor in factors.items():
            if (bounded := _bounded(factor)) != 1:
                given.setdefault(executor, {})[variant] = bounded
        for executor, of in given.items():
            self._set(executor, {**self.factors.get(executor, {}), **of})

    def forget(self, variants: Collection[VariantName]) -> None:
        """Forget the factors of some variants, and the batches that ran on them."""
        for executor, of in self.factors.items():
            if not of.keys().isdisjoint(variants):
                self._set(executor, {name: f for name, f in of.items() if name not in variants})
        for every in self._watched.values():
            for variant in every.keys() & variants:
                every[variant] = Watched(DriftDetector(self._after_ns))

    def _set(self, executor: ExecutorId, factors: Mapping[VariantName, float]) -> None:
        """Set the factors of an executor, which need not have started yet."""
        if executor in self._watched:
            measured = self._measured[executor]
            self._correct(executor, {name: factors.get(name, 1.0) for name in measured})
        else:
            self.factors[executor] = dict(factors)

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
        self._measure_slowdown_anew(executor)
        for watched in self._watched[executor].values():
            watched.begin_anew()

    def _measure_slowdown_anew(self, executor: ExecutorId) -> None:
        """Forget how slow an executor is: that is relative to its profiles, which have changed."""
        self._calibration.profiles_corrected(executor)
        self._latencies.set_slowdown(executor, self._calibration.slowdown(executor))
        self._ratios[executor] = {}


def _bounded(factor: float) -> float:
    low, high = FACTOR_LIMITS
    return 1.0 if abs(factor - 1) <= NEAR else min(max(factor, low), high)
