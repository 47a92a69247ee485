"""Executors whose threads really block: the driver leaves them behind and opens others."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future

import pytest

from edgebox.domain.errors import EdgeboxError, ModelError
from edgebox.domain.model_family import ExecutorId, VariantName, WeightsId
from edgebox.domain.requests import DropReason
from edgebox.inference.executor_thread import BatchResult
from edgebox.inference.null_executor import NullExecutor
from edgebox.inference.tensors import ModelInput
from edgebox.runtime import frame_decoder
from edgebox.runtime.decode_queue import DECODE_LIMIT_NS
from edgebox.runtime.frames import Answer, Refusal
from edgebox.runtime.loading import Loads
from edgebox.runtime.supervisor import Reopened
from edgebox.runtime.threads import LEFT_BEHIND_MAX
from edgebox.scheduling.actions import Load, Unload
from edgebox.scheduling.events import ExecutorHung, LoadReturned
from edgebox.scheduling.invariants import check_invariants
from edgebox.scheduling.supervised import BACK_OFF_MAX_NS, OPEN_LIMIT_NS, ExecutorState
from tests.end_to_end.running import until
from tests.runtime.driving import Bench, FakeClock
from tests.scheduling.scene import CPU, MEDIAN_MS, profile

PROFILES = tuple(profile(px) for px in MEDIAN_MS)


class BlockingExecutor(NullExecutor):
    """One whose thread waits for the test in every batch."""

    def __init__(self) -> None:
        super().__init__(CPU)
        self.go_on = threading.Event()
        self.entered = threading.Event()
        self.abandoned = False

    def _run(self, job: object) -> BatchResult:
        self.entered.set()
        self.go_on.wait()
        return super()._run(job)  # type: ignore[arg-type]

    def abandon(self) -> None:
        self.abandoned = True
        super().abandon()


class RaisingExecutor(NullExecutor):
    """One on which nothing works."""

    def submit(
        self,
        variant: VariantName,
        inputs: Sequence[ModelInput],
        batch_size: int,
        threads: int = 0,
        *,
        deadline_ns: int | None = None,
    ) -> Future[BatchResult]:
        failed: Future[BatchResult] = Future()
        failed.set_exception(ModelError("CUDA error 719: unspecified launch failure"))
        return failed


def box(executor: NullExecutor, opener: Callable[[ExecutorId], Reopened]) -> Bench:
    return Bench(executor, opener=opener)


async def test_a_thread_that_blocks_is_left_behind_and_its_late_answer_ignored() -> None:
    blocking = BlockingExecutor()
    bench = box(blocking, lambda executor: Reopened(NullExecutor(executor), PROFILES))
    supervised = bench.driver.scheduler.supervised[CPU]
    hung = bench.submit(slo_ms=60_000)
    await until(lambda: hung.ended, "the limit")
    assert blocking.entered.is_set()
    ending = bench.ending(hung)
    assert isinstance(ending, Refusal)
    assert ending.reason is DropReason.FAILED
    assert blocking.abandoned
    await until(lambda: supervised.state is ExecutorState.UP, "another one")
    assert bench.driver.executors != [blocking]
    after = bench.submit(slo_ms=60_000)
    await until(lambda: after.ended, "an answer")
    assert isinstance(bench.ending(after), Answer)
    assert len(supervised.abandoned) == 1
    blocking.go_on.set()
    await until(lambda: not supervised.abandoned, "the old thread")
    assert isinstance(bench.ending(hung), Refusal), "it has ended once"
    check_invariants(bench.driver.scheduler)
    await bench.driver.stop(1)


async def test_one_that_cannot_be_opened_is_tried_again_until_somebody_gives_up() -> None:
    tried: list[ExecutorId] = []
    given_up: list[bool] = []

    def opener(executor: ExecutorId) -> Reopened:
        tried.append(executor)
        raise ModelError("CUDA cannot be used: the driver hangs")

    bench = Bench(RaisingExecutor(CPU), opener=opener, on_give_up=lambda: given_up.append(True))
    frames = [bench.submit(slo_ms=60_000) for _ in range(3)]
    await until(lambda: all(frame.ended for frame in frames), "failures")
    await until(lambda: len(tried) >= 2, "a second try, after a second")
    last = bench.driver.supervisor.last_errors[CPU]
    assert "the driver hangs" in last.text
    assert bench.not_opened[:1] == [CPU]
    assert not given_up
    refused = bench.submit(slo_ms=60_000)
    assert isinstance(bench.ending(refused), Refusal)
    await bench.driver.stop(1)


async def test_one_whose_opening_hangs_is_not_opened_and_that_is_told() -> None:
    go_on, clock = threading.Event(), FakeClock()

    def opener(executor: ExecutorId) -> Reopened:
        go_on.wait()
        return Reopened(NullExecutor(executor), PROFILES)

    bench = Bench(NullExecutor(CPU), opener=opener, clock_ns=clock)
    bench.driver.feed(ExecutorHung(CPU))
    assert not bench.not_opened
    clock.now_ns += OPEN_LIMIT_NS
    bench.driver.feed(None)
    assert bench.not_opened == [CPU], "what replaces it must be opened"
    supervised = bench.driver.scheduler.supervised[CPU]
    assert supervised.state is ExecutorState.WEDGED
    go_on.set()
    await until(lambda: supervised.state is ExecutorState.UP, "the opening, after all")
    await bench.driver.stop(1)


async def test_one_whose_opening_hangs_and_fails_after_all_is_opened_again() -> None:
    go_on, clock = threading.Event(), FakeClock()
    openings: list[ExecutorId] = []

    def opener(executor: ExecutorId) -> Reopened:
        openings.append(executor)
        if len(openings) == 1:
            go_on.wait()
            raise EdgeboxError("the device was gone")
        return Reopened(NullExecutor(executor), PROFILES)

    bench = Bench(NullExecutor(CPU), opener=opener, clock_ns=clock)
    bench.driver.feed(ExecutorHung(CPU))
    clock.now_ns += OPEN_LIMIT_NS
    bench.driver.feed(None)
    supervised = bench.driver.scheduler.supervised[CPU]
    assert supervised.state is ExecutorState.WEDGED
    go_on.set()
    await until(lambda: supervised.state is ExecutorState.WAITING, "the opening's error")
    clock.now_ns += BACK_OFF_MAX_NS
    bench.driver.feed(None)
    await until(lambda: supervised.state is ExecutorState.UP, "another opening")
    await bench.driver.stop(1)


async def test_a_thread_that_hangs_while_it_decodes_is_replaced_and_its_frame_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, entered, go_on = FakeClock(), threading.Semaphore(0), threading.Event()

    def hanging(*_: object) -> None:
        entered.release()
        go_on.wait()

    monkeypatch.setattr(frame_decoder, "prepare", hanging)
    bench = Bench(NullExecutor(CPU), clock_ns=clock, needs_pixels=True)
    for at in range(1 + LEFT_BEHIND_MAX):
        frame = bench.submit()
        assert await asyncio.to_thread(entered.acquire, timeout=60)
        clock.now_ns += DECODE_LIMIT_NS
        bench.driver.feed(None)
        assert isinstance(bench.ending(frame), Refusal)
        assert len(bench.notices) == at
    assert all("did not return within 60 s" in text for text in bench.notices)
    go_on.set()
    await bench.driver.stop(1)


async def test_a_box_stops_in_time_while_a_batch_blocks() -> None:
    blocking = BlockingExecutor()
    bench = box(blocking, lambda executor: Reopened(NullExecutor(executor), PROFILES))
    hung = bench.submit(slo_ms=60_000)
    await until(blocking.entered.is_set, "the batch")
    await bench.driver.stop(5)
    assert hung.ended, "its limit held while the box was stopping"
    blocking.go_on.set()


async def test_a_load_that_comes_back_after_its_executor_was_lost_is_told_as_that() -> None:
    loop = asyncio.get_running_loop()
    entered, go_on = threading.Event(), threading.Event()
    calls: list[object] = []

    def from_thread(report: Callable[[], None]) -> None:
        loop.call_soon_threadsafe(report)

    class Blocking:
        def load(self, weights: WeightsId) -> None:
            entered.set()
            go_on.wait()

        def unload(self, weights: WeightsId) -> None: ...

    loads = Loads(
        {CPU: Blocking()}, from_thread, calls.append,
        lambda: 0,
    )  # fmt: skip
    loads.carry_out(Load(CPU, WeightsId("a.onnx")))
    await until(entered.is_set, "the load")
    loads.use(CPU, Blocking())
    go_on.set()
    await until(lambda: bool(calls), "the end of the load")
    assert calls == [LoadReturned(CPU)]
    assert sum(loads.took.counts) == 0
    loads.stop()


async def test_a_load_that_never_began_returns_when_what_it_waited_for_does() -> None:
    loop = asyncio.get_running_loop()
    entered, go_on = threading.Event(), threading.Event()
    calls: list[object] = []

    class Hanging:
        def load(self, weights: WeightsId) -> None:
            calls.append(weights)

        def unload(self, weights: WeightsId) -> None:
            entered.set()
            go_on.wait()

    def from_thread(report: Callable[[], None]) -> None:
        loop.call_soon_threadsafe(report)

    loads = Loads({CPU: Hanging()}, from_thread, calls.append, lambda: 0)
    loads.carry_out(Unload(CPU, WeightsId("a.onnx")))
    loads.carry_out(Load(CPU, WeightsId("b.onnx")))
    await until(entered.is_set, "the unload")
    loads.use(CPU, Hanging())
    assert not calls, "its thread hangs"
    go_on.set()
    await until(lambda: bool(calls), "the end of the load")
    assert calls == [LoadReturned(CPU)]
    loads.stop()
