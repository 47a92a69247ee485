"""Owns which executors are in service, and what they can run.

Informs every part of the core that keeps something about an executor when one starts, stops, or
when the contents of its memory change. Pure. Whether an executor should be taken out of service is
decided in `supervision`.
"""

from collections.abc import Collection

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.scheduling import events
from edgebox.scheduling.actions import Action
from edgebox.scheduling.adaptation import Adaptation
from edgebox.scheduling.affinity import ExecutorAffinity
from edgebox.scheduling.dispatch import Dispatch
from edgebox.scheduling.endings import Endings
from edgebox.scheduling.execution_times import ExecutionTimes
from edgebox.scheduling.ledger import Ledger
from edgebox.scheduling.request_stages import Cause
from edgebox.scheduling.residency import Residency
from edgebox.scheduling.sampling import Sampling


class Executors:
    """The executors in service, and the variants that they offer or have in memory."""

    def __init__(
        self,
        ledger: Ledger,
        times: ExecutionTimes,
        *,
        affinity: ExecutorAffinity,
        adaptation: Adaptation,
        sampling: Sampling,
        dispatch: Dispatch,
        endings: Endings,
    ) -> None:
        self._ledger = ledger
        self._times = times
        self._affinity = affinity
        self._adaptation = adaptation
        self._sampling = sampling
        self._dispatch = dispatch
        self._endings = endings
        self.residency = Residency(times.latencies, sampling)
        self._in_service: dict[ExecutorId, None] = {}
        self.changes: dict[ExecutorId, events.ProfilesChanged] = {}
        """What executors run once their batch or sample has ended."""

    @property
    def in_service(self) -> Collection[ExecutorId]:
        """The executors that have started and not stopped, in this order."""
        return self._in_service.keys()

    def without_batch(self) -> list[ExecutorId]:
        """Return the executors in service that run no batch of requests."""
        return [each for each in self._in_service if each not in self._ledger.running]

    def started(self, event: events.ExecutorStarted, now_ns: int) -> list[Action]:
        """Take an executor into service, anew if it is there already."""
        out: list[Action] = []
        if event.executor in self._in_service:
            out += self._remove(event.executor, now_ns)
        self._in_service[event.executor] = None
        self._times.executor_started(event.executor, event.profiles, now_ns)
        self._sampling.executor_started(event.executor, now_ns)
        if event.memory is not None:
            out += self.residency.limit(event.memory)
        return [*out, *self._adaptation.resources_changed(now_ns)]

    def changes_due(self) -> list[events.ProfilesChanged]:
        """Return the changes of profiles that apply now, each once: their executors run nothing."""
        idle = [
            each
            for each in self.changes
            if each not in self._ledger.running and each != self._sampling.executor
        ]
        return [self.changes.pop(each) for each in idle]

    def changed(self, event: events.ProfilesChanged, now_ns: int) -> list[Action]:
        """Let an executor that runs nothing run other variants, or take other times."""
        executor, latencies = event.executor, self._times.latencies
        before = latencies.known(executor)
        self._times.profiles_changed(executor, event.profiles)
        kept = [name for name, of in latencies.known(executor).items() if before.get(name) == of]
        out: list[Action] = [*self._sampling.held(executor, kept)]
        out += self.residency.profiles_changed(executor)
        return [*out, *self._adaptation.resources_changed(now_ns)]

    def stopped(
        self, executor: ExecutorId, now_ns: int, *, run_again: bool = False
    ) -> list[Action]:
        """Take an executor out of service, if it is in service.

        Its batch fails. With `run_again` its members may run elsewhere: nothing uses them any more.
        """
        if executor not in self._in_service:
            return []
        out = self._remove(executor, now_ns, run_again=run_again)
        return [*out, *self._adaptation.resources_changed(now_ns)]

    def batch_failed(self, executor: ExecutorId, now_ns: int) -> list[Action]:
        """End the batch that an executor runs without results."""
        self._times.batch_failed(executor, now_ns)
        return self._end_batch(executor, now_ns)

    def _end_batch(self, executor: ExecutorId, now_ns: int) -> list[Action]:
        batch = self._ledger.running[executor].infer.batch
        members = self._ledger.finish(executor, Cause.FAILED)
        return [*self._endings.members(members, batch, now_ns)]

    def _remove(
        self, executor: ExecutorId, now_ns: int, *, run_again: bool = False
    ) -> list[Action]:
        runs = executor in self._ledger.running
        if runs:
            self._times.batch_failed(executor, now_ns)
        out: list[Action] = [*self._sampling.executor_stopped(executor)]
        del self._in_service[executor]
        self.changes.pop(executor, None)
        self._times.executor_stopped(executor, now_ns)
        self.residency.executor_stopped(executor)
        if runs and run_again:
            out += self._dispatch.run_again(executor, now_ns)
        return out + self._end_batch(executor, now_ns) if runs else out

    def variants_available(
        self, event: events.VariantsAvailable, new: Collection[VariantName], now_ns: int
    ) -> list[Action]:
        """Use these variants from now on; nothing is known of those that are new."""
        self._times.forget(new)
        self._times.expectations.offer(event.variants)
        self._sampling.offered(event.variants)
        return [*self._adaptation.resources_changed(now_ns)]

    def memory_limited(self, event: events.MemoryLimited, now_ns: int) -> list[Action]:
        """Limit the memory of an executor, if it is in service."""
        if event.executor not in self._in_service:
            return []
        return [*self.residency.limit(event), *self._adaptation.resources_changed(now_ns)]

    def load_ended(
        self, event: events.WeightsLoaded | events.LoadFailed, now_ns: int, *, stopping: bool
    ) -> list[Action]:
        """Note that weights are in memory, or could not be loaded.

        A box that is stopping loads nothing more.
        """
        in_use = self._ledger.variants | self._sampling.variants
        out = self.residency.ended(event, in_use, now_ns, more=not stopping)
        return [*out, *self._adaptation.resources_changed(now_ns)]

    def planned(self, now_ns: int) -> list[Action]:
        """Let limited memories follow the plan in force."""
        if not self.residency.memories:
            return []
        in_use = self._ledger.variants | self._sampling.variants
        cameras = self._affinity.shares(self.residency.memories, self._adaptation.wanted)
        return self.residency.planned(cameras, in_use, now_ns)
