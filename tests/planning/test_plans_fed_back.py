"""Plans whose rates, sizes and shares are the next snapshot's present settle, and fit at them."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from edgebox.domain.model_family import FamilyName, VariantName
from edgebox.domain.plans import CameraSnapshot, LaterStage, Plan, PlannedCascade, PlanningSnapshot
from edgebox.planning.explain import explanation
from edgebox.planning.planner import plan
from edgebox.planning.planner_parameters import LEFT_MIN, PlanningParameters
from tests.planning import random_boxes
from tests.planning.random_boxes import GPUS
from tests.planning.scene import link, seen, snapshot
from tests.planning.test_disjoint import box as disjoint_box
from tests.planning.test_disjoint import cameras_of, with_later
from tests.planning.test_later_stages import LARGE, SMALL, stage
from tests.scheduling.cascades import CURVE
from tests.scheduling.scene import FAMILY, camera

P = PlanningParameters()
ITERATIONS = 10_000
PLANS = 6
"""So many plans at most until nothing changes."""


def carried_out(of: PlanningSnapshot, found: Plan) -> PlanningSnapshot:
    """Return a box on which a plan is in force."""

    def with_plan(camera_: CameraSnapshot) -> CameraSnapshot:
        given_ = found.assignments[camera_.camera.id]
        later = dict(given_.later)
        stages = tuple(replace(s, current=later.get(s.name, s.current)) for s in camera_.later)
        cascade = camera_.cascade
        if cascade is not None:
            cascade = replace(cascade, reserved=given_.cascade_reserved or 0.0)
        return replace(camera_, current=given_, later=stages, cascade=cascade)

    return replace(of, cameras=tuple(map(with_plan, of.cameras)), groups=found.groups)


def settled(of: PlanningSnapshot) -> tuple[PlanningSnapshot, Plan]:
    """Return a box and the plan that follows from itself in force."""
    return settling(of)[-1]


def settling(of: PlanningSnapshot) -> list[tuple[PlanningSnapshot, Plan]]:
    """Carry out plans until one follows from itself; return each with the box that it is of."""
    told: list[tuple[PlanningSnapshot, Plan]] = []
    for _ in range(PLANS):
        found = plan(of, ITERATIONS)
        told.append((of, found))
        if told[1:] and _given(found) == _given(told[-2][1]):
            return told
        of = carried_out(of, found)
    pytest.fail(f"plans do not settle: {[_given(each) for _, each in told]}")


def _given(of: Plan) -> list[tuple[VariantName, float, bool, object, float]]:
    return [
        (a.variant, a.rate_hz, a.served, a.later, round(a.cascade_share or 0.0, 6))
        for a in of.assignments.values()
    ]


def test_who_was_given_up_for_the_others_batches_stays_and_is_not_slowed_as_well() -> None:
    """It is best effort, and not because its frames find no time."""
    drawn: list[random_boxes.Drawn] = [
        (600, 25, 100.0, 0.5, 1.0, None),
        (300, 5, 100.0, 0.5, 1.0, None),
        (100, 25, 100.0, 0.5, 1.0, None),
    ]
    of = random_boxes.box(drawn, 1, 0.5)
    of = replace(of, slowdown=dict.fromkeys(of.profiles, 3.0))
    first = plan(of, ITERATIONS)
    assert [a.rate_hz for a in first.assignments.values() if not a.served] == [5, 17]
    assert _given(plan(carried_out(of, first), ITERATIONS)) == _given(first)


def later_s(of: CameraSnapshot, found: Plan) -> float:
    """Return the time of executors that later stages take for one frame by a plan."""
    given_ = found.assignments[of.camera.id]
    later = dict(given_.later)
    taken = sum(time_s for _, time_s in of.other_later_s)
    for each in of.later:
        times = {v.variant.name: v.executor_s for v in each.variants}
        taken += times[later[each.name]]
    if of.cascade is not None:
        taken += (given_.cascade_share or 0.0) * of.cascade.executor_s
    return taken * of.later_frames


def least_taken_s(of: CameraSnapshot) -> float:
    """Return the least that later stages take at the camera's least rate, per second."""
    a_frame_s = sum(time_s for _, time_s in of.other_later_s)
    a_frame_s += sum(min(v.executor_s for v in each.variants) for each in of.later)
    least_hz = min(of.camera.rate_hz, max(P.rate_min_hz, of.camera.min_rate_hz))
    return least_hz * a_frame_s * of.later_frames


