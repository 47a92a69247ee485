"""Remote executors that could not be used at the start: tries them again until they can."""

import asyncio
import logging
import random
from collections.abc import Sequence

from edgebox.app.executor_addition import ExecutorAdder
from edgebox.app.executor_setup import Opened
from edgebox.app.startup import ModelInventory
from edgebox.domain.errors import EdgeboxError
from edgebox.inference.model_executor import ExecutorSpecification
from edgebox.link.backoff import Backoff
from edgebox.runtime.notices import Notices

_log = logging.getLogger(__name__)

BACK_OFF_MAX_S = 60.0
"""As the core's supervision has it for executors that were lost."""


def set_aside(opened: Opened, found: ModelInventory) -> None:
    """Take the remote executors away on which nothing could be measured; they are tried again."""
    for executor in list(opened.executors):
        spec = opened.specs[executor.id]
        if spec.is_remote and not found.profiles.get(executor.id):
            executor.abandon()
            opened.executors.remove(executor)
            opened.absent.append(spec)
            found.profiles.pop(executor.id, None)


class LateExecutors:
    """Remote executors that a box started without."""

    def __init__(
        self, absent: Sequence[ExecutorSpecification], adder: ExecutorAdder, notices: Notices
    ) -> None:
        """Try nothing yet."""
        self._absent = absent
        self._adder = adder
        self._notices = notices

    async def run(self) -> None:
        """Try each until it is there."""
        async with asyncio.TaskGroup() as group:
            for spec in self._absent:
                group.create_task(self._try(spec), name=f"open-{spec.id}")

    async def _try(self, spec: ExecutorSpecification) -> None:
        back_off, said = Backoff(random.Random(), BACK_OFF_MAX_S), ""
        while True:
            await asyncio.sleep(back_off.wait_s())
            try:
                executor = await self._adder.open(spec)
            except Exception as error:  # whatever is wrong there, this box goes on
                if not isinstance(error, EdgeboxError):
                    _log.critical("opening %s failed", spec.id, exc_info=error)
                if said != (said := str(error)):
                    self._notices.publish("warning", f"{spec.id} cannot be opened yet: {said}")
            else:
                self._notices.publish("info", f"{spec.id} is there: {executor.device}")
                return
