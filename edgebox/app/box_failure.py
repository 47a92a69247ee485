"""Ends a box that cannot continue, and says why."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from edgebox.domain.errors import EdgeboxError, InvariantViolation, WedgedError
from edgebox.runtime.box import Box

_log = logging.getLogger(__name__)


class BoxFailure:
    """Whether a box has failed: the core contradicted itself, or what it runs on hangs."""

    def __init__(
        self, box: Callable[[], Box], write_journal: Callable[[], Awaitable[Path | None]]
    ) -> None:
        """Nothing has failed.

        Args:
            box: returns the box; called when something fails.
            write_journal: writes the journal to a file; None: that failed.
        """
        self.happened = asyncio.Event()
        """Set when the box is to be stopped, and another one to be started."""
        self.error: EdgeboxError | None = None
        """What has failed; set with the event."""
        self._box = box
        self._write_journal = write_journal
        self._ending: asyncio.Task[None] | None = None

    def contradicted(self, violation: InvariantViolation) -> None:
        """End the box because its core contradicts itself, once the journal is written."""
        self._box().set_not_ready(str(violation))
        self._ending = asyncio.create_task(self._end_with_journal(violation), name="failure")

    async def _end_with_journal(self, violation: InvariantViolation) -> None:
        self._box().notices.publish("error", f"{violation}; the box stops")
        path = None
        try:
            path = await self._write_journal()
        except Exception:  # without its journal, too, the box must end
            _log.exception("the journal was not written")
        where = f"; the journal is in {path}" if path else ""
        self.error = InvariantViolation(
            f"{violation}{where}. This is a defect of edgebox: please report it with the journal",
            violation.tail,
        )
        self.happened.set()

    def no_executor_left(self) -> None:
        """End the box because this process can open no executor any more."""
        self._wedged(
            "no executor is left, and none can be opened in this process: the driver or the "
            "device hangs, or a model does"
        )

    def decoding_hangs(self) -> None:
        """End the box because this process can decode no pictures any more."""
        self._wedged("pictures can no longer be decoded in this process: its threads hang")

    def _wedged(self, why: str) -> None:
        self.error = WedgedError(f"{why}. The process supervisor should restart edgebox")
        self._box().set_not_ready(str(self.error))
        self._box().notices.publish("error", f"{self.error}; the box stops")
        self.happened.set()

    async def stop(self) -> None:
        """Stop writing the journal."""
        if self._ending is not None:
            self._ending.cancel()
            await asyncio.gather(self._ending, return_exceptions=True)
