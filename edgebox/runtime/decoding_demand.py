"""Decides which pictures this box decodes, and whether enough of them are decoded for now."""

from collections.abc import Mapping

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.inference.executor import Executor
from edgebox.runtime.availability import likely_executors
from edgebox.runtime.decoded_ahead import DecodedAhead
from edgebox.scheduling.scheduler import Scheduler
from edgebox.scheduling.supervised import ExecutorState


class DecodingDemand:
    """What the executors in service need decoded. Lost ones need nothing."""

    def __init__(
        self, scheduler: Scheduler, executors: Mapping[ExecutorId, Executor], ahead: DecodedAhead
    ) -> None:
        """Watch executors.

        Args:
            scheduler: knows which are in service and which run a batch.
            executors: all of them; some decode for themselves.
            ahead: the frames that are decoded and wait.
        """
        self._scheduler = scheduler
        self._executors = executors
        self._ahead = ahead

    def is_met(self) -> bool:
        """Return whether all run a batch, and those that do not decode have enough for the next."""
        supervised, running = self._scheduler.supervised, self._scheduler.running
        in_service = [
            each
            for name, each in self._executors.items()
            if name in supervised and supervised[name].state is ExecutorState.UP
        ]
        decoding_for = sum(not each.takes_encoded for each in in_service)
        busy = all(each.id in running for each in in_service)
        return busy and self._ahead.is_enough(max(1, decoding_for))

    def runs_encoded(self, variant: VariantName) -> bool:
        """Return whether a picture that arrives now will run where it is decoded."""
        if not any(each.takes_encoded for each in self._executors.values()):
            return False
        likely = likely_executors(self._scheduler.supervised, self._scheduler.running, variant)
        return bool(likely) and all(self._executors[each].takes_encoded for each in likely)
