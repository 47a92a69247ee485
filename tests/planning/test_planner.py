"""Plans by example, with the sentence each camera is given."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from edgebox.domain.model_family import ExecutorId, Variant
from edgebox.domain.plans import Assignment, CameraSnapshot, Plan, Remedy, RemedyAction
from edgebox.domain.requests import CameraId, LinkState
from edgebox.planning.planner import plan
from edgebox.planning.planner_parameters import PlanningParameters
from edgebox.planning.reasons import _more_time
from edgebox.planning.wording import bandwidth_text, missing_ms_text, ms_text
from tests.planning.scene import link, seen, snapshot
from tests.scheduling.cascades import cascade_pipeline
from tests.scheduling.scene import CPU, FAMILY, MS, STREET, camera, name


def only(of: CameraSnapshot, **what: object) -> Assignment:
    answer = plan(snapshot([of], **what), 1000)  # type: ignore[arg-type]
    [assignment] = answer.assignments.values()
    return assignment


def test_with_ample_everything_the_largest_size_is_chosen() -> None:
    given = only(seen())
    assert given == Assignment(
        CameraId("gate-1"), name(608), 10, 85, True, "608 × 608 px: the largest size of its model"
    )


@pytest.mark.parametrize(
    ("missing", "text"),
    [
        (0.06, "6 % more of its time"),
        (0.99, "99 % more of its time"),
        (1.0, "2 times as much of its time"),
        (13.27, "15 times as much of its time"),
    ],
)
def test_more_than_twice_the_time_is_said_in_times(missing: float, text: str) -> None:
    assert _more_time(missing, "of its time") == text


def test_a_pipeline_may_allow_no_larger_size() -> None:
    of = seen()
    limited = replace(of, camera=replace(of.camera, pipeline=cascade_pipeline()))
    assert only(limited).reason == "128 × 128 px: the largest size that its pipeline allows"


def test_the_uplink_decides() -> None:
    # At 10 Hz and 80 %: 320 px needs 1.83 Mbit/s, 416 px 2.83.
    given = only(seen(link_=link(1.9)))
    assert given.variant == name(320)
    assert given.reason == (
        "320 × 320 px: the uplink carries 1.9 Mbit/s; 416 × 416 px would need 2.8 Mbit/s"
    )


def test_an_upgrade_waits_for_a_margin_and_what_is_held_does_not() -> None:
    waits = only(seen(link_=link(1.8), has_px=256))
    assert waits.variant == name(256)
    assert waits.reason == (
        "256 × 256 px: the uplink carries 1.8 Mbit/s; 320 × 320 px would need 2.0 Mbit/s"
    )
    assert only(seen(link_=link(2.01), has_px=256)).variant == name(320)
    assert only(seen(link_=link(1.83), has_px=320)).variant == name(320)
    assert only(seen(link_=link(1.80), has_px=320)).variant == name(256)


def test_the_deadline_decides() -> None:
    # Two batches by P99 (36 and 60 ms), 7 ms fixed, 2 ms round trip.
    given = only(seen(camera(slo_ms=60)))
    assert given.variant == name(320)
    assert given.reason == (
        "320 × 320 px: the largest size that can be answered within 60 ms; "
        "416 × 416 px would be 10 ms too late, because its inference can take 30 ms"
    )
    slower = only(seen(camera(slo_ms=60)), slowdown=1.5)
    assert slower.variant == name(256)


def test_what_a_camera_takes_before_it_sends_comes_off_its_deadline() -> None:
    encodes = replace(seen(camera(slo_ms=80)), before_sending_ns=20 * MS)
    given, as_if = only(encodes), only(seen(camera(slo_ms=60)))
    assert given.variant == as_if.variant == name(320)
    assert given.limit is not None
    assert as_if.limit is not None
    assert given.limit.missing == as_if.limit.missing
    slow_link = only(replace(encodes, link=link(40)))
    assert slow_link.reason == only(seen(camera(slo_ms=60), link(40))).reason.replace("60", "80")


def test_the_cameras_own_picture_decides() -> None:
    given = only(seen(camera(size=(320, 240))))
    assert given.variant == name(320)
    assert given.reason == "320 × 320 px: enough for the camera's own picture of 320 × 240 px"


def test_before_the_link_is_measured() -> None:
    given = only(seen(camera(slo_ms=180), link(None)))
    assert given.variant == name(320)
    assert given.reason == (
        "320 × 320 px: the link has not been measured yet; 416 × 416 px has to wait for that"
    )


def test_cameras_that_share_an_executor_step_down_together() -> None:
    cameras = [seen(camera(f"gate-{at}", rate_hz=18, slo_ms=1000)) for at in range(4)]
    answer = plan(snapshot(cameras), 1000)
    assert answer.utilisation == pytest.approx(0.864)
    assert {a.variant for a in answer.assignments.values()} == {name(256)}
    reasons = {a.reason for a in answer.assignments.values()}
    # One step to 320 px: 18 frames/s at 18 instead of 12 ms are 11 %; 7 % are missing.
    assert reasons == {
        ("256 × 256 px: four cameras share cpu/0; 320 × 320 px would need 7 % more of its time")
    }
    two = (CPU, ExecutorId("cpu/1"))
    answer = plan(snapshot(cameras, executors=two), 1000)
    assert {a.variant for a in answer.assignments.values()} == {name(320), name(416)}
    assert "four cameras share 2 executors" in answer.assignments[CameraId("gate-3")].reason


def test_a_plan_is_not_changed_for_one_that_is_no_better() -> None:
    # There is room for three at 416 px and one at 320: whoever has the less keeps it.
    def cameras(small: int | None) -> list[CameraSnapshot]:
        return [
            seen(
                camera(f"gate-{at}", rate_hz=7.8),
                has_px=None if small is None else (320 if at == small else 416),
            )
            for at in range(4)
        ]

    def sizes(small: int | None) -> list[str]:
        answer = plan(snapshot(cameras(small)), 1000)
        return [a.variant for a in answer.assignments.values()]

    assert sorted(sizes(None)) == sorted([name(416)] * 3 + [name(320)])
    for small in range(4):
        assert sizes(small) == [name(320) if at == small else name(416) for at in range(4)]


def test_a_plan_that_is_hardly_better_moves_nobody() -> None:
    # What is in force is too much: "b" must step down from 608 px, and then others may rise.
    has = {"a": (1000, 12, 256), "b": (1000, 12, 608), "c": (100, 12, 256)}
    cameras = [seen(camera(of, slo, rate), has_px=px) for of, (slo, rate, px) in has.items()]
    accuracy = {variant.name: variant.accuracy for variant in FAMILY}

    def answer(hysteresis_ratio: float, of: list[CameraSnapshot]) -> Plan:
        parameters = PlanningParameters(hysteresis_ratio=hysteresis_ratio)
        return plan(snapshot(of), 1000, parameters)

    def now(of: Plan) -> list[CameraSnapshot]:
        return [replace(c, current=of.assignments[c.camera.id]) for c in cameras]

    def sizes(of: Plan) -> list[str]:
        return [a.variant for a in of.assignments.values()]

    def value(of: Plan) -> float:
        return sum(accuracy[a.variant] * a.rate_hz for a in of.assignments.values())

    # Whichever of equal plans is in force, it stays.
    for hysteresis_ratio in (1.0, 1.01):
        first = answer(hysteresis_ratio, cameras)
        assert sorted(sizes(first)) == [name(320), name(320), name(416)]
        assert sizes(answer(hysteresis_ratio, now(first))) == sizes(first)
    # To exchange their sizes would be worth 0.34 % more: "a" sends more frames, "b" has 608 px.
    pair = [seen(camera("a", 1000, 8), has_px=416), seen(camera("b", 1000, 7), has_px=608)]
    eager, calm = answer(1.0, pair), answer(1.01, pair)
    assert sizes(calm) == [name(416), name(608)]
    assert sizes(eager) == [name(608), name(416)]
    assert 1.0 < value(eager) / value(calm) < 1.01


def test_many_cameras_rise_together_where_none_could_alone() -> None:
    # The first to leave 128 px would pay for batches of its own; at 256 px all share theirs.
    cameras = [seen(camera(f"gate-{at}", 300, 12), has_px=128) for at in range(12)]
    answer = plan(snapshot(cameras, gain=0.95), 1000)
    assert all(a.variant != name(128) for a in answer.assignments.values())
    assert answer.utilisation <= PlanningParameters().utilisation_max


def test_a_weak_uplink_does_not_make_everybodys_batches_small() -> None:
    # 128 px take "far" 84 of its 100 ms: a batch beside it may take 3.5 ms, too short to gather in.
    strong = [seen(camera(f"gate-{at}", 100, 30)) for at in range(56)]
    weak = seen(camera("far", 100, 1), link(0.41))
    few = plan(snapshot([*strong[:2], weak], gain=0.95), 1000)
    assert all(a.served for a in few.assignments.values())
    answer = plan(snapshot([*strong, weak], gain=0.95), 1000)
    assert not answer.assignments[CameraId("far")].served
    rest = [a for camera_id, a in answer.assignments.items() if camera_id != "far"]
    assert all(a.served and a.rate_hz == 30 for a in rest)


def test_rates_are_lowered_only_where_the_executors_would_be_full() -> None:
    # 128 px take 3 ms (P99): 27 frames per 100 ms are 81 % at the smallest size.
    def answer(count: int) -> Plan:
        cameras = [seen(camera(f"gate-{at}", 300, 30)) for at in range(count)]
        return plan(snapshot(cameras), 1000)

    busy, full = answer(9), answer(12)
    assert {a.rate_hz for a in busy.assignments.values()} == {30}
    assert max(a.rate_hz for a in full.assignments.values()) < 30
    assert full.utilisation <= PlanningParameters().utilisation_slow


def test_batches_that_pay_make_room() -> None:
    cameras = [seen(camera(f"gate-{at}", rate_hz=12, slo_ms=1000)) for at in range(4)]
    answer = plan(snapshot(cameras, gain=0.9), 1000)
    assert {a.variant for a in answer.assignments.values()} == {name(608)}


def test_a_tight_camera_is_not_made_to_wait() -> None:
    relaxed, tight = seen(camera("far", slo_ms=1000)), seen(camera("near", slo_ms=60))
    answer = plan(snapshot([relaxed, tight]), 1000)
    far, near = answer.assignments[CameraId("far")], answer.assignments[CameraId("near")]
    # 30 ms of a 416 px batch and its own 12 ms fit the 50 ms that "near" has.
    assert (far.variant, near.variant) == (name(416), name(320))
    assert far.reason == "416 × 416 px: 608 × 608 px would make frames of near wait 28 ms too long"
    later = "allow 28 ms more for answers to near"
    assert Remedy(RemedyAction.EXTEND_DEADLINE, later, camera=CameraId("near")) in far.remedies
    assert far.served
    assert near.served


def test_accuracy_that_was_asked_for_is_kept_or_nothing_is_promised() -> None:
    held = only(seen(camera(min_accuracy=0.5), link(1.9)))
    assert held.variant == name(320)
    lost = only(seen(camera(min_accuracy=0.55), link(0.2)))
    assert (lost.variant, lost.served) == (name(128), False)
    assert lost.reason == (
        "128 × 128 px, best effort: the uplink carries 200 kbit/s; "
        "416 × 416 px (for an accuracy of 0.55) would need 2.8 Mbit/s"
    )
    never = only(seen(camera(min_accuracy=0.9)))
    assert (never.variant, never.served) == (name(128), False)
    assert never.reason == (
        "128 × 128 px, best effort: no size of its model has the accuracy of 0.9 that is asked for"
    )
    assert never.remedies[0].action is RemedyAction.LOWER_ACCURACY


def test_an_slo_that_cannot_be_met_is_best_effort() -> None:
    given = only(seen(camera(slo_ms=10)))
    assert (given.variant, given.served) == (name(128), False)
    assert given.reason == (
        "128 × 128 px, best effort: 128 × 128 px would miss the deadline of 10 ms by 6 ms"
    )


def test_a_link_too_slow_for_the_rate_gets_fewer_frames() -> None:
    # 128x72 px are 34,393 bits: 9 Hz at 80 % of 390 kbit/s.
    given = only(seen(camera(rate_hz=30), link(0.39)))
    assert (given.variant, given.served, given.rate_hz) == (name(128), True, 9.0)
    assert given.reason == "128 × 128 px, 9 of 30 frames/s: the uplink carries 390 kbit/s"
    dying = only(seen(camera(rate_hz=30), link(0.02)))
    assert (dying.variant, dying.served, dying.rate_hz) == (name(128), False, 1.0)


def test_when_the_smallest_sizes_do_not_fit_all_send_fewer_frames() -> None:
    cameras = [seen(camera(f"gate-{at}", rate_hz=30)) for at in range(13)]
    answer = plan(snapshot(cameras), 1000)
    assert {a.variant for a in answer.assignments.values()} == {name(128)}
    # 0.95 of the time at 3 ms a frame is 317 frames/s, 24.4 Hz each.
    assert {a.rate_hz for a in answer.assignments.values()} == {24.0}
    [reason] = {a.reason for a in answer.assignments.values()}
    assert reason == (
        "128 × 128 px, 24 of 30 frames/s: 13 cameras share cpu/0, too many for 30 frames/s"
    )


def test_who_asks_for_much_takes_no_frames_from_who_asks_for_little() -> None:
    cameras = [seen(camera("greedy", rate_hz=1000)), seen(camera("busy", rate_hz=200))]
    cameras += [seen(camera(f"gate-{at}", rate_hz=10)) for at in range(6)]
    answer = plan(snapshot(cameras), 1000)
    rates = {camera_: a.rate_hz for camera_, a in answer.assignments.items()}
    # 317 frames/s, of which the six have 60; the others share the rest.
    assert [rates.pop(CameraId(f"gate-{at}")) for at in range(6)] == [10] * 6
    assert rates == {CameraId("greedy"): 128, CameraId("busy"): 128}
    assert all(a.served for a in answer.assignments.values())


def test_one_weak_moment_of_a_link_costs_no_other_camera_its_service() -> None:
    # 32 frames/s at 28.75 ms are 92 % of the time: all fit, with no time to spare.
    rates_hz = {"heavy": 20, "mid": 10, "light": 2}

    def planned(links: Mapping[str, LinkState], before: Plan | None) -> Plan:
        has = {} if before is None else before.assignments
        cameras = [
            replace(
                seen(camera(each, 1000, hz, min_rate_hz=hz), links.get(each, link())),
                current=has.get(CameraId(each)),
            )
            for each, hz in rates_hz.items()
        ]
        return plan(snapshot(cameras, slowdown=28.75 / 3), 1000)

    weak = planned({"light": link(0.005)}, planned({}, None))
    assert [a.served for a in weak.assignments.values()] == [True, True, False]
    back = planned({}, weak)
    assert [a.served for a in back.assignments.values()] == [True, True, False]
    assert back.assignments[CameraId("light")].reason == (
        "128 × 128 px, 1 of 2 frames/s, best effort: three cameras share cpu/0; "
        "2 frames/s at 128 × 128 px follows once there is time to spare"
    )


def test_nobody_is_slowed_below_what_is_of_use_to_it() -> None:
    # 0.95 of the time at 3 ms a frame is 317 frames/s: 12 of 13 at 25 Hz and one at 1.
    cameras = [seen(camera(f"gate-{at}", rate_hz=30, min_rate_hz=25)) for at in range(13)]
    answer = plan(snapshot(cameras), 1000)
    served = [a for a in answer.assignments.values() if a.served]
    assert [a.rate_hz for a in served] == [26.0] * 12
    [given_up] = [a for a in answer.assignments.values() if not a.served]
    assert (given_up.variant, given_up.rate_hz) == (name(128), 1.0)
    assert given_up.reason == (
        "128 × 128 px, 1 of 30 frames/s, best effort: 13 cameras share cpu/0, "
        "too many even for 25 frames/s at 128 × 128 px, the least that is of use"
    )
    assert served[0].reason == (
        "128 × 128 px, 26 of 30 frames/s: 13 cameras share cpu/0, too many for 30 frames/s"
    )


def test_who_was_crowded_out_waits_until_there_is_time_to_spare() -> None:
    def unserved(slowdown: float, waits: str | None) -> list[str]:
        def now(of: str) -> Assignment:
            rate_hz = 1 if of == waits else 20
            return Assignment(CameraId(of), name(128), rate_hz, 85, of != waits, "")

        cameras = [
            replace(seen(camera(of, rate_hz=20, min_rate_hz=20)), current=now(of)) for of in "abcde"
        ]
        answer = plan(snapshot(cameras, slowdown=slowdown), 1000)
        return [a.camera for a in answer.assignments.values() if not a.served]

    # Five cameras of 20 Hz at 3 ms are 30 % of the time.
    assert unserved(3.2, None) == ["e"]
    assert unserved(3.2, "d") == ["d"]
    assert unserved(3.1, "d") == ["d"]
    assert unserved(3.1, None) == []
    assert unserved(2.9, "d") == []


def test_a_link_that_cannot_carry_the_least_rate_says_what_would() -> None:
    # 128x72 px are 34,393 bits: at 80 % of 390 kbit/s 9 Hz, for 10 Hz it takes 430.
    enough = only(seen(camera(rate_hz=30, min_rate_hz=9), link(0.39)))
    assert (enough.served, enough.rate_hz) == (True, 9.0)
    short = only(seen(camera(rate_hz=30, min_rate_hz=10), link(0.39)))
    assert (short.variant, short.served, short.rate_hz) == (name(128), False, 9.0)
    assert short.reason == (
        "128 × 128 px, best effort: the uplink carries 390 kbit/s; "
        "128 × 128 px at 10 frames/s, the least that is of use, would need 430 kbit/s"
    )


def test_without_variants_there_is_nothing_to_assign() -> None:
    assert plan(snapshot([seen()], variants=()), 1000).assignments == {}
    assert plan(snapshot([]), 1000).assignments == {}


def test_a_larger_variant_that_is_no_better_is_never_chosen() -> None:
    worse = [*FAMILY[:2], Variant(name(320), STREET, 320, 320, 0.45)]
    assert only(seen(), variants=worse).variant == name(256)


@pytest.mark.parametrize(
    ("bandwidth_bps", "text"),
    [
        (85_000, "85 kbit/s"),
        (999_499, "999 kbit/s"),
        (999_500, "1.0 Mbit/s"),
        (1.94e6, "1.9 Mbit/s"),
        (9.96e6, "10 Mbit/s"),
        (123e6, "123 Mbit/s"),
    ],
)
def test_bandwidths_in_words(bandwidth_bps: float, text: str) -> None:
    assert bandwidth_text(bandwidth_bps) == text


def test_long_times_have_their_thousands_apart() -> None:
    assert missing_ms_text(1_213_000_001) == "1,214 ms"
    assert (ms_text(12_500 * MS), ms_text(2 * MS // 4)) == ("12,500 ms", "0.5 ms")


def test_who_was_lowered_a_moment_ago_waits_before_rising() -> None:
    def just_after(lowered_ns: int) -> Assignment:
        # Snapshots of these tests are taken at the instant 0.
        return only(replace(seen(has_px=256), lowered_ns=lowered_ns - 1500 * MS))

    assert just_after(0).variant == name(608)
    held = just_after(1)
    assert held.variant == name(256)
    assert held.reason == (
        "256 × 256 px: its size was lowered a moment ago; "
        "320 × 320 px follows once it has been possible for 1.5 s"
    )
    assert [remedy.action for remedy in held.remedies] == [RemedyAction.WAIT]
    # What it cannot afford anyway is said as ever.
    slow = replace(seen(link_=link(1.9), has_px=256), lowered_ns=0)
    assert only(slow).reason.startswith("256 × 256 px: the uplink carries 1.9 Mbit/s")
