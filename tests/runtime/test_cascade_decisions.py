"""A cascade through the real driver: the decider chooses, and no answer is worse than the small."""

from dataclasses import replace

import numpy as np
import pytest

from edgebox.domain.cascades import CascadeEvidence, CascadeOutcome
from edgebox.domain.errors import ModelError
from edgebox.domain.pipelines import Pipeline
from edgebox.domain.requests import DropReason, Outcome
from edgebox.inference.encoded_pictures import Refused
from edgebox.inference.executor_thread import BatchResult
from edgebox.media.jpeg import encode
from edgebox.runtime.frames import Answer, PendingFrame
from edgebox.vision.detections import Detections
from tests.end_to_end.running import until
from tests.runtime.driving import settle
from tests.runtime.test_driver_pipeline import Street, found
from tests.scheduling.cascades import (
    LARGE_PX,
    SMALL_PX,
    cascade,
    cascade_pipeline,
    read_after_cascade,
)
from tests.scheduling.scene import MS, name, request

SOMETHING = found((8, 8, 40, 40), (50, 20, 90, 60))
NOTHING = Detections.empty()


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


async def test_a_large_model_without_an_answer_leaves_the_small_answer_whole() -> None:
    street = Street(cascade_pipeline(0.0))  # it sends everything on
    frame = await street.submit()
    await street.answer(0, SOMETHING)
    batch = await street.batch(1)
    refused = {0: Refused(DropReason.FAILED, "the other box dropped it: failed")}
    nothing = [Detections.empty()] * batch.batch_size
    batch.future.set_result(BatchResult(nothing, 0, 5 * MS, refused=refused))
    await settle()
    answer = ended(street, frame)
    assert (answer.cascade, answer.variant) == (CascadeOutcome.MISSED, name(SMALL_PX))
    assert len(answer.detections) == 2
    await street.end(frame)


async def test_later_stages_look_at_what_the_small_model_found_if_the_large_one_fails() -> None:
    street = Street(read_after_cascade(0.0))
    frame = await street.submit()
    await street.answer(0, SOMETHING)
    batch = await street.batch(1)
    batch.future.set_exception(ModelError("no"))
    await settle()
    for at in range(2, 4):
        if not street.bench.endings[frame.request.id]:
            read = await street.batch(at)
            await street.answer(at, *[found((4, 4, 20, 20))] * read.batch_size)
    answer = ended(street, frame)
    assert (answer.cascade, answer.variant) == (CascadeOutcome.MISSED, name(SMALL_PX))
    assert sorted(each.object for each in answer.stages) == [0, 1]
    assert "goes on with what its first stage has found" in "\n".join(
        street.story(frame.request.id)
    )
    await street.end(frame)


@pytest.mark.parametrize(("seen", "missing"), [(SOMETHING, ("read",)), (NOTHING, ())])
async def test_an_answer_lacks_the_later_stages_that_its_objects_were_too_late_for(
    seen: Detections, missing: tuple[str, ...]
) -> None:
    street = Street(read_after_cascade(0.0))
    frame = await street.submit()
    await street.answer(0, seen)
    batch = await street.batch(1)
    street.clock.now_ns += 400 * MS
    street.driver.feed(None)
    answer = street.bench.ending(frame)
    assert isinstance(answer, Answer)
    assert answer.missing == missing
    batch.complete()
    await street.end(frame)


def sends_on(street: Street, frame: PendingFrame, found: Detections, px: int) -> bool:
    return street.driver.cascades.decide(frame, found, name(px), street.clock.now_ns)


async def test_a_smaller_variant_than_the_small_model_decides_nothing() -> None:
    street = Street(cascade_pipeline())
    frame = await street.submit()
    assert not sends_on(street, frame, Detections.empty(), LARGE_PX)
    assert frame.cascade is None
    assert sends_on(street, frame, Detections.empty(), SMALL_PX)
    await street.answer(0, SOMETHING)
    await street.end(frame)


