"""Levels that rise one step at a time."""

from edgebox.planning.options import candidates
from edgebox.planning.capacity import batch_times
from edgebox.planning.minimum import on_the_ground
from edgebox.planning.parameters import PlanningParameters
from edgebox.planning.steps import best_by_steps
from tests.planning.scene import seen, snapshot
from tests.scheduling.scene import camera, name

P = PlanningParameters()


def test_a_step_that_did_not_fit_is_tried_again_when_others_share_its_batches() -> None:
    of = snapshot([seen(camera("fast", 1000, 30)), seen(camera("slow", 100, 2))], gain=0.9)
    timing = batch_times(of, P.quantile)
    found = [camera_options(each, of, timing, P) for each in of.cameras]
    ground = on_the_ground([each for each in found if each is not None], timing, P)
    chosen = best_by_steps(ground, timing, P, 1000)
    # Alone on 416 px "fast" would cost too much; "slow" goes there first and shares its batches.
    assert {level.variant.name for level in chosen.levels} == {name(416)}
