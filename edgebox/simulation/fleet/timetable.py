"""Decides what happens to the boxes of a simulated fleet, and when. Pure.

Cameras come within 20 s, some of the boxes join later, some end with a crash (their machine is
there and refuses connections), some lose their power (nothing answers), both come back, and then
all are upgraded, a tenth at a time.
"""

import random
from dataclasses import dataclass
from enum import StrEnum

S = 1_000_000_000
ARRIVALS_NS = 20 * S
JOIN_NS, CRASH_NS, POWER_NS, BACK_NS = 40 * S, 80 * S, 110 * S, 140 * S
UPGRADE_NS, UPGRADE_EVERY_NS = 160 * S, 15 * S
UPGRADE_GROUPS = 10
DRAIN_NS = 5 * S
RESTART_NS = 5 * S
"""How long a box that is upgraded is away."""
END_NS = UPGRADE_NS + UPGRADE_GROUPS * UPGRADE_EVERY_NS + 20 * S
SHARE = 0.05
"""The share of the boxes that join, crash and lose their power, each."""


class What(StrEnum):
    """What can happen to a box."""

    JOIN = "join"
    CRASH = "crash"
    POWER = "power loss"
    DRAIN = "drain"
    STOP = "stop"
    """It ends, after it has drained."""


@dataclass(frozen=True, slots=True)
class FleetEvent:
    """Something that happens to some boxes at once."""

    at_ns: int
    what: What
    boxes: tuple[int, ...]


def fleet_events(boxes: int, rng: random.Random) -> list[FleetEvent]:
    """Return all that happens, in order; boxes that join are not up at the beginning."""
    some = max(1, round(SHARE * boxes))
    order = rng.sample(range(boxes), boxes)
    joining, crashing, losing = order[:some], order[some : 2 * some], order[2 * some : 3 * some]
    found = [
        FleetEvent(JOIN_NS, What.JOIN, tuple(joining)),
        FleetEvent(CRASH_NS, What.CRASH, tuple(crashing)),
        FleetEvent(POWER_NS, What.POWER, tuple(losing)),
        FleetEvent(BACK_NS, What.JOIN, (*crashing, *losing)),
    ]
    for group in range(UPGRADE_GROUPS):
        upgraded = tuple(order[group::UPGRADE_GROUPS])
        at_ns = UPGRADE_NS + group * UPGRADE_EVERY_NS
        if upgraded:
            found += [
                FleetEvent(at_ns, What.DRAIN, upgraded),
                FleetEvent(at_ns + DRAIN_NS, What.STOP, upgraded),
                FleetEvent(at_ns + DRAIN_NS + RESTART_NS, What.JOIN, upgraded),
            ]
    return sorted(found, key=lambda each: each.at_ns)
