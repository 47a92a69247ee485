"""Owns Jellyfish's own planner for benchmarks.adaptation: problem P1, its algorithms, its budgets.

Each executor is a worker with one variant, found by dynamic programming and simulated annealing
(`planning/mapping_annealing`); a camera's budget is what the network leaves of its deadline, with
no reserves. Limits: the plan is its, what runs when is not: batches form on either executor, by the
scheduler under test, so a frame never waits for its own worker while another one is free.
"""

import random
from dataclasses import replace

from edgebox.domain.models import Variant
from edgebox.domain.plans import Assignment, CameraSnapshot, Plan, PlanningSnapshot
from edgebox.planning.budgets import budget
from edgebox.planning.mapping_annealing import annealed_mapping
from edgebox.planning.mapping_problem import (
    Mapping,
    MappingCamera,
    MappingProblem,
    MappingVariant,
)
from edgebox.planning.parameters import PlanningParameters


class JellyfishPlanner:
    """Plans as the paper does, each time from the mapping before."""

    def __init__(self, parameters: PlanningParameters) -> None:
        """Start with no mapping; only the quantile and the quality are taken from `parameters`."""
        self._parameters = replace(parameters, link_share=1.0, guard_ns=0)
        self._previous: Mapping | None = None

    def __call__(self, snapshot: PlanningSnapshot, rng: random.Random, iterations_max: int) -> Plan:
        """Compute a plan."""
        variants = sorted(
            snapshot.variants, key=lambda variant: variant.width_px * variant.height_px
        )
        problem = self._problem(snapshot, variants)
        mapping = annealed_mapping(problem, rng, should_stop=lambda: False, previous=self._previous)
        self._previous = mapping
        variant_of = {c: worker.variant for worker in mapping.workers for c in worker.cameras}
        assignments = {}
        for at, of in enumerate(snapshot.cameras):
            # Who is mapped to no worker goes on with the smallest pictures.
            variant = variants[variant_of.get(at, 0)]
            assignments[of.camera.id] = Assignment(
                camera=of.camera.id,
                variant=variant.name,
                rate_hz=of.camera.rate_hz,
                quality=self._parameters.quality,
                served=at in variant_of,
                reason="mapped by Jellyfish",
            )
        return Plan(snapshot.taken_ns, assignments)

    def _problem(self, snapshot: PlanningSnapshot, variants: list[Variant]) -> MappingProblem:
        profiles = next(iter(snapshot.profiles.values()))
        sizes = profiles[variants[0].name].batch_sizes
        mapped = tuple(
            MappingVariant(
                variant.name,
                variant.width_px,
                variant.accuracy,
                tuple(
                    profiles[variant.name].quantile_ns(size, self._parameters.quantile) / 1e6
                    for size in sizes
                ),
            )
            for variant in variants
        )
        cameras = tuple(self._camera(of, snapshot, variants) for of in snapshot.cameras)
        return MappingProblem(len(snapshot.profiles), len(sizes), mapped, cameras)

    def _camera(
        self, of: CameraSnapshot, snapshot: PlanningSnapshot, variants: list[Variant]
    ) -> MappingCamera:
        budgets = []
        for variant in variants:
            found = budget(of.camera, of.link, variant, snapshot.fixed_ns, self._parameters)
            carried = of.link.bandwidth_bps is None or found.rate_hz >= of.camera.rate_hz
            budgets.append(max(0.0, found.compute_ns / 1e6) if carried else 0.0)
        return MappingCamera(of.camera.id, of.camera.rate_hz, tuple(budgets))
