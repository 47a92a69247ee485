"""The constraint that binds a camera: its price, and that lifting it really helps."""

from dataclasses import replace

import pytest
from hypothesis import given, settings

from edgebox.domain.model_family import LatencyProfile
from edgebox.domain.plans import (
    Assignment,
    CameraSnapshot,
    Limit,
    Plan,
    PlanningSnapshot,
    Remedy,
    RemedyAction,
    Resource,
)
from edgebox.domain.requests import CameraId
from edgebox.planning.explain import explanation
from edgebox.planning.planner import plan
from edgebox.planning.planner_parameters import PlanningParameters
from tests.planning.scene import link, seen, snapshot
from tests.planning.test_plans_by_brute_force import boxes
from tests.scheduling.scene import FAMILY, MS, camera

ACCURACY = {variant.name: variant.accuracy for variant in FAMILY}


def planned(of: PlanningSnapshot) -> Plan:
    return plan(of, 10_000)


def only(of: CameraSnapshot) -> tuple[Assignment, Limit | None]:
    [given_] = planned(snapshot([of])).assignments.values()
    return given_, given_.limit


def test_more_of_the_uplink_lifts_a_limit_of_the_uplink() -> None:
    before, limit = only(seen(camera("gate", 500, 10), link(2)))
    assert limit is not None
    assert limit.resource is Resource.UPLINK
    after, _ = only(seen(camera("gate", 500, 10), link(2 + (limit.missing + 1) / 1e6)))
    gained = (ACCURACY[after.variant] - ACCURACY[before.variant]) * 10
    assert gained == pytest.approx(limit.gain)
    almost, _ = only(seen(camera("gate", 500, 10), link(2 + 0.9 * limit.missing / 1e6)))
    assert almost.variant == before.variant


@pytest.mark.parametrize(("slo_ms", "mbps"), [(12, 50.0), (500, 0.02)])
def test_what_gives_a_larger_size_is_not_what_helps_to_keep_the_smallest(
    slo_ms: int, mbps: float
) -> None:
    found = explanation(
        snapshot([seen(camera("gate", slo_ms, 10), link(mbps))]),
        CameraId("gate"),
        PlanningParameters(),
        10_000,
    )
    assert found is not None
    larger = [each for each in found.options if each.verdict != "chosen" and each.limit is not None]
    assert larger
    for each in larger:
        actions = {remedy.action for remedy in each.remedies}
        assert actions <= {RemedyAction.IMPROVE_UPLINK, RemedyAction.EXTEND_DEADLINE}
        assert actions


def test_a_later_deadline_lifts_a_limit_of_the_deadline() -> None:
    before, limit = only(seen(camera("gate", 100, 5)))
    assert limit is not None
    assert limit.resource is Resource.DEADLINE
    needed_ms = 100 + -(-limit.missing // MS)
    assert before.remedies == (
        Remedy(
            RemedyAction.EXTEND_DEADLINE,
            f"allow {needed_ms:.0f} ms for an answer instead of 100",
            needed_ms,
        ),
    )
    quicker = planned(faster(snapshot([seen(camera("gate", 100, 5))]), 1 / 0.75 - 1))
    [given_] = quicker.assignments.values()
    assert ACCURACY[given_.variant] > ACCURACY[before.variant]
    slo_ns = 100 * MS + int(limit.missing)
    after, _ = only(seen(replace(camera("gate", 100, 5), slo_ns=slo_ns)))
    assert (ACCURACY[after.variant] - ACCURACY[before.variant]) * 5 == pytest.approx(limit.gain)


def test_a_link_that_carries_plenty_is_not_blamed_for_batches_that_take_long() -> None:
    """Two batches of 608 px take 120 ms; a link of 200 instead of 5 Mbit/s would just do."""
    given_, limit = only(seen(camera("gate", 133, 5), link(5)))
    assert given_.variant == FAMILY[3].name
    assert given_.reason.startswith(
        "416 × 416 px: the largest size that can be answered within 133 ms; "
    )
    assert given_.reason.endswith("because its inference can take 60 ms")
    assert limit is not None
    assert limit.resource is Resource.DEADLINE
    slo_ns = 133 * MS + int(limit.missing)
    after, _ = only(seen(replace(camera("gate", 133, 5), slo_ns=slo_ns), link(5)))
    assert after.variant == FAMILY[4].name


def test_a_slow_link_is_blamed_where_batches_are_short() -> None:
    given_, limit = only(seen(camera("gate", 200, 5), link(1)))
    assert "the uplink carries 1.0 Mbit/s" in given_.reason
    assert limit is not None
    assert limit.resource is Resource.UPLINK


def faster(of: PlanningSnapshot, share: float) -> PlanningSnapshot:
    """Return a box that has so much more time: its batches take that much less."""

    def profile(each: LatencyProfile) -> LatencyProfile:
        rows = each.quantiles_ns.items()
        times = {size: tuple(round(ns / (1 + share)) for ns in row) for size, row in rows}
        return replace(each, quantiles_ns=times)

    profiles = {e: {n: profile(p) for n, p in held.items()} for e, held in of.profiles.items()}
    return replace(of, profiles=profiles)


def test_more_time_lifts_a_limit_of_the_executors_and_the_price_says_what_that_brings() -> None:
    of = snapshot([seen(camera(f"gate-{at}", 1000, 10)) for at in range(3)])
    before = planned(of)
    limits = [a.limit for a in before.assignments.values() if a.limit is not None]
    assert limits
    assert {limit.resource for limit in limits} == {Resource.EXECUTORS}
    [price] = before.prices
    assert (price.resource, price.of) == (Resource.EXECUTORS, tuple(of.profiles))
    assert price.price == max(limit.price for limit in limits)
    assert price.cameras == len(limits)
    least = min(limit.missing for limit in limits)

    def value(by: Plan) -> float:
        return sum(ACCURACY[a.variant] * a.rate_hz for a in by.assignments.values())

    # The planned share may be used; so much more of it is what is missing.
    after = planned(faster(of, least / (before.utilisation - least) + 0.01))
    assert value(after) > value(before)


@settings(max_examples=60, deadline=None)
@given(boxes(8))
def test_every_limit_has_a_price_and_a_way_to_lift_it(of: PlanningSnapshot) -> None:
    answer = planned(of)
    for given_ in answer.assignments.values():
        limit = given_.limit
        if limit is None:
            continue
        assert limit.missing > 0
        assert limit.gain >= 0
        assert limit.price >= 0
        assert given_.remedies
        if limit.resource is Resource.UPLINK:
            assert "uplink carries" in given_.reason
        if limit.resource is Resource.EXECUTORS:
            assert "share" in given_.reason or "to itself" in given_.reason
    on = [executor for price in answer.prices for executor in price.of]
    assert len(on) == len(set(on))
    bound = [a.limit for a in answer.assignments.values() if a.limit is not None]
    time = [limit for limit in bound if limit.resource is Resource.EXECUTORS]
    assert sum(price.cameras for price in answer.prices) == len(time)


def test_where_nobody_is_served_the_plan_still_says_why() -> None:
    """Nobody's frames would be late by a camera's larger batch: all are best effort."""
    wants = camera("gate", 1000, 60, min_rate_hz=60, min_accuracy=0.5)
    of = snapshot([seen(replace(wants, id=CameraId(f"gate-{at}"))) for at in range(3)], slowdown=3)
    answer = planned(of)
    assert not any(a.served for a in answer.assignments.values())
    assert all("too many even for 60 frames/s" in a.reason for a in answer.assignments.values())
