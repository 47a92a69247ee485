"""Opens a lost executor again, as at the start of the box.

Limits: it decides neither when nor about fallbacks.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from edgebox.app.executor_setup import Opened
from edgebox.app.startup import ModelInventory, warm
from edgebox.domain.model_family import ExecutorId, LatencyProfile, VariantName
from edgebox.inference.executor_spec import open_executor
from edgebox.inference.family import Family
from edgebox.inference.model_executor import ExecutorSpecification, ModelExecutor
from edgebox.runtime.supervisor import Reopened

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
        executor = open_executor(self._opened.specs[lost], self._families)
        try:
            reopened = self._warmed(executor)
        except BaseException:
            executor.abandon()
            raise
        ran = self._profiles()[lost]
        problems = tuple(
            f"{family.name} does not run on {lost} any more: {executor.failed[family.name]}"
            for family in self._families
            if family.name in executor.failed and any(v.name in ran for v in family.variants)
        )
        return replace(reopened, problems=problems, on_use=lambda: self._takes_the_place(executor))

    def _takes_the_place(self, executor: ModelExecutor) -> None:
        """Register a replacement to be closed. Called on the loop, like `add`."""
        executors = self._opened.executors
        executors[:] = [executor if each.id == executor.id else each for each in executors]

    def _warmed(self, executor: ModelExecutor) -> Reopened:
        held = {
            variant.name
            for family in self._families
            if family.name in executor.families
            for variant in family.variants
        }
        offered = {variant.name for family in self._families for variant in family.offered}
        profiles = tuple(
            profile
            for variant, profile in self._profiles()[executor.id].items()
            if variant in held & offered
        )
        limited = self._limits.get(executor.id)
        if limited is None:
            warm(executor, profiles)
            return Reopened(executor, profiles)
        loader = self._loaders[executor.id].on(executor)
        for weights in limited.resident:
            loader.load(weights)
        return Reopened(executor, profiles, limited, loader)
