"""Gives executors the families that they lack and can run by now.

One that was lost while a family was imported lacks it when it is back, and a server lacks what it
had other files of. An executor here is asked once each time that it is back, a server also every
`ASK_AGAIN_S`, because its files may have changed.
"""

import asyncio
import logging
import time
from dataclasses import dataclass, field

from edgebox.app.family_placement import FamilyPlacement
from edgebox.app.served_families import ServedFamilies
from edgebox.domain.errors import EdgeboxError, ModelError
from edgebox.domain.model_family import ExecutorId
from edgebox.inference.executor import HungError
from edgebox.inference.family import Family
from edgebox.inference.model_executor import ModelExecutor

LOOK_EVERY_S = 5.0
"""Period at which it is looked whether executors that came back lack families."""
ASK_AGAIN_S = 60.0
"""Period at which a server is asked again for families that it lacks."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class MissingFamilies:
    """What the executors of one box lack."""

    placement: FamilyPlacement
    served: ServedFamilies
    adding: asyncio.Lock
    """Held while a family is added."""
    _asked: dict[ExecutorId, tuple[int, float]] = field(default_factory=dict)
    """How often each executor had come back when it was asked last, and when that was, in s."""

    async def run(self) -> None:
        """Look every few seconds, until cancelled; without end where memory is not limited."""
        while not self.placement.inference.memory_limit_bytes:
            await asyncio.sleep(LOOK_EVERY_S)
            await self._look()

    async def _look(self) -> None:
        placement = self.placement
        now_s, supervised = time.monotonic(), placement.box.driver.scheduler.supervised
        restarts = {executor: of.restarts for executor, of in supervised.items()}
        before = {executor: self._asked.get(executor, (0, now_s)) for executor in restarts}
        back = {executor for executor, count in restarts.items() if count != before[executor][0]}
        due = {each for each, (_, at_s) in before.items() if now_s - at_s >= ASK_AGAIN_S}
        self._asked = before | {each: (restarts[each], now_s) for each in back | due}
        for family in list(self.served.families):
            for executor in placement.executors(family):
                asks = back if executor.shares_machine else back | due
                if executor.id not in asks or not placement.lacks(executor, family):
                    continue
                try:
                    await self._complete(executor, family)
                except EdgeboxError as error:  # such as a database that is locked: no answer
                    _log.warning("%s could not be tried on %s: %s", family.name, executor.id, error)
                    self._asked[executor.id] = before[executor.id]

    async def _complete(self, executor: ModelExecutor, family: Family) -> None:
        placement, notices = self.placement, self.placement.box.notices
        async with self.adding:
            if family not in self.served.families or not placement.lacks(executor, family):
                return
            held = family.name in executor.families
            try:
                profiles, stored = await placement.hold(
                    executor, family, lambda *_: None, held=held
                )
            except HungError as error:
                text = f"{family.name} does not run on {executor.id}: {error}"
                notices.publish("warning", text)
                return
            except ModelError as error:
                _log.debug("%s does not run on %s: %s", family.name, executor.id, error)
                return
            if family not in self.served.families:  # removed meanwhile
                await asyncio.to_thread(executor.drop_family, family)
                return
            if executor in placement.executors(family):
                await placement.use(executor, family, profiles, stored=stored)
                text = f"{family.name} runs on {executor.id}, too, from now on"
                notices.publish("info", text)