async def test_an_idle_box_compares_a_few_frames_that_the_small_model_is_sure_of() -> None:
    street = Street(cascade_pipeline())
    sampled = 0
    for _ in range(60):
        at = len(street.executor.batches)
        frame = await street.submit()
        assert frame.number == 0
        street.clock.now_ns += 100 * MS
        await street.answer(at, SOMETHING)
        if frame.crops:
            # The large model finds one object more, on a canvas that is larger.
            boxes = [(8, 8, 40, 40), (50, 20, 90, 60), (0, 0, 9, 9)]
            to = LARGE_PX / SMALL_PX
            larger = [(to * x0, to * y0, to * x1, to * y1) for x0, y0, x1, y1 in boxes]
            await street.answer(at + 1, found(*larger))
            sampled += 1
        street.clock.now_ns += 100 * MS
    calibration = street.driver.cascades.calibration(street.camera.id)
    assert calibration is not None
    large = street.driver.scheduler.times.latencies.best(name(LARGE_PX))
    assert large is not None
    assert sampled >= 1
    assert sampled * large.median_ns[0] <= 0.01 * street.clock.now_ns + large.median_ns[0]
    # Frames a quarter of a second apart are compared.
    assert 1 <= calibration.compared <= sampled
    losses = calibration.losses()
    assert losses is not None
    expected, measured = losses
    assert measured == pytest.approx(0.2)
    assert 0.01 < expected < 0.25, "before it was expected to lose .001"
    await street.driver.stop(1)


async def test_what_was_learned_is_taken_and_restored_for_the_same_fit_only() -> None:
    of = cascade().decider.fingerprint
    evidence = CascadeEvidence(((2.0, 0.5),), ((-3.0, 0.25),), (2.0, -3.0))
    for decider, known in ((of, 2), ("another fit", 0)):
        street = Street(cascade_pipeline())
        decisions = street.driver.cascades
        decisions.restore({street.camera.id: (decider, evidence)})
        assert list(decisions.take_changed()) == [], "no frame came since"
        frame = await street.submit()
        await street.answer(0, SOMETHING)
        calibration = decisions.calibration(street.camera.id)
        assert calibration is not None
        assert calibration.compared == known
        ((camera, fingerprint, taken),) = decisions.take_changed()
        assert (camera, fingerprint) == (street.camera.id, of)
        assert taken.logits[:-1] == evidence.logits[:known]
        assert (taken.hard, taken.easy) == ((evidence.hard, evidence.easy) if known else ((), ()))
        assert list(decisions.take_changed()) == []
        decisions.forget(street.camera.id)
        assert decisions.calibration(street.camera.id) is None
        await street.end(frame)


async def test_a_camera_that_is_forgotten_before_it_came_begins_anew() -> None:
    street = Street(cascade_pipeline())
    decisions = street.driver.cascades
    evidence = CascadeEvidence(((2.0, 0.5),), (), (2.0,))
    decisions.restore({street.camera.id: (cascade().decider.fingerprint, evidence)})
    decisions.forget(street.camera.id)
    frame = await street.submit()
    await street.answer(0, SOMETHING)
    calibration = decisions.calibration(street.camera.id)
    assert calibration is not None
    assert calibration.compared == 0
    await street.end(frame)


def exit_pipeline() -> Pipeline:
    """Return the cascade as one network's two parts."""
    of = cascade_pipeline()
    first, second = of.stages
    assert second.cascade is not None
    continuing = replace(second, cascade=replace(second.cascade, continues=True))
    return replace(of, stages=(first, continuing))


async def first_part(street: Street, seen: Detections) -> tuple[np.ndarray, ...]:
    """Answer the first batch with features; return these."""
    batch = await street.batch(0)
    rng = np.random.default_rng(1)
    features = tuple(rng.random((batch.batch_size, n, 4, 4), dtype=np.float32) for n in (2, 3))
    began_ns = street.clock.now_ns
    street.clock.now_ns += 5 * MS
    padding = [Detections.empty()] * (batch.batch_size - 1)
    result = BatchResult([seen, *padding], began_ns, street.clock.now_ns, features)
    batch.future.set_result(result)
    await settle()
    return features


