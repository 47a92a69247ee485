"""Sizes side by side, by a price on the executors' time: feasible, maximal, close to the best."""

import random
from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from edgebox.domain.plans import PlanningSnapshot
from edgebox.planning.allocation import SharedAllocation
from edgebox.planning.capacity import ExecutorPool
from edgebox.planning.minimum import Minimum, shared_feasibility
from edgebox.planning.options import CameraOptions, Option
from edgebox.planning.price_search import shared_allocations
from tests.planning.random_boxes import (
    GPUS,
    RATES_HZ,
    Drawn,
    P,
    box,
    drawn_cameras,
    options_of,
    raised,
    runs_side_by_side,
    worth,
)
from tests.planning.scene import link, seen, snapshot
from tests.scheduling.scene import camera, name

RATIO = 0.9
"""Of the best there is, so much is found where batches bring nothing."""
RATIO_GAIN = 0.8
"""Where they do, who joins a variant makes its batches cheaper: a price knows nothing of that."""
MEAN_RATIO = 0.998


def searched(
    cameras: Sequence[CameraOptions], pool: ExecutorPool, iterations_max: int = 1000
) -> list[SharedAllocation]:
    return shared_allocations(cameras, pool.together, P, iterations_max)


def boxes(most: int, *, in_force: bool = True) -> st.SearchStrategy[PlanningSnapshot]:
    return st.builds(
        box,
        drawn_cameras(most, in_force=in_force, demanding=True, slos_ms=(60, 100, 300, 1000)),
        st.sampled_from([1, 2, 3]),
        st.sampled_from([0.0, 0.5, 0.9]),
    )


def fresh(found: SharedAllocation, pool: ExecutorPool) -> SharedAllocation:
    """Return the same options, added up from nothing."""
    return SharedAllocation(found.cameras, found.at, pool.together)


@settings(max_examples=100, deadline=None)
@given(boxes(10), st.sampled_from([0, 3, 1000]))
def test_what_is_found_is_feasible(of: PlanningSnapshot, iterations_max: int) -> None:
    cameras, pool = options_of(of)
    least = [c.options[0] for c in cameras]
    found = searched(cameras, pool, iterations_max)
    if not found:
        assert not runs_side_by_side(cameras, least, pool.together, P.utilisation_slow)
        return
    assert runs_side_by_side(cameras, least, pool.together, P.utilisation_slow)
    for each in found:
        if each.chosen == least:  # nobody can have less
            continue
        assert runs_side_by_side(cameras, each.chosen, pool.together, P.utilisation_max)
        new = fresh(each, pool)
        assert each.utilisation == pytest.approx(new.utilisation, abs=1e-9)
        assert (each.longest_ns, each.slack_ns) == (new.longest_ns, new.slack_ns)


# What one step more would take is just as much as may be planned.
UP_TO_THE_LIMIT: list[Drawn] = [
    (300, 5, 3.0, 0.0, 0.0, 416),
    (300, 25, 8.0, 0.0, 0.0, 416),
    (1000, 60, 3.0, 0.0, 0.0, 608),
    (1000, 25, 8.0, 0.0, 0.0, 128),
    (1000, 15, 100.0, 0.0, 0.0, 416),
]


@settings(max_examples=100, deadline=None)
@given(boxes(10))
@example(box(UP_TO_THE_LIMIT, 3, 0.0))
def test_no_single_step_up_fits_any_more(of: PlanningSnapshot) -> None:
    cameras, pool = options_of(of)
    for each in searched(cameras, pool):
        for at, c in enumerate(cameras):
            if each.at[at] + 1 == len(c.options):
                continue
            above = c.options[each.at[at] + 1]
            chosen = [*each.chosen[:at], above, *each.chosen[at + 1 :]]
            # Whoever gets a larger variant than it has asks everybody for a margin.
            rising = any(of_it.is_upgrade(o) for of_it, o in zip(cameras, chosen, strict=True))
            limit = P.utilisation_upgrade if rising else P.utilisation_max
            assert not runs_side_by_side(cameras, chosen, pool.together, limit - 2e-9)
            assert fresh(each, pool).violation(at, above, P) is not None


