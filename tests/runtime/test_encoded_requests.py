"""Pictures that stay encoded for executors that decode for themselves."""

import numpy as np
import pytest

from edgebox.domain.loss_cause import LossCause
from edgebox.domain.model_family import ExecutorId, LatencyProfile, VariantName
from edgebox.domain.requests import BatchId, DropReason, RequestId
from edgebox.inference.encoded_pictures import Refused
from edgebox.inference.executor_thread import BatchResult
from edgebox.inference.tensors import EncodedPicture
from edgebox.media.jpeg import encode
from edgebox.runtime import frame_decoder
from edgebox.runtime.frames import Answer, Refusal
from edgebox.scheduling.actions import Sample
from edgebox.scheduling.events import Event, ExecutorStarted, SampleCompleted, SampleFailed
from edgebox.scheduling.supervision import REFUSALS_MAX
from edgebox.vision.detections import Detections
from tests.end_to_end.running import until
from tests.runtime.driving import Bench, ManualExecutor, settle
from tests.scheduling.scene import CPU, MEDIAN_MS, profile

WHITE = encode(np.full((234, 416, 3), 255, np.uint8))
ELSEWHERE = ExecutorId("box:8787/0")


class Elsewhere(ManualExecutor):
    """An executor that decodes for itself."""

    takes_encoded = True


def box_of(*boxes: tuple[float, float, float, float]) -> Detections:
    array = np.array(boxes, np.float32).reshape(-1, 4)
    return Detections(array, np.ones(len(array), np.float32), np.zeros(len(array), np.int64))


async def test_nothing_is_decoded_for_it_and_its_answer_is_in_the_pictures_own_pixels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(frame_decoder, "prepare")
    executor = Elsewhere()
    bench = Bench(executor, needs_pixels=True)
    frame = bench.submit(slo_ms=10_000, jpeg=WHITE)
    (batch,) = executor.batches
    (picture,) = batch.inputs
    assert picture == EncodedPicture(WHITE, 416, 234)
    assert batch.deadline_ns == frame.request.last_deadline_ns
    batch.future.set_result(BatchResult([box_of((0, 0, 208, 117))], 0, 1))
    await settle()
    ending = bench.ending(frame)
    assert isinstance(ending, Answer)
    assert ending.detections.boxes.tolist() == [[0, 0, 640, 360]]
    await bench.driver.stop(1)


async def test_a_picture_that_was_not_answered_ends_alone_with_its_reason() -> None:
    executor = Elsewhere()
    bench = Bench(executor, needs_pixels=True, gain=0.8)
    first = bench.submit(slo_ms=10_000, jpeg=WHITE)
    others = [bench.submit(slo_ms=10_000, jpeg=WHITE) for _ in range(2)]
    executor.batches[0].complete()
    await settle()
    assert isinstance(bench.ending(first), Answer)
    batch = executor.batches[1]
    assert len(batch.inputs) == 2
    found = [box_of(), box_of()]
    refused = {1: Refused(DropReason.INVALID, "no picture")}
    batch.future.set_result(BatchResult(found, 0, 1, refused=refused))
    await settle()
    endings = [bench.ending(frame) for frame in others]
    assert sum(isinstance(ending, Answer) for ending in endings) == 1
    assert Refusal(DropReason.INVALID, "no picture") in endings
    await bench.driver.stop(1)


async def test_what_its_server_refuses_is_told_and_counts_against_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    here, there = Elsewhere(), Elsewhere()
    bench = Bench(there, needs_pixels=True)
    here.id = ELSEWHERE
    profiles = (profile(px) for px in MEDIAN_MS)
    also = tuple(LatencyProfile(each.variant, ELSEWHERE, each.quantiles_ns) for each in profiles)
    bench.driver.add(here, None)
    bench.driver.feed(ExecutorStarted(ELSEWHERE, also))
    refused = {0: Refused(DropReason.OVERLOAD, "it has too much to do")}
    result = BatchResult([box_of()], 0, 1, refused=refused, rest_s=0.0)
    for number in range(REFUSALS_MAX):
        frame = bench.submit(slo_ms=10_000, jpeg=WHITE)
        there.batches[-1].future.set_result(result)
        await until(lambda: len(here.batches) > number, "it to run here")  # noqa: B023
        assert "not answered in full: it has too much to do" in caplog.text
        here.batches[-1].complete()
        await until(lambda: frame.ended, "its end")  # noqa: B023
        assert isinstance(bench.ending(frame), Answer)
    said = "its server refused 5 batches in a row, the last of street-416 (it has too much to do)"
    assert bench.driver.supervisor.last_losses[CPU] == said
    assert bench.driver.scheduler.supervised[CPU].losses == {LossCause.REFUSING: 1}
    await bench.driver.stop(1)


