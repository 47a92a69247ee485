"""The batching simulator: its rules by worked examples, its accounts by invariants and chance."""

import random
from collections import defaultdict
from dataclasses import replace
from itertools import count
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.sampling import quiet_then_rush, simulated, without_applications
from edgebox.domain.model_family import ExecutorId
from edgebox.domain.requests import Outcome
from edgebox.scheduling.invariants import check_invariants
from edgebox.scheduling.policies import POLICIES, make_policy
from edgebox.scheduling.scheduler import Scheduler
from edgebox.simulation.batching_simulator import (
    MODEL,
    BatchingReport,
    BatchingSimulation,
    Environment,
    JobEnd,
)
from edgebox.simulation.clairvoyant import Clairvoyant
from edgebox.simulation.generation import KINDS, make_workload
from edgebox.simulation.workload import Job, Model, Workload
from tests.scheduling.random_events import SELDOM

pytestmark = pytest.mark.long

ALL = sorted(POLICIES)
EXACT = Environment()


def ran(
    workload: Workload,
    policy: str,
    seed: int = 1,
    around: Environment = EXACT,
    *,
    check_every: int = 1,
) -> BatchingReport:
    steps = count()

    def check(scheduler: Scheduler) -> None:
        if next(steps) % check_every == 0:
            check_invariants(scheduler)

    return BatchingSimulation(
        workload,
        make_policy(policy),
        rng=random.Random(seed),
        environment=around,
        check=check if check_every else None,
    ).run()


def ran_by_each(workload: Workload) -> dict[str, BatchingReport]:
    """Run each policy; the baselines, which the other tests check, without checks."""
    return {
        policy: ran(workload, policy, check_every=SELDOM * (policy == "adaptive")) for policy in ALL
    }


def workload(*jobs: tuple[float, float, float], c0_ms: float = 10, c1: float = 1) -> Workload:
    """Requests as (at_ms, exec_ms, slo_ms) of one application that usually takes 10 ms."""
    model = Model(c0_ms, c1, (1, 2, 4))
    made = [
        Job(at, at_ms, "a", exec_ms, slo_ms) for at, (at_ms, exec_ms, slo_ms) in enumerate(jobs)
    ]
    return Workload(model, {"a": (10.0,) * 30}, tuple(made))


def by_id(report: BatchingReport) -> list[JobEnd]:
    return sorted(report.ends, key=lambda end: end.job.id)


@pytest.mark.parametrize("policy", [p for p in ALL if p != "bentoml"])
def test_finishing_exactly_at_the_deadline_counts(policy: str) -> None:
    report = ran(workload((0, 10, 20), (100, 10, 19.9)), policy)
    first, second = by_id(report)
    assert (first.outcome, first.at_ns) == (Outcome.ON_TIME, 20_000_000)
    assert second.outcome is not Outcome.ON_TIME


@pytest.mark.parametrize("policy", ["adaptive", "edf", "fifo", "orloj"])
def test_what_arrives_at_one_instant_is_decided_together(policy: str) -> None:
    # Together they take 10 + 2 * 10 = 30 ms; one after the other the second would be done at 40.
    report = ran(workload((5, 10, 30), (5, 10, 30)), policy)
    assert report.batch_members == [2]
    assert [end.at_ns for end in report.ends] == [35_000_000] * 2


@pytest.mark.parametrize("policy", ["adaptive", "edf", "fifo", "orloj"])
def test_a_completion_comes_before_the_arrivals_of_its_instant_and_they_before_decisions(
    policy: str,
) -> None:
    # Alone until 20, when the second and third arrive: they run together, at once.
    report = ran(workload((0, 10, 20), (20, 10, 30), (20, 10, 30)), policy)
    assert [end.at_ns for end in by_id(report)] == [20_000_000, 50_000_000, 50_000_000]
    assert report.finish_rate == 1.0


def test_a_batch_is_padded_to_a_supported_size_and_as_slow_as_its_longest() -> None:
    report = ran(workload((5, 10, 90), (5, 12, 90), (5, 11, 90)), "fifo")
    assert report.batch_members == [3]
    assert {end.batch_size for end in report.ends} == {4}
    assert {end.at_ns for end in report.ends} == {round((5 + 10 + 4 * 12) * 1e6)}


def test_a_long_request_does_not_hold_up_short_ones() -> None:
    jobs = [Job(0, 0, "long", 100, 400)]
    jobs += [Job(at, 0, "short", 5, 60) for at in range(1, 5)]
    history = {"long": (100.0,) * 30, "short": (5.0,) * 30}
    work = Workload(Model(10, 0.5, (1, 2, 4)), history, tuple(jobs))
    assert ran(work, "adaptive").finish_rate == 1.0
    assert ran(work, "fifo").finish_rate < 1.0


