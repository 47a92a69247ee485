"""Yields what a box may be planned as without the executors that are far slower than others. Pure.

Nobody chooses which executor serves a frame, so a plan holds on the slowest one that has the
variant. A server elsewhere that has become slow would then forbid all cameras what an executor
beside it gives them. So a box is also planned as if executors that take many times as long were
not there, and the better plan counts. They still run what is in time on them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice

from edgebox.domain.model_family import ExecutorId, LatencyProfile, VariantName
from edgebox.domain.plans import PlanningSnapshot
from edgebox.planning.disjoint import parts

FACTOR = 2.0
"""An executor that takes less than this many times as long as a faster one brings about as much as
it costs: to plan without it as well would take time and change nothing."""
CANDIDATES_MAX = 2
"""How often a box is planned anew at most for each of its parts."""


def without_laggards(
    snapshot: PlanningSnapshot, quantile: float
) -> Iterator[tuple[PlanningSnapshot, float]]:
    """Yield the box without its slowest executors, then without the next slowest, too.

    Each comes with the share of all executors' work that the others can do. Whatever runs on one
    that is left out also runs on another one. O(executors x variants).

    Args:
        snapshot: all there is to know of the box.
        quantile: that of the batches' times by which executors are compared.
    """
    if len(snapshot.profiles) > 1:
        yield from islice(_fewer(snapshot, quantile), CANDIDATES_MAX)


def _fewer(snapshot: PlanningSnapshot, quantile: float) -> Iterator[tuple[PlanningSnapshot, float]]:
    paces = _paces(snapshot, quantile)
    order = sorted(paces, key=lambda executor: paces[executor], reverse=True)
    families = _families(snapshot)
    for at in range(1, len(order)):
        if paces[order[at - 1]] < FACTOR * paces[order[at]]:
            continue
        left_out = set(order[:at])
        kept = {e: of for e, of in snapshot.profiles.items() if e not in left_out}
        if set().union(*kept.values()) < set().union(*snapshot.profiles.values()):
            return  # without more of them even more would run nowhere
        groups = tuple(g for g in snapshot.groups if left_out.isdisjoint(g.executors))
        fewer = replace(snapshot, profiles=kept, groups=groups)
        if _families(fewer) == families:
            share = sum(1 / paces[e] for e in kept) / sum(1 / pace for pace in paces.values())
            yield fewer, share


def _paces(snapshot: PlanningSnapshot, quantile: float) -> dict[ExecutorId, float]:
    """Return how many times as long as on the fastest executor something takes on each, at most."""
    paces = dict.fromkeys(snapshot.profiles, 1.0)
    for learned in ({}, *snapshot.applications.values()):
        times: dict[VariantName, dict[ExecutorId, float]] = {}
        for executor, profiles in snapshot.profiles.items():
            for name, profile in _with(profiles, learned.get(executor, {})).items():
                if profile.batch_sizes:
                    factor = snapshot.slowdown.get(executor, 1.0) * profile.slowed(snapshot.others)
                    took_ns = profile.quantile_ns(profile.batch_sizes[0], quantile) * factor
                    times.setdefault(name, {})[executor] = max(1.0, took_ns)
        for of in times.values():
            fastest_ns = min(of.values())
            for executor, took_ns in of.items():
                paces[executor] = max(paces[executor], took_ns / fastest_ns)
    return paces


def _with(
    profiles: Mapping[VariantName, LatencyProfile], learned: Mapping[VariantName, LatencyProfile]
) -> Mapping[VariantName, LatencyProfile]:
    return {name: learned.get(name, profile) for name, profile in profiles.items()}


def _families(snapshot: PlanningSnapshot) -> list[set[str]]:
    """Return the families of each part of a box."""
    return [{variant.family for variant in part.variants} for part in parts(snapshot)]
