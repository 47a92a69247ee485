"""Adds executors to a box that runs: opens them, measures them, and tells the core."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace

from edgebox.app.executor_replacement import ExecutorReplacer, drop_in_background
from edgebox.app.executor_setup import open_in_time
from edgebox.app.startup import ModelInventory, measured
from edgebox.config.inference_section import InferenceParameters
from edgebox.domain.errors import ModelError
from edgebox.domain.interference import with_greatest_interference
from edgebox.domain.model_family import ExecutorId, LatencyProfile, device_of
from edgebox.inference.family import Family
from edgebox.inference.model_executor import ExecutorSpecification, ModelExecutor
from edgebox.runtime.box import Box
from edgebox.scheduling.events import ExecutorStarted
from edgebox.storage.database import Storage


class ExecutorAdder:
    """Adds executors; what is added is replaced when it is lost, and closed with the others."""

    def __init__(
        self,
        box: Box,
        replacements: ExecutorReplacer,
        families: Sequence[Family],
        *,
        prepare: tuple[InferenceParameters, Storage],
    ) -> None:
        """Add nothing yet.

        Args:
            box: the running box.
            replacements: receives what is added.
            families: the families that the box serves, which may change.
            prepare: parameters and storage for measuring.
        """
        self._box = box
        self._replacements = replacements
        self._families = families
        self._prepare = prepare
        self._measuring = asyncio.Lock()
        """Executors of one server would slow each other, and one has the times of the other."""

    async def open(self, spec: ExecutorSpecification, note: str = "") -> ModelExecutor:
        """Open an executor and use it.

        Raises:
            EdgeboxError: it cannot be opened, or nothing runs on it.
        """
        opened_with = list(self._families)
        opening = asyncio.ensure_future(asyncio.to_thread(open_in_time, spec, opened_with))
        try:
            executor = await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(_abandon_opened)
            raise
        try:
            async with self._measuring:
                found = await self._measured(executor)
                while later := self._later(spec, opened_with):
                    opened_with += later
                    for family in later:
                        await self._add_family(executor, family)
                    found = await self._measured(executor)
            alone = self._present(found.profiles.get(executor.id, ()), opened_with)
            profiles = self._beside_others(executor.id, alone)
            if not profiles:
                raise ModelError("; ".join(found.problems) or "nothing runs on it")
        except BaseException:
            executor.abandon()
            raise
        if note:
            executor.note = note
        self._replacements.add(executor, spec, found)
        box, driver = self._box, self._box.driver
        box.set_profiles(executor.id, {p.variant: p for p in profiles})
        driver.add(executor, found.loaders.get(executor.id))
        served = tuple(p for p in profiles if p.variant in driver.variants)
        memory = next((of for of in found.limits if of.executor == executor.id), None)
        driver.feed(ExecutorStarted(executor.id, served, memory=memory))
        drop_in_background(executor, self._removed(opened_with))
        return executor

    async def _measured(self, executor: ModelExecutor) -> ModelInventory:
        inference, storage = self._prepare
        held = [family.name for family in self._families if family.name in executor.families]
        if held and inference.family not in held:
            # It is measured for what it holds; others hold the default.
            inference = replace(inference, family=held[0])
        return await measured(
            inference, storage, [executor], self._families, lambda text, share: None
        )

    def _later(self, spec: ExecutorSpecification, known: Sequence[Family]) -> list[Family]:
        """Return the families for an executor that were imported while it was opened."""
        return [
            family for family in self._families if family not in known and spec.holds(family.name)
        ]

    def _removed(self, known: Sequence[Family]) -> list[Family]:
        """Return the families of these that were removed while the executor was opened."""
        return [family for family in known if family not in self._families]

    def _present(
        self, profiles: Iterable[LatencyProfile], known: Sequence[Family]
    ) -> list[LatencyProfile]:
        """Return the profiles without those of removed families."""
        present, removed = (
            {variant.name for family in families for variant in family.variants}
            for families in (self._families, self._removed(known))
        )
        return [of for of in profiles if of.variant in present or of.variant not in removed]

    def _beside_others(
        self, executor: ExecutorId, profiles: Iterable[LatencyProfile]
    ) -> list[LatencyProfile]:
        """Return profiles that were measured alone with the interference of their device."""
        near = [
            profile
            for other, known in self._box.profiles.items()
            if other != executor and device_of(other) == device_of(executor)
            for profile in known.values()
        ]
        return [with_greatest_interference(profile, near) for profile in profiles]

    async def _add_family(self, executor: ModelExecutor, family: Family) -> None:
        try:
            await asyncio.to_thread(executor.add_family, family)
        except ModelError as error:
            text = f"{family.name} does not run on {executor.id}: {error}"
            self._box.notices.publish("warning", text)


def _abandon_opened(opening: asyncio.Future[ModelExecutor]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().abandon()
