"""Whom a box that is asked to refuse turns away, judged by the planner and by plain sums."""

from dataclasses import replace

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from edgebox.domain.pipelines import Pipeline, PipelineName
from edgebox.domain.plans import CameraSnapshot, LaterStage, LaterVariant, Plan, PlanningSnapshot
from edgebox.domain.requests import Camera, LinkState
from edgebox.link.bandwidth import STALE_NS
from edgebox.planning.camera_admission import refusal
from edgebox.planning.planner import plan
from edgebox.planning.planner_parameters import LEFT_MIN, PlanningParameters
from tests.planning.scene import link, seen, snapshot
from tests.planning.test_later_stages import READ, read
from tests.planning.test_plans_by_brute_force import boxes, cameras
from tests.scheduling.pipelines import CHAIN
from tests.scheduling.scene import FAMILY, camera

P = PlanningParameters()


def with_(of: PlanningSnapshot, newcomer: Camera) -> PlanningSnapshot:
    return replace(of, cameras=(*of.cameras, CameraSnapshot(newcomer, LinkState(), None)))


def planned(of: PlanningSnapshot) -> Plan:
    return plan(of, 10_000)


def settled(of: PlanningSnapshot) -> PlanningSnapshot:
    """Return a box whose cameras have long had what a plan gives them now, if not their size."""
    given_ = planned(of).assignments
    having = (
        each if given_[each.camera.id].served else replace(each, current=given_[each.camera.id])
        for each in of.cameras
    )
    after = replace(of, cameras=tuple(having))
    return of if after == of else settled(after)


@settings(max_examples=60, deadline=None)
@given(boxes(8), cameras)
def test_who_is_taken_on_takes_nobodys_service_and_who_is_refused_would(
    of: PlanningSnapshot, drawn: CameraSnapshot
) -> None:
    newcomer = replace(drawn.camera, id=camera("new").id)
    of = settled(of)
    before, after = planned(of).assignments, planned(with_(of, newcomer))
    alone = planned(replace(with_(of, newcomer), cameras=with_(of, newcomer).cameras[-1:]))
    had = {name for name, given_ in before.items() if given_.served}
    has = {name for name, given_ in after.assignments.items() if given_.served}
    suffer = not had <= has or (alone.assignments[newcomer.id].served and newcomer.id not in has)
    why = refusal(of, newcomer, P)
    if had:
        assert (why is not None) == (suffer or after.utilisation > P.utilisation_slow + 1e-9)
    else:
        assert why is None


@given(
    st.lists(st.sampled_from([2, 10, 30]), min_size=1, max_size=6),
    st.sampled_from([5, 20, 40]),
    st.sampled_from([1.0, 2.0, 4.0]),
)
def test_where_batches_bring_nothing_the_sum_of_least_rates_decides(
    residents: list[int], least_hz: int, slowdown: float
) -> None:
    of = snapshot(
        (
            seen(camera(f"gate-{at}", 1000, 2 * rate, min_rate_hz=rate))
            for at, rate in enumerate(residents)
        ),
        slowdown=slowdown,
    )
    per_frame_s = 0.003 * slowdown
    if sum(residents) * per_frame_s > P.utilisation_slow:
        return
    newcomer = camera("new", 1000, 50, min_rate_hz=least_hz)
    fits = (sum(residents) + least_hz) * per_frame_s <= P.utilisation_slow
    assert (refusal(of, newcomer, P) is None) == fits


