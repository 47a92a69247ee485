"""Changes which families a running box serves: adds imported ones, removes them, sets the default.

Nothing can ask for a removed family any more, but requests that are on their way may still need it.
Once none does it is withdrawn: the core knows its variants no more, so that nothing of it is taken
for that of another one under its name, and executors free its memory.
"""

import asyncio
from dataclasses import dataclass, field, replace
from pathlib import Path

from edgebox.app.executor_setup import Opened
from edgebox.app.family_placement import FamilyPlacement, Progress
from edgebox.app.family_removal import check_unused, remove_family
from edgebox.app.family_users import check_box_without, used_by
from edgebox.app.missing_families import MissingFamilies
from edgebox.app.remembered_learning import RememberedLearning
from edgebox.app.served_families import ServedFamilies
from edgebox.config.config_file import Config
from edgebox.config.default_family import store_default
from edgebox.domain.errors import EdgeboxError, ModelError
from edgebox.domain.job_errors import FamilyInUseError
from edgebox.domain.model_family import ExecutorId, FamilyName
from edgebox.inference.family import Family
from edgebox.inference.zoo import load_family
from edgebox.runtime.box import Box
from edgebox.scheduling.events import VariantsAvailable
from edgebox.storage.database import Storage


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
    _choosing: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while a family is removed or becomes the default: not both at once."""
    _placement: FamilyPlacement = field(init=False)
    missing: MissingFamilies = field(init=False)
    """What executors lack; a task of its own runs it."""

    def __post_init__(self) -> None:
        """Place nothing yet."""
        self._placement = FamilyPlacement(
            self.config.inference, self.box, self.storage, self.opened, self.learning
        )
        self.missing = MissingFamilies(self._placement, self.served, self._adding)

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
        placement = self._placement
        while untried := [each for each in placement.executors(family) if each.id not in tried]:
            executor = untried[0]
            tried.add(executor.id)
            try:
                profiles, stored = await placement.hold(executor, family, progress)
            except EdgeboxError as error:
                failures.append(f"{executor.id}: {error}")
                continue
            if not found:
                await self._offer(family)
            await placement.use(executor, family, profiles, stored=stored)
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
            await self._placement.take_off(family)
            self.served.withdraw(name)
            self.box.driver.forget(frozenset(variant.name for variant in family.variants))
            self.box.driver.feed(VariantsAvailable(tuple(self.served.variants.values())))

    def _serve_no_more(self, name: str) -> None:
        """Serve a family no more; it is withdrawn once nothing needs it."""
        self.served.remove(name)
        # Where memory is limited, what is needed more takes its place in any case.
        if not self.config.inference.memory_limit_bytes:
            self._removed.set()
        self.box.notices.publish("info", f"the model {name} was removed")

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
        check_box_without(box, name)
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
        if name == self.box.models.default_family:
            return "every camera that names no model"
        if by := used_by(self.box, name):
            return by
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
