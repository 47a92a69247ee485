"""Gives the box back what it learned before this start, and stores what it learns."""

from collections.abc import Callable, Iterable

from edgebox.domain.errors import StorageError
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
    ) -> None:
        """Store under the fingerprints of these families and of the driver's executors."""
        self._storage = storage
        self._driver = driver
        self._families: dict[FamilyName, Family] = {}
        self._models: dict[VariantName, str] = {}
        self._on: dict[tuple[ExecutorId, VariantName], str] = {}
        for family in families:
            self.follow(family)
        self._times = LearnedTimesRecorder(storage.learned, models=self._models, executors=self._on)

    def follow(self, family: Family) -> None:
        """Store what is learned of one more family, too, or of another one under its name."""
        self._families[family.name] = family
        self._models |= dict.fromkeys((of.name for of in family.variants), model_print(family))
        for executor in self._executors():
            self._note(executor, family)

    def _follow_new_executors(self) -> None:
        """Store what is learned of executors that have come since, too."""
        known = {executor for executor, _ in self._on}
        for executor in self._executors():
            if executor.id not in known:
                for family in self._families.values():
                    self._note(executor, family)

    def _executors(self) -> list[ModelExecutor]:
        return [each for each in self._driver.executors if isinstance(each, ModelExecutor)]

    def _note(self, executor: ModelExecutor, family: Family) -> None:
        of = fingerprint(executor, family)
        self._on |= {(executor.id, variant.name): of for variant in family.variants}

    async def restore(self, on_failure: Callable[[str], None]) -> None:
        """Feed the core what was learned; what cannot be loaded is told, and learned anew."""
        try:
            self._driver.feed(LearningRestored(await self._times.load()))
        except StorageError as error:
            on_failure(f"learned execution times could not be loaded: {error}")
        self._times.began(self._driver.scheduler, self._driver.clock_ns())
        try:
            self._driver.cascades.restore(await self._storage.cascade_evidence.load())
        except StorageError as error:
            on_failure(f"what cascades learned could not be loaded: {error}")

    def keep(self) -> None:
        """Store what has been learned since the last call."""
        self._follow_new_executors()
        self._times.keep(self._driver.scheduler, self._driver.clock_ns())
        for camera, decider, evidence in self._driver.cascades.take_changed():
            self._storage.cascade_evidence.record(camera, decider, evidence)
        self._storage.cascade_evidence.forget_surplus()
