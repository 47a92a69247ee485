"""Stores the execution times that the Scheduler has learned, so that they survive restarts.

Lives on the event loop, where it only copies changes; storage writes in threads.
"""

from collections.abc import Container, Iterable, Mapping

from edgebox.domain.learned import Learned, LearnedDrift, LearnedWork
from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.scheduling.remembered import work_of
from edgebox.scheduling.scheduler import Scheduler
from edgebox.storage.learned_times import LearnedRows


class LearnedTimesRecorder:
    """The learned times as last stored."""

    def __init__(
        self,
        rows: LearnedRows,
        *,
        models: Mapping[VariantName, str],
        executors: Mapping[tuple[ExecutorId, VariantName], str],
    ) -> None:
        """Store learned times under fingerprints.

        Args:
            rows: the database's table.
            models: the fingerprint of each variant's model.
            executors: the fingerprint of each variant's profile on an executor.
        """
        self._rows = rows
        self._models = models
        self._executors = executors
        self._kept_ns: dict[tuple[VariantName, str], int] = {}
        self._factors: dict[tuple[ExecutorId, VariantName], float] = {}
        self._confirmed_ns: dict[tuple[ExecutorId, VariantName], int] = {}

    async def load(self) -> Learned:
        """Return what was learned before this start.

        Raises:
            StorageError: the database cannot be read.
        """
        work = await self.load_work(self._models)
        return Learned(work, await self.load_drifts(self._executors))

    async def load_work(self, models: Mapping[VariantName, str]) -> tuple[LearnedWork, ...]:
        """Return the times on some variants, each with its model's fingerprint.

        Raises:
            StorageError: the database cannot be read.
        """
        return tuple(await self._rows.load_work(models))

    async def load_drifts(
        self, executors: Mapping[tuple[ExecutorId, VariantName], str]
    ) -> tuple[LearnedDrift, ...]:
        """Return the factors of some profiles that were learned before this start.

        Raises:
            StorageError: the database cannot be read.
        """
        drifts = await self._rows.load_drifts(executors)
        self._factors |= {(each.executor, each.variant): each.factor for each in drifts}
        return tuple(drifts)

    def began(self, scheduler: Scheduler, now_ns: int) -> None:
        """Consider a scheduler's initial knowledge as stored, so that its age is kept."""
        self.began_with(self._models, scheduler, now_ns)
        self.began_on(self._executors, scheduler)

    def began_with(
        self, variants: Container[VariantName], scheduler: Scheduler, now_ns: int
    ) -> None:
        """Consider a scheduler's knowledge of the applications of some variants as stored."""
        for each in work_of(scheduler.times.learning, now_ns):
            if each.variant in variants:
                self._kept_ns[each.variant, each.app] = now_ns - each.age_ns

    def began_on(
        self, executors: Iterable[tuple[ExecutorId, VariantName]], scheduler: Scheduler
    ) -> None:
        """Consider a scheduler's factors of some profiles as stored."""
        # Stored factors have decayed since. The row of a factor that is 1 again is deleted.
        for on in executors:
            if (factor := _factor(scheduler, on)) != 1:
                self._factors[on] = factor

    def forget(self, variants: Container[VariantName]) -> None:
        """Forget what was stored of some variants, whose fingerprints change."""
        self._kept_ns = {key: at for key, at in self._kept_ns.items() if key[0] not in variants}
        self._factors = {on: of for on, of in self._factors.items() if on[1] not in variants}
        self._confirmed_ns = {
            on: at for on, at in self._confirmed_ns.items() if on[1] not in variants
        }

    def keep(self, scheduler: Scheduler, now_ns: int) -> None:
        """Store what has been learned since the last call."""
        before, self._kept_ns = self._kept_ns, {}
        for each in work_of(scheduler.times.learning, now_ns):
            newest_ns = now_ns - each.age_ns
            key = each.variant, each.app
            kept_ns = self._kept_ns[key] = before.get(key, -(1 << 63))
            if each.variant in self._models and newest_ns > kept_ns:
                self._kept_ns[key] = newest_ns
                self._rows.record_work(self._models[each.variant], each)
        for on, fingerprint in self._executors.items():
            self._keep_factor(on, fingerprint, scheduler, now_ns)
        self._rows.forget_surplus()

    def _keep_factor(
        self,
        on: tuple[ExecutorId, VariantName],
        fingerprint: str,
        scheduler: Scheduler,
        now_ns: int,
    ) -> None:
        """Store a factor if it has changed, or if batches have confirmed it since.

        Without confirmation its row keeps its age, and the factor goes on decaying.
        """
        factor, before = _factor(scheduler, on), self._factors.get(on, 1.0)
        confirmed_ns = scheduler.times.corrections.confirmed_ns(*on)
        since_ns = self._confirmed_ns.get(on)
        confirmed = confirmed_ns is not None and (since_ns is None or confirmed_ns > since_ns)
        if factor != before or (factor != 1 and confirmed):
            # A factor changes by batches since the last call.
            age_ns = 0 if factor != before or confirmed_ns is None else now_ns - confirmed_ns
            self._rows.record_drift(fingerprint, LearnedDrift(*on, factor, max(0, age_ns)))
        self._factors[on] = factor
        if confirmed_ns is not None:
            self._confirmed_ns[on] = confirmed_ns


def _factor(scheduler: Scheduler, on: tuple[ExecutorId, VariantName]) -> float:
    """Return the present factor of a profile."""
    return scheduler.corrections.get(on[0], {}).get(on[1], 1.0)
