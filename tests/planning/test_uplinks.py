"""Cameras of a site divide its uplink: feasible, close to the best division, and steady."""

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebox.domain.model_family import ExecutorId, FamilyName, Variant, VariantName
from edgebox.domain.plans import CameraSnapshot, Plan, PlanningSnapshot, Resource
from edgebox.domain.requests import SiteId
from edgebox.planning import uplinks
from edgebox.planning.budgets import budget, share_of
from edgebox.planning.camera_admission import refusal
from edgebox.planning.capacity import batch_times
from edgebox.planning.explain import explanation
from edgebox.planning.planner import plan
from edgebox.planning.planner_parameters import PlanningParameters
from edgebox.planning.uplinks import with_uplink_shares
from tests.planning.scene import link, seen, snapshot
from tests.scheduling.scene import FAMILY, MEDIAN_MS, MS, camera, name

P = PlanningParameters()
SITE = SiteId("yard")
SINGLE_MS = {name(px): ms for px, ms in MEDIAN_MS.items()}
ACCURACY = {variant.name: variant.accuracy for variant in FAMILY}

Drawn = tuple[int, float, int | None]
"""SLO in ms, rate in Hz, px in force."""


def box(drawn: Sequence[Drawn], mbps: float, *, site: SiteId | None = SITE) -> PlanningSnapshot:
    """Return cameras of one site, on executors that are no obstacle."""
    cameras = []
    for at, (slo_ms, rate_hz, px) in enumerate(drawn):
        of = replace(camera(f"gate-{at}", slo_ms, rate_hz), site=site)
        cameras.append(seen(of, link(mbps), has_px=px))
    return snapshot(cameras, slowdown=0.05)


def planned(of: PlanningSnapshot) -> Plan:
    return plan(of, 10_000)


def frame_bits(of: CameraSnapshot, px: int) -> float:
    variant = next(v for v in FAMILY if v.name == name(px))
    return budget(of.camera, of.link, variant, 0, P).frame_bits


def px_of(by: Plan) -> list[int]:
    return [int(a.variant.removeprefix("street-")) for a in by.assignments.values()]


def in_time(of: PlanningSnapshot, sizes: Sequence[int], rates_hz: Sequence[float]) -> bool:
    """Write down a second time what a division of a site's uplink must hold."""
    bandwidth_bps = of.cameras[0].link.bandwidth_bps
    assert bandwidth_bps is not None
    bits = [frame_bits(c, px) for c, px in zip(of.cameras, sizes, strict=True)]
    sent_bps = sum(f * hz for f, hz in zip(bits, rates_hz, strict=True))
    if sent_bps > share_of(of.cameras[0].link, P) * bandwidth_bps * (1 + 1e-9):
        return False
    network_ns = sum(bits) / bandwidth_bps * 1e9
    for c, px in zip(of.cameras, sizes, strict=True):
        fixed_ns = of.fixed_ns + (c.link.rtt_ns or 0)
        needed_ns = 2 * 0.05 * SINGLE_MS[name(px)] * MS
        if network_ns + fixed_ns + needed_ns > c.camera.slo_ns + 2:
            return False
    return True


cameras = st.lists(
    st.tuples(
        st.sampled_from([60, 150, 300]),
        st.sampled_from([5.0, 15.0, 25.0]),
        st.sampled_from([None, *MEDIAN_MS]),
    ),
    min_size=2,
    max_size=6,
)


@settings(max_examples=100, deadline=None)
@given(cameras, st.sampled_from([0.2, 1.0, 4.0, 12.0, 40.0]))
def test_what_is_planned_for_a_site_fits_its_uplink(drawn: list[Drawn], mbps: float) -> None:
    of = box(drawn, mbps)
    answer = planned(of)
    given_ = list(answer.assignments.values())
    if all(a.served for a in given_):
        assert in_time(of, px_of(answer), [a.rate_hz for a in given_])
    for each, seen_ in zip(given_, of.cameras, strict=True):
        assert each.rate_hz <= seen_.camera.rate_hz
        if each.limit is not None and each.limit.resource is Resource.UPLINK:
            assert "cameras share" in each.reason


