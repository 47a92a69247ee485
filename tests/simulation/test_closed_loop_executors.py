"""The closed loop when executors are slower than believed, forget weights or hang."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean

import pytest

from edgebox.domain.loss_cause import LossCause
from edgebox.domain.model_family import ExecutorId, LatencyProfile, Weights, WeightsId
from edgebox.domain.requests import DropReason
from edgebox.scheduling.actions import Abandon, Infer, Load, ReportDrift
from edgebox.scheduling.events import BatchCompleted, ExecutorStarted, MemoryLimited
from edgebox.simulation.figures import figures
from edgebox.simulation.run import run_scenario
from edgebox.simulation.scenario import Scenario, parse_scenario
from tests.simulation.scenes import (
    S,
    between,
    gate,
    mean_width,
    on_time_share,
    scenario_of,
    scenario_text,
)

pytestmark = pytest.mark.long

SCENARIOS = Path(__file__).parents[2] / "benchmarks/scenarios"


def test_a_slowdown_of_the_box_is_each_executors_own() -> None:
    running = {}
    for name, box, own in (("plain", 1, 1), ("box", 1.5, 1), ("both", 1.5, 2), ("own", 1, 3)):
        text = scenario_text(gate(), top=f"duration_s = 20\nbox = {{ slowdown = {box} }}")
        text = text.replace('name = "gpu/0"', f'name = "gpu/0"\nslowdown = {own}')
        scenario = parse_scenario(text, "test.toml", lambda name: name)
        running[name] = figures(run_scenario(scenario), scenario)["all"]["latency_ms"]["running"]
    assert running["box"]["mean"] == pytest.approx(1.5 * running["plain"]["mean"], rel=0.05)
    assert running["both"] == running["own"]


def test_batches_may_run_by_other_profiles_than_are_believed() -> None:
    scenario = scenario_of(gate())
    assert scenario.hardware is not None
    [(executor, believed)] = scenario.hardware.profiles.items()
    slow = tuple(
        LatencyProfile(of.variant, executor, dict.fromkeys((1, 2, 4, 8), (70 * 1_000_000,) * 9))
        for of in believed
    )
    taken = replace(scenario, hardware=replace(scenario.hardware, taken={executor: slow}))
    report = run_scenario(taken, keep_journal=True)
    took_ns = {
        step.event.took_ns for step in report.journal if isinstance(step.event, BatchCompleted)
    }
    assert took_ns == {70 * 1_000_000}
    assert isinstance(report.journal[1].event, ExecutorStarted)
    assert report.journal[1].event.profiles == believed


def test_executors_slow_each_other_as_their_profiles_say() -> None:
    cameras = [gate(f"gate-{at}", slo_ms=200, rate_hz=15) for at in range(4)]
    scenario = scenario_of(*cameras)
    assert scenario.hardware is not None
    [(_, believed)] = scenario.hardware.profiles.items()

    def run_with(known: float, real: float) -> tuple[float, float]:
        profiles, taken = (
            {
                ExecutorId(f"gpu/{at}"): tuple(
                    replace(p, executor=ExecutorId(f"gpu/{at}"), interference=k) for p in believed
                )
                for at in range(2)
            }
            for k in (known, real)
        )
        assert scenario.hardware is not None
        box = replace(scenario.hardware, profiles=profiles, taken=taken)
        report = run_scenario(replace(scenario, hardware=box), keep_journal=True)
        found = figures(report, scenario)["all"]
        # By its own variant and size: plans choose others where batches take longer.
        medians_ns = {p.variant: p for p in believed}
        batches = [a for step in report.journal for a in step.actions if isinstance(a, Infer)]
        expected_ns = {
            infer.batch: medians_ns[infer.variant].quantile_ns(infer.batch_size, 0.5)
            for infer in batches
        }
        ran = [step.event for step in report.journal if isinstance(step.event, BatchCompleted)]
        longer = fmean(each.took_ns / expected_ns[each.batch] for each in ran)
        return found["on_time"] / found["captured"], longer

    _, alone = run_with(0.0, 0.0)
    unknown, beside = run_with(0.0, 1.0)
    known, _ = run_with(1.0, 1.0)
    assert beside > 1.05 * alone, (beside, alone)
    assert known >= unknown
    assert known > 0.99


def test_a_box_that_gets_hot_and_cools_down_is_believed_both_times() -> None:
    scenario = scenario_of(gate(slo_ms=110, rate_hz=18), top="duration_s = 150")
    cool = (0.0, 30.0)
    hot, cool_again = (60.0, 80.0), (115.0, 150.0)

    def throttling(now_ns: int) -> float:
        return 2.0 if 30 * S <= now_ns < 80 * S else 1.0

    report = run_scenario(scenario, throttling=throttling, keep_journal=True)
    slowdowns = [
        (step.now_ns / S, action)
        for step in report.journal
        for action in step.actions
        if isinstance(action, ReportDrift)
    ]
    (slower_s, slower), (faster_s, faster) = slowdowns
    assert 40 < slower_s < 60
    assert slower.ratio == pytest.approx(2, rel=0.15)
    assert 90 < faster_s < 115
    assert faster.ratio == pytest.approx(0.5, rel=0.15)
    assert faster.factor == 1.0  # the profile as it was measured
    assert 28 <= slower.since_ns / S <= 34
    before, meanwhile, after = (between(report, *when) for when in (cool, hot, cool_again))
    assert mean_width(meanwhile) < 0.8 * mean_width(before)
    assert mean_width(after[20:]) == pytest.approx(mean_width(before[50:]), rel=0.02)
    for ends in (before, meanwhile, after):
        assert on_time_share(ends) > 0.99


@pytest.mark.parametrize("policy", ["adaptive", "edf"])
def test_a_machine_that_is_busy_for_moments_costs_few_frames(policy: str) -> None:
    def scenario(seed: int, duration_s: int = 30) -> Scenario:
        top = f'duration_s = {duration_s}\nseed = {seed}\npolicy = {{ batching = "{policy}" }}'
        return scenario_of(*(gate(f"gate-{n}", slo_ms=300) for n in range(6)), top=top)

    def throttling(now_ns: int) -> float:
        return 2.0 if now_ns % (10 * S) < 2 * S else 1.0

    seeds = (3, 4, 5)
    busy = [between(run_scenario(scenario(s), throttling=throttling), 10, 30) for s in seeds]
    # Of 600 frames of a spell and the time until the next, 30 come before it is noticed: in the
    # mean 15 of these are lost. How many it is in one run depends on how full their batches are.
    assert on_time_share([end for ends in busy for end in ends]) > 0.975
    calm = mean_width(between(run_scenario(scenario(seeds[0], 15)), 10, 15))  # as it stays
    assert all(mean_width(ends) > 0.8 * calm for ends in busy)


def test_a_box_that_cannot_hold_every_size_serves_while_it_loads() -> None:
    scenario = scenario_of(gate(mbps=[20] * 10 + [0.8] * 10 + [20] * 20), top="duration_s = 40")
    assert scenario.hardware is not None
    (executor,) = scenario.hardware.profiles
    stock = tuple(
        Weights(WeightsId(v.name), v.family, 10, v.pixels, (v.name,))
        for v in scenario.hardware.variants
    )
    reports = []
    for files in (2, 3, 4):
        limited = MemoryLimited(executor, 10 * files, stock, (stock[0].id,))
        reports.append(run_scenario(scenario, memory=[limited], keep_journal=True))
    for report in reports:
        assert on_time_share(report.ended) > 0.97
        assert any(isinstance(a, Load) for step in report.journal for a in step.actions)
    # The more there is in memory, the sooner a camera has what its plan gives it.
    widths = [mean_width(report.ended) for report in reports]
    assert all(more > less - 1 for less, more in pairwise(widths))
    everything = run_scenario(scenario)
    assert mean_width(everything.ended) >= widths[-1]


def test_a_box_whose_executor_hangs_now_and_then_counts_every_frame_and_goes_on() -> None:
    scenario = scenario_of(gate(mbps=[8] * 30))
    hangs_s = [5.0, 12.0]

    def hangs(infer: Infer, now_ns: int) -> bool:
        if hangs_s and now_ns >= hangs_s[0] * S:
            del hangs_s[0]
            return True
        return False

    report = run_scenario(scenario, hangs=hangs, keep_journal=True)
    orders = [action for step in report.journal for action in step.actions]
    lost = [order for order in orders if isinstance(order, Abandon)]
    assert [order.cause for order in lost] == [LossCause.HUNG] * 2
    for began_s in (5.0, 12.0):  # a second until it is noticed, the opening, its back-off
        assert on_time_share(between(report, began_s + 4, began_s + 6)) == 1
    assert sum(end.reason is DropReason.FAILED for end in report.ended) >= 2


def test_a_batch_that_ends_after_its_executor_was_lost_answers_nobody() -> None:
    slow = "duration_s = 5\nbox = { slowdown = 1000 }"
    report = run_scenario(scenario_of(gate(mbps=20), top=slow), keep_journal=True)
    losses = {
        order.executor: step.now_ns
        for step in reversed(report.journal)
        for order in step.actions
        if isinstance(order, Abandon)
    }
    late = [
        step
        for step in report.journal
        if isinstance(step.event, BatchCompleted) and step.now_ns > losses[step.event.executor]
    ]
    assert late and not late[0].actions
    assert any(end.reason is DropReason.FAILED for end in report.ended)
    assert report.spent.wasted_ns > 0