@pytest.mark.parametrize("policy", ALL)
@settings(max_examples=15, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 200),
            st.integers(0, 60),
            st.integers(0, 200),
            st.sampled_from([(), ((30.0, 0.5),), ((10.0, 0.8), (90.0, 0.1))]),
        ),
        max_size=40,
    ),
    st.integers(1, 3),
    st.sampled_from([0, 500_000]),
)
def test_every_request_ends_once_and_no_worker_does_two_things(
    policy: str,
    drawn: list[tuple[int, int, int, tuple[tuple[float, float], ...]]],
    workers: int,
    early_ns: int,
) -> None:
    jobs = tuple(
        Job(
            at,
            float(at_ms),
            "ab"[exec_ms % 2],
            float(exec_ms),
            float(slo_ms),
            tuple((slo_ms + after_ms, utility) for after_ms, utility in later),
        )
        for at, (at_ms, exec_ms, slo_ms, later) in enumerate(sorted(drawn))
    )
    history = {"a": (20.0, 30.0), "b": (5.0, 10.0)}
    work = Workload(Model(5, 0.5, (1, 2, 4), workers), history, jobs)
    report = ran(work, policy, around=Environment(timer_early_ns=early_ns))
    assert sorted(end.job.id for end in report.ends) == list(range(len(jobs)))
    batches: dict[int, list[JobEnd]] = defaultdict(list)
    for end in report.ends:
        deadline_ns = round((end.job.at_ms + end.job.slo_ms) * 1e6)
        if end.batch is None:
            assert end.outcome is Outcome.DROPPED
            assert end.utility == 0
            continue
        batches[end.batch].append(end)
        assert (end.outcome is Outcome.ON_TIME) == (end.at_ns <= deadline_ns)
        assert end.utility == worth_by_hand(end)
    spans = [span(work, members) for members in batches.values()]
    for begin_ns, _ in spans:
        assert sum(b <= begin_ns < e for b, e in spans) <= workers


def worth_by_hand(end: JobEnd) -> float:
    took_ms = end.at_ns / 1e6 - end.job.at_ms
    steps = [(end.job.slo_ms, 1.0), *end.job.later]
    return max((utility for by_ms, utility in steps if took_ms <= by_ms + 1e-6), default=0.0)


def span(work: Workload, members: list[JobEnd]) -> tuple[int, int]:
    """When a batch ran, by the model's formula."""
    size = min(k for k in work.model.batch_sizes if k >= len(members))
    took_ns = round(work.model.batch_ms(size, max(end.job.exec_ms for end in members)) * 1e6)
    begin_ns = members[0].at_ns - took_ns
    assert {end.at_ns for end in members} == {members[0].at_ns}
    assert all(begin_ns >= round(end.job.at_ms * 1e6) for end in members)
    return begin_ns, members[0].at_ns


