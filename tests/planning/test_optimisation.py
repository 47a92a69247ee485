"""The one maximisation: service first, then value, and never worse than one discipline alone."""

import random
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from edgebox.domain.plans import PlanningSnapshot
from edgebox.planning.allocation import BEST_EFFORT_SERVICE, Allocation, SharedAllocation
from edgebox.planning.by_application import by_application
from edgebox.planning.capacity import ExecutorPool, batching_pays
from edgebox.planning.dedicated import DedicatedAllocation, best_dedicated
from edgebox.planning.minimum import Minimum, cycle_feasibility, shared_feasibility
from edgebox.planning.optimisation import allocate, optimise
from edgebox.planning.options import all_options, dedicated_options
from edgebox.planning.partition import kept_partition
from edgebox.planning.partition_search import best_partition
from edgebox.planning.planner import plan
from edgebox.planning.price_search import shared_allocations
from tests.planning.random_boxes import (
    GPUS,
    RATES_HZ,
    SLOS_MS,
    Drawn,
    P,
    box,
    drawn_cameras,
    in_force,
    judge_groups,
    options_of,
    runs_side_by_side,
)
from tests.planning.scene import link, seen, snapshot
from tests.scheduling.scene import MEDIAN_MS, camera, name

boxes = st.builds(
    box,
    drawn_cameras(7, in_force=True, demanding=True),
    st.sampled_from([1, 2, 3]),
    st.sampled_from([0.0, 0.5, 0.9]),
)


def optimised(of: PlanningSnapshot) -> Allocation:
    found = optimise(by_application(of), 1000, P)
    assert found is not None
    return found


def rank(of: Allocation) -> tuple[float, float]:
    """Write down a second time what is maximised."""
    service = value = 0.0
    for c, option in zip(of.cameras, of.chosen, strict=True):
        share = option.rate_hz / c.snapshot.camera.rate_hz
        service += share if c.served else BEST_EFFORT_SERVICE * share
        current = c.snapshot.current
        stays = current is not None and current.variant == option.variant.name
        value += option.variant.accuracy * option.rate_hz * (P.hysteresis_ratio if stays else 1)
    return round(service, 9), value


def one_by_one(of: PlanningSnapshot) -> list[Allocation]:
    """Return what each discipline finds by itself."""
    cameras, pool = options_of(of)
    timing = pool.together
    executors = len(pool.all_executors)
    dedicated = dedicated_options(of, timing, P, cameras=len(cameras), executors=executors)
    feasible = shared_feasibility(timing, P)
    some = Minimum(cameras, P).best(feasible, shared_feasibility(timing, P, P.upgrade_share))
    found: list[Allocation | None] = [best_dedicated(dedicated, len(pool.executors), P)]
    if some is not None:
        found += shared_allocations(some, timing, P, 1000)
    if not batching_pays(timing):
        return [each for each in found if each is not None]
    full = best_partition(cameras, dedicated, pool, P)
    if full is None:
        in_cycles = cycle_feasibility(timing, P)
        fewer = Minimum(cameras, P).best(in_cycles, in_cycles)
        full = None if fewer is None else best_partition(fewer, (), pool, P)
    found += [full, kept_partition(cameras, dedicated, pool, P)]
    return [each for each in found if each is not None]


def judge(found: Allocation, pool: ExecutorPool) -> None:
    """Write down a second time what must hold of an allocation, whatever its discipline."""
    chosen = found.chosen
    timing = pool.together
    if not isinstance(found, SharedAllocation):
        judge_groups(found, pool)
    elif not runs_side_by_side(found.cameras, chosen, timing, P.utilisation_max):
        # Only with everybody at the smallest size may more be planned.
        assert found.at == [0] * len(chosen)
        served = any(c.served for c in found.cameras)
        limit = P.utilisation_slow
        assert not served or runs_side_by_side(found.cameras, chosen, timing, limit)
    for c, option in zip(found.cameras, chosen, strict=True):
        wants = c.snapshot.camera
        assert min(P.rate_min_hz, wants.rate_hz) <= option.rate_hz <= wants.rate_hz
        assert not c.served or option.rate_hz >= wants.min_rate_hz
        assert not c.served or option.variant.accuracy >= wants.min_accuracy
        assert not c.served or option.fits


