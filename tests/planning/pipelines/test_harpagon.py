"""Harpagon's algorithms give the figures of its paper's worked examples."""

import pytest

from benchmarks.harpagon.latency_splitting import latency_cost_efficiency
from benchmarks.harpagon.module_scheduling import (
    generated,
    round_robin_ns,
    with_dummy_requests,
)
from edgebox.planning.pipelines.module_plan import ModulePlan, cheapest_plan
from tests.planning.pipelines.worked_examples import M1, M3, M4, SECOND_NS


def rates(plan: ModulePlan | None) -> list[tuple[int, float]]:
    assert plan is not None
    found: dict[int, float] = {}
    for group in plan.groups:
        batch = group.configuration.batch
        found[batch] = found.get(batch, 0.0) + group.rate_hz
    return list(found.items())


def test_table_2_the_schedules_of_m3() -> None:
    s1 = generated(M3, SECOND_NS, configurations_max=2, dispatch="round robin")
    s2 = generated(M3, SECOND_NS, configurations_max=2)
    s3 = generated(M3, SECOND_NS)
    s4 = with_dummy_requests(M3, SECOND_NS)
    assert rates(s1) == [(8, 192), (2, 6)]
    assert rates(s2) == [(32, 160), (2, 38)]
    assert rates(s3) == [(32, 160), (8, 32), (2, 6)]
    assert rates(s4) == [(32, 200)]
    costs = [plan.cost for plan in (s1, s2, s3, s4) if plan]
    assert costs == pytest.approx([6.3, 5.9, 5.3, 5.0])
    assert s4 is not None and s4.dummy_hz == pytest.approx(2)


def test_section_2_batch_aware_dispatch_lets_m1_run_batches_of_eight() -> None:
    assert rates(generated(M1, 400_000_000)) == [(8, 100)]
    assert rates(generated(M1, 400_000_000, dispatch="round robin")) == [(4, 100)]


def test_figure_4_the_worst_case_latency_of_m4() -> None:
    plan = generated(M4, 3 * SECOND_NS)
    assert plan is not None
    assert plan.latency_ns == 2_750_000_000
    assert round_robin_ns(M4.configurations[0], 2, 8) == 3_375_000_000


def test_section_3_the_latency_cost_efficiency_of_m1() -> None:
    by_batch = {c.batch: c for c in M1.configurations}
    found = [latency_cost_efficiency(M1, by_batch[2], by_batch[batch]) for batch in (4, 8)]
    assert found == pytest.approx([50.0, 18.18], abs=0.01)


def test_our_search_finds_the_best_of_them() -> None:
    plan = cheapest_plan(M3, SECOND_NS)
    assert rates(plan) == [(32, 200)]
    assert plan is not None
    assert (plan.cost, plan.dummy_hz) == pytest.approx((5.0, 2.0))
    assert rates(cheapest_plan(M1, 400_000_000)) == [(8, 100)]