def best_of_all(cameras: Sequence[CameraOptions], pool: ExecutorPool, limit: float) -> float:
    """Return the most that is feasible; 0: nothing is."""
    feasible = (
        worth(chosen)
        for chosen in product(*(c.options for c in cameras))
        if runs_side_by_side(cameras, chosen, pool.together, limit)
    )
    return max(feasible, default=0.0)


@settings(max_examples=100, deadline=None)
@given(
    drawn_cameras(5, slos_ms=(60, 100, 300, 1000), demanding=True),
    st.sampled_from([1, 2, 3]),
    st.sampled_from([0.0, 0.5, 0.9]),
)
def test_the_search_is_close_to_the_best_of_all_options(
    drawn: list[Drawn], executors: int, gain: float
) -> None:
    cameras, pool = options_of(box(drawn, executors, gain))
    found = searched(cameras, pool)
    best = best_of_all(cameras, pool, P.utilisation_max)
    if not found or not best:
        return
    reached = max(each.accuracy_rate for each in found)
    assert reached >= (RATIO_GAIN if gain else RATIO) * best


def test_one_large_step_is_taken_instead_of_small_ones_that_leave_it_no_room() -> None:
    """6 Hz at 256 px bring as much for their time as 72 Hz at 256 px, but leave these no room."""
    of = [seen(camera("slow", 1000, 6)), seen(camera("fast", 300, 72))]
    cameras, pool = options_of(snapshot(of))
    [best, *_] = searched(cameras, pool)
    assert [o.variant.name for o in best.chosen] == [name(128), name(256)]
    assert best.accuracy_rate == best_of_all(cameras, pool, P.utilisation_max)


def test_on_average_hardly_anything_is_missed() -> None:
    rng = random.Random(1)
    ratios = []
    for _ in range(300):
        drawn: list[Drawn] = [
            (
                rng.choice((60, 100, 300, 1000)),
                rng.choice(RATES_HZ),
                rng.choice([1.0, 3.0, 8.0, 100.0]),
                rng.choice([0.0, 0.0, 0.5, 0.57]),
                rng.choice([0.0, 0.3, 1.0]),
                None,
            )
            for _ in range(rng.randint(1, 4))
        ]
        cameras, pool = options_of(box(drawn, rng.randint(1, 3), rng.choice([0.0, 0.5, 0.9])))
        found = searched(cameras, pool)
        best = best_of_all(cameras, pool, P.utilisation_max)
        if found and best:
            ratios.append(max(each.accuracy_rate for each in found) / best)
    assert len(ratios) > 200
    assert sum(ratios) / len(ratios) >= MEAN_RATIO
    assert sum(ratio < 0.95 for ratio in ratios) <= 0.01 * len(ratios)


@settings(max_examples=100, deadline=None)
@given(boxes(6))
def test_the_first_plan_leaves_some_of_the_time_over_where_anyone_is_raised(
    of: PlanningSnapshot,
) -> None:
    """What single steps add to it they test themselves; without them the limit is plain."""
    cameras, pool = options_of(of)
    found = searched(cameras, pool, 0)
    if found and found[0].at != [0] * len(cameras) and raised(cameras, found[0].chosen):
        assert fresh(found[0], pool).utilisation <= P.utilisation_upgrade + 1e-9
    for each in found[1:]:  # what is in force: nobody rises but to its least
        for c, at in zip(cameras, each.at, strict=True):
            assert at == 0 or not c.is_upgrade(c.options[at])


def test_a_plan_that_raises_leaves_some_of_the_time_over_after_all_steps() -> None:
    drawn: list[Drawn] = [
        (60, 60, 3.0, 0.0, 0.0, 128),
        (100, 15, 8.0, 0.0, 0.0, 416),
        (300, 5, 1.0, 0.0, 0.0, 128),
    ]
    cameras, pool = options_of(box(drawn, 1, 0.0))
    for each in searched(cameras, pool):
        if raised(cameras, each.chosen):
            assert fresh(each, pool).utilisation <= P.utilisation_upgrade + 1e-9


