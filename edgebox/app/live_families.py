"""Changes which families a running box serves: adds imported ones, removes them, sets the default.

A new family is measured in between the batches of cameras. Nothing can ask for a removed family any
more, but requests that are on their way may still need it. Once none does it is withdrawn: the core
knows its variants no more, so that nothing of it is taken for that of another one under its name,
and executors free its memory.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from edgebox.app.borrowed_executors import PacedExecutor, lent, lent_report
from edgebox.app.executor_profiles import executors_up, use_profiles
from edgebox.app.executor_setup import Opened
from edgebox.app.family_removal import check_unused, remove_family
from edgebox.app.profile_lookup import stored_profiles
from edgebox.app.remembered_learning import RememberedLearning
from edgebox.app.served_families import ServedFamilies
from edgebox.app.startup import measure, warm
from edgebox.config.config_file import Config
from edgebox.config.default_family import store_default
from edgebox.domain.errors import EdgeboxError, ModelError
from edgebox.domain.job_errors import FamilyInUseError
from edgebox.domain.model_family import ExecutorId, FamilyName, LatencyProfile, VariantName
from edgebox.inference.executor import HungError
from edgebox.inference.family import Family
from edgebox.inference.fingerprint import fingerprint
from edgebox.inference.model_executor import ModelExecutor
from edgebox.inference.zoo import load_family
from edgebox.runtime.box import Box
from edgebox.scheduling.events import ExecutorHung, VariantsAvailable
from edgebox.storage.database import Storage

_POLL_S = 0.002
_BATCH_NS_MAX = 50_000_000
"""Batches beside cameras: larger ones are measured at the next start."""

LOOK_EVERY_S = 5.0
"""Period at which it is looked whether executors that came back lack families."""
ASK_AGAIN_S = 60.0
"""Period at which a server is asked again for families that it lacks."""

_log = logging.getLogger(__name__)

Progress = Callable[[str, float], None]


@dataclass(slots=True)
class LiveFamilies:
    """The families of one running box."""

    config: Config
    box: Box
    storage: Storage
    served: ServedFamilies
    opened: Opened
    learning: RememberedLearning
    _removed: asyncio.Event = field(default_factory=asyncio.Event)
    """Whether there may be families to withdraw."""
    _withdrawing: asyncio.Lock = field(default_factory=asyncio.Lock)
    _adding: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while a family is added, to all executors or to one that lacks it."""
    _hung: set[tuple[ExecutorId, FamilyName]] = field(default_factory=set)
    """The families that hung on an executor while they were added to it: not tried there again."""
    _choosing: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while a family is removed or becomes the default: not both at once."""

    async def run(self) -> None:
        """Withdraw removed families, each once nothing needs it any more, until cancelled."""
        while True:
            await self._removed.wait()
            self._removed.clear()
            for name in list(self.served.left):
                await self._withdraw(name)

    async def add(self, folder: Path, progress: Progress) -> list[ExecutorId]:
        """Serve the family in a folder; return the executors that run it.

        It is served from the first executor on that runs it, those of this machine before others.

        Raises:
            ModelError: it cannot be served before the next start; the message says why.
        """
        if self.config.inference.memory_limit_bytes:
            raise ModelError("inference.memory_limit_mb is set")
        family = await asyncio.to_thread(load_family, folder)
        await self._withdraw(family.name)
        async with self._adding:
            return await self._add(family, progress)

    async def _add(self, family: Family, progress: Progress) -> list[ExecutorId]:
        found: list[ExecutorId] = []
        failures: list[str] = []
        tried: set[ExecutorId] = set()
        # Others may come meanwhile, which were opened without this family.
        while untried := [each for each in self._executors(family) if each.id not in tried]:
            executor = untried[0]
            tried.add(executor.id)
            try:
                profiles, stored = await self._opened_on(executor, family, progress)
            except ModelError as error:
                failures.append(f"{executor.id}: {error}")
                continue
            if not found:
                await self._offer(family)
            await self._use(executor, family, profiles, stored=stored)
            if not found:
                models = self.box.models
                families = {**models.families, family.name: family}
                self.box.offer(replace(models, families=families))
            found.append(executor.id)
        if not found:
            raise ModelError("; ".join(failures) or "no executor is up that may run it")
        for failure in failures:
            self.box.notices.publish("warning", f"{family.name} does not run on {failure}")
        return found

    async def _opened_on(
        self, executor: ModelExecutor, family: Family, progress: Progress, *, held: bool = False
    ) -> tuple[list[LatencyProfile], bool]:
        """Have an executor hold a family; return its profiles, and whether they were stored.

        `held`: it was opened with it.

        Raises:
            ModelError: it does not run there.
        """
        try:
            if not held:
                await asyncio.to_thread(executor.add_family, family)
            return await self._profiles(family, executor, progress)
        except HungError:
            self._hung.add((executor.id, family.name))
            if any(each is executor for each in self.box.driver.executors):  # not replaced since
                self.box.driver.feed(ExecutorHung(executor.id))
            raise
        except ModelError:
            await asyncio.to_thread(executor.drop_family, family)
            raise

    async def _use(
        self,
        executor: ModelExecutor,
        family: Family,
        profiles: Sequence[LatencyProfile],
        *,
        stored: bool,
    ) -> None:
        """Run a family on an executor that holds it."""
        known = self.box.profiles[executor.id]
        await use_profiles(self.box, executor.id, {**known, **{p.variant: p for p in profiles}})
        if stored:
            await self.learning.restore_executor(executor, [family])

    async def complete(self) -> None:
        """Give executors the families that they lack and can run by now, until cancelled.

        One that was lost while a family was imported lacks it when it is back, and a server lacks
        what it had other files of. An executor here is asked once each time that it is back, a
        server also every `ASK_AGAIN_S`, because its files may have changed.
        """
        asked: dict[ExecutorId, tuple[int, float]] = {}
        while not self.config.inference.memory_limit_bytes:
            await asyncio.sleep(LOOK_EVERY_S)
            now_s, supervised = time.monotonic(), self.box.driver.scheduler.supervised
            restarts = {executor: of.restarts for executor, of in supervised.items()}
            before = {executor: asked.get(executor, (0, now_s)) for executor in restarts}
            back = {
                executor for executor, count in restarts.items() if count != before[executor][0]
            }
            due = {each for each, (_, at_s) in before.items() if now_s - at_s >= ASK_AGAIN_S}
            asked = before | {each: (restarts[each], now_s) for each in back | due}
            for family in list(self.served.families):
                for executor in self._executors(family):
                    asks = back if executor.shares_machine else back | due
                    if executor.id in asks and self._lacks(executor, family):
                        await self._complete(executor, family)

    def _lacks(self, executor: ModelExecutor, family: Family) -> bool:
        """Say whether an executor does not run a family that it may try."""
        if (executor.id, family.name) in self._hung:
            return False
        profiles = self.box.profiles[executor.id]
        known = any(variant.name in profiles for variant in family.variants)
        return family.name not in executor.families or not known

    async def _complete(self, executor: ModelExecutor, family: Family) -> None:
        async with self._adding:
            if family not in self.served.families or not self._lacks(executor, family):
                return
            held = family.name in executor.families
            try:
                profiles, stored = await self._opened_on(
                    executor, family, lambda *_: None, held=held
                )
            except HungError as error:
                text = f"{family.name} does not run on {executor.id}: {error}"
                self.box.notices.publish("warning", text)
                return
            except ModelError as error:
                _log.debug("%s does not run on %s: %s", family.name, executor.id, error)
                return
            if family not in self.served.families:  # removed meanwhile
                await asyncio.to_thread(executor.drop_family, family)
                return
            if executor in self._executors(family):
                await self._use(executor, family, profiles, stored=stored)
                text = f"{family.name} runs on {executor.id}, too, from now on"
                self.box.notices.publish("info", text)

    def _executors(self, family: Family) -> list[ModelExecutor]:
        """Return the executors that are up and may hold a family, those of this machine first."""
        found = [
            executor
            for executor in executors_up(self.box)
            if self.opened.specs[executor.id].holds(family.name)
        ]
        return sorted(found, key=lambda executor: not executor.shares_machine)

    async def _profiles(
        self, family: Family, executor: ModelExecutor, progress: Progress
    ) -> tuple[list[LatencyProfile], bool]:
        """Return a family's profiles, measured unless they are stored, and whether they are."""
        inference = self.config.inference
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

    async def _offer(self, family: Family) -> None:
        """Tell the core which variants there are, and what was learned of them before."""
        self.served.add(family)
        self.box.driver.feed(VariantsAvailable(tuple(self.served.variants.values())))
        await self.learning.restore_family(family)

    async def _withdraw(self, name: FamilyName) -> None:
        """Take away what a removed family has left, and free its memory.

        Another one may have its name then. Executors that lack it must not run the old one in its
        place. Where this was interrupted, the next call does it again.
        """
        if name not in self.served.left:
            return  # nor does it wait for the withdrawal of another one
        async with self._withdrawing:
            family = self.served.left.get(name)
            if family is None:
                return
            variants = frozenset(variant.name for variant in family.variants)
            await self._unused(variants)
            self.learning.leave(name)
            for executor, profiles in self.box.profiles.items():
                kept = {variant: of for variant, of in profiles.items() if variant not in variants}
                if len(kept) < len(profiles):
                    await use_profiles(self.box, executor, kept)
            await self._unused(variants)  # some may have come while an executor was busy
            for holder in self._executors(family):
                await asyncio.to_thread(holder.drop_family, family)
            self._hung = {each for each in self._hung if each[1] != name}
            self.served.withdraw(name)
            self.box.driver.forget(variants)
            self.box.driver.feed(VariantsAvailable(tuple(self.served.variants.values())))

    async def _unused(self, variants: frozenset[VariantName]) -> None:
        """Wait until no request runs on some variants or waits for them: until their deadlines."""
        while variants & self.box.driver.scheduler.variants_in_use:  # noqa: ASYNC110
            await asyncio.sleep(_POLL_S)

    def _serve_no_more(self, name: str) -> None:
        """Serve a family no more; it is withdrawn once nothing needs it."""
        self.served.remove(name)
        # Where memory is limited, what is needed more takes its place in any case.
        if not self.config.inference.memory_limit_bytes:
            self._removed.set()
        self.box.notices.publish("info", f"the model {name} was removed")

    def users(self, name: str) -> list[str]:
        """Return the connected cameras that use a family, and those that it was set for."""
        box = self.box
        using = [
            camera
            for camera, record in box.cameras.items()
            if record.connected
            and (
                record.camera.family == name
                or (record.camera.pipeline and _has(record.camera.pipeline.stages, name))
            )
        ]
        using += [camera for camera, each in box.overrides.items() if each.family == name]
        return sorted(set(using))

    async def remove(self, name: str) -> Path:
        """Serve a family no more, and delete it; return the folder that is gone.

        Raises:
            FamilyInUseError: it is the default, a pipeline has it, or cameras use it.
            ModelError: it was not imported, or cannot be deleted.
        """
        async with self._choosing:
            check_unused(self.config, name, default=self.box.models.default_family)
            return await self._remove(name)

    async def _remove(self, name: str) -> Path:
        box = self.box
        for pipeline in box.models.pipelines.values():
            if _has(pipeline.stages, name):
                raise FamilyInUseError(f"the pipeline {pipeline.name} uses {name}")
        if using := self.users(name):
            raise FamilyInUseError(
                f"{name} is used by {_shortened(using)}; give these cameras another model first, "
                "or disconnect them"
            )
        before = box.families
        family = before.get(FamilyName(name))
        self._offer_without(name)
        try:
            folder = await asyncio.to_thread(
                remove_family, self.config, name, default=box.models.default_family
            )
        except EdgeboxError:
            if family is not None:
                again = {**box.families, family.name: family}
                in_order = {each: again[each] for each in (*before, *again) if each in again}
                box.offer(replace(box.models, families=in_order))
            raise
        self._serve_no_more(name)
        return folder

    def _offer_without(self, name: str) -> None:
        kept = {key: family for key, family in self.box.families.items() if key != name}
        self.box.offer(replace(self.box.models, families=kept))

    def manifest_of(self, name: str) -> str | None:
        """Return the SHA-256 of the manifest that an imported family was read from.

        None: no family of the name is served, or it was not imported.
        """
        served = self.box.families.get(FamilyName(name))
        manifest = None if served is None else served.manifest
        if manifest is None or manifest.path.parent != self.config.inference.models_folder / name:
            return None
        return manifest.sha256

    def forget(self, name: str) -> str:
        """Serve an imported family no more whose files are gone or others, unless it is used.

        Returns: what uses it, so that it is served on; empty: nothing does.
        """
        if self.manifest_of(name) is None:
            return ""
        box = self.box
        if name == box.models.default_family:
            return "every camera that names no model"
        for pipeline in box.models.pipelines.values():
            if _has(pipeline.stages, name):
                return f"the pipeline {pipeline.name}"
        if using := self.users(name):
            return using[0] if len(using) == 1 else f"each of {_shortened(using)}"
        self._offer_without(name)
        self._serve_no_more(name)
        return ""

    async def set_default(self, name: str) -> None:
        """Make a family the default, now and after restarts.

        Raises:
            FamilyInUseError: the configuration file names another one.
            InvalidInputError: it is not given pictures.
            ModelError: it was removed, or this cannot be stored.
        """
        async with self._choosing:
            await self._set_default(name)

    async def _set_default(self, name: str) -> None:
        self._served(name).insist_on_pictures()
        if self.config.origins.get("inference.family") == "file":
            raise FamilyInUseError(
                f"{self.config.source} sets inference.family, which counts more: change it there"
            )
        await asyncio.to_thread(store_default, self.config.inference.models_folder, name)
        await self.use_default(FamilyName(name))

    def _served(self, name: str) -> Family:
        """Return a family that is served.

        Raises:
            ModelError: it was removed meanwhile.
        """
        family = self.box.families.get(FamilyName(name))
        if family is None:
            raise ModelError(f"the model {name} was removed")
        return family

    async def use_default(self, name: FamilyName) -> None:
        """Make a family the default of this run; cameras that name none connect again.

        Raises:
            InvalidInputError: it is not given pictures.
            ModelError: it was removed.
        """
        box = self.box
        self._served(name).insist_on_pictures()
        before = box.models.default_family
        box.offer(replace(box.models, default_family=name))
        if before == name:
            return
        box.notices.publish("info", f"{name} is the model of cameras that name none from now on")
        for record in box.cameras.values():
            chosen = record.overrides.family or record.overrides.pipeline
            if record.session is not None and not chosen and record.takes_default:
                record.session.reconnect("the default model was changed on the box")


def _shortened(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


def _has(stages: Sequence[object], name: str) -> bool:
    return any(getattr(stage, "family", None) == name for stage in stages)
