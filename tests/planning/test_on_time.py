"""Batches that now and then take several times as long: by which quantile the planner goes."""

from dataclasses import replace

import pytest

from edgebox.domain.model_family import QUANTILES, LatencyProfile
from edgebox.domain.plans import Assignment, Plan, PlanningSnapshot
from edgebox.planning.on_time import Expected, lower_quantiles, on_time_probability
from edgebox.planning.optimised_part import OptimisedPart, optimised_parts
from edgebox.planning.planner import plan
from edgebox.planning.planner_parameters import PlanningParameters
from tests.planning.scene import link, seen, snapshot
from tests.scheduling.scene import CPU, MEDIAN_MS, MS, camera, name

P = PlanningParameters()
STEADY = (1.0,) * len(QUANTILES)
HEAVY = (0.9, 0.95, 1.0, 1.0, 1.1, 1.3, 1.5, 6.0, 10.0)
"""Quantiles of a batch's time in units of its median: the P99 is six times as long."""


def with_tail(of: PlanningSnapshot, tail: tuple[float, ...]) -> PlanningSnapshot:
    """Return a box whose batches take these multiples of their medians."""
    profiles = {
        name(px): LatencyProfile(
            name(px),
            CPU,
            {size: tuple(round(size * ms * MS * k) for k in tail) for size in (1, 2)},
        )
        for px, ms in MEDIAN_MS.items()
    }
    return replace(of, profiles={CPU: profiles})


def four(tail: tuple[float, ...], has_px: int | None = None, slo_ms: int = 200) -> PlanningSnapshot:
    cameras = [seen(camera(f"gate-{at}", slo_ms, 3), link(40), has_px) for at in range(4)]
    return with_tail(snapshot(cameras), tail)


def planned(of: PlanningSnapshot) -> Plan:
    return plan(of, 10_000)


def sizes(of: Plan) -> list[str]:
    return sorted(given.variant for given in of.assignments.values())


def part_of(of: PlanningSnapshot) -> OptimisedPart:
    [(_, part)] = optimised_parts(of, 10_000, P)
    assert part is not None
    return part


def test_a_rare_long_batch_does_not_forbid_sizes_that_are_nearly_always_in_time() -> None:
    """By P99 even 320 px is too large: two batches take 144 ms, and by P95 36."""
    steady, heavy = planned(four(STEADY)), planned(four(HEAVY))
    assert sizes(steady) == [name(608)] * 4
    assert sizes(heavy) == [name(608)] * 4
    assert all(given.served for given in heavy.assignments.values())
    assert part_of(four(HEAVY)).parameters.quantile < P.quantile


def test_with_steady_batches_no_lower_quantile_is_tried() -> None:
    assert list(lower_quantiles(four(STEADY), P)) == []
    assert part_of(four(STEADY)).parameters == P
    nearly = (0.9, 0.92, 0.94, 0.95, 0.96, 0.97, 0.98, 1.0, 1.0)
    assert list(lower_quantiles(four(nearly), P)) == []


def test_a_few_per_cent_of_accuracy_are_not_worth_frames() -> None:
    """The step from 416 to 608 px brings 5 % and would cost a fifth of the frames."""
    tail = (1.0, 1.0, 1.0, 1.0, 1.0, 1.1, 5.9, 6.0, 6.0)
    of = four(tail, slo_ms=280)
    assert [each.quantile for each in lower_quantiles(of, P)] == [0.9, 0.75]
    assert part_of(of).parameters == P
    assert sizes(planned(of)) == [name(416)] * 4


def test_a_camera_with_time_to_spare_counts_as_in_time() -> None:
    """Its budget covers two batches of their P99, whatever the others are planned by."""
    loose = [seen(camera(f"loose-{at}", 2000, 1), link(40)) for at in range(2)]
    tight = [seen(camera(f"tight-{at}", 130, 4), link(40)) for at in range(2)]
    part = part_of(with_tail(snapshot([*tight, *loose]), HEAVY))
    assert part.parameters.quantile < P.quantile
    expected = part.expected(P)
    lost = on_time_probability(part.parameters.quantile, P.quantile)
    assert expected.promised == 4
    assert 2 + 2 * lost <= expected.service + 1e-9
    assert expected.service < 4


def test_the_time_of_executors_is_counted_by_the_mean() -> None:
    """The P99 is six times the median, and the mean 1.2 times."""
    of = four(HEAVY)
    mean = of.profiles[CPU][name(608)].mean_ns(1)
    assert mean == pytest.approx(1.18 * 40 * MS, rel=0.05)
    assert planned(of).utilisation == pytest.approx(4 * 3 * mean / 1e9, rel=1e-6)


def test_a_tail_that_is_measured_anew_moves_nobody() -> None:
    """Of a few hundred batches the P99 is a matter of luck; what is in force stays."""
    for longest in (3.0, 5.0, 7.0, 9.0):
        tail = (*HEAVY[:-2], longest, 1.5 * longest)
        assert sizes(planned(four(tail, has_px=608))) == [name(608)] * 4


def test_the_reason_names_the_batches_and_not_a_link_with_plenty() -> None:
    """A link of several hundred Mbit/s would leave the time that is missing."""
    of = with_tail(snapshot([seen(camera("gate", 90, 2), link(40))]), STEADY)
    [given] = planned(of).assignments.values()
    assert isinstance(given, Assignment)
    assert "uplink" not in given.reason
    assert given.reason.endswith("because its inference can take 40 ms")


def test_more_service_counts_only_as_far_as_it_is_in_time() -> None:
    most = Expected(4.0, 4.0, 2.0)
    assert not Expected(4.0, 3.6, 1.9).exceeds(most)
    assert Expected(4.0, 3.6, 2.1).exceeds(most)
    less = Expected(3.0, 3.0, 2.0)
    assert Expected(4.0, 3.6, 1.0).exceeds(less)
    assert not Expected(4.0, 2.9, 3.0).exceeds(less)
    assert not less.exceeds(most)
