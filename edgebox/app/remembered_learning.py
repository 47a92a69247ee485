"""Gives the box back what it learned before this start, and stores what it learns."""

from collections.abc import Callable, Iterable

from edgebox.domain.errors import StorageError
from edgebox.domain.learned import Learned
from edgebox.domain.model_family import ExecutorId, FamilyName, VariantName
from edgebox.inference.family import Family
from edgebox.inference.fingerprint import fingerprint, model_print
from edgebox.inference.model_executor import ModelExecutor
from edgebox.runtime.driver import Driver
from edgebox.runtime.learned_times_recorder import LearnedTimesRecorder
from edgebox.scheduling.events import LearningRestored
from edgebox.storage.database import Storage


class RememberedLearning:
    """Learned execution times, and what cameras' pictures said of their cascades."""

    def __init__(
        self,
        storage: Storage,
        driver: Driver,
        families: Iterable[Family],
        on_failure: Callable[[str], None],
    ) -> None:
        """Store under the fingerprints of these families and of the driver's executors.

        What cannot be loaded is told to `on_failure`, and learned anew.
        """
        self._storage = storage
        self._on_failure = on_failure
        self._driver = driver
        self._families: dict[FamilyName, Family] = {}
        self._models: dict[VariantName, str] = {}
        self._on: dict[tuple[ExecutorId, VariantName], str] = {}
        for family in families:
            self.follow(family)
        self._times = LearnedTimesRecorder(storage.learned, models=self._models, executors=self._on)

    def follow(self, family: Family) -> None:
        """Store what is learned of one more family, too."""
        self._families[family.name] = family
        self._models |= dict.fromkeys((of.name for of in family.variants), model_print(family))
        for executor in self._driver.executors:
            if isinstance(executor, ModelExecutor):
                self._on |= _fingerprints(executor, family)

    def leave(self, name: FamilyName) -> None:
        """Store what was learned of a family, and nothing more of it. Idempotent."""
        if name not in self._families:
            return
        self.keep()
        variants = {variant.name for variant in self._families.pop(name).variants}
        for variant in variants:
            del self._models[variant]
        for on in [on for on in self._on if on[1] in variants]:
            del self._on[on]
        self._times.forget(variants)

    async def restore(self) -> None:
        """Feed the core what was learned before this start."""
        try:
            self._driver.feed(LearningRestored(await self._times.load()))
        except StorageError as error:
            self._on_failure(f"learned execution times could not be loaded: {error}")
        self._times.began(self._driver.scheduler, self._driver.clock_ns())
        try:
            self._driver.cascades.restore(await self._storage.cascade_evidence.load())
        except StorageError as error:
            self._on_failure(f"what cascades learned could not be loaded: {error}")

    async def restore_family(self, family: Family) -> None:
        """Feed the core what was learned of a family that has come since, and store more of it."""
        self.follow(family)
        models = {variant.name: self._models[variant.name] for variant in family.variants}
        try:
            await self._storage.flush()
            work = await self._times.load_work(models)
            self._driver.feed(LearningRestored(Learned(work)))
        except StorageError as error:
            text = f"learned execution times of {family.name} could not be loaded: {error}"
            self._on_failure(text)
        self._times.began_with(models, self._driver.scheduler, self._driver.clock_ns())

    async def restore_executor(
        self, executor: ModelExecutor, families: Iterable[Family] | None = None
    ) -> None:
        """Feed the core what was learned of an executor that has come since, and store more of it.

        Its applications' times are the families': the core has them already.

        Args:
            executor: the core has it with the profiles that were measured before.
            families: those that have come to it; None: all.
        """
        on: dict[tuple[ExecutorId, VariantName], str] = {}
        for family in self._families.values() if families is None else families:
            on |= _fingerprints(executor, family)
        try:
            learned = Learned((), await self._times.load_drifts(on))
            self._driver.feed(LearningRestored(learned))
        except StorageError as error:
            self._on_failure(f"the drift of {executor.id} could not be loaded: {error}")
        self._on |= on
        self._times.began_on(on, self._driver.scheduler)

    def keep(self) -> None:
        """Store what has been learned since the last call."""
        self._times.keep(self._driver.scheduler, self._driver.clock_ns())
        for camera, decider, evidence in self._driver.cascades.take_changed():
            self._storage.cascade_evidence.record(camera, decider, evidence)
        self._storage.cascade_evidence.forget_surplus()


def _fingerprints(
    executor: ModelExecutor, family: Family
) -> dict[tuple[ExecutorId, VariantName], str]:
    """Return the fingerprint of each variant's profile on an executor."""
    of = fingerprint(executor, family)
    return {(executor.id, variant.name): of for variant in family.variants}
