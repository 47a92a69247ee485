"""Owns the cameras of a simulated fleet: their rates, links and round trips. Pure."""

import math
import random
from dataclasses import dataclass

RATES_HZ = (2.0, 5.0, 10.0)
"""What cameras ask for, each as often as the others."""
MBPS_MEDIAN, MBPS_SIGMA = 8.0, 0.7
"""Uplinks: lognormal. One in 40 carries less than 2 Mbit/s, one in 40 more than 32."""
RTT_MS_MEDIAN, RTT_MS_SIGMA = 10.0, 0.8
"""Round trips: lognormal. One in 40 takes less than 2 ms, one in 40 more than 50."""


@dataclass(frozen=True, slots=True)
class FleetCamera:
    """What a camera asks for, and its link."""

    rate_hz: float
    mbps: float
    rtt_ns: int


def draw_cameras(count: int, rng: random.Random) -> list[FleetCamera]:
    """Draw some cameras."""
    return [
        FleetCamera(
            rng.choice(RATES_HZ),
            min(100.0, max(0.5, MBPS_MEDIAN * math.exp(rng.gauss(0, MBPS_SIGMA)))),
            round(min(300.0, RTT_MS_MEDIAN * math.exp(rng.gauss(0, RTT_MS_SIGMA))) * 1e6),
        )
        for _ in range(count)
    ]
