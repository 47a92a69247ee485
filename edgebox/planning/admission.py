"""Decides whether a box that is asked to refuse takes on one more camera. Pure.

A newcomer is refused if its service, even at its smallest size and least rate, would take that of
cameras that are served: they would have to become best effort, or it would itself because they
are there. Its link is not known yet and taken to be an ordinary one. A camera that could not be
served on an empty box either is no newcomer's burden: it is taken on as long as nobody loses.
"""

from collections.abc import Sequence

from edgebox.domain.plans import CameraSnapshot, PlanningSnapshot
from edgebox.domain.requests import Camera, LinkState
from edgebox.planning.apart import best_apart
from edgebox.planning.candidates import Candidates, candidates
from edgebox.planning.capacity import Bench
from edgebox.planning.ground import at_least_rates, on_the_ground, time_limit
from edgebox.planning.parameters import PlanningParameters
from edgebox.planning.reasons import reason
from edgebox.planning.turn_selection import batches_gain, works_in_turns


def refusal(
    snapshot: PlanningSnapshot, newcomer: Camera, parameters: PlanningParameters
) -> str | None:
    """Say whom a new camera would take its service; None: nobody.

    O(n log n) for n cameras, as the planner's first step; where executors may work apart, as long
    as dividing them takes.

    Args:
        snapshot: the present. A camera of the newcomer's name in it is its own past, and gone.
        newcomer: what it asks for.
        parameters: the planner's.
    """
    bench = Bench(snapshot, parameters.quantile)
    timing = bench.together
    new = candidates(CameraSnapshot(newcomer, LinkState(), None), snapshot, timing, parameters)
    others = [each for each in snapshot.cameras if each.camera.id != newcomer.id]
    found = (candidates(each, snapshot, timing, parameters) for each in others)
    residents = [each for each in found if each is not None]
    if new is None or not residents or _all_in_turns([*residents, new], bench, parameters):
        return None
    before: Sequence[Candidates] = residents
    if not _all_in_turns(residents, bench, parameters):
        before = on_the_ground(residents, timing, parameters).cameras
    if not any(each.served for each in before):
        return None
    after = on_the_ground([*residents, new], timing, parameters)

    def why(camera: int) -> str:
        return reason(after, camera, tuple(snapshot.profiles), snapshot.fixed_ns, parameters)

    for at, (had, has) in enumerate(zip(before, after.cameras, strict=False)):
        if had.served and not has.served:
            return f"{has.snapshot.camera.id} would no longer be served ({why(at)})"
    alone = on_the_ground([new], timing, parameters)
    if alone.cameras[0].served and not after.cameras[-1].served:
        return f"it could not be served beside the others ({why(len(residents))})"
    least = at_least_rates(after.cameras, timing, parameters)
    if least.utilisation > time_limit(parameters):
        return (
            f"{len(least.cameras)} cameras would need {least.utilisation:.0%} of the time of "
            f"{', '.join(snapshot.profiles)} at their smallest sizes and least rates"
        )
    return None


def _all_in_turns(
    cameras: Sequence[Candidates], bench: Bench, parameters: PlanningParameters
) -> bool:
    """Say whether executors that take turns, together or apart, serve all who can be served."""
    timing = bench.together
    if not batches_gain(timing):
        return False
    if works_in_turns(cameras, timing, parameters):
        return True
    return best_apart(cameras, bench, parameters, tests_max=1) is not None
