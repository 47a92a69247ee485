"""Owns the names of the batching policies, as configuration and simulator know them. Pure."""

from collections.abc import Callable

from edgebox.scheduling.adaptive import DistributionAware
from edgebox.scheduling.baselines.bentoml import BentoMl
from edgebox.scheduling.baselines.clipper import Clipper
from edgebox.scheduling.baselines.clockwork import Clockwork
from edgebox.scheduling.baselines.coral import Coral
from edgebox.scheduling.baselines.fifo import FirstInFirstOut
from edgebox.scheduling.baselines.nexus import Nexus
from edgebox.scheduling.baselines.orloj import Orloj
from edgebox.scheduling.edf import EarliestDeadlineFirst
from edgebox.scheduling.policy import BatchingPolicy

POLICIES: dict[str, Callable[[], BatchingPolicy]] = {
    "adaptive": DistributionAware,
    "orloj": Orloj,
    "edf": EarliestDeadlineFirst,
    "fifo": FirstInFirstOut,
    "clockwork": Clockwork,
    "nexus": Nexus,
    "coral": Coral,
    "clipper": Clipper,
    "bentoml": BentoMl,
}


def make_policy(name: str) -> BatchingPolicy:
    """Return a new policy; `name` is one of `POLICIES`."""
    return POLICIES[name]()
