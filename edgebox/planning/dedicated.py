"""Decides the options of cameras that have an executor each. Pure.

On a shared executor a frame may have to wait for a batch before its own (Jellyfish, Eq. 6: twice
the batch's time within the budget). Where there are no more cameras than executors, a frame finds a
free executor when it arrives, so only the time of its own batch must be within the budget.

It does not wait for the frame before it of its own camera either. Let a frame take d and the period
be P, with d below P. A frame that arrives while the frame before it runs ends d after that one
ends; counted from its own capture this is P - d earlier. So if the frame before it is in time, it
is in time. The reserve in d <= `utilisation_max` P is for cameras that do not keep their period,
and for frames that a link bunches, which hold two executors for a moment.

The options do not depend on each other: each camera has the largest that is in time and leaves its
executor enough time. O(n V) for n cameras and V variants.
"""

from collections.abc import Sequence

from edgebox.planning.allocation import Allocation, Violation
from edgebox.planning.options import CameraOptions, Option
from edgebox.planning.planner_parameters import PlanningParameters


class DedicatedAllocation(Allocation):
    """Options of cameras that have an executor each."""

    def __init__(self, cameras: Sequence[CameraOptions], at: Sequence[int], executors: int) -> None:
        super().__init__(cameras, at)
        self._executors = executors

    @property
    def utilisation(self) -> float:
        """Planned share of the executors' time."""
        return sum(map(_share, self.chosen)) / self._executors

    @property
    def steal_budget_ns(self) -> int:
        """The longest batch of another group that these executors may run while they are idle."""
        pairs = zip(self.cameras, self.chosen, strict=True)
        left = (option.budget.compute_ns - option.needed_ns for c, option in pairs if c.served)
        return max(0, min(left, default=0))

    def needed_ns(self, camera: int) -> int:
        """Return its own batch and the reserve."""
        return self.chosen_of(camera).needed_ns

    def violation(
        self, camera: int, option: Option, parameters: PlanningParameters
    ) -> Violation | None:
        """Return the constraint that forbids a camera an option; None: none does."""
        missing = _share(option) - _limit(self.cameras[camera], option, parameters)
        return Violation(missing_share=missing) if missing > 0 else None


def best_dedicated(
    cameras: Sequence[CameraOptions], executors: int, parameters: PlanningParameters
) -> DedicatedAllocation | None:
    """Give every camera an executor; None: there are too few, or one is not enough for somebody.

    Args:
        cameras: what each could be given with an executor to itself.
        executors: how many there are.
        parameters: the tunables.
    """
    if not 0 < len(cameras) <= executors:
        return None
    at = []
    for of in cameras:
        fits = [
            n
            for n, option in enumerate(of.options)
            if _share(option) <= _limit(of, option, parameters)
        ]
        if not fits:
            return None
        at.append(fits[-1])
    return DedicatedAllocation(cameras, at, executors)


def _share(option: Option) -> float:
    """Return the part of one executor's time that an option takes."""
    return option.single_ns * option.rate_hz / 1e9


def _limit(of: CameraOptions, option: Option, parameters: PlanningParameters) -> float:
    return parameters.utilisation_upgrade if of.is_upgrade(option) else parameters.utilisation_max
