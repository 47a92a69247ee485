"""Owns the expected times of batches: profiles times slowdown, prepared for look-up.

Pure. Rows are built on first use and kept until the slowdown changes, because a decision looks them
up several times per event.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from edgebox.domain.model_family import ExecutorId, LatencyProfile, VariantName, device_of
from edgebox.scheduling.actions import Infer
from edgebox.scheduling.busy import BusyExecutors
from edgebox.scheduling.concurrency import DeviceConcurrency, device_concurrency
from edgebox.scheduling.ledger import RunningBatch
from edgebox.scheduling.scheduler_parameters import SchedulerParameters


@dataclass(frozen=True, slots=True)
class Row:
    """Expected times of one variant on one executor; each tuple has one entry per size.

    Times never fall from one size to the next: if a larger batch was measured as faster, that was
    noise.
    """

    sizes: tuple[int, ...]
    """Profiled batch sizes, rising."""
    low_ns: tuple[int, ...]
    median_ns: tuple[int, ...]
    high_ns: tuple[int, ...]


@dataclass(slots=True)
class _OnExecutor:
    known: dict[VariantName, LatencyProfile]
    profiles: dict[VariantName, LatencyProfile]
    """The profiles of the variants in memory."""
    slowdown: float
    rows: dict[tuple[VariantName, int], Row]
    """By variant and the number of other running executors."""
    overhead_ns: int = 0


class Latencies:
    """The profiles of all executors, calibrated. Policies read them, the Scheduler updates them."""

    def __init__(self, parameters: SchedulerParameters) -> None:
        self.parameters = parameters
        """The tunables of the core."""
        self._low = parameters.low_quantile
        self._high = parameters.high_quantile
        self._executors: dict[ExecutorId, _OnExecutor] = {}
        self._best: dict[VariantName, Row | None] = {}
        self._ranking: tuple[ExecutorId, ...] | None = None
        self._all_known: dict[ExecutorId, Mapping[VariantName, LatencyProfile]] | None = None
        self._concurrency: dict[str, DeviceConcurrency] | None = None
        self.busy = BusyExecutors()
        """Which executors run a batch now."""
        self.version = 0
        """Incremented with every change of an expected time."""
        self.loaded_version = 0
        """Incremented with every change of which executor has which variants in memory."""

    def executor_started(self, executor: ExecutorId, profiles: Sequence[LatencyProfile]) -> None:
        """Add an executor; a profile without any batch size is ignored."""
        known = {profile.variant: profile for profile in profiles if profile.quantiles_ns}
        self._executors[executor] = _OnExecutor(known, known, 1.0, {})
        self._concurrency = None
        self.loaded_version += 1
        self._changed()

    def __contains__(self, executor: ExecutorId) -> bool:
        """Say whether an executor exists."""
        return executor in self._executors

    def set_resident(self, executor: ExecutorId, variants: Collection[VariantName]) -> None:
        """Set the variants that an executor has in memory."""
        at = self._executors[executor]
        at.profiles = {name: at.known[name] for name in variants if name in at.known}
        self.loaded_version += 1
        at.rows.clear()
        self._changed()

    def profiles_changed(
        self, executor: ExecutorId, profiles: Mapping[VariantName, LatencyProfile]
    ) -> None:
        """Replace all profiles of an executor; it has all of these variants in memory."""
        self._executors[executor].known = dict(profiles)
        self._concurrency = None
        self.set_resident(executor, profiles)

    def correct(self, executor: ExecutorId, profiles: Mapping[VariantName, LatencyProfile]) -> None:
        """Replace some of an executor's profiles."""
        at = self._executors[executor]
        at.known = {**at.known, **profiles}
        self.set_resident(executor, at.profiles)

    def executor_stopped(self, executor: ExecutorId) -> None:
        """Remove an executor."""
        del self._executors[executor]
        self._concurrency = None
        self.loaded_version += 1
        self._changed()

    def set_slowdown(self, executor: ExecutorId, slowdown: float) -> None:
        """Set the factor of an executor's profiles."""
        at = self._executors[executor]
        if at.slowdown != slowdown:
            at.slowdown = slowdown
            at.rows.clear()
            self._changed()

    def set_overhead(self, executor: ExecutorId, overhead_ns: int) -> None:
        """Set the overhead of an executor's batches."""
        self._executors[executor].overhead_ns = overhead_ns

    def overhead_ns(self, executor: ExecutorId) -> int:
        """Return the overhead of a batch: handing it over, and its outputs back."""
        return self._executors[executor].overhead_ns

    def slowed(
        self, executor: ExecutorId, variant: VariantName, others: float | None = None
    ) -> float:
        """Return the interference factor while this many others run; None: as many as now."""
        if others is None:
            others = self.busy.others(executor)
        profile = self._executors[executor].known.get(variant)
        return 1.0 if profile is None else profile.slowed(others)

    def core_factor(self, infer: Infer) -> float:
        """Return the factor by which a batch takes longer than with all threads."""
        profile = self._executors[infer.executor].known.get(infer.variant)
        return 1.0 if profile is None else profile.core_factor(infer.batch_size, infer.threads)

    def _changed(self) -> None:
        self._best.clear()
        self._ranking = self._all_known = None
        self.version += 1

    def slowdown(self, executor: ExecutorId) -> float:
        """Return the factor of an executor's profiles."""
        return self._executors[executor].slowdown

    @property
    def slowdowns(self) -> dict[ExecutorId, float]:
        """The factor of each executor's profiles."""
        return {executor: at.slowdown for executor, at in self._executors.items()}

    def profiles(self, executor: ExecutorId) -> Mapping[VariantName, LatencyProfile]:
        """Return the profiles of the variants in an executor's memory, without its slowdown."""
        return self._executors[executor].profiles

    def known(self, executor: ExecutorId) -> Mapping[VariantName, LatencyProfile]:
        """Return the profiles of all variants that an executor can run, in memory or not."""
        return self._executors[executor].known

    @property
    def all_known(self) -> dict[ExecutorId, Mapping[VariantName, LatencyProfile]]:
        """The profiles of all variants that each executor can run; never changed in place."""
        if self._all_known is None:
            self._all_known = {executor: at.known for executor, at in self._executors.items()}
        return self._all_known

    @property
    def concurrency(self) -> Mapping[str, DeviceConcurrency]:
        """How many batches run at once on each device; O(executors x variants) after a change."""
        if self._concurrency is None:
            limit = self.parameters.concurrent_batches
            self._concurrency = device_concurrency(self.all_known, limit)
        return self._concurrency

    def concurrency_of(self, executor: ExecutorId) -> DeviceConcurrency:
        """Return how many batches run at once on an executor's device."""
        return self.concurrency[device_of(executor)]

    @property
    def batches_at_once(self) -> int:
        """The number of batches that may run at once on all devices together, at least 1."""
        return max(1, sum(device.limit for device in self.concurrency.values()))

    def any_profile(self, variant: VariantName) -> LatencyProfile | None:
        """Return any profile of a variant, in memory or not; None if there is none."""
        known = (at.known.get(variant) for at in self._executors.values())
        return next((profile for profile in known if profile is not None), None)

    def executors(self, variant: VariantName) -> list[ExecutorId]:
        """Return the executors that have a variant loaded."""
        return [executor for executor, at in self._executors.items() if variant in at.profiles]

    def row(
        self, executor: ExecutorId, variant: VariantName, others: int | None = None
    ) -> Row | None:
        """Return the expected times of a variant on an executor; None if it is not loaded.

        The times include the interference of `others` running executors; None: as many as now.
        """
        if others is None:
            others = self.busy.others(executor)
        at = self._executors[executor]
        row = at.rows.get((variant, others))
        if row is None and variant in at.profiles:
            profile = at.profiles[variant]
            row = self._build(profile, at.slowdown * profile.slowed(others))
            at.rows[variant, others] = row
        return row

    def usually_free_ns(self, batch: RunningBatch) -> int | None:
        """Return when the executor of a running batch is usually free again; None: not known."""
        if batch.rests_until_ns is not None:
            return batch.rests_until_ns
        infer = batch.infer
        row = self.row(infer.executor, infer.variant)
        if row is None or infer.batch_size not in row.sizes:
            return None
        took_ns = row.median_ns[row.sizes.index(infer.batch_size)]
        return batch.started_ns + round(took_ns * self.core_factor(infer))

    def best(self, variant: VariantName) -> Row | None:
        """Return the row of the fastest executor for one request; None if no executor holds the
        variant.

        Its times contain no interference, so that no request that may still be on time is dropped.
        """
        try:
            return self._best[variant]
        except KeyError:
            rows = [row for e in self._executors if (row := self.row(e, variant, 0)) is not None]
            best = min(rows, key=lambda row: row.low_ns[0], default=None)
            self._best[variant] = best
            return best

    def fastest_first(self) -> tuple[ExecutorId, ...]:
        """Return all executors in the order in which idle ones get work.

        An executor's rank is its throughput (pictures per second in its best batch, by the median)
        relative to the best executor's, averaged over its variants. All executors belong to the box
        and cost the same, so this is the throughput-cost order of Harpagon, section III-B. Equal
        ones keep the order of their start. O(executors x variants) after a change.
        """
        if self._ranking is None:
            cost: dict[ExecutorId, dict[VariantName, float]] = {}
            least: dict[VariantName, float] = {}
            for executor, at in self._executors.items():
                of = cost[executor] = {}
                for variant in at.profiles:
                    row = self.row(executor, variant, 0)
                    assert row is not None
                    pairs = zip(row.median_ns, row.sizes, strict=True)
                    of[variant] = max(1.0, min(time_ns / size for time_ns, size in pairs))
                    least[variant] = min(of[variant], least.get(variant, of[variant]))
            rank = {
                executor: sum(least[v] / ns for v, ns in of.items()) / max(1, len(of))
                for executor, of in cost.items()
            }
            self._ranking = tuple(sorted(cost, key=lambda executor: -rank[executor]))
        return self._ranking

    def _build(self, profile: LatencyProfile, slowdown: float) -> Row:
        sizes = profile.batch_sizes

        def times(q: float) -> tuple[int, ...]:
            expected = (round(profile.quantile_ns(size, q) * slowdown) for size in sizes)
            return tuple(accumulate(expected, max))

        return Row(sizes, times(self._low), times(0.5), times(self._high))
