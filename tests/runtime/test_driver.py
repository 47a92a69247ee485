"""The driver around the real Scheduler: every frame's listener is called once, whatever fails."""

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import Future

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebox.domain.errors import ModelError
from edgebox.domain.model_family import VariantName
from edgebox.domain.plans import Plan, PlanningSnapshot
from edgebox.domain.requests import DropReason, Outcome
from edgebox.inference.executor_thread import BatchResult
from edgebox.inference.null_executor import NullExecutor
from edgebox.inference.tensors import ModelInput
from edgebox.media.jpeg import encode
from edgebox.runtime.frames import BATCH_FAILED, Answer, FrameResult, PendingFrame, Refusal
from edgebox.scheduling.events import (
    CameraConnected,
    CameraDisconnected,
    PlanFailed,
    RequestArrived,
)
from edgebox.scheduling.invariants import check_invariants
from edgebox.scheduling.scheduler_parameters import SchedulerParameters
from edgebox.scheduling.supervised import ExecutorState
from edgebox.vision.detections import Detections
from tests.end_to_end.running import until
from tests.runtime.driving import Bench, FakeClock, ManualExecutor, settle
from tests.scheduling.scene import CPU, LARGE, MEDIAN_MS, MS, camera, name

WHITE = encode(np.full((234, 416, 3), 255, np.uint8))


def outcome(ending: FrameResult) -> str:
    return ending.outcome.value if isinstance(ending, Answer) else ending.reason.value


async def test_a_frame_is_answered_with_where_its_time_went() -> None:
    executor, clock = ManualExecutor(), FakeClock()
    bench = Bench(executor, clock_ns=clock)
    frame = bench.submit()
    assert bench.driver.frames_pending == 1
    clock.now_ns += 20 * MS
    executor.batches[0].future.set_result(
        BatchResult([Detections.empty()], clock.now_ns - 15 * MS, clock.now_ns - 5 * MS)
    )
    await settle()
    ending = bench.ending(frame)
    assert isinstance(ending, Answer)
    assert ending.outcome is Outcome.ON_TIME
    assert ending.timing.queue_ns == 5 * MS
    assert ending.timing.inference_ns == 10 * MS
    assert ending.timing.total_ns == 20 * MS
    assert ending.timing.batch_size == 1
    assert bench.driver.frames_pending == 0
    await bench.driver.stop(1)


async def test_an_answer_after_the_deadline_is_late() -> None:
    executor, clock = ManualExecutor(), FakeClock()
    bench = Bench(executor, clock_ns=clock)
    frame = bench.submit(slo_ms=100)
    clock.now_ns += 101 * MS
    executor.batches[0].complete()
    await settle()
    assert outcome(bench.ending(frame)) == "late"
    await bench.driver.stop(1)


@pytest.mark.parametrize("error", [ModelError("out of memory"), ZeroDivisionError("oops")])
async def test_a_batch_that_raises_fails_its_frames_and_no_others(error: Exception) -> None:
    executor, clock = ManualExecutor(), FakeClock()
    bench = Bench(executor, clock_ns=clock)
    first = bench.submit()
    second = bench.submit()
    executor.batches[0].future.set_exception(error)
    await settle()
    assert outcome(bench.ending(first)) == "failed"
    assert bench.ending(first) == Refusal(DropReason.FAILED, BATCH_FAILED)
    executor.batches[1].complete()
    await settle()
    assert outcome(bench.ending(second)) == "on_time"
    await bench.driver.stop(1)


async def test_batches_that_keep_failing_are_told_a_few_times_and_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    executor, clock = ManualExecutor(), FakeClock()
    bench = Bench(executor, clock_ns=clock)
    for _ in range(15):  # answered ones between them: the executor itself is sound
        failing = bench.submit()
        executor.batches[-1].future.set_exception(ModelError("this picture"))
        await settle()
        assert outcome(bench.ending(failing)) == "failed"
        bench.submit()
        executor.batches[-1].complete()
        await settle()
    assert caplog.text.count("failed: this picture") == 10
    bench.driver.end_minute()
    assert "5 more batches of" in caplog.text
    await bench.driver.stop(1)


async def test_a_listener_that_raises_does_not_stop_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refuse(frame: PendingFrame, ending: FrameResult) -> None:
        if frame is first:
            raise ZeroDivisionError("not interested")

    executor, clock = ManualExecutor(), FakeClock()
    bench = Bench(executor, clock_ns=clock, on_end=refuse)
    blocking = bench.submit()
    first, second = bench.submit(), bench.submit()
    executor.batches[0].complete()
    await settle()
    executor.batches[1].complete()
    await settle()
    executor.batches[2].complete()
    await settle()
    assert [outcome(bench.ending(f)) for f in (blocking, first, second)] == ["on_time"] * 3
    assert "the listener of request" in caplog.text
    await bench.driver.stop(1)


