"""Algorithm 1 of Harpagon with dummy requests (section III-C), and its dispatch policies.

Two things the paper leaves open. Of one configuration, the partly busy machine ranks after the busy
ones, so it collects its batch at the rate that is not yet allocated; only this gives table II. The
algorithm reads the profile before it checks the index, and fails where no configuration collects a
batch of the last residue in time; here dummy requests fill that batch.
"""

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from edgebox.planning.pipelines.cost_problem import Configuration, Module
from edgebox.planning.pipelines.module_plan import ModulePlan, latency_ns, plan_of

Dispatch = Literal["batch", "round robin"]

_TOLERANCE = 1e-9


def round_robin_ns(configuration: Configuration, machines: int, rate_hz: float) -> int:
    """Return the worst-case latency where single requests go to the machines in turn (figure 4)."""
    requests = machines * (configuration.batch - 1) + 1
    return configuration.duration_ns + math.ceil(requests * 1e9 / rate_hz - 1e-3)


def generated(
    module: Module,
    limit_ns: int,
    *,
    configurations_max: int | None = None,
    dispatch: Dispatch = "batch",
) -> ModulePlan | None:
    """Return the first machines that fit, in the order of throughput-cost ratio (algorithm 1).

    Args:
        module: the module.
        limit_ns: its latency budget.
        configurations_max: at most so many configurations; None: any number.
        dispatch: how requests reach machines.
    """
    left_hz = module.rate_hz
    shares: list[tuple[Configuration, float]] = []
    for configuration in module.configurations:
        if configurations_max is not None and len(shares) == configurations_max - 1:
            served_hz = left_hz if _takes_all(configuration, left_hz, limit_ns, dispatch) else 0.0
        else:
            served_hz = _served(configuration, left_hz, limit_ns, dispatch)
        if served_hz:
            shares.append((configuration, served_hz))
            left_hz -= served_hz
        if left_hz <= _TOLERANCE * module.rate_hz:
            return plan_of(module, shares)
    padded = _padded(module, left_hz, limit_ns)
    if padded is None or (configurations_max is not None and len(shares) == configurations_max):
        return None
    return plan_of(module, _joined([*shares, padded]))


def _padded(module: Module, left_hz: float, limit_ns: int) -> tuple[Configuration, float] | None:
    """Return the cheapest dummy requests that let a rest be served; None: all are too slow."""
    found = []
    for configuration in module.configurations:
        spare_ns = limit_ns - configuration.duration_ns
        if spare_ns > 0:
            needed_hz = max(left_hz, configuration.batch * 1e9 / spare_ns)
            if needed_hz <= configuration.throughput_hz:
                found.append((configuration, needed_hz))
    return min(found, key=lambda of: of[1] * of[0].request_cost, default=None)


def with_dummy_requests(module: Module, limit_ns: int) -> ModulePlan | None:
    """Return algorithm 1's plan, or one with dummy requests if that costs less."""
    best = generated(module, limit_ns)
    if best is None:
        return None
    left_hz = module.rate_hz
    for configuration, rate_hz in _by_configuration(best):
        left_hz -= rate_hz
        padding_hz = configuration.throughput_hz - left_hz
        if padding_hz <= 0:
            continue
        padded = generated(replace(module, rate_hz=module.rate_hz + padding_hz), limit_ns)
        if padded is not None and padded.cost < best.cost:
            best = replace(padded, dummy_hz=padding_hz)
    return best


def with_reassigned_latency(module: Module, plan: ModulePlan, limit_ns: int) -> ModulePlan | None:
    """Return a plan whose residual workload has a longer latency budget; None: it saves nothing."""
    shares = _by_configuration(plan)
    residual_hz = sum(rate_hz for _, rate_hz in shares[1:])
    if not residual_hz:
        return None
    residual = generated(replace(module, rate_hz=residual_hz), limit_ns)
    if residual is None:
        return None
    better = plan_of(module, _joined([*shares[:1], *_by_configuration(residual)]))
    return better if better.cost < plan.cost and better.latency_ns <= limit_ns else None


def _by_configuration(plan: ModulePlan) -> list[tuple[Configuration, float]]:
    return _joined([(group.configuration, group.rate_hz) for group in plan.groups])


def _joined(shares: Iterable[tuple[Configuration, float]]) -> list[tuple[Configuration, float]]:
    rates: dict[Configuration, float] = {}
    for configuration, rate_hz in shares:
        rates[configuration] = rates.get(configuration, 0.0) + rate_hz
    return sorted(rates.items(), key=lambda share: share[0].request_cost)


def _served(
    configuration: Configuration, left_hz: float, limit_ns: int, dispatch: Dispatch
) -> float:
    """Return what a configuration takes of the rest: busy machines, then a partly busy one."""
    throughput_hz = configuration.throughput_hz
    served_hz = 0.0
    machines = math.floor(left_hz / throughput_hz + _TOLERANCE)
    if machines and _busy_ns(configuration, left_hz, dispatch) <= limit_ns:
        served_hz = machines * throughput_hz
    rest_hz = left_hz - served_hz
    if 0 < rest_hz < throughput_hz and latency_ns(configuration, rest_hz) <= limit_ns:
        return left_hz
    return served_hz


def _takes_all(
    configuration: Configuration, left_hz: float, limit_ns: int, dispatch: Dispatch
) -> bool:
    served_hz = _served(configuration, left_hz, limit_ns, dispatch)
    return left_hz - served_hz <= _TOLERANCE * left_hz


def _busy_ns(configuration: Configuration, left_hz: float, dispatch: Dispatch) -> int:
    if dispatch == "round robin":
        return 2 * configuration.duration_ns
    return latency_ns(configuration, left_hz)