def fits(of: PlanningSnapshot, found: Plan) -> bool:
    """Say whether all stages find time at the rates of a plan, batches taken one by one."""
    taken_s = least_s = 0.0
    for each in of.cameras:
        given_ = found.assignments[each.camera.id]
        first_s = of.profiles[next(iter(of.profiles))][given_.variant].quantile_ns(1, 0.99) / 1e9
        taken_s += given_.rate_hz * (first_s + later_s(each, found))
        least_s += least_taken_s(each)
    executors = len(of.profiles)
    return taken_s / executors <= max(P.utilisation_slow, least_s / executors + LEFT_MIN) + 1e-6


later_stages: st.SearchStrategy[LaterStage | None] = st.none() | st.builds(
    lambda share, ratio, sides: (
        stage((share,), sides, (LARGE,)) if ratio == 1 else stage((share, ratio * share), sides)
    ),
    st.sampled_from([0.0005, 0.002, 0.01, 0.03, 0.1]),
    st.sampled_from([1, 1, 2, 5]),
    st.sampled_from([(0.03,), (0.05, 0.2)]),
)
cascades = st.none() | st.builds(
    lambda at, executor_s, share: PlannedCascade(
        FAMILY[at].name, FAMILY[-1], CURVE, executor_s, share
    ),
    st.sampled_from([0, 1]),
    st.sampled_from([0.005, 0.03, 0.1]),
    st.sampled_from([0.0, 0.5, 1.0]),
)


def cameras_with(cascade: st.SearchStrategy[PlannedCascade | None]) -> st.SearchStrategy["Drawn"]:
    return st.tuples(
        later_stages,
        cascade,
        st.sampled_from([0.0, 0.0, 0.002, 0.02]),
        st.sampled_from([150, 300, 1000]),
        st.sampled_from([2.0, 5.0, 20.0]),
        st.sampled_from([0.0, 0.0, 0.5]),
        st.sampled_from([1.0, 1.0, 2.0]),
        st.sampled_from([3.0, 1000.0]),
    )


Drawn = tuple[LaterStage | None, PlannedCascade | None, float, int, float, float, float, float]


def box(drawn: Sequence[Drawn], executors: int = 1, gain: float = 0.0) -> PlanningSnapshot:
    cameras = []
    for at, (later, cascade, other_s, slo_ms, rate_hz, part, frames, mbps) in enumerate(drawn):
        of = camera(f"gate-{at}", slo_ms, rate_hz, min_rate_hz=part * rate_hz)
        cameras.append(
            replace(
                seen(of, link(mbps)),
                later=() if later is None else (later,),
                cascade=cascade,
                other_later_s=((FamilyName("read"), other_s),) if other_s else (),
                later_frames=frames,
            )
        )
    variants = (*FAMILY, SMALL, LARGE)
    return snapshot(cameras, executors=GPUS[:executors], gain=gain, variants=variants)


def alike(count: int, later: LaterStage, rate_hz: float = 20) -> list[Drawn]:
    return [(later, None, 0.0, 300, rate_hz, 0.0, 1.0, 1000.0)] * count


TEN_MS = stage((0.01,), (0.1,), (LARGE,))


@settings(max_examples=60, deadline=None)
@given(st.lists(cameras_with(st.none()), min_size=1, max_size=6), st.sampled_from([1, 2]))
@example(alike(4, TEN_MS), 1).via("crops take most of the time")
@example(alike(40, TEN_MS), 1).via("not even the least rates fit")
def test_plans_settle_and_fit_at_their_own_rates(drawn: list[Drawn], executors: int) -> None:
    of, found = settled(box(drawn, executors))
    assert fits(of, found)


