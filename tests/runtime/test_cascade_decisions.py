"""A cascade through the real driver: the decider chooses, and no answer is worse than the small."""

import numpy as np

from edgebox.domain.cascades import CascadeOutcome
from edgebox.domain.requests import Outcome
from edgebox.runtime.cascade_decisions import decide
from edgebox.runtime.frames import Answer, PendingFrame
from edgebox.vision.detections import Detections
from tests.runtime.test_driver_pipeline import Street, found
from tests.scheduling.cascades import LARGE_PX, SMALL_PX, cascade_pipeline
from tests.scheduling.scene import MS, name

SOMETHING = found((8, 8, 40, 40), (50, 20, 90, 60))


def ended(street: Street, frame: PendingFrame) -> Answer:
    ending = street.bench.ending(frame)
    assert isinstance(ending, Answer)
    assert ending.outcome is Outcome.ON_TIME
    assert ending.missing == ()
    return ending


async def test_what_the_small_model_is_sure_about_is_its_answer() -> None:
    street = Street(cascade_pipeline())
    frame = await street.submit()
    await street.answer(0, SOMETHING)
    answer = ended(street, frame)
    assert (answer.cascade, answer.variant) == (CascadeOutcome.KEPT, name(SMALL_PX))
    assert len(answer.detections) == 2
    await street.end(frame)


async def test_an_unsure_answer_is_replaced_by_the_large_models() -> None:
    street = Street(cascade_pipeline())
    frame = await street.submit()
    await street.answer(0, Detections.empty())
    (crop,) = frame.crops
    assert (crop.origin_px, crop.request.width_px, crop.request.height_px) == ((0, 0), 320, 180)
    batch = await street.batch(1)
    assert batch.canvases[0].shape == (LARGE_PX, LARGE_PX, 3)
    # The picture is 416 px wide on the canvas, and 1280 px at the camera.
    await street.answer(1, found((104, 52, 208, 104)))
    answer = ended(street, frame)
    assert (answer.cascade, answer.variant) == (CascadeOutcome.SENT_ON, name(LARGE_PX))
    np.testing.assert_allclose(answer.detections.boxes[0], (320, 160, 640, 320), atol=2)
    assert answer.stages == ()
    await street.end(frame)


async def test_a_large_model_that_is_too_late_leaves_the_small_answer_whole() -> None:
    street = Street(cascade_pipeline())
    frame = await street.submit()
    await street.answer(0, Detections.empty())
    batch = await street.batch(1)
    street.clock.now_ns += 400 * MS
    street.driver.feed(None)
    answer = street.bench.ending(frame)
    assert isinstance(answer, Answer)
    assert (answer.cascade, answer.variant) == (CascadeOutcome.MISSED, name(SMALL_PX))
    assert answer.missing == ()
    batch.complete()
    await street.end(frame)


async def test_without_a_threshold_the_planned_share_says_what_is_sent_on() -> None:
    street = Street(cascade_pipeline(None))
    frame = await street.submit()
    # An empty picture has an expected loss of .95, and the curve a threshold of .9 at share 0.
    assert decide(frame, Detections.empty(), name(SMALL_PX), 0.0)
    # The loss of two objects is below .05: only at share 1 is the threshold 0.
    assert not decide(frame, SOMETHING, name(SMALL_PX), 0.5)
    assert decide(frame, SOMETHING, name(SMALL_PX), 1.0)
    await street.answer(0, SOMETHING)
    await street.end(frame)


async def test_a_smaller_variant_than_the_small_model_decides_nothing() -> None:
    street = Street(cascade_pipeline())
    frame = await street.submit()
    assert not decide(frame, Detections.empty(), name(LARGE_PX), 1.0)
    assert frame.cascade is None
    assert decide(frame, Detections.empty(), name(SMALL_PX), 0.0)
    await street.answer(0, SOMETHING)
    await street.end(frame)
