"""The end of a box whose core contradicts itself."""

import asyncio
from pathlib import Path

from edgebox.app.box_failure import BoxFailure
from edgebox.domain.errors import InvariantViolation
from tests.conftest import PATIENCE_S
from tests.web.sites import box_that_waits


async def test_a_journal_that_cannot_be_written_does_not_keep_a_failed_box_alive() -> None:
    box = box_that_waits()

    async def write() -> Path | None:
        raise MemoryError

    failure = BoxFailure(lambda: box, write)
    failure.contradicted(InvariantViolation("two batches on one executor", ()))
    async with asyncio.timeout(PATIENCE_S):
        await failure.happened.wait()
    assert "two batches on one executor" in str(failure.error)
