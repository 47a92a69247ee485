"""An executor whose profiles change while the box runs."""

import asyncio
from types import SimpleNamespace
from typing import cast

from edgebox.app.executor_profiles import Profiles, change_profiles
from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.runtime.box import Box
from edgebox.runtime.frames import Answer, PendingFrame
from edgebox.scheduling.events import ExecutorGone
from edgebox.scheduling.supervised import ExecutorState
from tests.runtime.driving import Bench, ManualExecutor, settle
from tests.scheduling.scene import CPU, MEDIAN_MS, name, profile

KNOWN = {name(px): profile(px) for px in (128, 256)}
ALL = {name(px): profile(px) for px in MEDIAN_MS}


class Scene:
    """A box with one executor."""

    def __init__(self) -> None:
        self.executor = ManualExecutor()
        self.bench = Bench(self.executor)
        self.given: dict[ExecutorId, Profiles] = {CPU: ALL}
        box = SimpleNamespace(
            driver=self.bench.driver, set_profiles=self.given.__setitem__, profiles=self.given
        )
        self.box = cast(Box, box)

    def keep(self, *variants: VariantName) -> "asyncio.Task[None]":
        """Begin to use fewer profiles."""

        def kept(known: Profiles) -> Profiles:
            return {variant: of for variant, of in known.items() if variant in variants}

        return asyncio.ensure_future(change_profiles(self.box, CPU, kept))

    @property
    def served(self) -> set[VariantName]:
        return set(self.bench.driver.scheduler.supervised[CPU].variants)


async def test_a_batch_that_a_report_starts_meanwhile_is_not_lost() -> None:
    scene, frames = Scene(), list[PendingFrame]()
    # As when a thread has decoded a picture, and the loop has not heard of it.
    scene.bench.driver._loop._reports.append(lambda: frames.append(scene.bench.submit()))
    task = scene.keep(*KNOWN)
    await settle()
    assert scene.served == ALL.keys(), "a batch runs"
    assert scene.given == {CPU: KNOWN}, "what is opened in place of a lost executor has them"
    assert not task.done()
    scene.executor.batches[0].complete()
    await task
    assert isinstance(scene.bench.ending(frames[0]), Answer)
    assert scene.served == KNOWN.keys()
    await scene.bench.driver.stop(1)


async def test_an_executor_that_a_report_says_is_lost_is_not_started() -> None:
    scene = Scene()
    driver = scene.bench.driver
    driver._loop._reports.append(lambda: driver.feed(ExecutorGone(CPU)))
    await scene.keep(*KNOWN)
    assert driver.scheduler.supervised[CPU].state is not ExecutorState.UP
    await driver.stop(1)


async def test_one_that_is_lost_while_it_is_waited_for_is_waited_for_no_more() -> None:
    scene = Scene()
    scene.bench.submit()
    task = scene.keep(*KNOWN)
    await settle()
    assert not task.done()
    scene.bench.driver.feed(ExecutorGone(CPU))
    await task
    await scene.bench.driver.stop(1)


async def test_an_executor_that_always_has_more_to_do_gets_them_and_loses_no_batch() -> None:
    scene = Scene()
    one = scene.bench.submit(60_000)
    await settle()
    other = scene.bench.submit(60_000)
    task = scene.keep(*ALL)
    await settle()
    scene.executor.batches[0].complete()
    await task
    await settle()
    assert len(scene.executor.batches) == 2, "it never rested"
    scene.executor.batches[1].complete()
    await settle()
    for frame in (one, other):
        assert isinstance(scene.bench.ending(frame), Answer)
    await scene.bench.driver.stop(1)


async def test_of_two_that_wait_for_a_busy_executor_both_have_their_say() -> None:
    scene = Scene()
    frame = scene.bench.submit()
    await settle()
    waiting = [scene.keep(*KNOWN, name(416)), scene.keep(*KNOWN, name(608))]
    await settle()
    assert scene.served == ALL.keys()
    scene.executor.batches[0].complete()
    await asyncio.gather(*waiting)
    assert isinstance(scene.bench.ending(frame), Answer)
    assert scene.served == KNOWN.keys()
    await scene.bench.driver.stop(1)
