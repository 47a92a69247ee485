"""Remote executors that come after the start: absent or never measured before, or on new nodes."""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable

from edgebox.app.executor_addition import ExecutorAdder
from edgebox.app.executor_setup import Absent, Opened
from edgebox.app.ray_tables import RayTable
from edgebox.app.startup import ModelInventory
from edgebox.domain.errors import EdgeboxError
from edgebox.domain.model_family import ExecutorId
from edgebox.inference.model_executor import ModelExecutor
from edgebox.link.backoff import Backoff
from edgebox.runtime.availability import AbsentExecutor
from edgebox.runtime.box import Box

_log = logging.getLogger(__name__)

OnAdded = Callable[[ModelExecutor], Awaitable[None]]

LOOK_EVERY_S = 10.0
"""Period at which a cluster is asked for nodes that have joined: a node takes about as long to
start."""

BACK_OFF_MAX_S = 60.0
"""As the core's supervision has it for executors that were lost."""


def defer_unmeasured(opened: Opened, found: ModelInventory) -> None:
    """Take the remote executors away that have no profiles; they are tried while the box runs.

    What failed there has been told with the other problems of the start.
    """
    for executor in list(opened.executors):
        spec = opened.specs[executor.id]
        if spec.is_remote and not found.profiles.get(executor.id):
            executor.abandon()
            opened.executors.remove(executor)
            failure = found.failures.get(executor.id)
            opened.absent.append(Absent(spec, "" if failure is None else str(failure)))
            found.profiles.pop(executor.id, None)


class LateExecutors:
    """Remote executors that a box started without, tried until they are there."""

    def __init__(self, opened: Opened, adder: ExecutorAdder, box: Box, on_added: OnAdded) -> None:
        """Try nothing yet.

        Args:
            opened: the executors at the start, and those that were absent.
            adder: adds executors.
            box: told of what is there, and of why something is not.
            on_added: awaited for each executor that has come.
        """
        self._absent = list(opened.absent)
        self._known = {*opened.specs, *(each.spec.id for each in opened.absent)}
        self._growing = [table for table in opened.ray_tables if table.grows]
        self._adder = adder
        self._box = box
        self._notices = box.notices
        self._on_added = on_added

    async def run(self) -> None:
        """Try each until it is there."""
        async with asyncio.TaskGroup() as group:
            for absent in self._absent:
                if not absent.told:
                    text = f"{absent.spec.id} was never measured: that is done while the box serves"
                    self._notices.publish("info", text)
                group.create_task(self._try(absent), name=f"open-{absent.spec.id}")
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
                    group.create_task(self._try(Absent(spec)), name=f"open-{spec.id}")

    async def _try(self, absent: Absent) -> None:
        spec, said = absent.spec, absent.told
        back_off = Backoff(random.Random(), BACK_OFF_MAX_S)
        while True:
            wait_s = back_off.wait_s()
            self._show(spec.id, said, wait_s)
            await asyncio.sleep(wait_s)
            self._show(spec.id, said, None)
            try:
                executor = await self._adder.open(spec)
            except Exception as error:  # whatever is wrong there, this box goes on
                if not isinstance(error, EdgeboxError):
                    _log.critical("opening %s failed", spec.id, exc_info=error)
                if said != (said := str(error)):
                    self._notices.publish("warning", f"{spec.id} cannot be opened yet: {said}")
            else:
                self._box.absent.pop(spec.id, None)
                await self._on_added(executor)
                self._notices.publish("info", f"{spec.id} is there: {executor.device}")
                return

    def _show(self, executor: ExecutorId, because: str, wait_s: float | None) -> None:
        """Show why an executor is not there, and when it is tried again; None: now."""
        if not because:
            return
        now_ns, before = time.monotonic_ns(), self._box.absent.get(executor)
        since_ns = before.since_ns if before and before.because == because else now_ns
        retry_ns = None if wait_s is None else now_ns + round(wait_s * 1e9)
        self._box.absent[executor] = AbsentExecutor(because, since_ns, retry_ns)