async def test_a_planner_that_raises_keeps_the_box_serving(
    caplog: pytest.LogCaptureFixture,
) -> None:
    attempts: list[int] = []

    def fail(snapshot: PlanningSnapshot, iterations_max: int) -> Plan:
        attempts.append(snapshot.taken_ns)
        raise ZeroDivisionError("no cameras to divide by")

    bench = Bench(NullExecutor(CPU, batch_ns=MS), planner=fail)
    await until(lambda: len(attempts) >= 2, "the planner to be asked again")
    frame = bench.submit(slo_ms=2000)
    await until(lambda: frame.ended, "the answer")
    assert outcome(bench.ending(frame)) == "on_time"
    assert "planning failed; the plan in force stays" in caplog.text
    assert bench.plans == []
    await bench.driver.stop(1)


async def test_plans_are_told_with_their_time() -> None:
    bench = Bench(NullExecutor(CPU))
    await until(lambda: bool(bench.plans), "a plan")
    assert set(bench.plans[0].assignments) == {camera().id}
    await bench.driver.stop(1)


async def test_a_camera_hears_advice_before_its_first_frame() -> None:
    bench = Bench(ManualExecutor(), clock_ns=FakeClock())
    assert [order.camera for order in bench.advice] == [camera().id]
    await bench.driver.stop(1)


async def test_stop_drops_what_waits_and_lets_what_runs_finish() -> None:
    executor, clock = ManualExecutor(), FakeClock()
    bench = Bench(executor, clock_ns=clock)
    running = bench.submit()
    waiting = [bench.submit() for _ in range(3)]
    stopping = asyncio.create_task(bench.driver.stop(5))
    await settle()
    assert [outcome(bench.ending(frame)) for frame in waiting] == ["shutdown"] * 3
    assert not running.ended
    assert not stopping.done()
    executor.batches[0].complete()
    await stopping
    assert outcome(bench.ending(running)) == "on_time"
    after = bench.submit()
    assert outcome(bench.ending(after)) == "shutdown"


async def test_stop_does_not_wait_for_ever(caplog: pytest.LogCaptureFixture) -> None:
    executor, clock = ManualExecutor(), FakeClock()
    bench = Bench(executor, clock_ns=clock)
    stuck = bench.submit()
    await bench.driver.stop(0.05)
    assert not stuck.ended
    assert "1 frames did not end" in caplog.text
    executor.batches[0].complete()  # too late: nobody listens, nothing breaks
    await settle()


async def test_facts_that_come_up_meanwhile_wait_their_turn() -> None:
    """A listener that submits at once: the core must not see a call within a call."""
    executor, clock = ManualExecutor(), FakeClock()
    again: list[PendingFrame] = []

    def submit_again(frame: PendingFrame, ending: FrameResult) -> None:
        if not again:
            again.append(bench.submit())
            assert not executor.batches[1:], "orders were carried out within orders"

    bench = Bench(executor, clock_ns=clock, on_end=submit_again)
    bench.submit()
    executor.batches[0].complete()
    await settle()
    executor.batches[1].complete()
    await settle()
    assert outcome(bench.ending(again[0])) == "on_time"
    check_invariants(bench.driver.scheduler)
    await bench.driver.stop(1)


async def test_the_same_request_twice_is_one() -> None:
    executor, clock = ManualExecutor(), FakeClock()
    bench = Bench(executor, clock_ns=clock)
    frame = bench.submit()
    bench.driver.feed(RequestArrived(frame.request))
    executor.batches[0].complete()
    await settle()
    assert outcome(bench.ending(frame)) == "on_time"
    await bench.driver.stop(1)


async def test_a_frame_of_a_camera_that_left_ends_as_departed() -> None:
    executor, clock = ManualExecutor(), FakeClock()
    bench = Bench(executor, clock_ns=clock)
    running, waiting = bench.submit(), bench.submit()
    bench.driver.feed(CameraDisconnected(camera().id))
    assert outcome(bench.ending(waiting)) == "departed"
    executor.batches[0].complete()
    await settle()
    assert outcome(bench.ending(running)) == "departed"
    await bench.driver.stop(1)


@pytest.mark.parametrize("held_up_ms", [1_050, 10_000])  # just past the limit, which is not late
async def test_what_came_back_while_the_loop_was_held_up_did_not_hang(held_up_ms: int) -> None:
    executor, clock = ManualExecutor(), FakeClock()
    bench = Bench(executor, clock_ns=clock)
    frame = bench.submit(slo_ms=20_000)
    bench.driver.from_thread(lambda: bench.driver.feed(PlanFailed()))  # reported before it
    executor.batches[0].complete()
    clock.now_ns += held_up_ms * MS
    bench.driver.feed(None)  # as when the timer fires before the loop has heard of the batch
    assert outcome(bench.ending(frame)) == "on_time"
    assert bench.driver.scheduler.supervised[CPU].state is ExecutorState.UP
    await bench.driver.stop(1)


