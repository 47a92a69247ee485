"""Random boxes for the parts of the planner, and what cameras of them could be given."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hypothesis import strategies as st

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.domain.plans import Assignment, CameraSnapshot, PlanningSnapshot
from edgebox.planning.allocation import Allocation
from edgebox.planning.batch_cycle import (
    BatchCycle,
    cycle_utilisation,
    demand_of,
    solve_cycle,
    steal_budget_ns,
)
from edgebox.planning.capacity import BatchTimes, ExecutorPool
from edgebox.planning.cycle_allocation import CycleAllocation
from edgebox.planning.dedicated import DedicatedAllocation
from edgebox.planning.options import CameraOptions, Option, all_options
from edgebox.planning.partition import PartitionedAllocation
from edgebox.planning.partition_search import best_partition
from edgebox.planning.planner_parameters import PlanningParameters
from tests.planning.scene import link, seen, snapshot
from tests.scheduling.scene import MEDIAN_MS, camera, name

P = PlanningParameters()
GPUS = tuple(ExecutorId(f"gpu/{at}") for at in range(4))

Drawn = tuple[int, float, float, float, float, int | None]
"""SLO in ms, rate in Hz, Mbit/s of the link, least accuracy and part of the rate, px in force."""

SLOS_MS = (60, 100, 150, 300, 600)
RATES_HZ = (5, 15, 25, 60)


def drawn_cameras(
    most: int,
    least: int = 1,
    *,
    slos_ms: Sequence[int] = SLOS_MS,
    in_force: bool = False,
    demanding: bool = False,
) -> st.SearchStrategy[list[Drawn]]:
    """Draw cameras; new ones that take any accuracy, unless told otherwise."""
    return st.lists(
        st.tuples(
            st.sampled_from(slos_ms),
            st.sampled_from(RATES_HZ),
            st.sampled_from([1.0, 3.0, 8.0, 100.0]),
            st.sampled_from([0.0, 0.0, 0.5, 0.57] if demanding else [0.0]),
            st.sampled_from([0.0, 0.3, 1.0] if demanding else [0.0]),
            st.sampled_from([None, *MEDIAN_MS] if in_force else [None]),
        ),
        min_size=least,
        max_size=most,
    )


def box(drawn: Sequence[Drawn], executors: int, gain: float) -> PlanningSnapshot:
    """Return a box of some executors with these cameras."""
    return snapshot(
        [
            seen(
                camera(
                    f"gate-{at}",
                    slo_ms,
                    rate_hz,
                    min_accuracy=accuracy,
                    min_rate_hz=part * rate_hz,
                ),
                link(mbps, throughput_stability=0.9),
                has_px,
            )
            for at, (slo_ms, rate_hz, mbps, accuracy, part, has_px) in enumerate(drawn)
        ],
        executors=GPUS[:executors],
        gain=gain,
    )


def options_of(of: PlanningSnapshot) -> tuple[list[CameraOptions], ExecutorPool]:
    """Return what each camera could be given, and the executors."""
    pool = ExecutorPool(of, P.quantile)
    return all_options(of, pool.together, P), pool


def in_force(of: PlanningSnapshot, found: Allocation) -> PlanningSnapshot:
    """Return a box whose cameras have what an allocation gives them."""
    cameras: list[CameraSnapshot] = []
    for c, option in zip(found.cameras, found.chosen, strict=True):
        has = Assignment(
            c.snapshot.camera.id, option.variant.name, option.rate_hz, 85, c.served, ""
        )
        cameras.append(replace(c.snapshot, current=has))
    return replace(of, cameras=tuple(cameras), groups=found.groups)


def raised(cameras: Sequence[CameraOptions], chosen: Sequence[Option]) -> bool:
    """Say whether anyone gets a larger variant than it has."""
    has_px = {name(px): px * px for px in MEDIAN_MS}
    return any(
        c.snapshot.current is not None
        and option.variant.pixels > has_px[c.snapshot.current.variant]
        for c, option in zip(cameras, chosen, strict=True)
    )


def runs_in_cycles(
    cameras: Sequence[CameraOptions],
    chosen: Sequence[Option],
    timing: Mapping[VariantName, BatchTimes],
) -> bool:
    """Write down a second time what cameras that share full batches must hold."""
    demand = demand_of(cameras, chosen)
    rising = raised(cameras, chosen)
    limit = P.cycle_utilisation_max * (P.upgrade_share if rising else 1.0)
    cycle = solve_cycle(demand, timing)
    return cycle_utilisation(demand, timing) <= limit + 1e-9 and isinstance(cycle, BatchCycle)


def runs_side_by_side(
    cameras: Sequence[CameraOptions],
    chosen: Sequence[Option],
    timing: Mapping[VariantName, BatchTimes],
    limit: float,
) -> bool:
    """Write down a second time what cameras must hold that share executors in any sizes."""
    served = [(c, o) for c, o in zip(cameras, chosen, strict=True) if c.served]
    longest_ns = max(o.single_ns for o in chosen)
    if any(longest_ns + o.single_ns > o.budget.compute_ns for _, o in served):
        return False
    tightest_ns = min((c.options[0].budget.compute_ns for c, _ in served), default=2)
    rates = {o.variant.name: 0.0 for o in chosen}
    for option in chosen:
        rates[option.variant.name] += option.rate_hz
    window_ns = max(1, tightest_ns // 2)
    return sum(timing[n].share(hz, window_ns) for n, hz in rates.items()) <= limit + 1e-9


def worth(chosen: Sequence[Option]) -> float:
    """Return accuracy times rate."""
    return sum(option.variant.accuracy * option.rate_hz for option in chosen)


def dedicated_of(of: PlanningSnapshot, pool: ExecutorPool) -> list[CameraOptions]:
    return all_options(of, pool.together, P, dedicated=True)


def judge_groups(found: Allocation, pool: ExecutorPool) -> None:
    """Write down a second time what full batches or executors of their own must hold."""
    if isinstance(found, CycleAllocation):
        assert runs_in_cycles(found.cameras, found.chosen, pool.together)
        return
    assert isinstance(found, PartitionedAllocation | DedicatedAllocation)
    if isinstance(found, DedicatedAllocation):
        assert len(found.cameras) <= len(pool.executors)
        assert all(o.single_ns * o.rate_hz / 1e9 <= P.utilisation_max for o in found.chosen)
        return
    assert len(found.parts) > 1
    used = [e for group in found.groups for e in group.executors]
    assert sorted(used) == sorted(pool.executors)
    names = [each for group in found.groups for each in group.variants]
    assert len(set(names)) == len(names)
    placed = [at for part in found.parts for at in part.members]
    assert sorted(placed) == list(range(len(found.cameras)))
    without = {
        number
        for number, part in enumerate(found.parts)
        for at in part.members
        if not found.cameras[at].served
    }
    assert len(without) <= 1, "best-effort cameras are together"
    for part, group in zip(found.parts, found.groups, strict=True):
        of = [found.cameras[at] for at in part.members]
        chosen = [found.chosen_of(at) for at in part.members]
        timing = pool.timing(group.executors)
        assert {option.variant.name for option in chosen} == set(group.variants)
        for at in part.members:
            assert found.sharing(at) == (len(part.members), group.executors)
        if isinstance(part.allocation, CycleAllocation):
            assert runs_in_cycles(of, chosen, timing)
            assert group.steal_budget_ns == steal_budget_ns(demand_of(of, chosen), timing)
            continue
        assert len(of) <= len(group.executors)
        for c, option in zip(of, chosen, strict=True):
            assert option.dedicated
            assert option.single_ns * option.rate_hz / 1e9 <= P.utilisation_max
            left_ns = option.budget.compute_ns - option.needed_ns
            assert not c.served or group.steal_budget_ns <= left_ns


MIXED: list[Drawn] = [
    (slo_ms, 25, 100.0, 0.0, 0.0, None) for slo_ms in (80, 80, 400, 400)
]  # fmt: skip


def mixed(has: Allocation | None = None) -> PlanningSnapshot:
    """Two with a tight deadline, two with a loose one; in force is what they have, if anything."""
    of = box(MIXED, 2, 0.8)
    return of if has is None else in_force(of, has)


def divided() -> PartitionedAllocation:
    cameras, pool = options_of(mixed())
    found = best_partition(cameras, (), pool, P)
    assert isinstance(found, PartitionedAllocation)
    return found
