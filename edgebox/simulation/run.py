"""Decides how a scenario becomes a run: with the real Scheduler, planner, estimators and senders.

Pure: all randomness comes from the scenario's seed.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from edgebox.domain.errors import InvalidInputError
from edgebox.domain.model_family import up_to
from edgebox.domain.plans import Assignment, Plan, PlanningSnapshot
from edgebox.link.bandwidth import EstimatorKind
from edgebox.planning.camera_admission import refusal
from edgebox.planning.options import largest_of
from edgebox.planning.planner import Planner, plan
from edgebox.scheduling.actions import Infer
from edgebox.scheduling.events import MemoryLimited
from edgebox.scheduling.policies import make_policy
from edgebox.scheduling.scheduler import Scheduler
from edgebox.scheduling.scheduler_parameters import SchedulerParameters
from edgebox.simulation.report import Report
from edgebox.simulation.scenario import PERFECT, Hardware, Scenario
from edgebox.simulation.senders import SenderFactory, make_sender
from edgebox.simulation.simulated_cameras import EstimateFactory, TransitFactory, estimated, known
from edgebox.simulation.simulation_parameters import SimulationParameters
from edgebox.simulation.simulator import Simulator

_QUALITY = SchedulerParameters().quality
DRAIN_NS = 2_000_000_000
"""Time after the last picture, in addition to the longest SLO, in which frames may still end."""


def run_scenario(
    scenario: Scenario,
    *,
    sender: SenderFactory | None = None,
    planner: Planner | None = None,
    transit: TransitFactory | None = None,
    memory: Sequence[MemoryLimited] = (),
    throttling: Callable[[int], float] | None = None,
    hangs: Callable[[Infer, int], bool] | None = None,
    planning_clock_ns: Callable[[], int] | None = None,
    keep_journal: bool = False,
) -> Report:
    """Run a scenario to its end.

    Args:
        scenario: with its hardware.
        sender: replaces the scenario's sender at the cameras.
        planner: replaces the box's planner.
        transit: replaces the box's frame timing.
        memory: of executors that do not hold all weights.
        throttling: the factor by which all executors are slower at an instant.
        hangs: says of a batch and the instant of its start whether it never comes back.
        planning_clock_ns: CPU time, for scenarios that measure planning.
        keep_journal: whether to record each call of the Scheduler.

    Raises:
        InvalidInputError: it has no hardware.
    """
    hardware, policy, costs = scenario.hardware, scenario.policy, scenario.costs
    if hardware is None:
        raise InvalidInputError("the scenario's variants and executors are not known")
    if costs.planning_measured and planning_clock_ns is None:
        raise InvalidInputError("there is no clock to measure planning by; give planning_ms")
    scheduler = Scheduler(scenario.scheduling, make_policy(policy.batching))
    simulator = Simulator(
        scheduler,
        planner or (partial(plan, parameters=scenario.planning) if policy.plans else largest),
        variants=hardware.variants,
        profiles=hardware.profiles,
        taken=hardware.taken,
        cameras=scenario.cameras,
        rng=random.Random(scenario.seed),
        memory=memory,
        parameters=replace(
            _parameters(scenario, hardware),
            sender=sender or make_sender(policy.sender),
            transit=transit,
            throttling=throttling,
            hangs=hangs,
            planning_clock_ns=planning_clock_ns if costs.planning_measured else None,
            keep_journal=keep_journal,
        ),
    )
    longest_ns = max(camera.camera.slo_ns for camera in scenario.cameras)
    simulator.run(scenario.duration_ns + longest_ns + DRAIN_NS)
    simulator.close()
    return simulator.report


def _parameters(scenario: Scenario, hardware: Hardware) -> SimulationParameters:
    """Return the simulation's parameters as far as the scenario sets them."""
    policy, costs = scenario.policy, scenario.costs
    perfect = policy.bandwidth == PERFECT
    return SimulationParameters(
        prepare_ns=costs.prepare_ns,
        overhead_ns=costs.overhead_ns,
        timer_early_ns=costs.timer_early_ns,
        planning_ns=costs.planning_ns,
        slowdown={
            executor: costs.slowdown * hardware.slowdown.get(executor, 1.0)
            for executor in hardware.profiles
        },
        captures_until_ns=scenario.duration_ns,
        estimate=_estimate(policy.bandwidth),
        admission=partial(refusal, parameters=scenario.planning) if scenario.refuses else None,
        known_ahead_ns=scenario.scheduling.planning_interval_ns if perfect else 0,
    )


def _estimate(name: str) -> EstimateFactory:
    return known if name == PERFECT else estimated(EstimatorKind(name))


def largest(snapshot: PlanningSnapshot, iterations_max: int) -> Plan:
    """Return the plan that gives every camera the largest variant it may have, at its own rate.

    Takes what a planner takes.
    """
    assignments = {}
    for camera in (each.camera for each in snapshot.cameras):
        of_family = sorted(
            (v for v in snapshot.variants if v.family == camera.family), key=lambda v: v.pixels
        )
        of_family = [*up_to(of_family, largest_of(camera, of_family))]
        if of_family:
            top = of_family[-1].name
            assignments[camera.id] = Assignment(
                camera.id, top, camera.rate_hz, _QUALITY, True, "nothing is planned"
            )
    return Plan(snapshot.taken_ns, assignments)