@settings(max_examples=60, deadline=None)
@given(cameras, st.sampled_from([1.0, 4.0, 12.0]))
def test_a_plan_for_a_site_stays_while_nothing_changes(drawn: list[Drawn], mbps: float) -> None:
    of = box(drawn, mbps)

    def again(by: Plan) -> Plan:
        now = by.assignments
        seen_ = (replace(c, current=now[c.camera.id]) for c in of.cameras)
        return planned(replace(of, cameras=tuple(seen_)))

    second = again(planned(of))
    third = again(second)
    assert px_of(third) == px_of(second)


def test_divisions_are_close_to_the_best_of_all() -> None:
    rng = random.Random(5)
    sizes = sorted(MEDIAN_MS)
    ratios = []
    for _ in range(60):
        drawn = [
            (rng.choice([100, 150, 300]), rng.choice([5.0, 10.0, 15.0]), None) for _ in range(3)
        ]
        of = box(drawn, rng.uniform(1.5, 12))
        answer = planned(of)
        rates_hz = [c.camera.rate_hz for c in of.cameras]
        if any(a.rate_hz < hz for a, hz in zip(answer.assignments.values(), rates_hz, strict=True)):
            continue

        def value(px: Sequence[int], rates_hz: Sequence[float] = rates_hz) -> float:
            return sum(ACCURACY[name(p)] * hz for p, hz in zip(px, rates_hz, strict=True))

        best = max(value(each) for each in product(sizes, repeat=3) if in_time(of, each, rates_hz))
        ratios.append(value(px_of(answer)) / best)
    assert len(ratios) > 30
    assert min(ratios) > 0.9
    assert fmean(ratios) > 0.98


def test_a_camera_that_has_its_site_to_itself_is_planned_like_any_other() -> None:
    alone = box([(150, 15.0, None)], 4)
    assert with_uplink_shares(alone, P) == alone
    assert px_of(planned(alone)) == px_of(planned(box([(150, 15.0, None)], 4, site=None)))


def test_cameras_of_a_site_send_together_what_one_link_carries() -> None:
    four = [(150, 15.0, None)] * 4
    shared = planned(box(four, 8))
    # As if each had all of it: their frames would fill the link several times over.
    blind = planned(box(four, 8, site=None))
    assert sum(px_of(shared)) < sum(px_of(blind))
    of = box(four, 8)
    assert not in_time(of, px_of(blind), [15.0] * 4)
    assert in_time(of, px_of(shared), [15.0] * 4)


def test_where_the_smallest_frames_do_not_fit_the_highest_rates_come_down() -> None:
    answer = planned(box([(1000, 30.0, None), (1000, 30.0, None), (1000, 5.0, None)], 1))
    rates_hz = [a.rate_hz for a in answer.assignments.values()]
    assert rates_hz[0] == rates_hz[1] < 30
    assert rates_hz[2] == 5
    assert all(a.served for a in answer.assignments.values())
    [first, *_] = answer.assignments.values()
    assert "the uplink that three cameras share carries 1.0 Mbit/s" in first.reason


def test_more_of_a_sites_uplink_has_one_price() -> None:
    of = box([(150, 15.0, None)] * 4, 8)
    answer = planned(of)
    [price] = [p for p in answer.prices if p.resource is Resource.UPLINK]
    assert price.of == (SITE,)
    assert price.cameras >= 3
    richer = planned(box([(150, 15.0, None)] * 4, 16))
    assert sum(px_of(richer)) > sum(px_of(answer))
    found = explanation(of, of.cameras[0].camera.id, P, 10_000)
    assert found is not None
    told = [o for o in found.options if o.limit and o.limit.resource is Resource.UPLINK]
    assert told
    for option in told:
        assert option.remedies[-1].text.startswith("give yard an uplink of at least")


def test_who_waits_for_a_better_link_holds_its_size() -> None:
    """A step above what is in force asks for a tenth more bandwidth than it needs."""
    for has_px, mbps in product((None, 128), (6.0, 8.0, 10.0)):
        answer = planned(box([(150, 15.0, has_px)] * 4, mbps))
        reserve = planned(box([(150, 15.0, None)] * 4, mbps / P.link_upgrade))
        if has_px is not None:
            assert sum(px_of(answer)) <= sum(px_of(reserve))


