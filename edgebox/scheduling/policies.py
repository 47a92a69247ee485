"""Owns the names of the batching policies, as configuration and simulator know them. Pure."""

import random
from collections.abc import Callable

from edgebox.scheduling.adaptive import DistributionAware
from edgebox.scheduling.baselines.bentoml import BentoMl
from edgebox.scheduling.baselines.clipper import Clipper
from edgebox.scheduling.baselines.clockwork import Clockwork
from edgebox.scheduling.baselines.fifo import FirstInFirstOut
from edgebox.scheduling.baselines.nexus import Nexus
from edgebox.scheduling.baselines.orloj import Orloj
from edgebox.scheduling.edf import EarliestDeadlineFirst
from edgebox.scheduling.policy import BatchingPolicy

POLICIES: dict[str, Callable[[random.Random], BatchingPolicy]] = {
    "adaptive": DistributionAware,
    "orloj": lambda rng: Orloj(),
    "edf": lambda rng: EarliestDeadlineFirst(),
    "fifo": lambda rng: FirstInFirstOut(),
    "clockwork": lambda rng: Clockwork(),
    "nexus": lambda rng: Nexus(),
    "clipper": lambda rng: Clipper(),
    "bentoml": lambda rng: BentoMl(),
}


def make_policy(name: str, rng: random.Random) -> BatchingPolicy:
    """Return a fresh policy.

    Args:
        name: one of `POLICIES`.
        rng: all chance in it.
    """
    return POLICIES[name](rng)
