"""Compares policies of cores on the requests of a scenario. Pure."""

from collections.abc import Iterator, Sequence
from typing import Any

from edgebox.simulation.vertical.core_policies import CorePolicy, PerBatch, S, Sponge, Static
from edgebox.simulation.vertical.perfect_knowledge import optimum
from edgebox.simulation.vertical.vertical_scenario import VerticalScenario, make_arrivals
from edgebox.simulation.vertical.vertical_simulation import (
    VerticalFigures,
    run_horizontal,
    run_policy,
)

POLICIES = ("per-batch", "sponge", "static", "horizontal")


def compare(scenario: VerticalScenario, policies: Sequence[str]) -> list[dict[str, Any]]:
    """Return a document for each size of pictures.

    Args:
        scenario: one executor and its requests.
        policies: some of `POLICIES`; "static" stands for each of the scenario's core counts.
    """
    return [_run(scenario, size, policies) for size in scenario.sizes_bytes]


def _run(scenario: VerticalScenario, size_bytes: int, policies: Sequence[str]) -> dict[str, Any]:
    arrivals = make_arrivals(scenario, size_bytes)
    bound = optimum(arrivals, scenario.times_ns)
    # One core is held all the time.
    held_s = (max(arrivals.arrivals_ns, default=0) + bound.extra_core_ns) / S
    found = [run_policy(scenario, arrivals, each) for each in _made(scenario, policies)]
    if "horizontal" in policies:
        found.append(run_horizontal(scenario, arrivals))
    return {
        "picture_kb": size_bytes / 1000,
        "requests": len(arrivals.arrivals_ns),
        "perfect_knowledge": {
            "violations": bound.violations,
            "core_seconds": round(held_s, 1),
        },
        "policies": [_document(each, bound.violations, held_s) for each in found],
    }


def _made(scenario: VerticalScenario, policies: Sequence[str]) -> Iterator[CorePolicy]:
    times_ns = scenario.times_max_ns
    if "per-batch" in policies:
        yield PerBatch(times_ns, S / scenario.rate_hz, scenario.slo_ns)
    if "sponge" in policies:
        yield Sponge(times_ns, scenario.slo_ns, scenario.rate_hz)
    if "static" in policies:
        yield from (Static(times_ns, cores) for cores in scenario.cores_static)


def _document(figures: VerticalFigures, unavoidable: int, held_s: float) -> dict[str, Any]:
    return {
        "policy": figures.policy,
        "violations": figures.violations,
        "dropped": figures.dropped,
        "late": figures.late,
        "avoidable": figures.violations - unavoidable,
        "core_seconds": round(figures.core_seconds, 1),
        "busy_core_seconds": round(figures.busy_core_seconds, 1),
        "of_perfect_knowledge": round(figures.core_seconds / max(held_s, 1e-9), 3),
    }
