"""The driver runs samples: they count in no statistics, and their canvases come back."""

import asyncio

import numpy as np
import pytest

from edgebox.domain.errors import ModelError
from edgebox.domain.model_family import Variant
from edgebox.inference.executor_thread import BatchResult
from edgebox.inference.null_executor import NullExecutor
from edgebox.media.jpeg import encode
from edgebox.runtime.frames import PendingFrame
from edgebox.scheduling.events import ExecutorStopped
from edgebox.scheduling.invariants import check_invariants
from edgebox.scheduling.scheduler_parameters import SchedulerParameters
from edgebox.vision.detections import Detections
from tests.conftest import PATIENCE_S
from tests.end_to_end.running import until
from tests.runtime.driving import Bench, FakeClock, ManualExecutor, settle
from tests.scheduling.scene import CPU, FAMILY, MS, camera

GREY = [encode(np.full((234, 416, 3), level, np.uint8)) for level in (40, 120, 200)]


def sampling_box(
    clock: FakeClock, needs_pixels: bool = False, share: float = 0.2
) -> tuple[ManualExecutor, Bench]:
    """Return a box that will sample as soon as it is idle, or as `share` allows it."""
    executor = ManualExecutor()
    bench = Bench(
        executor, clock_ns=clock, needs_pixels=needs_pixels, policy="adaptive",
        parameters=SchedulerParameters(sample_share=share), gain=0.9,
    )  # fmt: skip
    clock.now_ns += 1_000 * MS
    return executor, bench


async def burst(executor: ManualExecutor, bench: Bench, clock: FakeClock) -> list[PendingFrame]:
    """Let three frames be answered, two of them in one batch."""
    frames = [bench.submit(jpeg=jpeg, slo_ms=3000) for jpeg in GREY]
    await until(lambda: len(executor.batches) == 1, "the first to run")
    if bench.canvases.needs_pixels:
        await until(lambda: all(frame.canvas is not None for frame in frames), "canvases")
        await until(lambda: not any(frame.preparing for frame in frames), "decoding")
    for at in (0, 1):
        clock.now_ns += 10 * MS
        executor.batches[at].complete(8 * MS)
        await settle()
    assert [frame.ended for frame in frames] == [True] * 3
    return frames


async def answered(executor: ManualExecutor, bench: Bench, clock: FakeClock) -> list[PendingFrame]:
    """Let three frames be answered and wait until one of them is sampled."""
    frames = await burst(executor, bench, clock)
    clock.now_ns += 500 * MS
    bench.driver.feed(None)
    assert len(executor.batches) == 3
    return frames


def app_count(bench: Bench) -> int:
    return sum(len(ran.kept) for ran in bench.driver.measurements.applications._ran.values())


@pytest.mark.parametrize("needs_pixels", [False, True])
async def test_a_sample_is_counted_as_busy_time_and_as_nothing_else(needs_pixels: bool) -> None:
    clock = FakeClock()
    executor, bench = sampling_box(clock, needs_pixels)
    frames = await answered(executor, bench, clock)
    sample = executor.batches[2]
    assert sample.batch_size == 1
    assert len(sample.canvases) == needs_pixels
    meter, before = bench.driver.measurements.meters[CPU], app_count(bench)
    size_mean = meter.batch_size_mean(clock.now_ns)
    clock.now_ns += 100 * MS
    sample.future.set_result(
        BatchResult([Detections.empty()], clock.now_ns - 100 * MS, clock.now_ns)
    )
    await settle()
    assert app_count(bench) == before + 1
    assert meter.batch_size_mean(clock.now_ns) == size_mean
    assert meter._ran[-1].ended_ns - meter._ran[-1].started_ns == 100 * MS
    assert all(len(bench.endings[frame.request.id]) == 1 for frame in frames)
    assert bench.driver.frames_pending == 0
    check_invariants(bench.driver.scheduler)
    await bench.driver.stop(1)


