"""The end of a box whose core contradicts itself."""

import asyncio
from pathlib import Path

from edgebox.app.box_failure import BoxFailure
from edgebox.domain.errors import InvariantViolation
from edgebox.link.bandwidth import EstimatorKind
from edgebox.runtime.box import Box
from tests.conftest import PATIENCE_S


async def test_a_journal_that_cannot_be_written_does_not_keep_a_failed_box_alive() -> None:
    box = Box(
        name="test",
        version="1",
        cameras_max=1,
        unacknowledged_max=2,
        bandwidth=EstimatorKind.CAUTIOUS,
        on_event=lambda event: None,
        on_camera=lambda record: None,
    )

    async def write() -> Path | None:
        raise MemoryError

    failure = BoxFailure(lambda: box, write)
    failure.contradicted(InvariantViolation("two batches on one executor", ()))
    async with asyncio.timeout(PATIENCE_S):
        await failure.happened.wait()
    assert "two batches on one executor" in str(failure.error)
