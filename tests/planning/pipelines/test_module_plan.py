"""The cheapest machines for a module: within the limit, for all requests, and none cost less."""

import itertools
import math
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.planning.pipelines.cost_problem import Configuration, Module, module
from edgebox.planning.pipelines.module_plan import (
    NODES_MAX,
    ModulePlan,
    _Search,
    cheapest_plan,
    plan_of,
)

MS = 1_000_000


@st.composite
def modules(draw: st.DrawFn, configurations_max: int = 6) -> Module:
    count = draw(st.integers(1, configurations_max))
    configurations = [
        Configuration(
            draw(st.sampled_from((1, 2, 4, 8))),
            draw(st.integers(5, 200)) * MS,
            draw(st.sampled_from(("p100", "v100"))),
            draw(st.sampled_from((0.5, 1.0, 1.7))),
        )
        for _ in range(count)
    ]
    return module("m", draw(st.integers(1, 300)), configurations)


def check(of: Module, plan: ModulePlan, limit_ns: int) -> None:
    """Check a plan by the definitions, from its groups alone."""
    left_hz = sum(group.rate_hz for group in plan.groups)
    assert left_hz == pytest.approx(of.rate_hz + plan.dummy_hz)
    assert plan.dummy_hz >= 0
    order = [group.configuration.request_cost for group in plan.groups]
    assert order == sorted(order)
    for group in plan.groups:
        machines = group.rate_hz / group.configuration.throughput_hz
        assert machines < 1 or machines == pytest.approx(round(machines))
        waits_ns = group.configuration.batch * 1e9 / left_hz
        assert group.configuration.duration_ns + waits_ns <= limit_ns + 1
        left_hz -= group.rate_hz
    assert plan.latency_ns <= limit_ns
    price = sum(group.machines * group.configuration.price for group in plan.groups)
    assert plan.cost == pytest.approx(price)


@given(modules(), st.integers(6, 600))
def test_a_plan_serves_all_requests_within_the_limit(of: Module, limit_ms: int) -> None:
    plan = cheapest_plan(of, limit_ms * MS)
    fastest_ns = min(c.duration_ns for c in of.configurations)
    assert (plan is None) == (fastest_ns >= limit_ms * MS)
    if plan is not None:
        check(of, plan, limit_ms * MS)


@given(modules(), st.lists(st.integers(0, 10 * MS), min_size=1, max_size=8))
def test_limits_are_kept_where_another_plan_just_keeps_them(of: Module, less_ns: list[int]) -> None:
    limit_ns = 600 * MS
    for shorter_ns in less_ns:
        plan = cheapest_plan(of, limit_ns)
        if plan is None:
            return
        check(of, plan, limit_ns)
        limit_ns = plan.latency_ns - shorter_ns


def test_what_rounding_leaves_is_no_machine() -> None:
    """So little was left of m2 that it waited for a batch far beyond the limit."""
    times = [(1, 9.888, "a", 3.0), (4, 13.447, "a", 3.0), (16, 24.93, "a", 3.0)]
    times += [(32, 48.934, "a", 3.0), (32, 280.184, "b", 0.4), (4, 79.505, "b", 0.4)]
    times += [(16, 134.568, "b", 0.4)]
    of = module("m2", 176.56, [Configuration(b, round(ms * MS), h, p) for b, ms, h, p in times])
    for limit_ns in (302_413_893, 302_413_892, 302_413_894):
        plan = cheapest_plan(of, limit_ns)
        assert plan is not None
        assert plan.latency_ns <= limit_ns


@given(modules(), st.lists(st.integers(6, 600), min_size=2, max_size=6))
def test_more_time_never_costs_more(of: Module, limits_ms: list[int]) -> None:
    plans = [cheapest_plan(of, limit_ms * MS) for limit_ms in sorted(limits_ms)]
    costs = [plan.cost for plan in plans if plan is not None]
    assert all(b <= a * (1 + 1e-6) for a, b in itertools.pairwise(costs))


def test_dummy_requests_let_a_machine_collect_in_time_beside_another_configuration() -> None:
    """Batches of 4 need 71.4 Hz, more than a machine serves; those of 2 serve what it leaves."""
    large, small = Configuration(4, 58 * MS, "p100", 1.0), Configuration(2, 55 * MS, "p100", 1.0)
    of = module("m", 37, [large, small])
    plan = cheapest_plan(of, 114 * MS)
    assert plan is not None
    check(of, plan, 114 * MS)
    rates_hz = {g.configuration: g.rate_hz for g in plan.groups}
    small_hz = 2 / 0.059
    assert rates_hz == pytest.approx({large: 4 / 0.056 - small_hz, small: small_hz})
    assert plan.cost == pytest.approx(1.476, abs=0.001)


def test_a_limit_barely_above_a_duration_takes_a_bounded_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each number of machines up to duration / (limit - duration) was tried: here 100,000."""
    tried = 0
    leave = _Search._leave

    def counted(self: _Search, at: int, own_hz: float, passed_hz: float, cost: float) -> bool:
        nonlocal tried
        tried += 1
        return leave(self, at, own_hz, passed_hz, cost)

    monkeypatch.setattr(_Search, "_leave", counted)
    kinds = [(4, 1.0), (1, 2.0), (2, 1.5)]
    of = module("m", 1, [Configuration(b, 100 * MS, "gpu", price) for b, price in kinds])
    plan = cheapest_plan(of, 100 * MS + 1_000)
    assert plan is not None
    check(of, plan, 100 * MS + 1_000)
    assert tried < 10 * NODES_MAX


def test_requests_of_very_many_machines_take_bounded_memory() -> None:
    """All numbers of machines that may be left were held at once: here 1,000,000, in 90 MB."""
    of = module(
        "m", 1.5e7 + 3, [Configuration(1, ms * MS, "gpu", p) for ms, p in ((100, 1), (50, 3))]
    )
    tracemalloc.start()
    try:
        plan = cheapest_plan(of, 100 * MS + 100)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert plan is not None
    check(of, plan, 100 * MS + 100)
    assert peak_bytes < 5_000_000


@given(modules(configurations_max=3), st.integers(20, 600))
def test_no_shares_of_a_fine_grid_cost_less(of: Module, limit_ms: int) -> None:
    """Brute force: a configuration serves multiples of a 24th of the requests, or busy machines."""
    plan = cheapest_plan(of, limit_ms * MS)
    least = math.inf
    steps = [
        sorted(
            {of.rate_hz * at / 24 for at in range(37)}
            | {c.throughput_hz * machines for machines in range(6)}
        )
        for c in of.configurations[:-1]
    ]
    for rates in itertools.product(*steps):
        rest_hz = max(0.0, of.rate_hz - sum(rates))
        for last_hz in {
            rest_hz,
            math.ceil(rest_hz / of.configurations[-1].throughput_hz)
            * of.configurations[-1].throughput_hz,
        }:
            shares = [
                (c, hz) for c, hz in zip(of.configurations, (*rates, last_hz), strict=True) if hz
            ]
            found = plan_of(of, shares)
            if found.latency_ns <= limit_ms * MS:
                least = min(least, found.cost)
    if least < math.inf:
        assert plan is not None
        assert plan.cost <= least * (1 + 1e-6)
