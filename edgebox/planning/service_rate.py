"""Decides how many frames/s of a model family a box can answer at most: the measure of its load.

That is at the family's smallest variant, in the largest batches that fit half of the deadline's
time, within the share of the executors' time that may be planned. Beyond it cameras are best
effort. Pure.
"""

from edgebox.domain.model_family import FamilyName
from edgebox.domain.plans import PlanningSnapshot
from edgebox.planning.capacity import batch_times
from edgebox.planning.planner_parameters import PlanningParameters

TYPICAL_SLO_NS = 300_000_000
"""The deadline of a camera that names none."""


def frames_per_s_max(
    snapshot: PlanningSnapshot,
    family: FamilyName,
    parameters: PlanningParameters,
    slo_ns: int = TYPICAL_SLO_NS,
) -> float:
    """Return the frames/s of one family that the executors answer if they run nothing else.

    Args:
        snapshot: the loaded variants and what their batches take; its cameras do not matter.
        family: which family.
        parameters: the planner's.
        slo_ns: the deadline of the frames.

    Returns:
        0 if no variant of the family is loaded.
    """
    timing = batch_times(snapshot, parameters.quantile)
    loaded = [v for v in snapshot.variants if v.family == family and v.name in timing]
    if not loaded:
        return 0.0
    smallest = timing[min(loaded, key=lambda variant: variant.pixels).name]
    window_ns = max(0, (slo_ns - snapshot.fixed_ns) // 2)
    return parameters.utilisation_slow * 1e9 / smallest.request_ns(None, window_ns)