def with_cascade(slo_ms: int, rate_hz: float) -> Drawn:
    cascade = PlannedCascade(FAMILY[0].name, FAMILY[-1], CURVE, 0.03, 0.0)
    return (None, cascade, 0.0, slo_ms, rate_hz, 0.0, 1.0, 1000.0)


BESIDE_CASCADES: list[Drawn] = [
    (None, None, 0.02, 1000, 20, 0.0, 1.0, 1000.0),
    with_cascade(1000, 5),
    with_cascade(300, 20),
    with_cascade(300, 20),
]


@settings(max_examples=60, deadline=None)
@given(st.lists(cameras_with(cascades), min_size=1, max_size=4), st.sampled_from([1, 2]))
@example(BESIDE_CASCADES, 2).via(
    "what cascades take of the spare time is no reason for other sizes"
)
def test_plans_with_cascades_settle_and_every_one_fits(drawn: list[Drawn], executors: int) -> None:
    told = settling(box(drawn, executors))
    while len(told) < 3:
        of = carried_out(*told[-1])
        told.append((of, plan(of, ITERATIONS)))
    assert all(fits(of, found) for of, found in told)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(cameras_with(st.none()), min_size=1, max_size=6),
    st.sampled_from([1, 2, 3]),
    st.sampled_from([0.5, 0.8]),
)
def test_plans_settle_where_batching_pays(drawn: list[Drawn], executors: int, gain: float) -> None:
    settled(box(drawn, executors, gain))


@pytest.mark.parametrize("count", [1, 2, 4, 7])
@pytest.mark.parametrize("executor_s", [0.002, 0.01, 0.04, 0.3])
def test_cameras_that_are_alike_get_the_highest_rate_at_which_crops_fit(
    count: int, executor_s: float
) -> None:
    """All rates are tried, from the highest down, with the smallest size where one is lowered."""
    later = stage((executor_s,), (0.1,), (LARGE,))
    _, found = settled(box(alike(count, later)))
    [rate_hz] = {given_.rate_hz for given_ in found.assignments.values()}
    a_frame_s = count * (executor_s + 0.003)
    steps = [20 - at / 2 for at in range(37)] + [1.9 - at / 10 for at in range(10)]
    fitting = (hz for hz in steps if hz * a_frame_s <= P.utilisation_slow + 1e-9)
    assert rate_hz == pytest.approx(next(fitting, 1.0))


def test_crops_elsewhere_count_at_the_rates_that_are_planned() -> None:
    gate = [with_later(each, 0.01) for each in cameras_of("gate", 30, rate_hz=20)]
    read = cameras_of("read", 4)
    of, found = settled(disjoint_box([["gate"], ["read"]], [*gate, *read]))
    rates = sum(found.assignments[each.camera.id].rate_hz for each in gate)
    assert rates < 20 * len(gate), "their own part is full"
    first_s = sum(
        found.assignments[each.camera.id].rate_hz
        * of.profiles[list(of.profiles)[1]][found.assignments[each.camera.id].variant].mean_ns(1)
        / 1e9
        for each in read
    )
    crops_s = 0.01 * rates
    assert crops_s + first_s <= max(P.utilisation_slow, crops_s + LEFT_MIN) + 1e-9


@settings(max_examples=30, deadline=None)
@given(st.lists(cameras_with(st.none()), min_size=2, max_size=4))
def test_an_explanation_is_of_the_plan(drawn: list[Drawn]) -> None:
    of, found = settled(box(drawn))
    for each in of.cameras:
        asked = explanation(of, each.camera.id, P, ITERATIONS)
        assert asked is not None
        given_ = found.assignments[each.camera.id]
        chosen = [(o.variant.name, o.why) for o in asked.options if o.verdict == "chosen"]
        assert chosen == [(given_.variant, given_.reason)]
