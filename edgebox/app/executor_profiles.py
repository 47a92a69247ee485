"""Changes what an executor of a running box runs, or how long that takes."""

from collections.abc import Callable, Mapping

from edgebox.domain.core_factors import with_greatest_core_factors
from edgebox.domain.interference import with_greatest_interference
from edgebox.domain.model_family import ExecutorId, LatencyProfile, VariantName
from edgebox.inference.model_executor import ModelExecutor
from edgebox.runtime.box import Box
from edgebox.scheduling.events import ExecutorHung, ProfilesChanged
from edgebox.scheduling.supervised import ExecutorState

Profiles = Mapping[VariantName, LatencyProfile]


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


def report_hung(box: Box, executor: ModelExecutor) -> None:
    """Have an executor replaced that hangs, unless it was already."""
    if any(each is executor for each in box.driver.executors):
        box.driver.feed(ExecutorHung(executor.id))


def with_unmeasured(profile: LatencyProfile, others: Profiles) -> LatencyProfile:
    """Return a profile of times alone with the greatest of what others of its executor were
    measured for besides: what other executors cost them, and what fewer threads do."""
    known = others.values()
    return with_greatest_core_factors(with_greatest_interference(profile, known), known)


async def change_profiles(
    box: Box, executor: ExecutorId, change: Callable[[Profiles], Profiles]
) -> None:
    """Change the profiles of an executor; return once the core uses them.

    The core does once what the executor runs has ended. An executor that is lost, or gets lost
    meanwhile, is opened with them.

    Args:
        box: the running box.
        executor: one of its executors.
        change: given the profiles that it has now, which others may have changed, returns those
            that it is to have.
    """
    driver = box.driver
    profiles = change(box.profiles[executor])
    box.set_profiles(executor, profiles)
    served = tuple(profile for name, profile in profiles.items() if name in driver.variants)
    driver.feed(ProfilesChanged(executor, served))
    await driver.until(lambda: not driver.scheduler.awaits_profiles(executor))