async def test_of_a_batch_that_is_refused_in_part_the_others_are_answered_at_once() -> None:
    executor = Elsewhere()
    bench = Bench(executor, needs_pixels=True, gain=0.8)
    bench.submit(slo_ms=10_000, jpeg=WHITE)
    others = [bench.submit(slo_ms=10_000, jpeg=WHITE) for _ in range(2)]
    executor.batches[0].complete()
    await settle()
    assert len(executor.batches[1].inputs) == 2
    refused = {1: Refused(DropReason.OVERLOAD, "the other box dropped it: queue")}
    executor.batches[1].future.set_result(BatchResult([box_of()] * 2, 0, 1, refused=refused))
    await until(lambda: len(executor.batches) == 3, "the other one to run again")
    assert sum(frame.ended for frame in others) == 1
    executor.batches[2].complete()
    await settle()
    assert all(isinstance(bench.ending(frame), Answer) for frame in others)
    assert not bench.driver.scheduler.stale_events
    await bench.driver.stop(1)


async def test_pictures_that_nobody_ran_teach_nothing() -> None:
    """Refusing one takes the other box no time: they would be the quickest of all."""
    executor = Elsewhere()
    bench = Bench(executor, needs_pixels=True)
    expectations = bench.driver.scheduler.times.expectations
    before = expectations.single_request(VariantName("street-416"), "default")
    refused = {0: Refused(DropReason.FAILED, "too large for the other box")}
    for number in range(40):
        frame = bench.submit(slo_ms=10_000, jpeg=WHITE)
        await until(lambda: len(executor.batches) > number, "its batch")  # noqa: B023
        executor.batches[-1].future.set_result(BatchResult([box_of()], 0, 1, refused=refused))
        await settle()
        assert bench.ending(frame) == Refusal(DropReason.FAILED, "too large for the other box")
    assert expectations.single_request(VariantName("street-416"), "default") == before
    assert bench.driver.measurements.meters[CPU].busy_ns == 40, "it was busy with them"
    supervised = bench.driver.scheduler.supervised[CPU]
    assert supervised.last_success is None
    assert not supervised.losses, "the pictures may be the cause"
    assert bench.driver.scheduler.slowdown[CPU] == 1
    await bench.driver.stop(1)


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        (DropReason.OVERLOAD, SampleCompleted(CPU, BatchId(7), 5, refused=True)),
        (DropReason.FAILED, SampleFailed(CPU, BatchId(7))),
    ],
)
async def test_a_sample_without_an_answer_measures_nothing(
    monkeypatch: pytest.MonkeyPatch, reason: DropReason, told: Event
) -> None:
    executor = Elsewhere()
    bench = Bench(executor, needs_pixels=True)
    fed: list[Event | None] = []
    monkeypatch.setattr(bench.driver, "feed", fed.append)
    refused = {0: Refused(reason, "why")}
    sample = Sample(CPU, BatchId(7), VariantName("street-416"), RequestId(1), 1)
    bench.driver._sampled(sample, "default", BatchResult([box_of()], 0, 5, refused=refused))
    await settle()
    # A plan may come, too.
    assert [of for of in fed if isinstance(of, SampleCompleted | SampleFailed)] == [told]
    assert not bench.driver.measurements.meters[CPU].busy_ns


async def test_beside_an_executor_of_this_machine_what_is_idle_decides() -> None:
    here, there = ManualExecutor(), Elsewhere()
    bench = Bench(here, needs_pixels=True)
    there.id = ELSEWHERE
    profiles = [profile(px) for px in MEDIAN_MS]
    elsewhere = [LatencyProfile(each.variant, ELSEWHERE, each.quantiles_ns) for each in profiles]
    bench.driver.add(there, None)
    bench.driver.feed(ExecutorStarted(ELSEWHERE, tuple(elsewhere)))
    bench.submit(slo_ms=10_000, jpeg=WHITE)  # decoded: an executor here is idle
    await until(lambda: bool(here.batches or there.batches), "the first batch")
    bench.submit(slo_ms=10_000, jpeg=WHITE)
    await until(lambda: bool(here.batches and there.batches), "the second batch")
    (own,) = here.batches[0].inputs
    (other,) = there.batches[0].inputs
    assert isinstance(other, EncodedPicture)
    assert isinstance(own, np.ndarray)
    assert here.id == CPU
    for each in (here, there):
        each.batches[0].complete()
    await settle()
    await bench.driver.stop(1)