def test_the_sentence_names_who_would_suffer_and_why() -> None:
    full = snapshot(seen(camera(f"gate-{at}", rate_hz=30, min_rate_hz=25)) for at in range(12))
    assert refusal(full, camera("new", rate_hz=10), P) is None
    assert refusal(full, camera("new", rate_hz=30, min_rate_hz=17), P) == (
        "gate-11 would no longer be served (128 × 128 px, 1 of 30 frames/s, best effort: "
        "13 cameras share cpu/0, too many even for 25 frames/s at 128 × 128 px, "
        "the least that is of use)"
    )
    assert refusal(full, camera("new", rate_hz=30, min_rate_hz=30), P) == (
        "it could not be served beside the others (128 × 128 px, 1 of 30 frames/s, best effort: "
        "13 cameras share cpu/0, too many even for 30 frames/s at 128 × 128 px, "
        "the least that is of use)"
    )
    # An accuracy that takes 60 ms a frame leaves no time for who has 40.
    tight = snapshot([seen(camera("near", slo_ms=40))])
    assert refusal(tight, camera("new", min_accuracy=0.6), P) == (
        "near would no longer be served (128 × 128 px, best effort: "
        "frames of 128 × 128 px would wait too long behind those of other cameras)"
    )


def test_a_box_that_is_overbooked_at_least_rates_takes_nobody_else() -> None:
    crowd = snapshot((seen(camera(f"gate-{at}", 300, 1)) for at in range(33)), slowdown=10)
    assert refusal(crowd, camera("new", rate_hz=1), P) == (
        "it could not be served beside the others (128 × 128 px, 0.02 of 1 frames/s, best effort: "
        "34 cameras share cpu/0, too many even for 1 frames/s at 128 × 128 px, "
        "the least that is of use)"
    )


def test_nobody_is_refused_for_the_sake_of_cameras_that_are_not_served_anyway() -> None:
    newcomer = camera("new", rate_hz=30, min_rate_hz=30)
    assert refusal(snapshot([]), newcomer, P) is None
    weak = settled(snapshot([seen(camera("weak"), link(0.001))], slowdown=20))
    assert refusal(weak, newcomer, P) is None
    assert refusal(snapshot([seen()], variants=()), newcomer, P) is None


def test_a_link_that_is_too_weak_for_a_moment_costs_its_camera_no_service() -> None:
    demanding = camera("gate", 1000, 170, min_rate_hz=170)
    newcomer = camera("new", 1000, 170, min_rate_hz=170)
    beside = (
        "it could not be served beside the others (128 × 128 px, 1 of 170 frames/s, best effort: "
        "two cameras share cpu/0, too many even for 170 frames/s at 128 × 128 px, "
        "the least that is of use)"
    )
    planned_now = snapshot([seen(demanding, link(0.1), 128)])
    assert not planned(planned_now).assignments[demanding.id].served
    assert refusal(planned_now, newcomer, P) == beside
    not_yet_planned = snapshot([seen(demanding, link(0.1))])
    assert refusal(not_yet_planned, newcomer, P) == beside
    [never_served] = settled(planned_now).cameras
    for unserved_ns, why in ((0, beside), (1, beside), (None, None)):
        weak = replace(never_served, unserved_ns=unserved_ns)
        now = replace(planned_now, cameras=(weak,), taken_ns=STALE_NS - 1)
        assert refusal(now, newcomer, P) == why
    weak = replace(never_served, unserved_ns=0)
    assert refusal(replace(planned_now, cameras=(weak,), taken_ns=STALE_NS), newcomer, P) is None
    # Who needs little of the box is no burden to it.
    assert refusal(planned_now, camera("new", 1000, 10), P) is None


def test_who_is_served_while_the_link_of_another_is_weak_keeps_that() -> None:
    weak = seen(camera("weak", 1000, 170, min_rate_hz=170), link(0.1), 128)
    strong = seen(camera("strong", 1000, 170, min_rate_hz=170), link(), 128)
    newcomer = camera("new", 1000, 100, min_rate_hz=100)
    assert (refusal(snapshot([weak, strong]), newcomer, P) or "").startswith(
        "strong would no longer be served ("
    )
    # Beside this one the other would have no time either, once its link has recovered.
    assert refusal(snapshot([strong, weak]), newcomer, P) is None


def test_a_camera_that_connects_anew_takes_its_own_place() -> None:
    full = snapshot(seen(camera(f"gate-{at}", rate_hz=30, min_rate_hz=25)) for at in range(12))
    assert refusal(full, camera("gate-3", rate_hz=30, min_rate_hz=25), P) is None
    assert refusal(full, camera("gate-3", rate_hz=60, min_rate_hz=60), P) is not None


