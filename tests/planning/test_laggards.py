"""Executors that are far slower than others do not make the plan of the others worse."""

from dataclasses import replace
from typing import Any

import pytest

from edgebox.domain.model_family import ExecutorId
from edgebox.domain.plans import PlanningSnapshot
from edgebox.planning.explain import explanation
from edgebox.planning.laggards import CANDIDATES_MAX, FACTOR, without_laggards
from edgebox.planning.optimisation import optimise
from edgebox.planning.optimised_part import optimised_parts
from edgebox.planning.planner import plan
from edgebox.planning.planner_parameters import PlanningParameters
from tests.planning.test_disjoint import box, cameras_of

PARAMETERS = PlanningParameters()
ITERATIONS = 10_000


def slowed(snapshot: PlanningSnapshot, *slowdown: float) -> PlanningSnapshot:
    """Return a box whose executors are slower than profiled, in this order."""
    return replace(snapshot, slowdown=dict(zip(snapshot.profiles, slowdown, strict=True)))


def kept(snapshot: PlanningSnapshot) -> list[list[str]]:
    """Return the executors that each candidate keeps."""
    fewer = without_laggards(snapshot, PARAMETERS.quantile)
    return [list(map(str, each.profiles)) for each, _ in fewer]


def frames(snapshot: PlanningSnapshot) -> float:
    """Return the frames a second that a plan serves."""
    return sum(
        each.rate_hz for each in plan(snapshot, ITERATIONS).assignments.values() if each.served
    )


@pytest.mark.parametrize("cameras", [1, 2, 3, 8])
def test_one_that_has_become_slow_takes_nothing_from_cameras_that_another_serves(
    cameras: int,
) -> None:
    alone = box([["gate"]], cameras_of("gate", cameras, rate_hz=4))
    slow = slowed(box([["gate"], ["gate"]], alone.cameras), 1, 20)
    wanted, found = plan(alone, ITERATIONS), plan(slow, ITERATIONS)
    assert all(each.served for each in wanted.assignments.values())
    assert found.assignments == wanted.assignments
    for seen in alone.cameras:
        of_one = explanation(slow, seen.camera.id, PARAMETERS, ITERATIONS)
        assert of_one is not None
        assert of_one == explanation(alone, seen.camera.id, PARAMETERS, ITERATIONS)


def test_one_is_left_out_whatever_those_of_other_families_need() -> None:
    gate = cameras_of("gate", 2, rate_hz=4)
    alone = plan(slowed(box([["gate"], ["gate"]], gate), 1, 20), ITERATIONS).assignments
    # Another family needs its slower executor, which is slower still.
    yard = cameras_of("yard", 60, rate_hz=10, slo_ms=5000)
    both = slowed(box([["gate"], ["gate"], ["yard"], ["yard"]], [*gate, *yard]), 1, 20, 1, 25)
    found = plan(both, ITERATIONS).assignments
    assert {camera: found[camera] for camera in alone} == alone


def test_one_that_serves_more_cameras_stays_however_slow() -> None:
    many = cameras_of("gate", 100, rate_hz=10, slo_ms=5000)
    slow = slowed(box([["gate"], ["gate"]], many), 1, FACTOR)
    assert kept(slow) == [["cpu/0"]]
    fast = slowed(box([["gate"]], many), 1)
    assert frames(slow) > frames(fast)
    ((part, _),) = optimised_parts(slow, ITERATIONS, PARAMETERS)
    assert len(part.profiles) == 2


def test_one_whose_time_is_needed_costs_no_second_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    many = cameras_of("gate", 100, rate_hz=10, slo_ms=5000)
    plans: list[int] = []

    def counted(*given: Any) -> Any:
        plans.append(1)
        return optimise(*given)

    monkeypatch.setattr("edgebox.planning.optimised_part.optimise", counted)
    plan(slowed(box([["gate"], ["gate"]], many), 1, 1), ITERATIONS)
    usual = len(plans)
    plan(slowed(box([["gate"], ["gate"]], many), 1, FACTOR), ITERATIONS)
    assert len(plans) == 2 * usual
    few = cameras_of("gate", 2)
    plan(slowed(box([["gate"], ["gate"]], few), 1, FACTOR), ITERATIONS)
    assert len(plans) == 4 * usual


def test_those_that_differ_little_are_planned_once() -> None:
    few = cameras_of("gate", 2)
    assert kept(slowed(box([["gate"]], few), 9)) == []
    assert kept(slowed(box([["gate"], ["gate"]], few), 1, 0.95 * FACTOR)) == []


def test_the_slowest_go_first_and_only_so_many_plans_are_tried() -> None:
    snapshot = slowed(box([["gate"]] * 4, cameras_of("gate", 2)), 1, 60, 5, 6)
    assert kept(snapshot) == [["cpu/0", "cpu/2", "cpu/3"], ["cpu/0"]]
    steps = slowed(box([["gate"]] * 5, cameras_of("gate", 2)), 1, 3, 9, 27, 81)
    assert len(kept(steps)) == CANDIDATES_MAX


def test_what_one_application_takes_there_counts_as_well() -> None:
    snapshot = box([["gate"], ["gate"]], cameras_of("gate", 1))
    there = ExecutorId("cpu/1")
    longer = {
        name: replace(
            of,
            quantiles_ns={size: tuple(9 * t for t in q) for size, q in of.quantiles_ns.items()},
        )
        for name, of in snapshot.profiles[there].items()
    }
    assert kept(replace(snapshot, applications={"yard": {there: longer}})) == [["cpu/0"]]


def test_the_only_one_that_runs_a_family_is_never_left_out() -> None:
    both = cameras_of("gate", 1) + cameras_of("yard", 1)
    assert kept(slowed(box([["gate"], ["gate", "yard"]], both), 1, 9)) == []
    assert kept(slowed(box([["gate"], ["yard"]], both), 1, 9)) == []
    parted = slowed(box([["gate"], ["yard"], ["gate", "yard"]], both), 1, 1, 9)
    assert kept(parted) == [], "without it they would be two boxes, and are one"
    joined = slowed(box([["gate"], ["gate"], ["yard"]], both), 1, 9, 1)
    assert kept(joined) == [["cpu/0", "cpu/2"]]
    assert {str(each) for each in plan(joined, ITERATIONS).assignments} == {"gate-0", "yard-0"}
