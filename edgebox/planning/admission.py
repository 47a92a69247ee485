"""Decides whether a box that is asked to refuse takes on one more camera. Pure.

A newcomer is refused if its service, even at its smallest size and least rate, would take that of
cameras that are served: they would have to become best effort, or it would itself because they
are there. Its link is not known yet and taken to be an ordinary one. A camera that could not be
served on an empty box either is no newcomer's burden: it is taken on as long as nobody loses.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from edgebox.domain.plans import CameraSnapshot, PlanningSnapshot
from edgebox.domain.requests import Camera, LinkState
from edgebox.planning.alone import best_alone
from edgebox.planning.apart import best_apart
from edgebox.planning.by_application import by_application
from edgebox.planning.candidates import Candidates, all_candidates, lone_candidates
from edgebox.planning.capacity import Bench
from edgebox.planning.disjoint import part_of
from edgebox.planning.ground import at_least_rates, on_the_ground, time_limit
from edgebox.planning.parameters import PlanningParameters
from edgebox.planning.reasons import reason
from edgebox.planning.selection import Selection
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
    residents = tuple(each for each in snapshot.cameras if each.camera.id != newcomer.id)
    with_it = (*residents, CameraSnapshot(newcomer, LinkState(), None))
    snapshot = part_of(replace(snapshot, cameras=with_it), newcomer.family)
    snapshot = by_application(snapshot).snapshot
    bench = Bench(snapshot, parameters.quantile)
    timing = bench.together
    *residents_too, coming = snapshot.cameras
    residents = tuple(residents_too)

    def after_with(cameras: tuple[CameraSnapshot, ...]) -> _Outcome:
        return _outcome(replace(snapshot, cameras=cameras), bench, parameters)

    before, after = after_with(residents), after_with((*residents, coming))
    loaded = len(after.cameras) > len(before.cameras)
    if not loaded or not any(each.served for each in before.cameras):
        return None

    def why(camera: int) -> str:
        ground = after.ground or on_the_ground(after.cameras, timing, parameters)
        return reason(ground, camera, tuple(snapshot.profiles), snapshot.fixed_ns, parameters)

    for at, (had, has) in enumerate(zip(before.cameras, after.cameras, strict=False)):
        if had.served and not has.served:
            return f"{has.snapshot.camera.id} would no longer be served ({why(at)})"
    if not after.cameras[-1].served and after_with((coming,)).cameras[0].served:
        return f"it could not be served beside the others ({why(len(before.cameras))})"
    least = after.ground and at_least_rates(after.cameras, timing, parameters)
    if least and least.utilisation > time_limit(parameters):
        return (
            f"{len(least.cameras)} cameras would need {least.utilisation:.0%} of the time of "
            f"{', '.join(snapshot.profiles)} at their smallest sizes and least rates"
        )
    return None


@dataclass(frozen=True, slots=True)
class _Outcome:
    """Who would be served, the most that can be."""

    cameras: Sequence[Candidates]
    ground: Selection | None = None
    """Where there is no better way than all at their smallest sizes, sharing all executors."""


def _outcome(snapshot: PlanningSnapshot, bench: Bench, parameters: PlanningParameters) -> _Outcome:
    """Find the way in which most cameras are served."""
    timing = bench.together
    cameras = all_candidates(snapshot, timing, parameters)
    if not cameras:
        return _Outcome(())
    lone = lone_candidates(
        snapshot, timing, parameters, cameras=len(cameras), executors=len(bench.executors)
    )
    ways: list[_Outcome] = []
    if (alone := best_alone(lone, len(bench.executors), parameters)) is not None:
        ways.append(_Outcome(alone.cameras))
    if works_in_turns(cameras, timing, parameters):
        ways.append(_Outcome(cameras))
    elif batches_gain(timing):
        apart = best_apart(cameras, bench, parameters, tests_max=1, lone=lone)
        if apart is not None:
            ways.append(_Outcome(apart.cameras))
    ground = on_the_ground(cameras, timing, parameters)
    ways.append(_Outcome(ground.cameras, ground))
    return max(ways, key=lambda way: sum(each.served for each in way.cameras))
