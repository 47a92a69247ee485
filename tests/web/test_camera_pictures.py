"""Pictures of programs that share a request."""

import pytest

from edgebox.domain.model_family import VariantName
from edgebox.domain.requests import DropReason
from edgebox.web.camera_pictures import NotServedError, all_answered, answered
from tests.runtime.driving import JPEG_LESS, Bench, ManualExecutor, settle
from tests.web.sites import box_that_waits


async def test_once_a_picture_of_a_request_cannot_be_answered_the_others_are_not_run() -> None:
    executor = ManualExecutor()
    bench = Bench(executor)
    box = box_that_waits()
    box.attach(bench.driver, {})
    bench.submit()  # keeps the executor busy

    async def refused() -> None:
        raise NotServedError(DropReason.OVERLOAD, "too much")

    picture = answered(
        box, JPEG_LESS, (416, 234), VariantName("street-416"), 5_000, app="http", address="a"
    )
    with pytest.raises(NotServedError):
        await all_answered([picture, refused()])
    await settle()
    (batch,) = executor.batches
    batch.complete()
    await settle()
    assert len(executor.batches) == 1
    assert bench.driver.frames_pending == 0
