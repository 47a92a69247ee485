"""Replaces an executor on a GPU that cannot be opened any more by one on the CPU.

Without a replacement it publishes which families no longer run.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

from edgebox.app.executor_addition import ExecutorAdder
from edgebox.domain.errors import EdgeboxError
from edgebox.domain.model_family import ExecutorId, FamilyName
from edgebox.inference.executor_spec import ExecutorSpec
from edgebox.inference.family import Family
from edgebox.runtime.availability import is_wedged
from edgebox.runtime.box import Box

_log = logging.getLogger(__name__)


class CpuFallback:
    """The replacements on the CPU, and those being prepared.

    A replacement stays until the box stops, even if the GPU returns.
    """

    def __init__(
        self,
        box: Box,
        specs: Mapping[ExecutorId, ExecutorSpec],
        adder: ExecutorAdder,
        families: Sequence[Family],
        *,
        give_up: Callable[[], None],
    ) -> None:
        """Start without replacements.

        Args:
            box: the running box.
            specs: the replacement of each executor.
            adder: adds the replacements.
            families: the families that the box serves.
            give_up: stops the box.
        """
        self._box = box
        self._specs = specs
        self._adder = adder
        self._families = families
        self._end_box = give_up
        self._requested: set[ExecutorId] = set()
        self._reported: set[FamilyName] = set()
        """Families whose loss was published."""
        self._tasks: set[asyncio.Task[None]] = set()
        """Tasks that prepare replacements."""
        self._given_up = False
        self._stopping = False

    def needed(self, lost: ExecutorId) -> None:
        """Begin to prepare the replacement of an executor, once."""
        spec = self._specs.get(lost)
        if spec is not None and spec.id not in self._requested:
            self._requested.add(spec.id)
            task = asyncio.create_task(
                self._prepare_replacement(lost, spec), name=f"open-{spec.id}"
            )
            self._tasks.add(task)
            task.add_done_callback(self._ended)
        self._report_wedged()

    def give_up(self) -> None:
        """Stop the box, unless a replacement is being prepared."""
        self._given_up = True
        self._end_if_given_up()

    async def stop(self) -> None:
        """Stop preparing."""
        self._stopping = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not self._stopping:
            self._report_wedged()
        self._end_if_given_up()

    def _report_wedged(self) -> None:
        """Publish once each family that no longer runs, while others are served."""
        executors = self._box.driver.scheduler.supervised
        if self._tasks or all(of.unrecoverable for of in executors.values()):
            return  # a replacement may run it, or the whole box stops
        wedged = {
            family.name
            for family in self._families
            if is_wedged(executors, [variant.name for variant in family.offered])
        }
        for name in sorted(wedged - self._reported):
            self._box.notices.publish(
                "error",
                f"{name} cannot run any more in this process: every executor that runs it is "
                "wedged. Start edgebox again; if that does not help, look at the model and the "
                "device",
            )
        self._reported = wedged

    def _end_if_given_up(self) -> None:
        if self._given_up and not self._tasks and not self._stopping:
            self._end_box()

    async def _prepare_replacement(self, lost: ExecutorId, spec: ExecutorSpec) -> None:
        self._box.notices.publish("warning", f"{spec.id} is being prepared to replace {lost}")
        try:
            await self._open(lost, spec)
        except Exception as error:  # after any error, a box without executors must stop
            expected = isinstance(error, EdgeboxError)
            text = str(error) if expected else f"{type(error).__name__}: {error}"
            if not expected:
                _log.critical("%s cannot replace %s", spec.id, lost, exc_info=error)
            self._box.notices.publish("error", f"{spec.id} cannot replace {lost}: {text}")

    async def _open(self, lost: ExecutorId, spec: ExecutorSpec) -> None:
        executor = await self._adder.open(spec, f"replaces {lost}")
        # From now on the core decides about giving up.
        self._given_up = False
        self._box.notices.publish("warning", f"{spec.id} replaces {lost}: {executor.device}")