@settings(max_examples=60, deadline=None)
@given(boxes)
def test_the_best_of_every_discipline_is_taken_by_service_and_then_by_value(
    of: PlanningSnapshot,
) -> None:
    found = optimised(of)
    best = rank(found)
    assert best == pytest.approx((found.service, found.value(P.hysteresis_ratio)))
    for each in one_by_one(of):
        service, value = rank(each)
        assert best[0] >= service
        if best[0] == service:
            # What is in force gives way only to what is clearly better.
            kept = any(c.current is not None for c in of.cameras)
            assert best[1] * (P.hysteresis_ratio if kept else 1.0) >= value - 1e-9


def test_new_cameras_have_nothing_that_could_be_kept() -> None:
    """A plan that is better by less than `hysteresis_ratio` is taken: nobody is moved by it."""
    drawn: list[Drawn] = [
        (slo_ms, hz, mbps, 0.0, 0.0, None)
        for slo_ms, hz, mbps in ((150, 5, 3.0), (60, 60, 8.0), (60, 60, 8.0))
    ]
    of = box(drawn, 2, 0.9)
    assert optimised(of).accuracy_rate == max(each.accuracy_rate for each in one_by_one(of))


# In these, a group has a camera or two that an executor of their own would give less.
ONE_IN_A_CYCLE: list[Drawn] = [
    (150, 5, 1.0, 0.0, 0.0, 128),
    (100, 25, 1.0, 0.0, 0.3, None),
    (150, 25, 3.0, 0.0, 0.0, 128),
    (600, 15, 100.0, 0.0, 0.3, 320),
    (150, 25, 3.0, 0.0, 0.0, 416),
    (150, 60, 8.0, 0.0, 1.0, 416),
]
ONE_EACH: list[Drawn] = [
    (600, 5, 3.0, 0.0, 0.0, 256),
    (100, 60, 100.0, 0.0, 0.0, None),
    (60, 15, 100.0, 0.0, 0.0, 608),
]


@settings(max_examples=60, deadline=None)
@given(boxes)
@example(box(ONE_IN_A_CYCLE, 2, 0.9))
@example(box(ONE_EACH, 3, 0.9))
def test_what_is_in_force_wins_against_what_is_hardly_better(of: PlanningSnapshot) -> None:
    first = optimised(of)
    if not all(
        c.served and option.rate_hz == c.snapshot.camera.rate_hz
        for c, option in zip(first.cameras, first.chosen, strict=True)
    ):
        return  # who is best effort or slowed waits for time to spare
    again = optimised(in_force(of, first))
    assert again.service >= first.service - 1e-9
    if [o.variant for o in again.chosen] != [o.variant for o in first.chosen]:
        assert again.value(P.hysteresis_ratio) >= P.hysteresis_ratio * first.accuracy_rate - 1e-9
        assert again.accuracy_rate > first.accuracy_rate


def test_of_equal_plans_the_one_in_force_is_kept() -> None:
    # There is room for three at 416 px and one at 320: whoever has the less keeps it.
    for small in range(4):
        cameras = [
            seen(camera(f"gate-{at}", rate_hz=7.8), has_px=320 if at == small else 416)
            for at in range(4)
        ]
        found = optimised(snapshot(cameras))
        names = [o.variant.name for o in found.chosen]
        assert names == [name(320) if at == small else name(416) for at in range(4)]


def test_a_division_in_force_is_kept_against_its_mirror_image() -> None:
    of = box([(slo_ms, 25, 100.0, 0.0, 0.0, None) for slo_ms in (80, 80, 400, 400)], 2, 0.8)
    found = optimised(of)
    assert len(found.groups) == 2
    first, second = found.groups
    mirrored = (
        replace(first, executors=second.executors),
        replace(second, executors=first.executors),
    )
    for groups in (found.groups, mirrored):
        kept = optimised(replace(in_force(of, found), groups=groups))
        assert [o.variant for o in kept.chosen] == [o.variant for o in found.chosen]
        assert kept.value(P.hysteresis_ratio) == pytest.approx(
            P.hysteresis_ratio * found.accuracy_rate
        )


def test_service_comes_before_value() -> None:
    # One camera could have 608 px if the others were not served: nobody's service is worth that.
    cameras = [seen(camera("large", 1000, 10))]
    cameras += [seen(camera(f"tight-{at}", 60, 5)) for at in range(3)]
    found = optimised(snapshot(cameras))
    assert found.served == 4
    by_itself = optimised(snapshot(cameras[:1]))
    assert by_itself.chosen[0].variant.pixels > found.chosen[0].variant.pixels


def test_with_ample_executors_everybody_has_one() -> None:
    cameras = [seen(camera(f"g{at}", 60), link(throughput_stability=1.0)) for at in range(3)]
    for executors, expected in ((2, 320), (3, 416), (4, 416)):
        found = optimised(snapshot(cameras, executors=GPUS[:executors]))
        assert {o.variant.name for o in found.chosen} == {name(expected)}
        assert isinstance(found, DedicatedAllocation) == (executors >= 3)


