"""Changes what an executor of a running box runs, or how long that takes."""

import asyncio
import time
from collections.abc import Mapping

from edgebox.domain.model_family import ExecutorId, LatencyProfile, VariantName
from edgebox.inference.model_executor import ModelExecutor
from edgebox.runtime.box import Box
from edgebox.scheduling.events import ExecutorStarted
from edgebox.scheduling.supervised import ExecutorState

_POLL_S = 0.002
_IDLE_S = 60.0
"""How long an executor may take to have no batch for a moment."""


def executors_up(box: Box) -> list[ModelExecutor]:
    """Return the executors of models that are up."""
    supervised = box.driver.scheduler.supervised
    return [
        executor
        for executor in box.driver.executors
        if isinstance(executor, ModelExecutor)
        and executor.id in supervised
        and supervised[executor.id].state is ExecutorState.UP
    ]


async def use_profiles(
    box: Box, executor: ExecutorId, known: Mapping[VariantName, LatencyProfile]
) -> None:
    """Tell the core what an executor runs now, in a moment in which it runs nothing.

    What is told is what the box has then: others may have changed it meanwhile. An executor that
    is lost, or gets lost meanwhile, is opened with it.
    """
    box.set_profiles(executor, known)
    driver, until_s = box.driver, time.monotonic() + _IDLE_S
    core = driver.scheduler

    def may_start() -> bool:
        # Starting it anew counts a running batch as lost.
        is_up = core.supervised[executor].state is ExecutorState.UP
        return is_up and (executor not in core.running or time.monotonic() >= until_s)

    while core.supervised[executor].state is ExecutorState.UP:
        latest = box.profiles[executor]
        served = tuple(profile for name, profile in latest.items() if name in driver.variants)
        if driver.feed_if(may_start, ExecutorStarted(executor, served)):
            return
        await asyncio.sleep(_POLL_S)
