"""Puts families on the executors of a running box, and takes them off again.

A family is measured in between the batches of cameras, unless its times are stored.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from edgebox.app.borrowed_executors import PacedExecutor, lent, lent_report
from edgebox.app.executor_profiles import (
    Profiles,
    change_profiles,
    executors_up,
    report_hung,
    with_unmeasured,
)
from edgebox.app.executor_setup import Opened
from edgebox.app.profile_lookup import stored_profiles
from edgebox.app.remembered_learning import RememberedLearning
from edgebox.app.startup import measure, warm
from edgebox.config.inference_section import InferenceParameters
from edgebox.domain.errors import EdgeboxError
from edgebox.domain.model_family import ExecutorId, FamilyName, LatencyProfile, VariantName
from edgebox.inference.executor import HungError
from edgebox.inference.family import Family
from edgebox.inference.fingerprint import fingerprint
from edgebox.inference.model_executor import ModelExecutor
from edgebox.runtime.box import Box
from edgebox.storage.database import Storage

_BATCH_NS_MAX = 50_000_000
"""Batches beside cameras: larger ones are measured at the next start."""

Progress = Callable[[str, float], None]


@dataclass(slots=True)
class FamilyPlacement:
    """Which families the executors of one box hold and run."""

    inference: InferenceParameters
    box: Box
    storage: Storage
    opened: Opened
    learning: RememberedLearning
    _hung: set[tuple[ExecutorId, FamilyName]] = field(default_factory=set)
    """The families that hung on an executor while they were added to it: not tried there again."""

    def executors(self, family: Family) -> list[ModelExecutor]:
        """Return the executors that are up and may hold a family, those of this machine first."""
        found = [
            executor
            for executor in executors_up(self.box)
            if self.opened.specs[executor.id].holds(family.name)
        ]
        return sorted(found, key=lambda executor: not executor.shares_machine)

    def lacks(self, executor: ModelExecutor, family: Family) -> bool:
        """Say whether an executor does not run a family that it may try."""
        if (executor.id, family.name) in self._hung:
            return False
        profiles = self.box.profiles[executor.id]
        known = any(variant.name in profiles for variant in family.variants)
        return family.name not in executor.families or not known

    async def hold(
        self, executor: ModelExecutor, family: Family, progress: Progress, *, held: bool = False
    ) -> tuple[list[LatencyProfile], bool]:
        """Have an executor hold a family; return its profiles, and whether they were stored.

        Where that fails it does not hold it afterwards. `held`: it was opened with it.

        Raises:
            ModelError: it does not run there.
            StorageError: its times cannot be looked up.
        """
        try:
            if not held:
                await asyncio.to_thread(executor.add_family, family)
            return await self._profiles(family, executor, progress)
        except HungError:
            self._hung.add((executor.id, family.name))
            report_hung(self.box, executor)
            raise
        except EdgeboxError:
            await asyncio.to_thread(executor.drop_family, family)
            raise

    async def use(
        self,
        executor: ModelExecutor,
        family: Family,
        profiles: Sequence[LatencyProfile],
        *,
        stored: bool,
    ) -> None:
        """Run a family on an executor that holds it."""

        def more(known: Profiles) -> Profiles:
            added = {profile.variant: with_unmeasured(profile, known) for profile in profiles}
            return {**known, **added}

        await change_profiles(self.box, executor.id, more)
        if stored:
            await self.learning.restore_executor(executor, [family])

    async def take_off(self, family: Family) -> None:
        """Run a family that nobody asks for any more on no executor, and free its memory.

        Requests that are on their way may still need it: they are waited for.
        """
        variants = frozenset(variant.name for variant in family.variants)

        def without(known: Profiles) -> Profiles:
            return {name: of for name, of in known.items() if name not in variants}

        await self._unused(variants)
        self.learning.leave(family.name)
        for executor, profiles in list(self.box.profiles.items()):
            if not variants.isdisjoint(profiles):
                await change_profiles(self.box, executor, without)
        driver = self.box.driver  # an earlier call may have changed them, and not waited
        await driver.until(
            lambda: not any(map(driver.scheduler.awaits_profiles, self.box.profiles))
        )
        await self._unused(variants)  # some may have come while an executor was busy
        for holder in self.executors(family):
            await asyncio.to_thread(holder.drop_family, family)
        self._hung = {each for each in self._hung if each[1] != family.name}

    async def _unused(self, variants: frozenset[VariantName]) -> None:
        """Wait until no request runs on some variants or waits for them: until their deadlines."""
        driver = self.box.driver
        await driver.until(lambda: variants.isdisjoint(driver.scheduler.variants_in_use))

    async def _profiles(
        self, family: Family, executor: ModelExecutor, progress: Progress
    ) -> tuple[list[LatencyProfile], bool]:
        """Return a family's profiles, measured unless they are stored, and whether they are."""
        inference = self.inference
        stored = await stored_profiles(self.storage, executor, family, inference.batch_size_max)
        report = lent_report(self.box.driver, executor.id)
        if stored:
            with lent(report):
                await asyncio.to_thread(warm, executor, stored)
            return stored, True
        beside = bool(self.box.connected)
        paced = PacedExecutor(executor, report, lambda: bool(self.box.connected))
        found = await asyncio.to_thread(
            measure,
            inference,
            paced,
            family,
            progress,
            batch_ns_max=_BATCH_NS_MAX if beside else None,
        )
        # What was measured beside cameras has no large batches: the next start measures again.
        if not beside and not paced.shared:
            self.storage.save_profiles(fingerprint(executor, family), found)
        return found, False
