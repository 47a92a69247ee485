"""Owns the exact test of executors that run full batches of a few variants in a cycle. Pure.

R is the time of a cycle, one batch of each active variant, over executors that work side by side.
The requests of the next batch arrive meanwhile, so a variant's batch must hold what arrives in R. A
request that just misses its batch waits at most W = max(R, longest batch) and then runs: its camera
is in time if W plus the time of its own batch is within its compute budget. With one variant this
is Jellyfish's Eq. 6 and 7. Batches grow with the load, so no part of the time must be kept free for
unlucky phases; `cycle_utilisation` tells whether they can still grow. Limits: all executors have
all variants; a batch forms on any executor that is free.

An idle executor may run a batch of another group, of length F (work stealing). A request that
arrives from then on finds a cycle that begins F too late: the batch of variant j starts at most
F + R - p_j later, where p_j is its part of R. So the request waits at most R + max(0, F - p_j), its
batch holds what arrives in that time, and the conditions must hold with this in the place of R. The
cycles after that one are no longer than R.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from edgebox.domain.model_family import VariantName
from edgebox.planning.capacity import BatchTimes
from edgebox.planning.options import CameraOptions, Option

NEVER_NS = 1 << 62
_STEAL_MAX_NS = 10_000_000_000
_STEAL_STEP_NS = 100_000


@dataclass(slots=True)
class VariantDemand:
    """What the cameras of one variant demand of it."""

    rate_hz: float = 0.0
    tightest_ns: int = NEVER_NS
    """The least compute budget of a served camera."""


@dataclass(frozen=True, slots=True)
class DeadlineMiss:
    """Why a cycle is infeasible: requests of this variant would be late by so much."""

    variant: VariantName
    over_ns: int
    overflow: float = 0.0
    """By what share more requests arrive in a cycle than the largest batch holds: executors that
    have so much more time would do."""


@dataclass(frozen=True, slots=True)
class BatchCycle:
    """A cycle: one batch of each active variant."""

    wait_ns: int
    """The longest that any request may have to wait."""
    batch: Mapping[VariantName, int] = field(default_factory=dict)
    """The batch size of each active variant."""


def demand_of(
    cameras: Sequence[CameraOptions], chosen: Iterable[Option]
) -> dict[VariantName, VariantDemand]:
    """Add up what cameras with these options demand of each variant."""
    demand: dict[VariantName, VariantDemand] = {}
    for camera, option in zip(cameras, chosen, strict=True):
        of = demand.setdefault(option.variant.name, VariantDemand())
        of.rate_hz += option.rate_hz
        if camera.served:
            of.tightest_ns = min(of.tightest_ns, option.budget.compute_ns)
    return demand


def solve_cycle(
    demand: Mapping[VariantName, VariantDemand],
    timing: Mapping[VariantName, BatchTimes],
    stolen_ns: int = 0,
) -> BatchCycle | DeadlineMiss:
    """Find the shortest cycle that serves a demand, or say who is late in every one.

    Larger batches make the cycle longer and a longer cycle makes the batches larger, so the least
    fixed point is the best there is. O(V^2 B) for V active variants and B batch sizes.

    Args:
        demand: of each active variant.
        timing: what its batches take.
        stolen_ns: the longest batch of another group that an idle executor may run.
    """
    at = dict.fromkeys(demand, 0)
    while True:
        batches = {name: timing[name].batches[at[name]] for name in demand}
        cycle_ns = sum(pooled_ns for _, _, pooled_ns in batches.values())
        wait_ns = max((round(cycle_ns), *(longest_ns for _, longest_ns, _ in batches.values())))
        for name, (_, longest_ns, pooled_ns) in batches.items():
            waits_ns = max(wait_ns, round(cycle_ns + max(0, stolen_ns - pooled_ns)))
            over_ns = waits_ns + longest_ns - demand[name].tightest_ns
            if over_ns > 0:
                return DeadlineMiss(name, over_ns)
        grown = False
        for name, of in demand.items():
            gathers_ns = cycle_ns + max(0, stolen_ns - batches[name][2])
            needed = of.rate_hz * gathers_ns / 1e9
            sizes = timing[name].batches
            while sizes[at[name]][0] < needed - 1e-9:
                grown = True
                at[name] += 1
                if at[name] == len(sizes):
                    return DeadlineMiss(name, round(cycle_ns), needed / sizes[-1][0] - 1)
        if not grown:
            return BatchCycle(wait_ns, {name: size for name, (size, _, _) in batches.items()})


def steal_budget_ns(
    demand: Mapping[VariantName, VariantDemand], timing: Mapping[VariantName, BatchTimes]
) -> int:
    """Return the longest batch of another group that these executors may run while they are idle.

    A longer one only makes everybody wait longer, so it is found by halving. O(log(T) V B).

    Args:
        demand: of each active variant, served in cycles.
        timing: what its batches take.
    """
    tightest_ns = min((of.tightest_ns for of in demand.values()), default=NEVER_NS)
    low, high = 0, min(tightest_ns, _STEAL_MAX_NS)
    while high - low > _STEAL_STEP_NS:
        middle = (low + high) // 2
        if isinstance(solve_cycle(demand, timing, stolen_ns=middle), BatchCycle):
            low = middle
        else:
            high = middle
    return low


def cycle_utilisation(
    demand: Mapping[VariantName, VariantDemand], timing: Mapping[VariantName, BatchTimes]
) -> float:
    """Return the part of the executors' time that this takes in the largest batches allowed.

    A batch is allowed if it can be in time at all: executors that fell behind gather such ones.
    """
    share = 0.0
    for name, of in demand.items():
        share += of.rate_hz / 1e9 * min(
            pooled_ns / size
            for at, (size, longest_ns, pooled_ns) in enumerate(timing[name].batches)
            if at == 0 or longest_ns <= of.tightest_ns
        )  # fmt: skip
    return share
