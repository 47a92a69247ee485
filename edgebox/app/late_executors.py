"""Remote executors that come later: absent at the start, or on nodes that join a cluster."""

import asyncio
import logging
import random

from edgebox.app.executor_addition import ExecutorAdder
from edgebox.app.executor_setup import Opened
from edgebox.app.ray_tables import RayTable
from edgebox.app.startup import ModelInventory
from edgebox.domain.errors import EdgeboxError
from edgebox.inference.model_executor import ExecutorSpecification
from edgebox.link.backoff import Backoff
from edgebox.runtime.notices import Notices

_log = logging.getLogger(__name__)

LOOK_EVERY_S = 10.0
"""Period at which a cluster is asked for nodes that have joined: a node takes about as long to
start."""

BACK_OFF_MAX_S = 60.0
"""As the core's supervision has it for executors that were lost."""


def defer_unmeasured(opened: Opened, found: ModelInventory) -> None:
    """Take the remote executors away on which nothing could be measured; they are tried again."""
    for executor in list(opened.executors):
        spec = opened.specs[executor.id]
        if spec.is_remote and not found.profiles.get(executor.id):
            executor.abandon()
            opened.executors.remove(executor)
            opened.absent.append(spec)
            found.profiles.pop(executor.id, None)


class LateExecutors:
    """Remote executors that a box started without, tried until they are there."""

    def __init__(self, opened: Opened, adder: ExecutorAdder, notices: Notices) -> None:
        """Try nothing yet.

        Args:
            opened: the executors at the start, and those that were absent.
            adder: adds executors.
            notices: told of what is there, and of why something is not.
        """
        self._absent = list(opened.absent)
        self._known = {*opened.specs, *(spec.id for spec in opened.absent)}
        self._growing = [table for table in opened.ray_tables if table.grows]
        self._adder = adder
        self._notices = notices

    async def run(self) -> None:
        """Try each until it is there."""
        async with asyncio.TaskGroup() as group:
            for spec in self._absent:
                group.create_task(self._try(spec), name=f"open-{spec.id}")
            for table in self._growing:
                group.create_task(self._follow(table, group), name="nodes that join")

    async def _follow(self, table: RayTable, group: asyncio.TaskGroup) -> None:
        """Open executors on nodes that join a cluster."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                specs = await asyncio.to_thread(table.specs)
            except EdgeboxError as error:
                _log.info("nodes that join are not seen: %s", error)
                continue
            for spec in specs:
                if spec.id not in self._known:
                    self._known.add(spec.id)
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
