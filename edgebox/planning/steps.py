"""Decides, for all cameras together, which candidate each one gets, one step at a time. Pure.

A longer batch and more of the executors' time only get worse as levels rise, so levels rise one
step at a time from a start that satisfies both. Steps are taken in the order of accuracy per time
(gained or lost). The rates cancel out, so a family's cameras are treated alike: where larger
variants gain ever less, the worst-off is raised first and the best-off lowered first.
O(S (V + log n)) for S steps, V variants.
"""

from collections.abc import Mapping
from heapq import heapify, heappop, heappush

from edgebox.domain.models import VariantName
from edgebox.planning.candidates import Level
from edgebox.planning.capacity import Timing
from edgebox.planning.parameters import PlanningParameters
from edgebox.planning.selection import Selection


def best_by_steps(
    ground: Selection,
    timing: Mapping[VariantName, Timing],
    parameters: PlanningParameters,
    iterations_max: int,
) -> Selection:
    """Build a plan from the ground up.

    Also from the highest level that all can have together, and from what the best choice of a
    longest batch allows; the best of the three counts.

    Args:
        ground: all at their smallest levels, within the executors' time.
        timing: what batches take.
        parameters: the tunables.
        iterations_max: bound on the steps considered from each start.
    """
    starts = (
        ground,
        _level_start(ground, timing, ground.window_ns, parameters),
        _longest_batch_start(ground, timing, parameters),
    )
    raised = (_raise(start, parameters, iterations_max) for start in starts if start is not None)
    return max(raised, key=lambda selection: selection.accuracy_rate)


def kept_by_steps(
    ground: Selection,
    timing: Mapping[VariantName, Timing],
    parameters: PlanningParameters,
    iterations_max: int,
) -> Selection | None:
    """Repair the plan in force: lowered where time no longer suffices, raised where it does.

    None: somebody would have to wait too long.
    """
    cameras, window_ns = ground.cameras, ground.window_ns
    kept = _lower(Selection(cameras, [c.current for c in cameras], timing, window_ns), parameters)
    if kept is None:
        return None
    # Lowering leaves the longest batch and the least slack out of date: take them anew.
    kept = Selection(cameras, kept.at, timing, window_ns)
    if kept.blocker_ns > kept.slack_ns:
        return None
    return _raise(kept, parameters, iterations_max)


def _level_start(
    ground: Selection,
    timing: Mapping[VariantName, Timing],
    window_ns: int,
    parameters: PlanningParameters,
) -> Selection | None:
    """Return the best start above the ground at which all have the same rung, or their largest.

    Step by step, the first camera to rise would leave the others' batches and pay for its own:
    many cameras that share an accelerator would all stay at the bottom.
    """
    cameras = ground.cameras
    for rung in range(max(len(c.levels) for c in cameras) - 1, 0, -1):
        at = [min(rung, len(c.levels) - 1) for c in cameras]
        level = Selection(cameras, at, timing, window_ns)
        fits = level.utilisation <= parameters.utilisation_max
        if fits and level.blocker_ns <= level.slack_ns:
            return level
    return None


def _longest_batch_start(
    ground: Selection, timing: Mapping[VariantName, Timing], parameters: PlanningParameters
) -> Selection | None:
    """Return the best of the starts that are made for each batch that could be the longest.

    With the longest batch given, cameras no longer depend on each other but for the executors'
    time: each takes the largest level that neither is longer nor waits too little, and all step
    down until the time suffices. Step by step from the ground, a camera that rises early, for
    little, can keep others from rising for much. O(V n log n) for V variants, n cameras.
    """
    cameras, window_ns = ground.cameras, ground.window_ns
    longest = {level.single_ns for c in cameras if c.served for level in c.levels}
    best: Selection | None = None
    for batch_ns in sorted(longest):
        if batch_ns < ground.blocker_ns:
            continue
        if batch_ns > ground.slack_ns:
            break
        at = [
            max(
                n
                for n, level in enumerate(c.levels)
                if n == 0 or (level.single_ns <= batch_ns <= level.slack_ns)
            )
            for c in cameras
        ]
        start = _lower(Selection(cameras, at, timing, window_ns), parameters)
        if start is not None and (best is None or start.accuracy_rate > best.accuracy_rate):
            best = start
    # Lowering leaves the longest batch and the least slack out of date: take them anew.
    return None if best is None else Selection(cameras, best.at, timing, window_ns)


def _worth(low: Level, high: Level) -> float:
    """Return the accuracy that a step brings per nanosecond."""
    step_ns = max(1, high.single_ns - low.single_ns)
    return (high.variant.accuracy - low.variant.accuracy) / step_ns


def _raise(selection: Selection, parameters: PlanningParameters, iterations_max: int) -> Selection:
    """Take every step up that fits, the most worthwhile first, until none does."""

    def entry(camera: int) -> tuple[float, float, int] | None:
        above = selection.above(camera)
        if above is None:
            return None
        has = selection.cameras[camera].levels[selection.at[camera]]
        return -_worth(has, above), has.variant.accuracy, camera

    heap = [e for camera in range(len(selection.cameras)) if (e := entry(camera)) is not None]
    heapify(heap)
    refused: list[tuple[float, float, int]] = []
    progress = False
    for _ in range(iterations_max):
        if not heap:
            # A step may have become possible: requests that joined a variant share its batches.
            if not progress or not refused:
                break
            heap, refused, progress = refused, [], False
            heapify(heap)
        candidate = heappop(heap)
        camera = candidate[2]
        level = selection.above(camera)
        if (
            level is None
            or selection.blocks(level)
            or selection.refusal(camera, level, parameters) is not None
        ):
            refused.append(candidate)
            continue
        selection.move(camera, selection.at[camera] + 1)
        progress = True
        if (after := entry(camera)) is not None:
            heappush(heap, after)
    return selection


def _lower(selection: Selection, parameters: PlanningParameters) -> Selection | None:
    """Take steps down, those that lose least per time first, until the time suffices."""

    def entry(camera: int) -> tuple[float, float, int] | None:
        at, levels = selection.at[camera], selection.cameras[camera].levels
        if at == 0:
            return None
        return _worth(levels[at - 1], levels[at]), -levels[at].variant.accuracy, camera

    heap = [e for camera in range(len(selection.cameras)) if (e := entry(camera)) is not None]
    heapify(heap)
    while selection.utilisation > parameters.utilisation_max:
        if not heap:
            return None
        camera = heappop(heap)[2]
        selection.move(camera, selection.at[camera] - 1)
        if (after := entry(camera)) is not None:
            heappush(heap, after)
    return selection
