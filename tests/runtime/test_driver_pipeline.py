"""A frame with a pipeline through the real driver: it ends once, whole or partial, and is freed."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from edgebox.domain.errors import ModelError
from edgebox.domain.pipelines import Pipeline
from edgebox.domain.requests import DropReason, Outcome, RequestId
from edgebox.inference.encoded_pictures import Refused
from edgebox.inference.executor_thread import BatchResult
from edgebox.media.jpeg import encode
from edgebox.runtime.entries import JournalEntry
from edgebox.runtime.frames import Answer, PendingFrame, Refusal
from edgebox.runtime.story import CameraStory, RequestStory
from edgebox.scheduling.events import CameraConnected, CameraDisconnected, ExecutorHung
from edgebox.vision.detections import Detections
from tests.end_to_end.running import until
from tests.runtime.driving import Batch, Bench, FakeClock, ManualExecutor, settle
from tests.runtime.recorded import entries_of
from tests.scheduling.pipelines import CHAIN, CHECK, READ, camera_with
from tests.scheduling.scene import CPU, MS, request

Box = tuple[float, float, float, float]
SENT_PX = (320, 180)
"""A quarter of each side of the camera's own picture, 1280 x 720."""


def found(*boxes: Box) -> Detections:
    n = len(boxes)
    return Detections(
        np.array(boxes, np.float32).reshape(n, 4),
        np.full(n, 0.9, np.float32),
        np.zeros(n, np.int64),
    )


class Street:
    """A driver with a camera whose frames run through a chain of three stages."""

    def __init__(self, of: Pipeline = CHAIN) -> None:
        self.executor, self.clock = ManualExecutor(), FakeClock()
        self.bench = Bench(self.executor, clock_ns=self.clock, needs_pixels=True, gain=0.9)
        self.driver = self.bench.driver
        self.camera = camera_with(of)
        self.driver.feed(CameraConnected(self.camera))
        self.pipeline = of

    async def submit(self) -> PendingFrame:
        """Submit a frame and wait until its first batch runs."""
        picture = np.full((SENT_PX[1], SENT_PX[0], 3), 200, np.uint8)
        now_ms = self.clock.now_ns / MS
        made = request(self.driver.next_request_id(), now_ms + 300, arrival_ms=now_ms, size=SENT_PX)
        frame = PendingFrame(
            made, encode(picture), 1280, 720, 0, self.bench._ended, pipeline=self.pipeline
        )
        before = len(self.executor.batches)
        self.driver.submit(frame)
        await self.batch(before)
        return frame

    async def batch(self, at: int) -> Batch:
        """Wait for the batch of this number."""
        await until(lambda: len(self.executor.batches) > at, "a batch")
        return self.executor.batches[at]

    async def answer(self, at: int, *pictures: Detections) -> None:
        """Complete a batch with what it found, in px of the variant's input."""
        batch = await self.batch(at)
        self.clock.now_ns += 5 * MS
        padding = [Detections.empty()] * (batch.batch_size - len(pictures))
        began_ns = self.clock.now_ns - 5 * MS
        batch.future.set_result(BatchResult([*pictures, *padding], began_ns, self.clock.now_ns))
        await settle()

    def story(self, number: int) -> list[str]:
        story = RequestStory(RequestId(number))
        for entry in self.entries():
            story.see(entry)
        return story.lines()

    def entries(self) -> Sequence[JournalEntry]:
        return entries_of(self.driver.decisions.journal)

    async def end(self, frame: PendingFrame) -> None:
        """Check that nothing of the frame is left."""
        await until(lambda: not self.driver._frames, "every request has ended")
        assert self.driver.frames_pending == 0
        assert len(self.bench.endings[frame.request.id]) == 1
        assert frame.picture is None
        assert frame.crops == []
        assert frame.canvas is None
        assert self.driver.decisions.timeline.failure == ""
        assert self.bench.failures == []
        await self.driver.stop(1)


def box_of(canvas_box: Box, px: int, of: tuple[float, float, float, float]) -> list[float]:
    """Map a box on a square input to the camera's picture: `of` is what the input shows there.

    The picture fills the input from the top left, its longer side whole.
    """
    left, top, width, height = of
    scale = max(width, height) / px
    return [start + at * scale for start, at in zip((left, top) * 2, canvas_box, strict=True)]


