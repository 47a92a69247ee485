"""Plans for random boxes, judged by definitions written down a second time and by enumeration."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

from hypothesis import given, settings
from hypothesis import strategies as st

from edgebox.domain.model_family import ExecutorId, Variant
from edgebox.domain.picture_size import send_size
from edgebox.domain.plans import Assignment, CameraSnapshot, Plan, PlanningSnapshot
from edgebox.link.bandwidth import message_bytes
from edgebox.planning.planner import plan
from edgebox.planning.planner_parameters import PlanningParameters
from tests.planning.scene import FIXED_NS, link, seen, snapshot
from tests.scheduling.scene import CPU, FAMILY, MEDIAN_MS, MS, camera

P = PlanningParameters()
EXECUTORS = (CPU, ExecutorId("cpu/1"))

cameras = st.builds(
    lambda slo_ms, rate_hz, size, mbps, accuracy, least, has_px, steady, overrun_ms: seen(
        camera("?", slo_ms, rate_hz, size, accuracy, least * rate_hz),
        link(mbps, throughput_stability=steady),
        has_px,
        None if overrun_ms is None else overrun_ms * MS,
    ),
    st.sampled_from([20, 60, 100, 300, 1000]),
    st.sampled_from([0.5, 2, 10, 30]),
    st.sampled_from([(1280, 720), (320, 240), (100, 100), (480, 640)]),
    st.sampled_from([None, 0.0, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 100.0]),
    st.sampled_from([0.0, 0.0, 0.0, 0.5, 0.58]),
    st.sampled_from([0.0, 0.0, 0.3, 1.0]),
    st.sampled_from([None, *MEDIAN_MS]),
    st.sampled_from([None, 0.5, 0.9, 1.0]),
    st.sampled_from([None, 0, 2, 20]),
)


def named(of: list[CameraSnapshot]) -> list[CameraSnapshot]:
    return [
        CameraSnapshot(
            camera(
                f"gate-{at}",
                c.camera.slo_ns // MS,
                c.camera.rate_hz,
                (c.camera.width_px, c.camera.height_px),
                c.camera.min_accuracy,
                c.camera.min_rate_hz,
            ),
            c.link,
            None if c.current is None else replace(c.current, camera=camera(f"gate-{at}").id),
            overrun_ns=c.overrun_ns,
        )
        for at, c in enumerate(of)
    ]


def boxes(most: int) -> st.SearchStrategy[PlanningSnapshot]:
    return st.builds(
        lambda of, executors, gain, slowdown: snapshot(
            named(of), executors=EXECUTORS[:executors], gain=gain, slowdown=slowdown
        ),
        st.lists(cameras, min_size=1, max_size=most),
        st.sampled_from([1, 2]),
        st.sampled_from([0.0, 0.5, 0.9]),
        st.sampled_from([1.0, 1.25, 3.0]),
    )


def planned(of: PlanningSnapshot) -> Plan:
    return plan(of, 10_000)


def p99_ns(of: PlanningSnapshot, variant: Variant, size: int = 1) -> int:
    [profiles, *_] = of.profiles.values()
    return round(profiles[variant.name].quantile_ns(size, 0.99) * of.slowdown[CPU])


def slack_ns(of: PlanningSnapshot, c: CameraSnapshot, variant: Variant) -> float:
    """How long a camera can wait for a batch in front of it."""
    camera_, link_ = c.camera, c.link
    if link_.bandwidth_bps is None:
        left = camera_.slo_ns * P.unmeasured_slo_share
    elif link_.bandwidth_bps == 0:
        return -1
    else:
        w, h = send_size(camera_.width_px, camera_.height_px, variant)
        bits = 8 * message_bytes(link_.bytes_per_pixel or 0, w * h)
        left = camera_.slo_ns - bits / link_.bandwidth_bps * 1e9 - (link_.rtt_ns or 0)
    return left - FIXED_NS - p99_ns(of, variant)


def alone(of: PlanningSnapshot, executors: int, having: Sequence[tuple[float, Variant]]) -> bool:
    """Say whether cameras at these rates and sizes may have an executor each."""
    shares = [rate_hz * p99_ns(of, variant) / 1e9 for rate_hz, variant in having]
    return len(having) <= executors and all(share <= P.utilisation_max for share in shares)


def bad_luck_ns(of: PlanningSnapshot, c: CameraSnapshot, variant: Variant) -> float:
    """How much time a camera that is alone must have to spare."""
    if not c.link.bandwidth_bps or c.link.throughput_stability is None or c.overrun_ns is None:
        return p99_ns(of, variant)
    w, h = send_size(c.camera.width_px, c.camera.height_px, variant)
    on_the_way_ns = 8e9 * message_bytes(c.link.bytes_per_pixel or 0, w * h) / c.link.bandwidth_bps
    return min(
        p99_ns(of, variant), on_the_way_ns * (1 / c.link.throughput_stability - 1) + c.overrun_ns
    )


def carried_hz(c: CameraSnapshot, variant: Variant) -> float:
    w, h = send_size(c.camera.width_px, c.camera.height_px, variant)
    if c.link.bandwidth_bps is None:
        size_bytes = message_bytes(c.link.bytes_per_pixel or P.bytes_per_pixel, w * h)
        return c.camera.rate_hz * min(1, P.unmeasured_frame_bytes / size_bytes)
    size_bytes = message_bytes(c.link.bytes_per_pixel or 0, w * h)
    share = max(
        P.uplink_utilisation_max,
        min(c.link.throughput_stability or 0, P.uplink_utilisation_max_stable),
    )
    return share * c.link.bandwidth_bps / (8 * size_bytes)


def by_name(assignment: Assignment) -> Variant:
    return next(v for v in FAMILY if v.name == assignment.variant)


@dataclass(frozen=True)
class Judged:
    """A plan beside its snapshot."""

    of: PlanningSnapshot
    answer: Plan

    def pairs(self) -> list[tuple[CameraSnapshot, Assignment, Variant]]:
        given_ = self.answer.assignments
        return [(c, g := given_[c.camera.id], by_name(g)) for c in self.of.cameras]


@settings(max_examples=80, deadline=None)
@given(boxes(8))
def test_what_is_promised_is_feasible(of: PlanningSnapshot) -> None:
    judged = Judged(of, planned(of))
    pairs = judged.pairs()
    for c, assignment, variant in pairs:
        # Where executors work apart, nobody waits for what is at home elsewhere.
        groups = judged.answer.groups
        here = next((g for g in groups if variant.name in g.variants), None)
        sharing = [(a.rate_hz, v) for _, a, v in pairs if here is None or v.name in here.variants]
        executors = len(of.profiles if here is None else here.executors)
        blocker_ns = max(p99_ns(of, v) for _, v in sharing)
        if alone(of, executors, sharing):
            blocker_ns = min(blocker_ns, round(bad_luck_ns(of, c, variant)))
        rate_hz = assignment.rate_hz
        assert min(1.0, c.camera.rate_hz) <= rate_hz <= c.camera.rate_hz
        if assignment.served:
            assert rate_hz >= c.camera.min_rate_hz
            assert blocker_ns <= slack_ns(of, c, variant) + 2
            assert rate_hz <= carried_hz(c, variant) * (1 + 1e-9)
            assert variant.accuracy >= c.camera.min_accuracy
            smaller = [v for v in FAMILY if v.pixels < variant.pixels]
            enough = [v for v in smaller if v.accuracy >= c.camera.min_accuracy]
            size = c.camera.width_px, c.camera.height_px
            assert not any(v.covers(*size) for v in enough), "larger than the camera's own picture"
        else:
            assert variant == FAMILY[0]
        assert assignment.reason.startswith(variant.size_text)


@settings(max_examples=80, deadline=None)
@given(boxes(12))
def test_the_executors_are_not_overbooked_unless_all_send_as_little_as_they_may(
    of: PlanningSnapshot,
) -> None:
    answer = planned(of)
    if answer.utilisation <= P.utilisation_max + 1e-9:
        return
    pairs = Judged(of, answer).pairs()
    single, eight = (p99_ns(of, FAMILY[0], size) for size in (1, 8))
    in_turns = eight <= 0.8 * 8 * single and answer.utilisation <= P.cycle_utilisation_max + 1e-9
    if in_turns and all(a.rate_hz == c.camera.rate_hz for c, a, _ in pairs if a.served):
        return  # there, more of the time may be planned
    for c, assignment, variant in pairs:
        # Nobody has a larger variant than it must.
        good = (v for v in FAMILY if v.accuracy >= c.camera.min_accuracy)
        assert variant.pixels <= min(v.pixels for v in good)
        if answer.utilisation > P.utilisation_slow + 1e-9:
            assert assignment.rate_hz <= min(1.0, c.camera.rate_hz)
            assert not assignment.served or variant == FAMILY[0]


least_wanted = st.lists(
    st.builds(
        lambda rate_hz, least, accuracy, waits: (rate_hz, least * rate_hz, accuracy, waits),
        st.sampled_from([2, 10, 30]),
        st.sampled_from([0.0, 0.4, 0.7, 1.0]),
        st.sampled_from([0.0, 0.0, 0.4]),
        st.booleans(),
    ),
    min_size=1,
    max_size=7,
)


@settings(max_examples=80, deadline=None)
@given(least_wanted, st.sampled_from([1.0, 2.0, 4.0]))
def test_the_fewest_cameras_are_given_up_that_let_the_rest_have_their_least_rates(
    drawn: list[tuple[float, float, float, bool]], slowdown: float
) -> None:
    """Where batches bring nothing and links are ample, loads are sums and subsets can be tried."""
    of = snapshot(
        (
            seen(camera(f"gate-{at}", 1000, rate, (1280, 720), accuracy, least))
            for at, (rate, least, accuracy, _) in enumerate(drawn)
        ),
        slowdown=slowdown,
    )

    def load(at: int, served: bool) -> float:
        rate, least, accuracy, _ = drawn[at]
        variant = next(v for v in FAMILY if not served or v.accuracy >= accuracy)
        least_hz = max(1.0, least) if served else 1.0
        return min(rate, least_hz) * p99_ns(of, variant) / 1e9

    def fewest_within(limit: float) -> int | None:
        cameras = range(len(drawn))
        subsets = (set(s) for k in (*cameras, len(drawn)) for s in combinations(cameras, k))
        fit = (s for s in subsets if sum(load(at, at not in s) for at in cameras) <= limit)
        return next(map(len, fit), None)

    fewest = fewest_within(P.utilisation_slow)
    answer = planned(of)
    unserved = [a for a in answer.assignments.values() if not a.served]
    if fewest is not None:
        assert len(unserved) == fewest
        assert answer.utilisation <= P.utilisation_slow + 1e-9
    assert all(a.rate_hz == 1.0 and "the least that is of use" in a.reason for a in unserved)
    # Who is best effort already is not called back while there is hardly any time to spare.
    waiting = replace(
        of,
        cameras=tuple(
            replace(c, current=replace(answer.assignments[c.camera.id], served=not waits))
            for c, (_, _, _, waits) in zip(of.cameras, drawn, strict=True)
        ),
    )
    again = planned(waiting)
    count = sum(not a.served for a in again.assignments.values())
    assert count >= len(unserved)
    spare = P.utilisation_slow * P.utilisation_upgrade / P.utilisation_max
    if (most := fewest_within(spare)) is not None:
        assert count <= most


@settings(max_examples=80, deadline=None)
@given(boxes(8))
def test_utilisation_is_what_the_rates_and_profiles_say_where_batches_bring_nothing(
    of: PlanningSnapshot,
) -> None:
    profiles = next(iter(of.profiles.values()))
    single = profiles[FAMILY[0].name]
    if single.quantile_ns(2, 0.99) < 2 * single.quantile_ns(1, 0.99):
        return
    judged = Judged(of, planned(of))
    load = sum(a.rate_hz * p99_ns(of, v) / 1e9 for _, a, v in judged.pairs())
    expected = load / len(of.profiles)
    assert abs(judged.answer.utilisation - expected) <= 1e-6 * max(1.0, expected)


@settings(max_examples=80, deadline=None)
@given(boxes(8))
def test_a_plan_in_force_is_kept_while_nothing_changes(of: PlanningSnapshot) -> None:
    def in_force(by: Plan) -> PlanningSnapshot:
        now = by.assignments
        return replace(of, cameras=tuple(replace(c, current=now[c.camera.id]) for c in of.cameras))

    first = planned(of)
    second = planned(in_force(first))
    assert second.assignments.keys() == first.assignments.keys()
    third = planned(in_force(second))
    for camera_, assignment in third.assignments.items():
        before = second.assignments[camera_]
        assert (assignment.variant, assignment.rate_hz) == (before.variant, before.rate_hz)


@settings(max_examples=80, deadline=None)
@given(cameras)
def test_alone_a_camera_gets_the_largest_size_that_fits(c: CameraSnapshot) -> None:
    of = snapshot([replace(c, current=None)])
    [assignment] = planned(of).assignments.values()
    possible = []
    for variant in FAMILY:
        if variant.accuracy < c.camera.min_accuracy:
            continue
        if (
            slack_ns(of, c, variant) >= bad_luck_ns(of, c, variant)
            and carried_hz(c, variant) >= c.camera.rate_hz
            and c.camera.rate_hz * p99_ns(of, variant) / 1e9 <= P.utilisation_max
        ):
            possible.append(variant)
        if variant.covers(c.camera.width_px, c.camera.height_px):
            break
    if possible:
        assert assignment.served
        assert assignment.variant == possible[-1].name
        assert assignment.rate_hz == c.camera.rate_hz


@settings(max_examples=80, deadline=None)
@given(boxes(3))
def test_a_new_plan_is_close_to_the_best_of_all(of: PlanningSnapshot) -> None:
    """Where batches bring nothing, feasibility is plain, and few cameras can be enumerated."""
    of = replace(
        of,
        cameras=tuple(replace(c, current=None) for c in of.cameras),
        profiles=snapshot([], executors=tuple(of.profiles)).profiles,
    )
    answer = planned(of)
    pairs = Judged(of, answer).pairs()
    if not all(a.served and a.rate_hz == c.camera.rate_hz for c, a, _ in pairs):
        return
    if answer.utilisation > P.utilisation_max:
        return  # tolerated where all are at their smallest: nothing is feasible

    def value(chosen: tuple[Variant, ...]) -> float:
        return sum(v.accuracy * c.camera.rate_hz for c, v in zip(of.cameras, chosen, strict=True))

    def feasible(chosen: tuple[Variant, ...]) -> bool:
        both = list(zip(of.cameras, chosen, strict=True))
        longest_ns = max(p99_ns(of, v) for v in chosen)
        blockers_ns: list[float] = [longest_ns] * len(chosen)
        load = sum(c.camera.rate_hz * p99_ns(of, v) for c, v in both) / 1e9 / len(of.profiles)
        if alone(of, len(of.profiles), [(c.camera.rate_hz, v) for c, v in both]):
            blockers_ns = [min(longest_ns, bad_luck_ns(of, c, v)) for c, v in both]
        return load <= P.utilisation_max and all(
            blocker_ns <= slack_ns(of, c, v) and carried_hz(c, v) >= c.camera.rate_hz
            for blocker_ns, (c, v) in zip(blockers_ns, both, strict=True)
        )

    sensible = []
    for c in of.cameras:
        enough = [v for v in FAMILY if v.accuracy >= c.camera.min_accuracy]
        size = c.camera.width_px, c.camera.height_px
        first = next((at for at, v in enumerate(enough) if v.covers(*size)), len(enough))
        sensible.append(enough[: first + 1])
    best = max(value(chosen) for chosen in product(*sensible) if feasible(chosen))
    got = tuple(v for _, _, v in pairs)
    assert value(got) >= 0.9 * best
    # And no single camera could go one size up.
    for at, choices in enumerate(sensible):
        up = [v for v in choices if v.pixels > got[at].pixels][:1]
        assert not any(feasible((*got[:at], v, *got[at + 1 :])) for v in up)


@settings(max_examples=60, deadline=None)
@given(boxes(6), st.integers(0, 40))
def test_a_plan_is_a_function_of_its_arguments_and_stays_feasible_when_cut_short(
    of: PlanningSnapshot, iterations: int
) -> None:
    one = plan(of, iterations)
    assert one == plan(of, iterations)
    full = planned(of)
    assert {a.camera: a.served for a in one.assignments.values()} == {
        a.camera: a.served for a in full.assignments.values()
    }
    assert one.utilisation <= max(P.utilisation_max, full.utilisation) + 1e-9
