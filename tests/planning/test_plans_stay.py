"""Plans of many random boxes stay what they are while the planner becomes faster.

Whoever changes plans on purpose replaces the digest, and says in the commit why they differ.
"""

import hashlib
import random
from dataclasses import replace

from edgebox.domain.plans import CameraSnapshot, Plan, PlanningSnapshot
from edgebox.planning.planner import plan
from tests.planning.random_boxes import RATES_HZ, SLOS_MS, Drawn, box

DIGEST = "5efe0d85cd6c5056"


def drawn(rng: random.Random) -> Drawn:
    """Draw a camera, as `drawn_cameras` does."""
    return (
        rng.choice(SLOS_MS),
        rng.choice(RATES_HZ),
        rng.choice([1.0, 3.0, 8.0, 100.0]),
        rng.choice([0.0, 0.0, 0.5, 0.57]),
        rng.choice([0.0, 0.3, 1.0]),
        None,
    )


def in_force(of: PlanningSnapshot, by: Plan) -> PlanningSnapshot:
    """Return a box that has carried out a plan."""

    def later(each: CameraSnapshot) -> CameraSnapshot:
        return replace(each, current=by.assignments.get(each.camera.id))

    return replace(of, cameras=tuple(map(later, of.cameras)), groups=by.groups)


def said(of: Plan) -> list[str]:
    """Return what a plan tells cameras and executors."""
    cameras = [
        f"{given.camera} {given.variant} {given.rate_hz:.3f} {given.served} {given.quality}"
        for given in of.assignments.values()
    ]
    return [*cameras, *(repr(group) for group in of.groups)]


def test_plans_of_random_boxes_stay_what_they_are() -> None:
    rng = random.Random(17)
    digest = hashlib.sha256()
    for cameras in (1, 2, 3, 5, 8, 12, 20, 40):
        for executors in (1, 2, 4):
            for gain in (1.0, 0.3):
                new = box([drawn(rng) for _ in range(cameras)], executors, gain)
                first = plan(new, 1_000)
                for each in (first, plan(in_force(new, first), 1_000)):
                    digest.update("\n".join(said(each)).encode())
    assert digest.hexdigest()[:16] == DIGEST