async def test_it_runs_on_what_the_request_ran_on_and_the_canvas_comes_back() -> None:
    clock = FakeClock()
    executor, bench = sampling_box(clock, needs_pixels=True)
    await answered(executor, bench, clock)
    sample = executor.batches[2]
    (canvas,) = sample.canvases
    ran = executor.batches[:2]  # which frame ran in which says which was decoded first
    assert any(member is canvas for batch in ran for member in batch.canvases)
    variant = next(each for each in FAMILY if each.name == sample.variant)
    assert not any(other is canvas for other in all_spare(bench, variant)), "it is being read"
    sample.complete(8 * MS)
    await settle()
    assert any(other is canvas for other in all_spare(bench, variant))
    await bench.driver.stop(1)


def all_spare(bench: Bench, variant: Variant) -> list[np.ndarray]:
    return list(bench.canvases._spare[variant.height_px, variant.width_px])


async def test_an_input_that_is_let_go_gives_its_canvas_back() -> None:
    clock = FakeClock()
    executor, bench = sampling_box(clock, needs_pixels=True, share=1e-6)
    await burst(executor, bench, clock)
    variant = next(each for each in FAMILY if each.name == executor.batches[0].variant)
    assert len(all_spare(bench, variant)) == len(GREY) - 1
    bench.driver.feed(ExecutorStopped(CPU))
    assert len(all_spare(bench, variant)) == len(GREY)
    await bench.driver.stop(1)


async def test_a_sample_that_raises_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    executor, bench = sampling_box(clock)
    await answered(executor, bench, clock)
    waiting = bench.submit(slo_ms=3000)
    executor.batches[2].future.set_exception(ModelError("out of memory"))
    await settle()
    assert "sample of street-" in caplog.text
    executor.batches[3].complete()
    await settle()
    assert waiting.ended
    check_invariants(bench.driver.scheduler)
    await bench.driver.stop(1)


async def test_a_box_stops_while_a_sample_runs() -> None:
    clock = FakeClock()
    executor, bench = sampling_box(clock, needs_pixels=True)
    await answered(executor, bench, clock)
    await asyncio.wait_for(bench.driver.stop(10 * PATIENCE_S), PATIENCE_S)
    executor.batches[2].complete()  # nobody listens, nothing breaks
    await settle()


async def test_an_idle_box_samples_by_itself() -> None:
    executor = NullExecutor(CPU, batch_ns=MS)
    parameters = SchedulerParameters(variant_per_batch=False)
    bench = Bench(executor, policy="adaptive", gain=0.9, parameters=parameters)
    frames = [bench.submit(slo_ms=3000) for _ in range(4)]
    (variant,) = {order.advice.variant for order in bench.advice}
    await until(lambda: all(frame.ended for frame in frames), "the answers")

    def learnt() -> int:
        known = bench.driver.scheduler.times.learning.known(CPU, variant, camera().app)
        assert known is not None
        return known.samples

    await until(lambda: learnt() == 2, "a sample beside the first, which ran alone")
    await bench.driver.stop(1)
    executor.close()


async def test_a_sample_of_a_second_part_keeps_no_features() -> None:
    clock = FakeClock()
    executor, bench = sampling_box(clock)
    frames = [bench.submit(slo_ms=3000) for _ in range(3)]
    for frame in frames:
        frame.features = (np.ones((1, 2, 2), np.float32),)
    await until(lambda: len(executor.batches) == 1, "the first to run")
    for at in (0, 1):
        clock.now_ns += 10 * MS
        executor.batches[at].complete(8 * MS)
        await settle()
    clock.now_ns += 500 * MS
    bench.driver.feed(None)
    (stand_in,) = executor.batches[2].inputs
    assert isinstance(stand_in, np.ndarray)  # a picture, which stands for features of any
    assert all(frame.features == () for frame in frames)
    executor.batches[2].complete(8 * MS)
    await settle()
    await bench.driver.stop(1)