def picky(count: int, mbps: float) -> PlanningSnapshot:
    """Return cameras of a site to which only their full rate is of use."""
    of = box([(1000, 15.0, None)] * count, mbps)
    cameras = (replace(c, camera=replace(c.camera, min_rate_hz=15.0)) for c in of.cameras)
    return replace(of, cameras=tuple(cameras))


def test_the_fewest_are_crowded_out_of_an_uplink_that_does_not_carry_all() -> None:
    bits = frame_bits(picky(1, 1).cameras[0], 128)
    three_mbps = 3.01 * bits * 15 / P.uplink_utilisation_max / 1e6
    answer = planned(picky(3, three_mbps))
    assert all(a.served for a in answer.assignments.values())
    answer = planned(picky(5, three_mbps))
    served = [a for a in answer.assignments.values() if a.served]
    assert len(served) == 2  # the others' best effort, a frame a second, takes some as well
    assert all(a.rate_hz == 15 for a in served)


def test_a_newcomer_that_would_take_the_uplink_of_others_is_refused() -> None:
    bits = frame_bits(picky(1, 1).cameras[0], 128)
    of = picky(3, 3.01 * bits * 15 / P.uplink_utilisation_max / 1e6)
    newcomer = replace(camera("new", 1000, 15), site=SITE, min_rate_hz=15.0)
    assert "would no longer be served" in (refusal(of, newcomer, P) or "")
    assert refusal(of, replace(newcomer, site=None), P) is None


def two_parts(near: int, far: int, mbps: float) -> PlanningSnapshot:
    """Return a site whose cameras are in two parts of a box: other families, other executors."""
    of = box([(100, 15.0, None)] * (near + far), mbps)
    other = FamilyName("yards")
    yards = [replace(v, name=VariantName(f"yard-{v.width_px}"), family=other) for v in of.variants]
    [(executor, profiles)] = of.profiles.items()
    beside = ExecutorId("cpu/9")
    held = {
        VariantName(name_.replace("street", "yard")): replace(
            p, variant=VariantName(name_.replace("street", "yard")), executor=beside
        )
        for name_, p in profiles.items()
    }
    cameras = [
        c if at < near else replace(c, camera=replace(c.camera, family=other))
        for at, c in enumerate(of.cameras)
    ]
    return replace(
        of,
        cameras=tuple(cameras),
        variants=(*of.variants, *yards),
        profiles={executor: profiles, beside: held},
        slowdown={executor: 0.05, beside: 0.05},
    )


def test_a_site_in_two_parts_of_a_box_has_one_uplink_and_one_price() -> None:
    of = two_parts(2, 2, 8)
    answer = planned(of)
    sizes = [int(a.variant.split("-")[1]) for a in answer.assignments.values()]
    assert in_time(box([(100, 15.0, None)] * 4, 8), sizes, [15.0] * 4)
    uplinks = [p for p in answer.prices if p.resource is Resource.UPLINK]
    assert len(uplinks) == 1


def test_a_newcomer_is_judged_by_whom_it_takes_the_uplink_from_in_other_parts() -> None:
    def needs_all(c: CameraSnapshot) -> CameraSnapshot:
        return replace(c, camera=replace(c.camera, min_rate_hz=15.0, slo_ns=1000 * MS))

    bits = frame_bits(picky(1, 1).cameras[0], 128)
    of = two_parts(1, 2, 3.01 * bits * 15 / P.uplink_utilisation_max / 1e6)
    of = replace(of, cameras=tuple(map(needs_all, of.cameras)))
    assert all(a.served for a in planned(of).assignments.values())
    newcomer = replace(camera("new", 1000, 15), site=SITE, min_rate_hz=15.0)
    assert "would no longer be served" in (refusal(of, newcomer, P) or "")


