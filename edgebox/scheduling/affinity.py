"""Owns which variants an idle executor may run: its own first, others' where that harms nobody.

Pure. A plan may give groups of executors variants of their own (`domain.plans.Group`), so that
those with tight deadlines are not behind the long batches of the others. An idle executor is
asked for a batch of its own variants first. Where nothing waits for these on any executor of its
group, it may run others' that no executor at home is idle for, as long as a batch of all that
waits takes no longer than what the plan lends: then nobody at home becomes late by it
(`planning.batch_cycle` proves that). So executors idle beside a queue only where it is not safe.

A variant that no group has, or none of whose executors has it in memory now, is everybody's; an
executor that is in no group serves all. Without groups nothing is excluded from anywhere.
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
    """The groups of the plan in force, and what follows from them."""

    def __init__(self, latencies: Latencies, expectations: Expectations) -> None:
        self._latencies = latencies
        self._expectations = expectations
        self.groups: tuple[Group, ...] = ()
        """As planned."""
        self._group_of: dict[ExecutorId, Group] = {}
        self._foreign: dict[ExecutorId, Excluded] = {}

    def planned(self, groups: tuple[Group, ...]) -> None:
        """Put a plan's groups into force."""
        self.groups = groups
        self.refresh()

    def refresh(self) -> None:
        """Look again which executors there are and what they have in memory."""
        self._group_of = {e: group for group in self.groups for e in group.executors}
        at_home = {
            variant: group
            for group in self.groups
            for variant in group.variants
            if not set(group.executors).isdisjoint(self._latencies.executors(variant))
        }
        self._foreign = {
            executor: frozenset(v for v, home in at_home.items() if home is not group)
            for executor, group in self._group_of.items()
        }

    def non_affine(self, executor: ExecutorId) -> Excluded:
        """Return the variants whose home is elsewhere."""
        return self._foreign.get(executor, NONE)

    def shares(
        self, executors: Iterable[ExecutorId], wanted: Mapping[VariantName, int]
    ) -> dict[ExecutorId, dict[VariantName, int]]:
        """Return which of these variants each executor is to serve, with their numbers."""
        return {
            executor: {variant: wanted[variant] for variant in self.serves(executor, wanted)}
            for executor in executors
        }

    def serves(self, executor: ExecutorId, variants: Iterable[VariantName]) -> list[VariantName]:
        """Return those of these variants that an executor is planned to run."""
        own = self._group_of.get(executor)
        others = {v for group in self.groups if group is not own for v in group.variants}
        return [v for v in variants if own is None or v not in others]

    def unsafe(
        self, executor: ExecutorId, ready: Mapping[VariantName, Mapping[str, int]]
    ) -> Excluded | None:
        """Return what an idle executor must leave alone beside its own; None: it runs no others'.

        Args:
            executor: it was asked for a batch of its own already, as were all idle ones.
            ready: how many requests wait for each variant, by application.
        """
        non_affine = self.non_affine(executor)
        if not any(ready.get(variant) for variant in non_affine):
            return None
        own = self._group_of[executor]
        if any(ready.get(variant) for variant in own.variants):
            return None
        lent_ns = own.steal_budget_ns - self._latencies.overhead_ns(executor)
        return frozenset(
            v for v in non_affine if self._takes_ns(executor, v, ready.get(v, {})) > lent_ns
        )

    def _takes_ns(
        self, executor: ExecutorId, variant: VariantName, waiting: Mapping[str, int]
    ) -> int:
        """Return what the largest batch of those who wait takes at the high quantile.

        By what is known of the slowest of their applications, as plans reckon with it.
        """
        profile = self._latencies.profiles(executor).get(variant)
        if profile is None or not waiting:
            return 0  # it cannot run there anyway, or nobody wants it to
        size = min(sum(waiting.values()), profile.batch_sizes[-1])
        others = self._latencies.busy.others(executor)
        return max(
            self._expectations.high_ns(executor, variant, app, size, others) for app in waiting
        )
