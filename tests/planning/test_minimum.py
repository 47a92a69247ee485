"""Who is served at what rate where not all can be: against brute force, by definition."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebox.domain.plans import Assignment, CameraSnapshot, PlanningSnapshot
from edgebox.planning.allocation import BEST_EFFORT_SERVICE
from edgebox.planning.capacity import ExecutorPool
from edgebox.planning.minimum import Feasible, Minimum, cycle_feasibility, shared_feasibility
from edgebox.planning.options import CameraOptions
from tests.planning.random_boxes import GPUS, P, options_of, runs_in_cycles, runs_side_by_side
from tests.planning.scene import link, seen, snapshot
from tests.scheduling.scene import camera, name

SLOW = max(P.utilisation_slow, P.utilisation_max)
Test = Callable[[Sequence[CameraOptions]], bool]

Crowd = list[tuple[int, float, float, bool, float, float]]
"""SLO in ms, rate in Hz, part of it that is the least of use, best effort now, accuracy, Mbit/s."""


def crowds(
    most: int, waits: st.SearchStrategy[bool], *, demanding: bool = False
) -> st.SearchStrategy[Crowd]:
    return st.lists(
        st.tuples(
            st.sampled_from([30, 100, 300, 1000]),
            st.sampled_from([2, 10, 30, 60]),
            st.sampled_from([0.0, 0.4, 0.7, 1.0]),
            waits,
            st.sampled_from([0.0, 0.0, 0.5] if demanding else [0.0]),
            st.sampled_from([0.5, 3.0, 100.0] if demanding else [1000.0]),
        ),
        min_size=1,
        max_size=most,
    )


def has_now(of: CameraSnapshot, *, waits: bool) -> Assignment:
    """Return what a camera has that is served, or crowded out."""
    rate_hz = of.camera.rate_hz
    told_hz = min(P.rate_min_hz, rate_hz) if waits else rate_hz
    return Assignment(of.camera.id, name(128), told_hz, 85, not waits, "")


def crowd(drawn: Crowd, executors: int, gain: float, slowdown: float) -> PlanningSnapshot:
    cameras = []
    for at, (slo_ms, rate_hz, part, waits, accuracy, mbps) in enumerate(drawn):
        wants = camera(
            f"gate-{at}", slo_ms, rate_hz, min_accuracy=accuracy, min_rate_hz=part * rate_hz
        )
        of = seen(wants, link(mbps))
        cameras.append(replace(of, current=has_now(of, waits=True)) if waits else of)
    return snapshot(cameras, executors=GPUS[:executors], gain=gain, slowdown=slowdown)


def discipline(pool: ExecutorPool, in_cycles: bool) -> tuple[Feasible, Feasible, Test]:
    """Return a discipline's test, the same with time to spare, and a second way to write it."""
    timing = pool.together

    def holds(cameras: Sequence[CameraOptions]) -> bool:
        chosen = [c.options[0] for c in cameras]
        if in_cycles:
            return runs_in_cycles([c._replace(current_px=None) for c in cameras], chosen, timing)
        return runs_side_by_side(cameras, chosen, timing, SLOW)

    if in_cycles:
        return cycle_feasibility(timing, P), cycle_feasibility(timing, P), holds
    return shared_feasibility(timing, P), shared_feasibility(timing, P, P.upgrade_share), holds


def at_least(
    cameras: Sequence[CameraOptions],
    crowded: Sequence[int],
    given_up: Sequence[int],
    effort_hz: float = P.rate_min_hz,
) -> list[CameraOptions]:
    """Return cameras at their least rates, some crowded out, some deadlines given up."""
    return limited(cameras, crowded, given_up, 0.0, effort_hz)


def limited(
    cameras: Sequence[CameraOptions],
    crowded: Sequence[int],
    given_up: Sequence[int],
    ceiling_hz: float,
    effort_hz: float = P.rate_min_hz,
) -> list[CameraOptions]:
    out = []
    for at, c in enumerate(cameras):
        if at in crowded:
            out.append(c.crowded_out(effort_hz))
        else:
            kept = c.best_effort() if at in given_up else c
            least_hz = c.least_hz if c.served else min(effort_hz, c.options[0].rate_hz)
            [option] = kept.options[:1]
            rate_hz = min(option.rate_hz, max(least_hz, ceiling_hz))
            out.append(kept._replace(options=(option._replace(rate_hz=rate_hz),)))
    return out


