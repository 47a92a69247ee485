"""Owns which variants an idle executor may run: those of its own group first, then others if safe.

Pure. A plan may divide executors into groups with variants of their own (`domain.plans.Group`), so
that variants with tight deadlines do not wait for long batches of others. The Scheduler asks an
idle executor for a batch of its own group's variants first. If nothing waits for these on any
executor of the group, the executor may run a variant of another group (work stealing). Two
conditions hold: no executor of that other group is idle, and a batch of all waiting requests takes
at most the plan's `steal_budget_ns`. Then the stolen batch makes no request of the executor's own
group late (`planning.batch_cycle` proves this). Executors therefore stay idle beside a queue only
where stealing is not safe.

Any executor may run a variant that belongs to no group, or that no executor of its group has in
memory. An executor outside all groups serves every variant. Without groups nothing is excluded.
"""

from collections.abc import Iterable, Mapping

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.domain.plans import Group
from edgebox.scheduling.expectations import Expectations
from edgebox.scheduling.expected_latencies import Latencies

Excluded = frozenset[VariantName]
"""Variants that an executor may not run now."""
NONE: Excluded = frozenset()


class ExecutorAffinity:
    """The groups of the plan in force, and the variants each executor may run."""

    def __init__(self, latencies: Latencies, expectations: Expectations) -> None:
        self._latencies = latencies
        self._expectations = expectations
        self.groups: tuple[Group, ...] = ()
        """The groups as planned."""
        self._group_of: dict[ExecutorId, Group] = {}
        self._non_affine: dict[ExecutorId, Excluded] | None = None
        self._version = 0

    def planned(self, groups: tuple[Group, ...]) -> None:
        """Apply the groups of a plan."""
        self.groups = groups
        self._group_of = {e: group for group in self.groups for e in group.executors}
        self._non_affine = None

    def non_affine(self, executor: ExecutorId) -> Excluded:
        """Return the variants that belong to another group."""
        if self._non_affine is None or self._version != self._latencies.loaded_version:
            self._version = self._latencies.loaded_version
            self._non_affine = self._of_other_groups()
        return self._non_affine.get(executor, NONE)

    def _of_other_groups(self) -> dict[ExecutorId, Excluded]:
        affine = {
            variant: group
            for group in self.groups
            for variant in group.variants
            if not set(group.executors).isdisjoint(self._latencies.executors(variant))
        }
        return {
            executor: frozenset(v for v, home in affine.items() if home is not group)
            for executor, group in self._group_of.items()
        }

    def shares(
        self, executors: Iterable[ExecutorId], wanted: Mapping[VariantName, int]
    ) -> dict[ExecutorId, dict[VariantName, int]]:
        """Return the variants that each executor is to serve, with their numbers of cameras."""
        return {
            executor: {variant: wanted[variant] for variant in self.serves(executor, wanted)}
            for executor in executors
        }

    def serves(self, executor: ExecutorId, variants: Iterable[VariantName]) -> list[VariantName]:
        """Return those of these variants that the plan assigns to an executor."""
        own = self._group_of.get(executor)
        others = {v for group in self.groups if group is not own for v in group.variants}
        return [v for v in variants if own is None or v not in others]

    def unsafe(
        self, executor: ExecutorId, ready: Mapping[VariantName, Mapping[str, int]]
    ) -> Excluded | None:
        """Return the variants that an idle executor may not steal; None: it may steal nothing.

        Args:
            executor: an executor that found no batch of its own group, like all idle ones.
            ready: the number of waiting requests by variant and application.
        """
        non_affine = self.non_affine(executor)
        if not any(ready.get(variant) for variant in non_affine):
            return None
        own = self._group_of[executor]
        if any(ready.get(variant) for variant in own.variants):
            return None
        budget_ns = own.steal_budget_ns - self._latencies.overhead_ns(executor)
        return frozenset(
            v for v in non_affine if self._takes_ns(executor, v, ready.get(v, {})) > budget_ns
        )

    def _takes_ns(
        self, executor: ExecutorId, variant: VariantName, waiting: Mapping[str, int]
    ) -> int:
        """Return the high quantile of the time of the largest batch of the waiting requests.

        The slowest of their applications counts, as in planning.
        """
        profile = self._latencies.profiles(executor).get(variant)
        if profile is None or not waiting:
            return 0  # it cannot run there, or no request waits for it
        size = min(sum(waiting.values()), profile.batch_sizes[-1])
        others = self._latencies.busy.others(executor)
        return max(
            self._expectations.high_ns(executor, variant, app, size, others) for app in waiting
        )
