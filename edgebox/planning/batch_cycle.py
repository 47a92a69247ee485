"""Decides what executors can serve that take turns at a few variants in full batches. Pure.

While one batch of each active variant runs, what the next ones hold arrives: R is the sum of the
batches' times, over executors that work side by side, and a variant's batch must hold what comes
in R. A request that just misses its batch waits for at most W = max(R, longest batch), then runs:
its camera is safe if W plus its own batch's time is within its compute budget. With one variant
this is Jellyfish's Eq. 6 and 7; with one executor it is the round-robin cycle of `cycle.py`.
Batches grow with the load, so no part of the time need be kept free for unlucky phases; that they
can still grow is what `cycle_utilisation` tells. Limits: all executors have all variants; batches form on
whichever is free.

An executor on which nothing waits may begin a foreign batch of length F. What arrives from then on
finds a turn that began F too late: variant j's batch starts at most F + R - p_j later, for p_j its
part of R. So it waits for at most R + max(0, F - p_j), its batch holds what comes in that time, and
all is well if the conditions hold with this in the place of R. The turns after that one are no
longer than R, which holds what comes in R, as before.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from edgebox.domain.models import VariantName
from edgebox.planning.capacity import BatchTimes
from edgebox.planning.options import CameraOptions, Option

NEVER_NS = 1 << 62
_STEAL_MAX_NS = 10_000_000_000
_STEAL_STEP_NS = 100_000


@dataclass(slots=True)
class VariantDemand:
    """What the cameras on one variant ask of it."""

    rate_hz: float = 0.0
    tightest_ns: int = NEVER_NS
    """The least compute budget of a served camera."""


@dataclass(frozen=True, slots=True)
class DeadlineMiss:
    """Why a turn does not work: this variant's requests would be late by so much."""

    variant: VariantName
    over_ns: int


@dataclass(frozen=True, slots=True)
class BatchCycle:
    """One batch of each active variant."""

    wait_ns: int
    """For how long any request may have to wait."""
    batch: Mapping[VariantName, int] = field(default_factory=dict)
    """Active variant to the size of its batches."""


def demand_of(
    cameras: Sequence[CameraOptions], chosen: Iterable[Option]
) -> dict[VariantName, VariantDemand]:
    """Add up what cameras at these levels ask of each variant."""
    asked: dict[VariantName, VariantDemand] = {}
    for camera, level in zip(cameras, chosen, strict=True):
        of = asked.setdefault(level.variant.name, VariantDemand())
        of.rate_hz += level.rate_hz
        if camera.served:
            of.tightest_ns = min(of.tightest_ns, level.budget.compute_ns)
    return asked


def solve_cycle(
    asked: Mapping[VariantName, VariantDemand],
    timing: Mapping[VariantName, BatchTimes],
    margin_ns: int = 0,
    guest_ns: int = 0,
) -> BatchCycle | DeadlineMiss:
    """Find the shortest turn that carries this, or say who is late in every one.

    Larger batches make the turn longer and a longer turn makes the batches larger, so the least
    fixed point is the best there is. O(V B) for V active variants and B batch sizes.

    Args:
        asked: of each active variant.
        timing: what its batches take.
        margin_ns: kept back from every budget.
        guest_ns: the longest foreign batch that an executor may run while nothing waits.
    """
    at = dict.fromkeys(asked, 0)
    while True:
        batches = {name: timing[name].batches[at[name]] for name in asked}
        turn_ns = sum(pooled_ns for _, _, pooled_ns in batches.values())
        wait_ns = max(round(turn_ns), *(longest_ns for _, longest_ns, _ in batches.values()))
        for name, (_, longest_ns, pooled_ns) in batches.items():
            waits_ns = max(wait_ns, round(turn_ns + max(0, guest_ns - pooled_ns)))
            over_ns = waits_ns + longest_ns + margin_ns - asked[name].tightest_ns
            if over_ns > 0:
                return DeadlineMiss(name, over_ns)
        grown = False
        for name, of in asked.items():
            gathers_ns = turn_ns + max(0, guest_ns - batches[name][2])
            needed = of.rate_hz * gathers_ns / 1e9
            sizes = timing[name].batches
            while sizes[at[name]][0] < needed - 1e-9:
                grown = True
                at[name] += 1
                if at[name] == len(sizes):
                    return DeadlineMiss(name, round(turn_ns))
        if not grown:
            return BatchCycle(wait_ns, {name: size for name, (size, _, _) in batches.items()})


def steal_budget_ns(
    asked: Mapping[VariantName, VariantDemand], timing: Mapping[VariantName, BatchTimes]
) -> int:
    """Return the longest foreign batch that these executors may run while nothing waits for them.

    A longer one only makes everybody wait longer, so it is found by halving. O(log(T) V B).

    Args:
        asked: of each active variant; they work in turns.
        timing: what its batches take.
    """
    tightest_ns = min((of.tightest_ns for of in asked.values()), default=NEVER_NS)
    low, high = 0, min(tightest_ns, _STEAL_MAX_NS)
    while high - low > _STEAL_STEP_NS:
        middle = (low + high) // 2
        if isinstance(solve_cycle(asked, timing, guest_ns=middle), BatchCycle):
            low = middle
        else:
            high = middle
    return low


def cycle_utilisation(
    asked: Mapping[VariantName, VariantDemand], timing: Mapping[VariantName, BatchTimes]
) -> float:
    """Return the part of the executors' time that this takes in the largest batches allowed.

    A batch is allowed if it can be in time at all: what executors that fell behind may gather.
    """
    share = 0.0
    for name, of in asked.items():
        share += of.rate_hz / 1e9 * min(
            pooled_ns / size
            for at, (size, longest_ns, pooled_ns) in enumerate(timing[name].batches)
            if at == 0 or longest_ns <= of.tightest_ns
        )  # fmt: skip
    return share