def subsets(of: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Return all subsets, the smallest first."""
    for count in range(len(of) + 1):
        yield from combinations(of, count)


def service(cameras: Sequence[CameraOptions]) -> float:
    return sum(
        c.options[0].rate_hz
        / c.snapshot.camera.rate_hz
        * (1.0 if c.served else BEST_EFFORT_SERVICE)
        for c in cameras
    )


scenes = st.tuples(
    crowds(5, st.just(False)),
    st.sampled_from([1, 2]),
    st.sampled_from([0.0, 0.5, 0.9]),
    st.sampled_from([1.0, 2.0, 4.0, 8.0]),
)

demanding = st.tuples(
    crowds(5, st.just(False), demanding=True),
    st.sampled_from([1, 2]),
    st.sampled_from([0.0, 0.5, 0.9]),
    st.sampled_from([1.0, 2.0, 4.0, 8.0]),
)


@settings(max_examples=100, deadline=None)
@given(demanding, st.booleans())
def test_what_is_left_is_feasible(scene: tuple[Crowd, int, float, float], in_cycles: bool) -> None:
    cameras, pool = options_of(crowd(*scene))
    feasible, spare, holds = discipline(pool, in_cycles)
    some = Minimum(cameras, P).best(feasible, spare)
    served = [at for at, c in enumerate(cameras) if c.served]
    if some is None:
        assert not any(
            holds(at_least(cameras, crowded, given_up))
            for crowded in subsets(served)
            for given_up in subsets([at for at in served if at not in crowded])
        )
        return
    assert holds(some)
    for before, after in zip(cameras, some, strict=True):
        option = after.options[0]
        wished_hz = before.snapshot.camera.rate_hz
        assert option.rate_hz <= wished_hz
        if after.served:
            assert before.served
            assert option.variant == before.options[0].variant
            assert option.rate_hz >= before.least_hz
        else:
            assert option.rate_hz >= min(P.rate_min_hz, wished_hz)
            assert option.variant == before.smallest.variant
        if after.crowded:
            assert option.rate_hz <= min(P.rate_min_hz, wished_hz)


@settings(max_examples=100, deadline=None)
@given(
    crowds(5, st.just(False)),
    st.sampled_from([1, 2]),
    st.sampled_from([1.0, 2.0, 4.0, 8.0]),
    st.booleans(),
)
def test_the_fewest_are_crowded_out(
    drawn: Crowd, executors: int, slowdown: float, in_cycles: bool
) -> None:
    """Where batches bring nothing: over all cameras that could be, and all deadlines."""
    cameras, pool = options_of(crowd(drawn, executors, 0.0, slowdown))
    feasible, spare, holds = discipline(pool, in_cycles)
    some = Minimum(cameras, P).best(feasible, spare)
    served = [at for at, c in enumerate(cameras) if c.served]
    fewest = next(
        (
            len(crowded)
            for crowded in subsets(served)
            if any(
                holds(at_least(cameras, crowded, given_up))
                for given_up in subsets([at for at in served if at not in crowded])
            )
        ),
        None,
    )
    if some is None:
        assert fewest is None
        return
    assert sum(c.crowded for c in some) == fewest


@settings(max_examples=100, deadline=None)
@given(scenes, st.booleans())
def test_no_higher_ceiling_is_feasible_and_nobody_below_it_is_slowed(
    scene: tuple[Crowd, int, float, float], in_cycles: bool
) -> None:
    """Max-min fairness: a higher common ceiling, by the next round figure, would not hold."""
    cameras, pool = options_of(crowd(*scene))
    feasible, spare, holds = discipline(pool, in_cycles)
    some = Minimum(cameras, P).best(feasible, spare)
    if some is None:
        return
    crowded = [at for at, c in enumerate(some) if c.crowded]
    given_up = [
        at
        for at, (before, after) in enumerate(zip(cameras, some, strict=True))
        if before.served and not after.served and not after.crowded
    ]
    slowed = [
        after.options[0].rate_hz
        for before, after in zip(cameras, some, strict=True)
        if not after.crowded and after.options[0].rate_hz < before.options[0].rate_hz
    ]
    least_hz = [before.least_hz for before in cameras if before.served]
    free = sorted({hz for hz in slowed if hz not in least_hz and hz > P.rate_min_hz})
    assert len(free) <= 1, "who is slowed, and not to its least, is slowed to the same rate"
    for before, after in zip(cameras, some, strict=True):
        if not after.crowded and free:
            option, had = after.options[0], before.options[0]
            assert option.rate_hz >= min(had.rate_hz, free[0])
    if slowed:
        ceiling_hz = free[0] if free else min(slowed)
        step_hz = 0.1 if ceiling_hz < 2 else 0.5
        assert not holds(limited(cameras, crowded, given_up, ceiling_hz + step_hz + 1e-6))


@settings(max_examples=100, deadline=None)
@given(scenes, st.booleans())
def test_deadlines_are_given_up_only_where_that_helps(
    scene: tuple[Crowd, int, float, float], in_cycles: bool
) -> None:
    cameras, pool = options_of(crowd(*scene))
    feasible, spare, holds = discipline(pool, in_cycles)
    some = Minimum(cameras, P).best(feasible, spare)
    if some is None or any(c.crowded for c in some):
        return
    given_up = [
        at
        for at, (before, after) in enumerate(zip(cameras, some, strict=True))
        if before.served and not after.served
    ]
    tight = sorted(
        (at for at, c in enumerate(cameras) if c.served),
        key=lambda at: cameras[at].options[0].budget.compute_ns,
    )
    assert all(
        cameras[at].options[0].budget.compute_ns
        <= cameras[tight[len(given_up) - 1]].options[0].budget.compute_ns
        for at in given_up
    ), "the tightest are given up"
    if not given_up and all(
        a.options[0].rate_hz == b.options[0].rate_hz for a, b in zip(some, cameras, strict=True)
    ):
        assert holds(cameras)  # nobody loses anything
        return
    for count in range(len(tight) + 1):
        for ceiling_hz in (60, 45, 30, 20, 10, 5, 2, 1):
            other = limited(cameras, (), tight[:count], ceiling_hz)
            if holds(other):
                assert service(some) >= service(other) - rounding(cameras)


def rounding(cameras: Sequence[CameraOptions]) -> float:
    """Return what a round ceiling may cost: a step of 0.5 Hz, below 2 Hz of 0.1, each."""
    return sum(min(1.0, 0.5 / c.snapshot.camera.rate_hz) for c in cameras) + 1e-6


def test_who_is_best_effort_stays_so_until_there_is_time_to_spare() -> None:
    # Five cameras of 20 Hz at 3 ms are 30 % of the time, 96 at 3.2 times that.
    def crowded(slowdown: float, waits: str, in_cycles: bool = False) -> str:
        cameras = []
        for each in "abcde":
            of = seen(camera(each, 1000, 20, min_rate_hz=20))
            cameras.append(replace(of, current=has_now(of, waits=each in waits)))
        options, pool = options_of(snapshot(cameras, slowdown=slowdown))
        feasible, spare, _ = discipline(pool, in_cycles)
        some = Minimum(options, P).best(feasible, spare)
        assert some is not None
        return "".join(str(c.snapshot.camera.id) for c in some if c.crowded)

    assert crowded(3.2, "") == "e"  # of equals, who came last
    assert crowded(3.2, "b") == "b"
    assert crowded(3.1, "b") == "b"
    assert crowded(3.1, "") == ""
    assert crowded(2.9, "b") == ""
    assert crowded(3.1, "bd") == "d"  # one of them comes back: then there is no time to spare
    assert crowded(3.9, "b") == "b"


def test_nobody_is_crowded_out_for_one_that_waits() -> None:
    """Rates differ: who waits frees less time than others, and goes all the same."""
    rates_hz = {"heavy": 20, "mid": 10, "light": 2, "slight": 2}

    def crowded(load: float, waits: Sequence[str]) -> dict[str, bool]:
        cameras = []
        for each, rate_hz in rates_hz.items():
            of = seen(camera(each, 1000, rate_hz, min_rate_hz=rate_hz))
            cameras.append(replace(of, current=has_now(of, waits=each in waits)))
        _, pool = options_of(snapshot(cameras))
        [(_, _, usual_ns), *_] = pool.together[name(128)].batches
        slowdown = load * 1e9 / usual_ns / sum(rates_hz.values())
        options, pool = options_of(snapshot(cameras, slowdown=slowdown))
        feasible, spare, holds = discipline(pool, False)
        some = Minimum(options, P).best(feasible, spare)
        assert some is not None
        assert holds(some)
        return {str(c.snapshot.camera.id): c.waits for c in some if c.crowded}

    assert crowded(0.92, ()) == {}
    assert crowded(0.92, ["light"]) == {"light": True}  # it would fit, with no time to spare
    assert crowded(0.92, ["mid"]) == {"mid": True}
    assert crowded(0.97, ["light"]) == {"light": False}
    assert crowded(0.97, ()) == {"heavy": False}
    assert crowded(1.02, ["light"]) == {"heavy": False}  # "light" alone would not suffice
    assert len(crowded(0.92, ["light", "slight"])) == 1
    assert crowded(0.85, ["light"]) == {}


@settings(max_examples=100, deadline=None)
@given(crowds(5, st.booleans()), st.sampled_from([2.0, 4.0, 6.0]))
def test_who_is_served_stays_so_where_as_many_that_wait_suffice(
    drawn: Crowd, slowdown: float
) -> None:
    of = crowd(drawn, 1, 0.0, slowdown)
    of = replace(
        of,
        cameras=tuple(replace(c, current=c.current or has_now(c, waits=False)) for c in of.cameras),
    )
    cameras, pool = options_of(of)
    feasible, spare, holds = discipline(pool, False)
    some = Minimum(cameras, P).best(feasible, spare)
    if some is None:
        return
    served = [at for at, c in enumerate(cameras) if c.served]
    waiting = [at for at in served if drawn[at][3]]
    crowded = [at for at, c in enumerate(some) if c.crowded]
    if set(crowded) <= set(waiting):
        return
    assert not any(
        holds(at_least(cameras, each, given_up))
        for each in combinations(waiting, len(crowded))
        for given_up in subsets([at for at in served if at not in each])
    )


@settings(max_examples=100, deadline=None)
@given(crowds(6, st.booleans()), st.sampled_from([2.0, 4.0, 6.0]))
def test_no_more_wait_than_time_to_spare_demands(drawn: Crowd, slowdown: float) -> None:
    of = crowd(drawn, 1, 0.0, slowdown)
    cameras, pool = options_of(of)
    feasible, spare, _ = discipline(pool, False)
    some = Minimum(cameras, P).best(feasible, spare)
    fresh = replace(of, cameras=tuple(replace(c, current=None) for c in of.cameras))
    new, _ = options_of(fresh)
    least = Minimum(new, P).best(feasible, feasible)
    most = Minimum(new, P).best(spare, spare)
    if some is None or least is None:
        assert some is None and least is None
        return
    count = sum(c.crowded for c in some)
    assert count >= sum(c.crowded for c in least)
    if most is not None:
        waiting = sum(
            c.served and now.current is not None for c, now in zip(cameras, of.cameras, strict=True)
        )
        wait = min(waiting, sum(c.crowded for c in most))
        assert count <= max(sum(c.crowded for c in least), wait)


@settings(max_examples=100, deadline=None)
@given(crowds(5, st.just(False)), st.sampled_from([30.0, 60.0, 100.0]), st.booleans())
def test_where_too_little_is_left_the_fewest_send_next_to_nothing(
    drawn: Crowd, slowdown: float, in_cycles: bool
) -> None:
    """Where the box's least rate of all is too much; otherwise nobody sends less than that."""
    cameras, pool = options_of(crowd(drawn, 1, 0.0, slowdown))
    feasible, spare, holds = discipline(pool, in_cycles)
    some = Minimum(cameras, P).best(feasible, spare)
    served = [at for at, c in enumerate(cameras) if c.served]

    def fewest(effort_hz: float) -> int | None:
        return next(
            (
                len(crowded)
                for crowded in subsets(served)
                if any(
                    holds(at_least(cameras, crowded, given_up, effort_hz))
                    for given_up in subsets([at for at in served if at not in crowded])
                )
            ),
            None,
        )

    enough = fewest(P.rate_min_hz)
    expected = fewest(P.best_effort_min_hz) if enough is None else enough
    if some is None:
        assert expected is None
        return
    assert holds(some)
    assert sum(c.crowded for c in some) == expected
    limit_hz = P.best_effort_min_hz if enough is None else P.rate_min_hz
    for before, after in zip(cameras, some, strict=True):
        least_hz = before.least_hz if after.served else limit_hz
        assert after.options[0].rate_hz >= min(least_hz, before.snapshot.camera.rate_hz)
        if after.crowded:
            assert after.options[0].rate_hz == limit_hz


def test_who_sends_next_to_nothing_does_so_until_there_is_time_to_spare() -> None:
    def rates(slowdown: float, given_hz: float | None) -> set[float]:
        cameras = []
        for at in range(10):
            of = seen(camera(f"gate-{at}", 2000, 20, min_rate_hz=20))
            has = given_hz and Assignment(of.camera.id, name(128), given_hz, 85, False, "")
            cameras.append(replace(of, current=has or None))
        options, pool = options_of(snapshot(cameras, slowdown=slowdown))
        feasible, spare, _ = discipline(pool, False)
        some = Minimum(options, P).best(feasible, spare)
        assert some is not None
        return {c.options[0].rate_hz for c in some}

    # Ten cameras of 1 Hz at 3 ms are 3 % of the time, 93 at 31 times that: no time to spare.
    assert rates(31, None) == {P.rate_min_hz}
    assert rates(31, P.rate_min_hz) == {P.rate_min_hz}
    assert rates(31, P.best_effort_min_hz) == {P.best_effort_min_hz}
    assert rates(33, P.rate_min_hz) == {P.best_effort_min_hz}
    assert rates(26, P.best_effort_min_hz) == {P.rate_min_hz}


def test_the_least_of_all_is_next_to_nothing_for_everybody() -> None:
    cameras, _ = options_of(crowd([(300, 30, 1.0, False, 0.0, 1000.0)] * 40, 1, 0.0, 8.0))
    least = Minimum(cameras, P).least()
    assert all(c.crowded and not c.served for c in least)
    assert {c.options[0].rate_hz for c in least} == {P.best_effort_min_hz}
    assert {c.options[0].variant.name for c in least} == {name(128)}


def test_one_weak_uplink_is_given_up_where_the_others_gain_more() -> None:
    def served(count: int) -> list[bool]:
        strong = [seen(camera(f"gate-{at}", 100, 30)) for at in range(count)]
        weak = seen(camera("far", 100, 1), link(0.41))
        cameras, pool = options_of(snapshot([*strong, weak], gain=0.95))
        feasible, spare, holds = discipline(pool, False)
        some = Minimum(cameras, P).best(feasible, spare)
        assert some is not None
        assert holds(some)
        assert not any(c.crowded for c in some)
        assert all(c.options[0].rate_hz == 30 for c in some[:-1])
        return [c.served for c in some]

    # 128 px leave "far" 3.5 ms to gather a batch in: two frames.
    assert served(2) == [True] * 3
    assert served(24) == [True] * 24 + [False]


@pytest.mark.parametrize("in_cycles", [False, True])
def test_nothing_changes_where_everybody_fits(in_cycles: bool) -> None:
    cameras, pool = options_of(snapshot([seen(camera(f"gate-{at}", 300, 5)) for at in range(4)]))
    feasible, spare, _ = discipline(pool, in_cycles)
    assert Minimum(cameras, P).best(feasible, spare) == cameras


def test_a_camera_whose_deadline_is_given_up_takes_the_time_of_what_it_runs() -> None:
    # 320 px take the last camera 144 ms, 128 px 24: at 2 Hz 29 % and 5 % of the time.
    tight: Crowd = [(30, 10, 0.0, False, 0.0, 0.5)]
    drawn = [*tight * 4, (300, 2, 0.0, False, 0.5, 100.0)]
    cameras, pool = options_of(crowd(drawn, 1, 0.5, 8.0))
    feasible, spare, holds = discipline(pool, True)
    some = Minimum(cameras, P).best(feasible, spare)
    assert some is not None
    free = limited(cameras, (), (4,), 10)
    assert holds(free)
    assert service(some) >= service(free)