async def test_wake_ups_drop_what_can_no_longer_make_it() -> None:
    executor = ManualExecutor()
    bench = Bench(executor)
    running = bench.submit(slo_ms=5000)
    doomed = bench.submit(slo_ms=60)
    began_ns = time.monotonic_ns()
    await until(lambda: doomed.ended, "the drop")
    assert outcome(bench.ending(doomed)) == "queue"
    assert time.monotonic_ns() - began_ns < 2_000 * MS
    executor.batches[0].complete()
    await until(lambda: running.ended, "the answer")
    await bench.driver.stop(1)


async def test_a_broken_picture_is_refused_with_what_is_wrong() -> None:
    bench = Bench(NullExecutor(CPU), needs_pixels=True)
    broken = bench.submit(slo_ms=5000, jpeg=WHITE[: len(WHITE) // 2])
    good = bench.submit(slo_ms=5000, jpeg=WHITE)
    await until(lambda: broken.ended and good.ended, "both to end")
    refused = bench.ending(broken)
    assert isinstance(refused, Refusal)
    assert refused.reason is DropReason.INVALID
    assert "truncated" in refused.message
    assert outcome(bench.ending(good)) == "on_time"
    await bench.driver.stop(1)


class CanvasWatch(ManualExecutor):
    """Looks at the canvases of each batch while it runs, as an executor's thread would."""

    def __init__(self, fails: Sequence[bool]) -> None:
        super().__init__()
        self.seen: list[int] = []
        self.spoilt = 0
        self._null = NullExecutor(CPU, batch_ns=3 * MS)
        self._fails = list(fails)

    def submit(
        self,
        variant: VariantName,
        inputs: Sequence[ModelInput],
        batch_size: int,
        threads: int = 0,
        *,
        deadline_ns: int | None = None,
    ) -> "Future[BatchResult]":
        canvases = [each for each in inputs if isinstance(each, np.ndarray)]
        self.seen += [id(canvas) for canvas in canvases]
        before = [int(canvas.sum()) for canvas in canvases]
        inner = self._null.submit(variant, canvases, batch_size)
        outer: Future[BatchResult] = Future()

        def look_again(done: "Future[BatchResult]") -> None:
            after = [int(canvas.sum()) for canvas in canvases]
            self.spoilt += before != after or len({id(c) for c in canvases}) < len(canvases)
            if self._fails and self._fails.pop(0):
                outer.set_exception(ModelError("as the test says"))
            else:
                outer.set_result(done.result())

        inner.add_done_callback(look_again)
        return outer

    def close(self) -> None:
        self._null.close()


PICTURES = [
    encode(np.full((234, 416, 3), level, np.uint8), quality=50) for level in (0, 60, 120, 180, 240)
]


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([1, 30, 80, 2000]), st.integers(0, 5)), max_size=25),
    st.lists(st.booleans(), max_size=5),
    st.none() | st.integers(0, 24),
    st.booleans(),
    st.tuples(st.sampled_from(["edf", "adaptive"]), st.booleans()),
)
def test_every_frame_ends_once_and_no_canvas_is_shared(
    frames: list[tuple[int, int]],
    fails: list[bool],
    leaves_at: int | None,
    patient: bool,
    how: tuple[str, bool],
) -> None:
    """Frames of all deadlines, some broken, failing batches, a camera that leaves, a stop."""
    policy, per_batch = how
    executor = CanvasWatch(fails)

    async def live() -> Bench:
        parameters = SchedulerParameters(sample_share=1.0, variant_per_batch=per_batch)
        bench = Bench(executor, needs_pixels=True, policy=policy, parameters=parameters, gain=0.9)
        submitted = []
        for number, (slo_ms, kind) in enumerate(frames):
            if number == leaves_at:
                bench.driver.feed(CameraDisconnected(camera().id))
                bench.driver.feed(CameraConnected(camera()))
            jpeg = PICTURES[kind] if kind < len(PICTURES) else b"\xff\xd8 broken"
            submitted.append(bench.submit(slo_ms=slo_ms, jpeg=jpeg))
            await asyncio.sleep(0.001 if number % 3 else 0)
        if patient:
            await until(lambda: not bench.driver.frames_pending, "all to end")
        await bench.driver.stop(10)
        assert all(frame.ended for frame in submitted)
        assert [len(bench.endings[frame.request.id]) for frame in submitted] == [1] * len(frames)
        check_invariants(bench.driver.scheduler)
        return bench

    bench = asyncio.run(live())
    executor.close()
    assert executor.spoilt == 0
    assert bench.driver.frames_pending == 0


