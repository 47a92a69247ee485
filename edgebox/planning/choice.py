"""Decides which levels all cameras get: by steps, in turns, apart or alone, kept or new. Pure."""

from collections.abc import Mapping, Sequence

from edgebox.domain.models import VariantName
from edgebox.planning.alone import best_alone
from edgebox.planning.apart import best_apart, kept_apart
from edgebox.planning.candidates import Candidates
from edgebox.planning.capacity import Bench, Timing
from edgebox.planning.ground import on_the_ground, slow_down, time_limit
from edgebox.planning.parameters import PlanningParameters
from edgebox.planning.selection import Chosen
from edgebox.planning.steps import best_by_steps, kept_by_steps
from edgebox.planning.turn_selection import batches_gain, best_in_turns, kept_in_turns


def choose(
    cameras: Sequence[Candidates],
    timing: Mapping[VariantName, Timing],
    parameters: PlanningParameters,
    iterations_max: int,
    bench: Bench | None = None,
    *,
    lone: Sequence[Candidates] = (),
) -> Chosen:
    """Choose a level for every camera.

    First, cameras that could not be served even if all had their smallest level become best effort.
    Then there are several ways to serve the others, with a sound test each: step by step, where
    many sizes share the executors and a part of their time is kept free (`steps.py`), in turns,
    where few sizes run in full batches (`turns.py`), in turns of groups that work apart, where
    there are several executors (`apart.py`), and with an executor for each camera, where there are
    so many (`alone.py`). The plan in force, repaired and raised where
    there is room, is replaced only by one that is better by a margin, so that nobody is moved for
    nothing. Where not even the smallest levels fit either way, the highest rates are lowered to a
    common one, none below what its camera can use; where not even these fit, the fewest cameras
    become best effort.

    Args:
        cameras: what each could be given; at least one camera.
        timing: what batches take.
        parameters: the tunables.
        iterations_max: bound on the steps or tests of each search.
        bench: the executors, if cameras may be divided among them.
        lone: what each camera could be given with an executor to itself, in the same order.
    """
    ground = on_the_ground(cameras, timing, parameters)
    new: list[Chosen] = []
    old: list[Chosen] = []
    alone = best_alone(lone, len(bench.executors), parameters) if bench is not None else None
    if alone is not None:
        new.append(alone)
        old.append(alone)  # nobody's level depends on the others'
    turning = best_in_turns(cameras, timing, parameters, iterations_max)
    if turning is not None:
        new.append(turning)
        kept = kept_in_turns(cameras, timing, parameters, iterations_max)
        if kept is not None:
            old.append(kept)
    if bench is not None and batches_gain(timing):
        divided = best_apart(cameras, bench, parameters, iterations_max, lone=lone)
        if divided is not None:
            new.append(divided)
        divided = kept_apart(cameras, bench, parameters, iterations_max, lone=lone)
        if divided is not None:
            old.append(divided)
    if ground.utilisation > time_limit(parameters):
        if not new:
            return slow_down(ground.cameras, timing, parameters)
    elif max((chosen.served for chosen in new), default=0) <= ground.served:
        new.append(best_by_steps(ground, timing, parameters, iterations_max))
        stepped = kept_by_steps(ground, timing, parameters, iterations_max)
        if stepped is not None:
            old.append(stepped)
    return _better(new, old, parameters)


def _better(new: Sequence[Chosen], old: Sequence[Chosen], parameters: PlanningParameters) -> Chosen:
    """Return the best of all that is new, unless one that is in force is about as good."""
    best = max(new, key=_worth)
    if old:
        in_force = max(old, key=_worth)
        gain = best.accuracy_rate / max(in_force.accuracy_rate, 1e-9)
        if best.served <= in_force.served and gain <= parameters.better_by:
            return in_force
    return best


def _worth(chosen: Chosen) -> tuple[int, float]:
    return chosen.served, chosen.accuracy_rate
