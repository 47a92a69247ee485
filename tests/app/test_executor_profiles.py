"""An executor whose profiles change while the box runs."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import pytest

from edgebox.app import executor_profiles
from edgebox.app.executor_profiles import use_profiles
from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.runtime.box import Box
from edgebox.runtime.frames import Answer, PendingFrame
from edgebox.scheduling.events import ExecutorGone, ExecutorStarted
from edgebox.scheduling.supervised import ExecutorState
from tests.runtime.driving import Bench, ManualExecutor, settle
from tests.scheduling.scene import CPU, MEDIAN_MS, name, profile

KNOWN = {name(px): profile(px) for px in (128, 256)}
ALL = {name(px) for px in MEDIAN_MS}


def using(bench: Bench) -> tuple["asyncio.Task[None]", dict[ExecutorId, object]]:
    """Begin to use other profiles; return the task, and the profiles that the box was given."""
    given: dict[ExecutorId, object] = {}
    box = SimpleNamespace(driver=bench.driver, set_profiles=given.__setitem__, profiles=given)
    return asyncio.ensure_future(use_profiles(cast(Box, box), CPU, KNOWN)), given


def served(bench: Bench) -> set[VariantName]:
    return set(bench.driver.scheduler.supervised[CPU].variants)


async def test_a_batch_that_a_report_starts_meanwhile_is_not_lost() -> None:
    executor, frames = ManualExecutor(), list[PendingFrame]()
    bench = Bench(executor)
    task, given = using(bench)
    # As when a thread has decoded a picture, and the loop has not heard of it.
    bench.driver._loop._reports.append(lambda: frames.append(bench.submit()))
    await settle()
    assert served(bench) == ALL, "a batch runs"
    assert given == {CPU: KNOWN}, "what is opened in place of a lost executor has them"
    executor.batches[0].complete()
    await task
    assert isinstance(bench.ending(frames[0]), Answer)
    assert served(bench) == KNOWN.keys()
    await bench.driver.stop(1)


async def test_an_executor_that_a_report_says_is_lost_is_not_started() -> None:
    bench = Bench(ManualExecutor())
    task, _ = using(bench)
    bench.driver._loop._reports.append(lambda: bench.driver.feed(ExecutorGone(CPU)))
    await task
    assert bench.driver.scheduler.supervised[CPU].state is not ExecutorState.UP
    await bench.driver.stop(1)


async def test_an_executor_that_always_runs_a_batch_gets_them_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(executor_profiles, "_IDLE_S", 0.0)
    bench = Bench(ManualExecutor())
    bench.submit()
    task, _ = using(bench)
    await task
    assert served(bench) == KNOWN.keys()
    await bench.driver.stop(1)


async def test_of_two_that_wait_for_a_busy_executor_the_newer_has_the_last_word() -> None:
    executor = ManualExecutor()
    bench = Bench(executor)
    given: dict[ExecutorId, object] = {}
    box = SimpleNamespace(driver=bench.driver, set_profiles=given.__setitem__, profiles=given)
    frame = bench.submit()
    await settle()
    told: list[set[VariantName]] = []
    feed_if = bench.driver.feed_if

    def fed(holds: Callable[[], bool], event: ExecutorStarted) -> bool:
        done = feed_if(holds, event)
        if done:
            told.append({each.variant for each in event.profiles})
        return done

    bench.driver.feed_if = fed  # type: ignore[method-assign,assignment]
    one = {name(px): profile(px) for px in (128,)}
    waiting = [
        asyncio.ensure_future(use_profiles(cast(Box, box), CPU, known)) for known in (one, KNOWN)
    ]
    await settle()
    assert told == []
    executor.batches[0].complete()
    await asyncio.gather(*waiting)
    assert isinstance(bench.ending(frame), Answer)
    assert told == [KNOWN.keys(), KNOWN.keys()], "also what the older one says"
    assert served(bench) == KNOWN.keys()
    await bench.driver.stop(1)
