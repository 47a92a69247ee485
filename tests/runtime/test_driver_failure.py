"""A core that contradicts itself: nobody is left waiting, and the journal has what led to it."""

from unittest.mock import Mock

import orjson

from edgebox.domain.requests import DropReason
from edgebox.runtime.frames import Refusal
from edgebox.scheduling.scheduler import Scheduler
from tests.runtime.driving import Bench, FakeClock, ManualExecutor, settle
from tests.runtime.recorded import entries_of
from tests.scheduling.scene import MS


def spoil_the_books(scheduler: Scheduler) -> None:
    """Do what a defect would: the next batch finds a camera's list missing."""
    scheduler._ledger.frames_by_camera.clear()


async def test_a_scheduler_that_raises_ends_every_frame_and_says_why() -> None:
    executor = ManualExecutor()
    bench = Bench(executor)
    running, waiting = bench.submit(), bench.submit()
    assert len(executor.batches) == 1
    spoil_the_books(bench.driver.scheduler)
    executor.batches[0].complete()
    await settle()
    (failure,) = bench.failures
    assert failure is bench.driver.failure
    assert str(failure).startswith("the scheduler failed (KeyError: ")
    assert isinstance(bench.ending(waiting), Refusal)
    assert len(bench.endings[running.request.id]) == 1
    assert bench.driver.frames_pending == 0
    last = orjson.loads(failure.tail[-1])
    assert last[1][0] == "BatchCompleted"
    assert last[2]["raised"].startswith("KeyError: ")
    assert entries_of(bench.driver.decisions.journal)[-1].raised == last[2]["raised"]
    await bench.driver.stop(1)


async def test_an_order_that_raises_ends_every_frame_too_as_those_behind_it_are_lost() -> None:
    executor = ManualExecutor()
    bench = Bench(executor)
    executor.submit = Mock(side_effect=RuntimeError("can't start new thread"))  # type: ignore[method-assign]
    frame = bench.submit()
    await settle()
    assert isinstance(bench.ending(frame), Refusal)
    assert str(bench.driver.failure).startswith("an order of the scheduler failed (RuntimeError: ")
    assert bench.failures == [bench.driver.failure]
    assert bench.driver.frames_pending == 0
    await bench.driver.stop(1)


async def test_after_a_failure_frames_are_refused_at_once_and_nothing_is_decided() -> None:
    executor = ManualExecutor()
    bench = Bench(executor)
    bench.submit()
    bench.submit()
    spoil_the_books(bench.driver.scheduler)
    executor.batches[0].complete()
    await settle()
    calls = len(entries_of(bench.driver.decisions.journal))
    late = bench.submit()
    ending = bench.ending(late)
    assert isinstance(ending, Refusal)
    assert ending.reason is DropReason.SHUTDOWN
    assert len(bench.failures) == 1
    assert len(entries_of(bench.driver.decisions.journal)) == calls
    await bench.driver.stop(1)
    assert len(entries_of(bench.driver.decisions.journal)) == calls


async def test_the_books_are_audited_at_every_checkpoint() -> None:
    clock = FakeClock()
    bench = Bench(ManualExecutor(), clock_ns=clock)
    bench.driver.scheduler._ledger.waiting += 1
    clock.now_ns += 14_000 * MS
    bench.driver.feed(None)
    assert bench.failures == []
    clock.now_ns += 1_000 * MS
    bench.driver.feed(None)
    (failure,) = bench.failures
    assert str(failure) == "the scheduler's state contradicts itself (1 requests wait, not 0)"
    assert len(failure.tail) == len(entries_of(bench.driver.decisions.journal))
    await bench.driver.stop(1)


async def test_checkpoints_let_old_entries_go() -> None:
    clock = FakeClock()
    bench = Bench(ManualExecutor(), clock_ns=clock)
    for _ in range(200):
        clock.now_ns += 1_000 * MS
        bench.driver.feed(None)
    kept = entries_of(bench.driver.decisions.journal)
    assert 60 <= len(kept) <= 75
    assert kept[-1].now_ns == clock.now_ns
    assert bench.failures == []
    await bench.driver.stop(1)
