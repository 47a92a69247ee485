"""Tasks that go on for as long as a box runs. One that fails is told of, and the box goes on."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

_log = logging.getLogger(__name__)


class BackgroundTasks:
    """The tasks of one box."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        """Begin with none; `tell` is given a sentence for people about each that has failed."""
        self._tell = tell
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Begin one; its name says what is not done any more if it fails."""
        task = asyncio.create_task(work, name=name)
        self._tasks.append(task)
        task.add_done_callback(self._ended)

    async def stop(self) -> None:
        """End all. Idempotent."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    def _ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            name = task.get_name()
            _log.critical("the task %r has failed", name, exc_info=error)
            self._tell(
                f"the box does without its {name} until edgebox is started again: that has failed "
                f"({type(error).__name__}: {error}). This is a defect of edgebox: please report it "
                "with the log"
            )