READER = read(32, 0.4, 0.8, 0.85)


def with_crops(of: Camera, share_per_hz: float) -> CameraSnapshot:
    """Return a camera with a pipeline whose crops are known to take so much time."""
    variant = LaterVariant(READER, share_per_hz)
    later = LaterStage(READ, 2.0, (0.1,), (variant,), READER.name)
    return replace(seen(replace(of, pipeline=CHAIN)), later=(later,), later_ns=1000)


def box_with_crops(*of: CameraSnapshot, slowdown: float = 1.0) -> PlanningSnapshot:
    return snapshot(of, slowdown=slowdown, variants=(*FAMILY, READER))


@given(
    st.lists(st.sampled_from([2, 5, 10]), min_size=1, max_size=4),
    st.sampled_from([0.001, 0.004, 0.007, 0.009]),
    st.sampled_from([5, 20, 40, 60, 80]),
    st.booleans(),
)
@example([10, 10], 0.009, 40, True).via("too much with its crops")
@example([10, 10], 0.009, 40, False).via("fits without crops")
def test_crops_of_a_newcomer_count_as_those_of_cameras_with_its_pipeline(
    residents: list[int], share_per_hz: float, least_hz: int, piped: bool
) -> None:
    of = box_with_crops(
        *(
            with_crops(camera(f"gate-{at}", 1000, rate, min_rate_hz=rate), share_per_hz)
            for at, rate in enumerate(residents)
        ),
        slowdown=2.0,
    )
    newcomer = camera("new", 1000, 100, min_rate_hz=least_hz)
    newcomer = replace(newcomer, pipeline=CHAIN if piped else None)
    of_crops = (sum(residents) + least_hz * piped) * share_per_hz
    of_frames = (sum(residents) + least_hz) * 0.006
    assume(of_crops <= P.utilisation_upgrade - LEFT_MIN or of_crops > P.utilisation_slow)
    assume(sum(residents) * (0.006 + share_per_hz) <= P.utilisation_slow)
    # What an empty box could not serve either takes nobody's service: it is best effort.
    assume(least_hz * (0.006 + share_per_hz) <= P.utilisation_slow)
    fits = of_frames + of_crops <= P.utilisation_slow + 1e-9
    assert (refusal(of, newcomer, P) is None) == fits


def test_crops_of_others_take_nothing_from_a_newcomer_that_is_judged_by_itself() -> None:
    of = box_with_crops(with_crops(camera("gate-0", 1000, 5, min_rate_hz=5), 0.12))
    by_itself_served = camera("new", 1000, 170, min_rate_hz=170)
    without = replace(of, cameras=(replace(of.cameras[0], later=()),))
    assert refusal(without, by_itself_served, P) is None
    assert refusal(of, by_itself_served, P) is not None


def test_a_camera_that_connects_anew_brings_its_own_crops_once() -> None:
    own = with_crops(camera("gate-0", 1000, 60, min_rate_hz=60), 0.007)
    other = with_crops(camera("gate-1", 1000, 20, min_rate_hz=20), 0.007)
    full = box_with_crops(own, other)
    assert refusal(full, own.camera, P) is None
    assert refusal(full, replace(own.camera, rate_hz=200, min_rate_hz=200), P) is not None
    # Of its past only the crops are left, and what they took is its own again.
    assert refusal(full, replace(own.camera, id=camera("new").id), P) is not None


def test_pipelines_of_which_nothing_is_known_bring_no_crops() -> None:
    of = box_with_crops(with_crops(camera("gate-0", 1000, 10, min_rate_hz=10), 0.02))
    other = Pipeline(PipelineName("other"), CHAIN.stages)
    newcomer = camera("new", 1000, 60, min_rate_hz=60)
    assert refusal(of, replace(newcomer, pipeline=other), P) is None
    assert refusal(of, replace(newcomer, pipeline=CHAIN), P) == (
        "2 cameras would need 161% of the time of cpu/0 at their smallest sizes and least rates, "
        "the later stages of their pipelines included"
    )