@pytest.mark.parametrize("gain", [0.0, 0.15])
def test_where_batches_gain_little_nothing_is_planned_in_cycles(gain: float) -> None:
    cameras = [seen(camera(f"gate-{at}", 1000, 10)) for at in range(6)]
    found = optimised(snapshot(cameras, gain=gain))
    assert isinstance(found, SharedAllocation)
    assert found.utilisation <= P.utilisation_max
    answer = plan(snapshot(cameras, gain=gain), 1000)
    assert answer.utilisation == found.utilisation


def test_without_a_camera_that_can_be_planned_for_there_is_no_allocation() -> None:
    assert optimise(by_application(snapshot([])), 1000, P) is None
    assert optimise(by_application(snapshot([seen()], variants=())), 1000, P) is None


def test_an_overbooked_box_serves_whom_it_can_and_gives_the_others_next_to_nothing() -> None:
    # 128 px take 24 ms: 40 cameras at 1 Hz would be 96 % of the time.
    cameras = [seen(camera(f"gate-{at}", 300, 30, min_rate_hz=10)) for at in range(60)]
    found = optimised(snapshot(cameras, slowdown=8.0))
    assert [c.served for c in found.cameras] == [True] * 3 + [False] * 57, "who was there first"
    assert [o.rate_hz for o in found.chosen] == [12.5] * 3 + [P.best_effort_min_hz] * 57
    assert found.utilisation <= P.utilisation_slow


def test_a_box_that_even_next_to_nothing_overbooks_gives_everybody_that() -> None:
    cameras = [seen(camera(f"gate-{at}", 5000, 30)) for at in range(60)]
    found = optimised(snapshot(cameras, slowdown=300.0))
    assert found.served == 0
    assert {o.rate_hz for o in found.chosen} == {P.best_effort_min_hz}
    assert found.utilisation > P.utilisation_slow


def random_box(rng: random.Random) -> PlanningSnapshot:
    drawn: list[Drawn] = [
        (
            rng.choice(SLOS_MS),
            rng.choice(RATES_HZ),
            rng.choice([1.0, 3.0, 8.0, 100.0]),
            rng.choice([0.0, 0.0, 0.5]),
            rng.choice([0.0, 0.0, 0.3, 1.0]),
            rng.choice([None, *MEDIAN_MS]),
        )
        for _ in range(rng.randint(10, 30))
    ]
    return box(drawn, rng.randint(1, 4), rng.choice([0.0, 0.5, 0.8, 0.95]))


@pytest.mark.parametrize("seed", range(20))
def test_plans_of_many_cameras_are_feasible_and_stay(seed: int) -> None:
    of = random_box(random.Random(seed))
    found = optimised(of)
    pool = ExecutorPool(of, P.quantile)
    judge(found, pool)
    least = [c.options[0] for c in all_options(of, pool.together, P)]
    if found.at != [0] * len(least):
        assert found.utilisation <= P.cycle_utilisation_max + 1e-9
    # Planned again with that in force, nothing that was worth having is lost.
    again = optimised(in_force(of, found))
    judge(again, pool)
    assert again.served >= found.served or again.service >= found.service - 1e-9


@settings(max_examples=60, deadline=None)
@given(boxes)
def test_plans_of_few_cameras_are_feasible(of: PlanningSnapshot) -> None:
    judge(optimised(of), ExecutorPool(of, P.quantile))


@pytest.mark.parametrize("gain", [0.0, 0.9])
def test_no_more_than_the_share_that_may_be_used_is_planned(gain: float) -> None:
    """Whether or not batches pay, as long as the smallest sizes take less."""
    of = box([(300, 25 if gain else 5, 100.0, 0.0, 0.0, None)] * 6, 1, gain)
    used = [plan(of, 1000, P.using(share)).utilisation for share in (0.9, 0.5, 0.3)]
    assert used[0] > used[1] > used[2]
    assert all(planned <= share for planned, share in zip(used, (0.9, 0.5, 0.3), strict=True))


def test_allocate_needs_no_dedicated_options() -> None:
    of = box([(100, 15, 100.0, 0.0, 0.0, None)] * 3, 2, 0.8)
    cameras, pool = options_of(of)
    found = allocate(cameras, (), pool, P, 1000)
    judge(found, pool)
    assert not any(option.dedicated for option in found.chosen)