async def test_a_second_part_is_given_views_of_the_features_and_no_picture() -> None:
    street = Street(exit_pipeline())
    frame = await street.submit()
    left = await first_part(street, Detections.empty())
    (rest,) = frame.crops
    batch = await street.batch(1)
    assert batch.canvases == []
    (given,) = batch.inputs
    assert isinstance(given, tuple)
    for one, of_all in zip(given, left, strict=True):
        assert np.shares_memory(one, of_all)
        np.testing.assert_array_equal(one, of_all[0])
    assert rest.rgb is None
    # The canvas of both parts is the same: the picture lies on it as the first part saw it.
    await street.answer(1, found((32, 16, 64, 32)))
    answer = ended(street, frame)
    assert (answer.cascade, answer.variant) == (CascadeOutcome.SENT_ON, name(LARGE_PX))
    np.testing.assert_allclose(answer.detections.boxes[0], (320, 160, 640, 320), atol=2)
    assert rest.features == ()
    assert frame.features == ()
    await street.end(frame)


async def test_an_exit_that_is_taken_leaves_no_features() -> None:
    street = Street(exit_pipeline())
    frame = await street.submit()
    await first_part(street, SOMETHING)
    answer = ended(street, frame)
    assert (answer.cascade, answer.variant) == (CascadeOutcome.KEPT, name(SMALL_PX))
    assert frame.features == ()
    assert len(street.executor.batches) == 1
    await street.end(frame)


async def test_a_second_part_that_is_too_late_releases_its_features() -> None:
    street = Street(exit_pipeline())
    frame = await street.submit()
    await first_part(street, Detections.empty())
    (rest,) = frame.crops
    batch = await street.batch(1)
    street.clock.now_ns += 400 * MS
    street.driver.feed(None)
    answer = street.bench.ending(frame)
    assert isinstance(answer, Answer)
    assert answer.cascade is CascadeOutcome.MISSED
    assert rest.features == ()
    batch.complete()
    await street.end(frame)


async def test_survivors_of_several_frames_share_a_batch_of_the_second_part() -> None:
    street = Street(exit_pipeline())
    frames = [await street.submit()]
    for _ in range(2):
        picture = np.full((180, 320, 3), 200, np.uint8)
        now_ms = street.clock.now_ns / MS
        number = street.driver.next_request_id()
        made = request(number, now_ms + 300, arrival_ms=now_ms, size=(320, 180))
        more = PendingFrame(
            made, encode(picture), 1280, 720, 0, street.bench._ended, pipeline=street.pipeline
        )
        street.driver.submit(more)
        await until(lambda more=more: more.canvas is not None and not more.preparing, "a canvas")  # type: ignore[misc]
        frames.append(more)
    survivors = []
    for at in range(8):
        if len(street.executor.batches) <= at:
            break
        batch = await street.batch(at)
        began_ns = street.clock.now_ns
        street.clock.now_ns += 5 * MS
        features: tuple[np.ndarray, ...] = ()
        if batch.variant == name(LARGE_PX):
            assert all(isinstance(each, tuple) for each in batch.inputs)
            survivors.append(len(batch.inputs))
        else:
            features = (np.zeros((batch.batch_size, 2, 4, 4), np.float32),)
        empty = [Detections.empty()] * batch.batch_size
        batch.future.set_result(BatchResult(empty, began_ns, street.clock.now_ns, features))
        await settle()
    assert sum(survivors) == 3
    assert max(survivors) >= 2
    assert [ended(street, frame).cascade for frame in frames] == [CascadeOutcome.SENT_ON] * 3
    assert not any(frame.features or frame.crops for frame in frames)
    await street.driver.stop(1)


async def test_a_comparison_after_the_evidence_was_taken_is_taken_next() -> None:
    street = Street(cascade_pipeline())
    frame = await street.submit()
    await street.answer(0, Detections.empty())
    decisions = street.driver.cascades
    ((_, _, decided),) = decisions.take_changed()
    assert (len(decided.logits), decided.hard) == (1, ())
    await street.answer(1, SOMETHING)
    assert ended(street, frame).cascade is CascadeOutcome.SENT_ON
    ((_, _, compared),) = decisions.take_changed()
    assert (len(compared.logits), len(compared.hard)) == (1, 1)
    assert list(decisions.take_changed()) == []
    await street.end(frame)