async def test_frames_that_would_miss_are_scaled_to_a_smaller_variant() -> None:
    executor, clock = ManualExecutor(), FakeClock()
    parameters = SchedulerParameters(
        variant_per_batch=True, first_pixels_max=LARGE, prepare_initial_ns=0
    )
    bench = Bench(executor, clock_ns=clock, needs_pixels=True, parameters=parameters)
    frames = [bench.submit(slo_ms=115, jpeg=picture) for picture in PICTURES[:1] * 8]
    ready = bench.driver.scheduler._ledger.ready
    await until(lambda: sum(sum(of.values()) for of in ready.values()) == 7, "the pictures")
    # Seven wait behind the first, 20 ms each; they have 95 ms.
    while executor.batches:
        batch = executor.batches.pop()
        side = int(batch.variant.removeprefix("street-"))
        assert [canvas.shape for canvas in batch.canvases] == [(side, side, 3)] * len(
            batch.canvases
        )
        clock.now_ns += MEDIAN_MS[side] * MS * len(batch.canvases)
        batch.complete(MEDIAN_MS[side] * MS * len(batch.canvases))
        await settle()
    answers = [bench.ending(frame) for frame in frames]
    variants = [answer.variant for answer in answers if isinstance(answer, Answer)]
    assert len(variants) == 8, "none was dropped"
    assert name(416) in variants
    assert set(variants) - {name(416)}, "some ran on a smaller one"
    await bench.driver.stop(1)


async def test_a_picture_that_finds_an_executor_idle_is_decoded_for_a_larger_variant() -> None:
    executor, clock = ManualExecutor(), FakeClock()
    parameters = SchedulerParameters(first_pixels_max=320 * 320, prepare_initial_ns=0)
    bench = Bench(executor, clock_ns=clock, needs_pixels=True, parameters=parameters)
    first = bench.submit(slo_ms=300, jpeg=PICTURES[0])
    await until(lambda: len(executor.batches) == 1, "its batch")
    second = bench.submit(slo_ms=300, jpeg=PICTURES[0])
    ready = bench.driver.scheduler._ledger.ready
    await until(lambda: any(map(sum, (of.values() for of in ready.values()))), "the picture")
    sides = []
    while executor.batches:
        batch = executor.batches.pop()
        sides.append([canvas.shape[0] for canvas in batch.canvases])
        batch.complete(20 * MS)
        await settle()
    assert sides == [[416], [320]], "the second one found it busy"
    answers = [bench.ending(frame) for frame in (first, second)]
    assert [answer.variant for answer in answers if isinstance(answer, Answer)] == [
        name(416),
        name(320),
    ]
    await bench.driver.stop(1)


async def test_canvases_are_used_again() -> None:
    executor = CanvasWatch([])
    bench = Bench(executor, needs_pixels=True)
    for picture in PICTURES * 4:
        frame = bench.submit(slo_ms=5000, jpeg=picture)
        await until(lambda: frame.ended, "the answer")  # noqa: B023 - called at once
    await bench.driver.stop(1)
    executor.close()
    assert len(set(executor.seen)) == 1
    assert len(executor.seen) == 20


async def test_a_result_that_cannot_be_used_fails_its_batch_and_leaves_the_executor_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    executor = ManualExecutor()
    bench = Bench(executor)
    first = bench.submit()
    with monkeypatch.context() as broken:
        broken.setattr(bench.driver.measurements, "add_batch", None)
        executor.batches[0].complete()
        await settle()
    assert outcome(bench.ending(first)) == "failed"
    second = bench.submit()
    executor.batches[1].complete()
    await settle()
    assert outcome(bench.ending(second)) == "on_time"


async def test_a_batch_has_the_deadline_of_the_one_that_can_wait_longest() -> None:
    executor = ManualExecutor()
    bench = Bench(executor, gain=0.8, needs_pixels=True)
    first = bench.submit(slo_ms=10_000, jpeg=WHITE)
    await until(lambda: bool(executor.batches), "the first batch")
    others = [bench.submit(slo_ms=slo_ms, jpeg=WHITE) for slo_ms in (20_000, 30_000)]
    await until(lambda: not any(frame.preparing for frame in others), "decoded pictures")
    executor.batches[0].complete()
    await settle()
    alone, together = executor.batches
    assert alone.deadline_ns == first.request.deadline_ns
    assert len(together.canvases) == 2
    assert together.deadline_ns == others[1].request.deadline_ns
    together.complete()
    await settle()
    await bench.driver.stop(1)