@pytest.mark.parametrize(("count", "slo_ms", "slower"), [(3, 100, 6), (4, 150, 4), (2, 300, 4)])
def test_an_uplink_is_divided_by_what_its_cameras_application_takes(
    count: int, slo_ms: int, slower: int
) -> None:
    cameras = [
        seen(replace(camera(f"gate-{at}", slo_ms, 2, app="heavy"), site=SITE), link(3.0))
        for at in range(count)
    ]
    of = snapshot(cameras)
    slow = {e: {n: p.scaled(slower) for n, p in each.items()} for e, each in of.profiles.items()}
    by_app = planned(replace(of, applications={"heavy": slow}))
    by_profile = planned(replace(of, profiles=slow))
    assert px_of(by_app) == px_of(by_profile)
    assert all(a.served for a in by_app.assignments.values())


def test_who_cannot_be_in_time_takes_no_more_of_the_uplink_than_its_smallest_frames() -> None:
    of = box([(12, 15.0, None), (200, 15.0, None)], 4)
    shared = with_uplink_shares(of, P).cameras
    least = frame_bits(of.cameras[0], 128)
    assert shared[0].share is not None
    assert shared[0].share.frame_bits_max == pytest.approx(least)
    alone = px_of(planned(box([(200, 15.0, None)], 4)))
    assert px_of(planned(of))[1] >= alone[0] / 2


def test_other_parts_of_a_box_do_not_change_what_a_site_can_have() -> None:
    of = box([(60, 15.0, None)] * 2, 8)
    crowded = two_parts(2, 1, 8)
    lonely = replace(crowded.cameras[2], camera=replace(crowded.cameras[2].camera, site=None))
    near = [replace(c, camera=replace(c.camera, slo_ns=60 * MS)) for c in crowded.cameras[:2]]
    both = replace(crowded, cameras=(*near, lonely))
    assert px_of(planned(of)) == [
        int(a.variant.split("-")[1]) for a in list(planned(both).assignments.values())[:2]
    ]


@settings(max_examples=60, deadline=None)
@given(cameras, st.sampled_from([0.2, 1.0, 4.0, 12.0, 40.0]))
def test_no_price_is_made_of_a_rounding_error(drawn: list[Drawn], mbps: float) -> None:
    for slowdown in (0.05, 1.0):
        of = replace(box(drawn, mbps), slowdown=dict.fromkeys(box(drawn, mbps).profiles, slowdown))
        for given_ in planned(of).assignments.values():
            limit = given_.limit
            if limit is None:
                continue
            if limit.resource is Resource.UPLINK:
                assert limit.missing > 100
            if limit.resource is Resource.DEADLINE:
                assert limit.missing > 1


def test_the_work_of_a_step_does_not_grow_with_the_site(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0

    def is_upgrade(variant: Variant, current_px: int | None) -> bool:
        nonlocal asked
        asked += 1
        return current_px is not None and variant.pixels > current_px

    monkeypatch.setattr(uplinks, "is_upgrade", is_upgrade)
    for count in (20, 80):
        asked = 0
        many = box([(2_000, 2.0, min(MEDIAN_MS))] * count, mbps=40.0 * count)
        assert all(c.share is not None for c in with_uplink_shares(many, P).cameras)
        assert 0 < asked < 20 * count * len(FAMILY)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12))
@settings(max_examples=50)
def test_a_division_adds_up_as_if_it_were_made_at_once(steps: list[int]) -> None:
    of = box([(300, 2.0, 128), (500, 5.0, None), (200, 1.0, 320), (400, 3.0, None)], 20.0)
    timing = batch_times(of, P.quantile)
    found = [uplinks._member(c, of, timing, P, dedicated=False) for c in of.cameras]
    members = [each for each in found if each is not None]
    rates_hz = [each.snapshot.camera.rate_hz for each in members]

    def in_time_ns(member: int, number: int) -> int | None:
        needed_ns = members[member].options[number].needed_ns
        return None if member == 3 else members[member].snapshot.camera.slo_ns - needed_ns

    division = uplinks._Division(members, rates_hz, in_time_ns, [0] * len(members))
    for member in steps:
        if division.at[member] + 1 < len(members[member].options):
            taken = division.after(member)
            assert taken is not None
            division.step_up(member)
            again = uplinks._Division(members, rates_hz, in_time_ns, division.at)
            assert (taken.bits, taken.bps) == pytest.approx((again._bits, again._bps))
            assert (taken.raised, taken.on_link_ns) == (again._raised, again._tightest[0][0])
