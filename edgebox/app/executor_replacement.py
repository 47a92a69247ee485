"""Opens a lost executor again, as at the start of the box.

Limits: it decides neither when nor about fallbacks.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from edgebox.app.executor_setup import Opened
from edgebox.app.startup import ModelInventory, warm
from edgebox.domain.model_family import ExecutorId, LatencyProfile, VariantName
from edgebox.inference.executor import THREADS
from edgebox.inference.executor_spec import open_executor
from edgebox.inference.family import Family
from edgebox.inference.model_executor import ExecutorSpecification, ModelExecutor
from edgebox.runtime.supervisor import Reopened
from edgebox.scheduling.events import MemoryLimited

Profiles = Callable[[], Mapping[ExecutorId, Mapping[VariantName, LatencyProfile]]]


class ExecutorReplacer:
    """Opens lost executors again, from what they were opened with at the start."""

    def __init__(
        self, opened: Opened, families: Sequence[Family], found: ModelInventory, profiles: Profiles
    ) -> None:
        """Start without replacements.

        Args:
            opened: the executors; replacements are added to them and closed with them.
            families: the families that the box serves, which may change.
            found: the models at the start.
            profiles: returns the present profiles of executors.
        """
        self._opened = opened
        self._families = families
        self._loaders = dict(found.loaders)
        self._limits = {limited.executor: limited for limited in found.limits}
        self._profiles = profiles

    def add(
        self, executor: ModelExecutor, spec: ExecutorSpecification, found: ModelInventory
    ) -> None:
        """Add an executor that may have to be replaced. Called on the loop."""
        self._opened.executors.append(executor)
        self._opened.specs[executor.id] = spec
        self._loaders |= found.loaders
        self._limits |= {limited.executor: limited for limited in found.limits}

    def open(self, lost: ExecutorId) -> Reopened:
        """Open an executor again and warm it; blocks, in any thread.

        Raises:
            ModelError: it cannot be opened, or nothing runs on it.
        """
        families = list(self._families)  # they may change meanwhile
        executor = open_executor(self._opened.specs[lost], families)
        try:
            reopened = self._warmed(executor, families)
        except BaseException:
            executor.abandon()
            raise
        ran = self._profiles()[lost]
        problems = tuple(
            f"{family.name} does not run on {lost} any more: {executor.failed[family.name]}"
            for family in families
            if family.name in executor.failed and any(v.name in ran for v in family.variants)
        )
        return replace(
            reopened,
            problems=problems,
            on_use=lambda: self._takes_the_place(executor, families),
            present=lambda: self._present(executor, families),
        )

    def _takes_the_place(self, executor: ModelExecutor, families: Sequence[Family]) -> None:
        """Register a replacement to be closed. Called on the loop, like `add`.

        What was removed or exchanged since it was opened with these families is dropped.
        """
        executors = self._opened.executors
        executors[:] = [executor if each.id == executor.id else each for each in executors]
        drop_in_background(executor, [each for each in families if each not in self._families])

    def _present(
        self, executor: ModelExecutor, families: Sequence[Family]
    ) -> tuple[LatencyProfile, ...]:
        """Return the present profiles of what is offered, of an executor with these families.

        Another family may have come under the name of one of them: that one's are not among them.
        """
        offered = {
            variant.name
            for family in self._families
            if family.name in executor.families and family in families
            for variant in family.offered
        }
        profiles = self._profiles()[executor.id].items()
        return tuple(profile for variant, profile in profiles if variant in offered)

    def _warmed(self, executor: ModelExecutor, families: Sequence[Family]) -> Reopened:
        profiles = self._present(executor, families)
        limited = self._limits.get(executor.id)
        if limited is None:
            warm(executor, profiles)
            return Reopened(executor, profiles)
        limited = _less(limited, families)
        loader = self._loaders[executor.id].on(executor)
        for weights in limited.resident:
            loader.load(weights)
        return Reopened(executor, profiles, limited, loader)


def _less(limited: MemoryLimited, families: Sequence[Family]) -> MemoryLimited:
    """Return the limit of a memory without the weights of removed families."""
    held = {variant.name for family in families for variant in family.variants}
    gone = {each.id for each in limited.weights if held.isdisjoint(each.variants)}
    return replace(
        limited,
        weights=tuple(each for each in limited.weights if each.id not in gone),
        resident=tuple(each for each in limited.resident if each not in gone),
    )


def drop_in_background(executor: ModelExecutor, families: Sequence[Family]) -> None:
    """Have an executor hold families no more, without waiting for it."""
    for family in families:
        threading.Thread(
            target=executor.drop_family,
            args=(family,),
            name=f"{THREADS}drop-{executor.id}",
            daemon=True,
        ).start()