async def test_an_answer_is_nested_and_in_pixels_of_the_cameras_own_picture() -> None:
    street = Street()
    frame = await street.submit()
    px = street.executor.batches[0].canvases[0].shape[0]
    first = (0.25 * px, 0.125 * px, 0.5 * px, 0.375 * px)
    await street.answer(0, found(first))
    assert frame.picture is not None
    assert frame.canvas is None
    assert street.driver.frames_pending == 1
    (crop,) = frame.crops
    assert crop.root is frame
    x, y = (o * 4 for o in crop.origin_px)
    shows = (x, y, crop.request.width_px * 4, crop.request.height_px * 4)
    # 320 × 180 px were sent: the object is 80 px wide and high, and each side has 8 px of margin.
    assert crop.origin_px == (72, 32)
    assert (crop.request.width_px, crop.request.height_px) == (96, 96)
    assert (await street.batch(1)).deadline_ns == frame.request.deadline_ns
    crop_px = street.executor.batches[1].canvases[0].shape[0]
    second = (0.0, 0.25 * crop_px, 0.5 * crop_px, 1.0 * crop_px)
    await street.answer(1, found(second))
    (nested,) = crop.crops
    nested_px = (await street.batch(2)).canvases[0].shape[0]
    third = (0.0, 0.0, 0.5 * nested_px, 0.5 * nested_px)
    nested_shows = tuple(
        side * 4 for side in (*nested.origin_px, nested.request.width_px, nested.request.height_px)
    )
    await street.answer(2, found(third))
    ending = street.bench.ending(frame)
    assert isinstance(ending, Answer)
    assert ending.outcome is Outcome.ON_TIME
    assert ending.missing == ()
    assert ending.timing.batch_size == 1
    whole = (0.0, 0.0, 1280.0, 720.0)
    np.testing.assert_allclose(ending.detections.boxes[0], box_of(first, px, whole), atol=3)
    (read,) = ending.stages
    assert (read.stage, read.object) == (READ, 0)
    np.testing.assert_allclose(read.detections.boxes[0], box_of(second, crop_px, shows), atol=1)
    (check,) = read.stages
    assert (check.stage, check.object, check.stages) == (CHECK, 0, ())
    left, top, width, height = nested_shows
    np.testing.assert_allclose(
        check.detections.boxes[0],
        box_of(third, nested_px, (left, top, width, height)),
        atol=1,
    )
    await street.end(frame)


async def test_a_stage_is_given_at_most_so_many_objects_of_a_frame_not_of_each_crop() -> None:
    first, read, check = CHAIN.stages
    street = Street(replace(CHAIN, stages=(first, read, replace(check, crops_max=3))))
    frame = await street.submit()
    px = street.executor.batches[0].canvases[0].shape[0]
    boxes = [(at * px / 2, 0.0, (at + 1) * px / 2, 0.5 * px) for at in range(2)]
    await street.answer(0, found(*boxes))
    assert [crop.request.stage for crop in frame.crops] == [READ, READ]
    crop_px = (await street.batch(1)).canvases[0].shape[0]
    inner = [(at * crop_px / 2, 0.0, (at + 1) * crop_px / 2, 0.5 * crop_px) for at in range(2)]
    await street.answer(1, found(*inner), found(*inner))
    assert [[crop.request.stage for crop in each.crops] for each in frame.crops] == [
        [CHECK] * 2,
        [CHECK],
    ]
    await street.answer(2, *[found()] * 3)
    ending = street.bench.ending(frame)
    assert isinstance(ending, Answer)
    assert ending.missing == ()
    await street.end(frame)


async def test_a_failed_batch_of_a_stage_leaves_a_partial_answer() -> None:
    street = Street()
    frame = await street.submit()
    await street.answer(0, found((20, 20, 100, 100), (10, 10, 90, 90)))
    (await street.batch(1)).future.set_exception(ModelError("this crop"))
    await settle()
    if not street.bench.endings[frame.request.id]:  # the two were no batch: the other is answered
        await street.answer(2, found())
    ending = street.bench.ending(frame)
    assert isinstance(ending, Answer)
    assert ending.missing == (READ,)
    assert len(ending.detections) == 2
    await street.end(frame)


async def test_a_crop_without_an_answer_in_its_batch_leaves_a_partial_answer() -> None:
    street = Street()
    frame = await street.submit()
    await street.answer(0, found((20, 20, 100, 100)))
    batch = await street.batch(1)
    refused = {0: Refused(DropReason.FAILED, "its scores are no numbers")}
    nothing = [Detections.empty()] * batch.batch_size
    batch.future.set_result(BatchResult(nothing, 0, 5 * MS, refused=refused))
    await settle()
    ending = street.bench.ending(frame)
    assert isinstance(ending, Answer)
    assert (ending.missing, ending.stages) == ((READ,), ())
    await street.end(frame)


async def test_a_lost_executor_leaves_a_partial_answer() -> None:
    street = Street()
    frame = await street.submit()
    await street.answer(0, found((20, 20, 100, 100)))
    batch = await street.batch(1)
    street.driver.feed(ExecutorHung(CPU))
    ending = street.bench.ending(frame)
    assert isinstance(ending, Answer)
    assert ending.missing == (READ,)
    assert ending.stages == ()
    batch.complete()
    await settle()
    await street.end(frame)