def test_a_raise_stays_within_its_own_limit_and_what_is_held_within_all() -> None:
    # 48 Hz at 18 ms are 86 % of the time: more than may be raised to, not more than may be kept.
    def chosen(has_px: int | None) -> list[str]:
        cameras, pool = options_of(snapshot([seen(camera("a", 1000, 48), has_px=has_px)]))
        return [each.chosen_of(0).variant.name for each in searched(cameras, pool)]

    assert set(chosen(None)) == {name(320)}
    assert set(chosen(320)) == {name(320)}
    assert set(chosen(256)) == {name(256)}
    assert set(chosen(608)) == {name(320)}  # it steps down as little as it must


def test_the_plan_in_force_is_a_candidate_beside_the_best_new_one() -> None:
    # Three of 7.8 Hz have room at 416 px, one at 320: 0.85 of the time for those that rise.
    of = snapshot([seen(camera(f"gate-{at}", 1000, 7.8), has_px=320) for at in range(4)])
    cameras, pool = options_of(of)
    found = searched(cameras, pool)
    assert len(found) == 2
    assert all(each.utilisation <= P.utilisation_upgrade for each in found)
    top = [seen(camera(f"gate-{at}", 1000, 7.8), has_px=608) for at in range(4)]
    cameras, pool = options_of(snapshot(top))
    assert len(searched(cameras, pool)) == 1  # nobody can rise: they are the same


def test_nothing_is_found_where_not_even_the_smallest_fit() -> None:
    cameras, pool = options_of(snapshot([seen(camera(f"g{at}", 300, 30)) for at in range(11)]))
    assert searched(cameras, pool) == []
    # One deadline that is too tight for the others' smallest batches.
    of = snapshot([seen(camera("a", 1000, min_accuracy=0.6)), seen(camera("b", 30))])
    cameras, pool = options_of(of)
    assert searched(cameras, pool) == []
    some = Minimum(cameras, P).best(
        shared_feasibility(pool.together, P), shared_feasibility(pool.together, P, P.upgrade_share)
    )
    assert some is not None
    assert len(searched(some, pool)) >= 1


def test_a_step_that_did_not_fit_is_tried_again_when_others_share_its_batches() -> None:
    of = snapshot([seen(camera("fast", 1000, 30)), seen(camera("slow", 100, 2))], gain=0.9)
    cameras, pool = options_of(of)
    [chosen] = searched(cameras, pool)
    # Alone on 416 px "fast" would cost too much; "slow" goes there first and shares its batches.
    assert {option.variant.name for option in chosen.chosen} == {name(416)}


def test_steps_are_bounded_by_the_iterations() -> None:
    of = snapshot([seen(camera(f"g{at}", 300, 15), link(4.0)) for at in range(6)], gain=0.5)
    cameras, pool = options_of(of)
    values = [worth(searched(cameras, pool, most)[0].chosen) for most in (0, 1, 2, 4, 1000)]
    assert values == sorted(values)


def test_executors_share_the_load() -> None:
    def chosen(executors: int) -> list[Option]:
        cameras = [seen(camera(f"g{at}", 1000, 15)) for at in range(4)]
        found = options_of(snapshot(cameras, executors=GPUS[:executors]))
        return searched(*found)[0].chosen

    assert worth(chosen(1)) < worth(chosen(2)) < worth(chosen(4))


def test_more_frames_of_the_size_that_a_camera_has_need_time_too() -> None:
    (of,), pool = options_of(snapshot([seen(camera(rate_hz=30))]))
    slow, fast = (of.options[0]._replace(rate_hz=rate_hz) for rate_hz in (1.0, 1000.0))
    has = SharedAllocation([of._replace(options=(slow,))], [0], pool.together)
    wants = SharedAllocation([of._replace(options=(fast,))], [0], pool.together)
    refused = has.violation(0, fast, P)
    assert refused is not None
    limit = P.utilisation_upgrade if of.is_upgrade(fast) else P.utilisation_max
    assert refused.missing_share == pytest.approx(wants.utilisation - limit)
    assert has.violation(0, slow, P) is None