def two_together(requests: int = 60) -> Workload:
    """Bursts of two applications; of the longer one nothing is known beforehand."""
    jobs = []
    for burst in range(requests // 6):
        for at in range(6):
            app, exec_ms = (("usual", 10.0), ("new", 30.0 + at))[at % 2]
            jobs.append(Job(6 * burst + at, 1000.0 * burst, app, exec_ms, 900))
    return Workload(Model(5, 0.1, (1, 2, 4)), {"usual": (10.0,) * 30}, tuple(jobs))


@pytest.mark.parametrize("policy", ["adaptive", "orloj"])
def test_an_application_seen_only_in_batches_is_learnt_when_idle(policy: str) -> None:
    work = two_together()
    known, took = {}, {}
    for share in (0.0, 0.05):
        deciding = make_policy(policy)
        simulation = BatchingSimulation(
            work, deciding, rng=random.Random(1), sample_share=share, check=check_invariants
        )
        report = simulation.run()
        known[share] = simulation.scheduler.times.learning.known(
            ExecutorId("worker/0"), MODEL, "new"
        )
        took[share] = report.samples_ns
        assert report.finish_rate == 1.0
    without, sampled = known[0.0], known[0.05]
    assert without is not None
    assert sampled is not None
    assert took[0.0] == []
    assert sampled.samples >= without.samples + 8
    # 5 + 0.1 * exec, to within the noise of nothing at all.
    new_ns = {round((5 + 0.1 * exec_ms) * 1e6) for exec_ms in (31, 33, 35)}
    assert len(set(took[0.05]) & new_ns) >= 2
    assert sum(took[0.05]) <= 0.05 * 11e9


def test_what_was_learnt_in_the_quiet_serves_in_the_rush() -> None:
    work, first = quiet_then_rush("rare-long", quiet_ms=120_000, requests=1000)
    blind = without_applications(work)
    known, unknown = (simulated(each, 0.0).finish_rate_from(first) for each in (work, blind))
    learnt = simulated(blind, 0.05).finish_rate_from(first)
    # Batches of several are learnt from as well: before, it took samples.
    assert unknown > known - 0.02
    assert learnt > known - 0.02


@pytest.mark.parametrize("policy", ["adaptive"])
def test_sampling_hardly_costs_anybody_a_deadline(policy: str) -> None:
    work = made("modal-3", 0.6, 3)
    rates = [
        BatchingSimulation(work, make_policy(policy), rng=random.Random(1), sample_share=share)
        .run()
        .finish_rate
        for share in (0.0, 0.01)
    ]
    assert rates[1] >= rates[0] - 0.01


@pytest.mark.parametrize("policy", ALL)
def test_the_same_seed_gives_the_same_run(policy: str) -> None:
    work = made("modal-3", 0.7, 2, requests=150)
    early = Environment(timer_early_ns=500_000)
    assert ran(work, policy, 5, early).ends == ran(work, policy, 5, early).ends


def test_decisions_that_take_time_delay_their_batches() -> None:
    ticks = count(0, 3_000_000)
    slow = Environment(clock_ns=lambda: next(ticks), charge_decisions=True)
    report = ran(workload((0, 10, 22.9), (100, 10, 23)), "edf", around=slow)
    assert report.decisions_ns == [3_000_000] * 2
    assert [end.outcome for end in by_id(report)] == [Outcome.LATE, Outcome.ON_TIME]


def made(
    kind: str, load: float, slo_multiple: float, requests: int = 800, seed: int = 9
) -> Workload:
    return make_workload(
        kind, load=load, slo_multiple=slo_multiple, requests=requests, rng=random.Random(seed)
    )


@pytest.mark.parametrize("kind", sorted(KINDS)[::3])
@pytest.mark.parametrize(("load", "slo_multiple"), [(0.5, 1.5), (0.9, 3)])
def test_adaptive_is_not_beaten_by_a_baseline(kind: str, load: float, slo_multiple: float) -> None:
    work = made(kind, load, slo_multiple)
    rates = {policy: report.finish_rate for policy, report in ran_by_each(work).items()}
    # Runs this short differ by chance by a percent or so.
    assert rates["adaptive"] >= max(rates.values()) - 0.015


@pytest.mark.parametrize("kind", ["modal-2", "modal-6", "rare-long", "static"])
def test_adaptive_hardly_gains_from_knowing_separable_execution_times(kind: str) -> None:
    work = made(kind, 0.7, 2)
    knows = Clairvoyant(work.model, {job.id: job.exec_ms for job in work.jobs})
    reference = BatchingSimulation(work, knows, rng=random.Random(1)).run()
    assert ran(work, "adaptive", check_every=SELDOM).finish_rate >= reference.finish_rate - 0.01


@pytest.mark.parametrize("load", [0.7, 0.9])
def test_knowing_all_deadlines_gains_over_knowing_the_first_or_the_last(load: float) -> None:
    """A single workload decides it only to about .01, hence the mean over three."""
    gains = []
    for seed in (9, 10, 11):
        several = made("modal-3", load, 2, seed=seed).with_later([(6, 0.7)])
        first = replace(several, jobs=tuple(replace(job, later=()) for job in several.jobs))
        last = replace(
            several,
            jobs=tuple(replace(job, slo_ms=job.later[-1][0], later=()) for job in several.jobs),
        )
        report = ran(several, "adaptive", check_every=SELDOM)
        assert utility_by_hand(report, several) == pytest.approx(report.utility)
        alternatives = (
            utility_by_hand(ran(known, "adaptive", check_every=SELDOM), several)
            for known in (first, last)
        )
        gains.append(report.utility - max(alternatives))
        assert gains[-1] > 0
    assert fmean(gains) > 0.01


def utility_by_hand(report: BatchingReport, several: Workload) -> float:
    """Return the mean utility by the deadlines of `several`, also where others were known."""
    jobs = {job.id: job for job in several.jobs}
    ends = [replace(end, job=jobs[end.job.id]) for end in report.ends]
    return sum(worth_by_hand(end) for end in ends if end.batch is not None) / len(jobs)


@pytest.mark.parametrize("load", [0.7, 0.9])
def test_adaptive_is_best_where_requests_have_several_deadlines(load: float) -> None:
    several = made("modal-3", load, 2).with_later([(6, 0.7)])
    found = {policy: report.utility for policy, report in ran_by_each(several).items()}
    assert found["adaptive"] >= max(found.values()) - 0.015
    knows = Clairvoyant(several.model, {job.id: job.exec_ms for job in several.jobs})
    reference = BatchingSimulation(several, knows, rng=random.Random(1)).run()
    assert reference.utility >= found["adaptive"] - 0.03


@pytest.mark.parametrize("policy", ALL)
def test_with_one_deadline_each_worth_is_the_finish_rate(policy: str) -> None:
    report = ran(made("modal-2", 0.9, 2, requests=150), policy)
    assert report.utility == report.finish_rate < 1
