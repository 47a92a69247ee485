"""Decides which levels cameras get where there is an executor for each of them. Pure.

Elsewhere a frame may have to wait for a batch before its own (Jellyfish, Eq. 6: twice the batch's
time within the budget). With no more cameras than executors nobody waits for anybody: a frame has
an executor to itself as soon as it comes, so its own time must be within the budget, and no more.

Nor does it wait for its own camera's last one. Let that take d and the period be P, with d below
P: a frame that is quicker on the link than the one before finds that one running, if at all, and
then ends d behind its end; measured from its own capture that is P - d earlier. So if the one
before was in time, it is. The reserve in d <= `utilisation_max` P is for cameras that do not
keep their period, and for frames of one camera that, bunched by a link, hold two executors for a
moment.

Levels do not depend on each other then: each camera has the largest that is in time and leaves its
executor enough time. O(n V) for n cameras and V variants.
"""

from collections.abc import Sequence

from edgebox.planning.allocation import Allocation, Violation, raises
from edgebox.planning.options import CameraOptions, Option
from edgebox.planning.parameters import PlanningParameters


class DedicatedAllocation(Allocation):
    """Levels of cameras that have an executor each."""

    def __init__(self, cameras: Sequence[CameraOptions], at: Sequence[int], executors: int) -> None:
        super().__init__(cameras, at)
        self._executors = executors

    @property
    def utilisation(self) -> float:
        """Planned share of the executors' time."""
        return sum(map(_share, self.chosen)) / self._executors

    @property
    def steal_budget_ns(self) -> int:
        """The longest foreign batch that these executors may run while nothing waits for them."""
        pairs = zip(self.cameras, self.chosen, strict=True)
        left = (level.budget.compute_ns - level.needed_ns for c, level in pairs if c.served)
        return max(0, min(left, default=0))

    def violation(
        self, camera: int, level: Option, parameters: PlanningParameters
    ) -> Violation | None:
        """Say what forbids a camera to rise to this level; None: nothing does."""
        missing = _share(level) - _limit(self.cameras[camera], level, parameters)
        return Violation(missing_share=missing) if missing > 0 else None


def best_dedicated(
    cameras: Sequence[CameraOptions], executors: int, parameters: PlanningParameters
) -> DedicatedAllocation | None:
    """Give every camera an executor; None: there are too few, or one is not enough for somebody.

    Args:
        cameras: what each could be given, alone.
        executors: how many there are.
        parameters: the tunables.
    """
    if not 0 < len(cameras) <= executors:
        return None
    at = []
    for of in cameras:
        fits = [
            n
            for n, level in enumerate(of.options)
            if _share(level) <= _limit(of, level, parameters)
        ]
        if not fits:
            return None
        at.append(fits[-1])
    return DedicatedAllocation(cameras, at, executors)


def _share(level: Option) -> float:
    """Return the part of one executor's time that a level takes."""
    return level.single_ns * level.rate_hz / 1e9


def _limit(of: CameraOptions, level: Option, parameters: PlanningParameters) -> float:
    return parameters.utilisation_upgrade if raises(of, level) else parameters.utilisation_max