@pytest.mark.parametrize("stage", [0, 1, 2])
async def test_a_camera_that_leaves_takes_its_frame_and_crops_along(stage: int) -> None:
    street = Street()
    frame = await street.submit()
    for at in range(stage):
        await street.answer(at, found((20, 20, 100, 100)))
    batch = await street.batch(stage)
    street.driver.feed(CameraDisconnected(street.camera.id))
    # A request that runs ends with its batch; a frame that waits for its crops ends at once.
    assert len(street.bench.endings[frame.request.id]) == (stage > 0)
    await street.answer(stage, found((20, 20, 100, 100)))
    assert len(street.executor.batches) == stage + 1, "crops of a camera that left are cut"
    ending = street.bench.ending(frame)
    assert isinstance(ending, Refusal)
    assert ending.reason is DropReason.DEPARTED
    _, drops = street.driver.decisions.timeline.drops.after(0)
    # Only the frame's own batch still finds crops: of a frame that has ended none are cut.
    expected = [(READ, DropReason.DEPARTED)] if stage == 0 else []
    assert [(each.request.stage, each.reason) for each in drops] == expected
    for each in drops:
        story = "\n".join(street.story(each.request.id))
        assert "dropped (departed): its camera left before the answer" in story
    spare = {id(canvas) for canvas in street.bench.canvases._spare[batch.canvases[0].shape[:2]]}
    assert spare >= {id(canvas) for canvas in batch.canvases}
    await street.end(frame)


async def test_the_deadline_ends_a_frame_without_what_still_runs() -> None:
    street = Street()
    frame = await street.submit()
    await street.answer(0, found((20, 20, 100, 100)))
    await street.batch(1)
    street.clock.now_ns = frame.request.deadline_ns - 2 * MS
    street.driver.feed(None)
    ending = street.bench.ending(frame)
    assert isinstance(ending, Answer)
    assert (ending.outcome, ending.missing) == (Outcome.ON_TIME, (READ,))
    await street.answer(1, found((20, 20, 100, 100)))
    await street.end(frame)


async def test_stories_and_the_timeline_tell_of_a_frame_and_its_crop() -> None:
    street = Street()
    frame = await street.submit()
    await street.answer(0, found((20, 20, 100, 100)))
    (crop,) = frame.crops
    assert {of.id for of in street.driver.scheduler.requests} == {
        frame.request.id,
        crop.request.id,
    }
    await street.answer(1, found())
    story = "\n".join(street.story(frame.request.id))
    for says in ("1 crop of it for the stage read", "waits for its crops", "answered, 2"):
        assert says in story
    story = "\n".join(street.story(crop.request.id))
    for says in (
        f"for read of frame {frame.request.id} of gate-1",
        "cut from its frame",
        "answered, as part of its frame",
    ):
        assert says in story
    camera = CameraStory(street.camera.id)
    for entry in street.entries():
        camera.see(entry)
    assert sum("1 frame answered" in line for line in camera.lines()) == 1
    timeline = street.driver.decisions.timeline
    _, batches = timeline.batches.after(0)
    assert [batch.endings for batch in batches] == [
        {frame.request.id: "on_time"},
        {crop.request.id: "on_time"},
    ]
    assert timeline.running == {}
    assert timeline.waiting == {}
    assert timeline._living == {}
    assert timeline._joined == set()
    await street.end(frame)


async def test_what_sending_a_partial_answer_takes_is_learned() -> None:
    street = Street()
    frame = await street.submit()
    await street.answer(0, found((20, 20, 100, 100)))
    await street.batch(1)
    # The wake-up comes 1 ms late, and the loop has 6 ms to do before the answer is written.
    street.clock.now_ns = frame.request.deadline_ns - MS
    street.driver.feed(None)
    street.clock.now_ns += 6 * MS
    await settle()
    assert street.driver.scheduler._endings._partial_ns._recent[-1] == 7 * MS
    await street.answer(1, found((20, 20, 100, 100)))
    await street.end(frame)


async def test_a_frame_that_is_cancelled_ends_at_once_with_its_waiting_crops() -> None:
    street = Street()
    frame = await street.submit()
    px = street.executor.batches[0].canvases[0].shape[0]
    boxes = [(i * 0.1 * px, 0.1 * px, (i * 0.1 + 0.09) * px, 0.25 * px) for i in range(5)]
    await street.answer(0, found(*boxes))
    running = len((await street.batch(1)).canvases)
    await until(lambda: not any(crop.preparing for crop in frame.crops), "the cuts")
    street.driver.cancel(frame.request.id)
    ending = street.bench.ending(frame)
    assert isinstance(ending, Refusal)
    assert ending.reason is DropReason.DEPARTED
    assert street.driver.scheduler.queue_length == 0
    assert len(street.driver._frames) == running
    street.driver.cancel(frame.request.id)  # harmless
    await street.answer(1, *[found()] * running)
    assert len(street.executor.batches) == 2
    await street.end(frame)
