"""Several deadlines: sums of single ones in every score, judged by computing them one by one."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.model_family import VariantName
from edgebox.domain.requests import (
    DropReason,
    Outcome,
    Request,
    RequestId,
    UtilityStep,
    single_deadlines,
)
from edgebox.scheduling.actions import Drop, Finish, Prepare
from edgebox.scheduling.baselines.orloj import priorities, step_priorities
from edgebox.scheduling.batch_candidates import (
    BatchCost,
    WaitingRequests,
    most_likely_on_time,
    propose,
)
from edgebox.scheduling.deadline_queue import DeadlineQueues
from edgebox.scheduling.deadline_utility import Steps, spread
from edgebox.scheduling.distributions import EmpiricalDistribution
from edgebox.scheduling.events import (
    BatchCompleted,
    CameraConnected,
    ExecutorStarted,
    RequestArrived,
    RequestPrepared,
    VariantsAvailable,
)
from edgebox.scheduling.policies import POLICIES, make_policy
from edgebox.scheduling.scheduler import Scheduler, SchedulerParameters
from edgebox.scheduling.work import WorkTable, tabulate
from tests.scheduling.scene import CPU, FAMILY, LARGE, MS, camera, infers, name, profile, request

SIZES = (1, 2, 4)
FIXED_NS = 5.0
SLOPE_NS = np.array([1.0, 2.0, 4.0])
SLO_NS = 100.0
VALUES = st.lists(st.integers(1, 30).map(float), min_size=1, max_size=3)
UTILITIES = (1.0, 0.6, 0.25)
DEADLINES = st.lists(st.integers(1, 150), min_size=1, max_size=3, unique=True).map(sorted)
VARIANT = name(256)


def cost(urgency: float = 0.0) -> BatchCost:
    return BatchCost(FIXED_NS, SLOPE_NS, SIZES, urgency, 0.3)


def ladder(deadlines: list[int]) -> list[UtilityStep]:
    """Return steps at these instants, from worth 1 down."""
    return [UtilityStep(by, utility) for by, utility in zip(deadlines, UTILITIES, strict=False)]


def waiting_requests(queue: list[list[int]], rank: "np.ndarray") -> WaitingRequests:
    """Return requests that wait with these deadlines each, the queue sorted by the first."""
    singles = [single_deadlines(ladder(deadlines)) for deadlines in queue]
    slack_ns, gain = spread([deadlines[0] for deadlines in queue], singles)
    steps = Steps(slack_ns.astype(np.float64), np.full(slack_ns.shape, SLO_NS), gain)
    return WaitingRequests(steps.slack_ns[0], steps.slo_ns[0], rank, steps)


@given(
    st.lists(VALUES, min_size=1, max_size=3),
    st.lists(st.tuples(DEADLINES, st.integers(0, 2)), min_size=1, max_size=6),
)
def test_a_candidates_score_is_its_expected_worth_over_all_that_can_happen(
    apps: list[list[float]], drawn: list[tuple[list[int], int]]
) -> None:
    distributions = [EmpiricalDistribution(values) for values in apps]
    table = tabulate(distributions)
    drawn = sorted(drawn)
    queue = [deadlines for deadlines, _ in drawn]
    rank = table.rank[np.array([app % len(apps) for _, app in drawn])]
    found = propose(waiting_requests(queue, rank), table, cost())
    if found is None:
        return
    for at in range(len(found.score)):
        places = found.batch(at)
        assert len(set(places)) == len(places)
        utility = expected_worth(places, queue, rank, table)
        assert found.score[at] * found.expected_ns[at] == pytest.approx(utility, rel=2e-3, abs=1e-5)


def expected_worth(
    places: list[int], queue: list[list[int]], rank: "np.ndarray", table: WorkTable
) -> float:
    """Average the worth of a batch's answers over every combination of its members' work."""
    slope_ns = min(size for size in SIZES if size >= len(places))
    values = [table.ranked[rank[place]].values for place in places]
    worths = []
    for works in itertools.product(*values):
        # A hair less, as an amount of work exactly at the limit is in time.
        done_ns = (FIXED_NS + slope_ns * max(works)) * (1 - 1e-9)
        worths.append(sum(worth_by(done_ns, queue[place]) for place in places))
    return sum(worths) / len(worths)


def worth_by(done_ns: float, deadlines: list[int]) -> float:
    return next((step.utility for step in ladder(deadlines) if done_ns <= step.by_ns), 0.0)


@given(
    st.lists(VALUES, min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(1, 150), st.integers(0, 2)), min_size=1, max_size=9),
)
def test_one_step_each_is_what_a_plain_deadline_is(
    apps: list[list[float]], drawn: list[tuple[int, int]]
) -> None:
    table = tabulate([EmpiricalDistribution(values) for values in apps])
    rank = table.rank[np.array([app % len(apps) for _, app in sorted(drawn)])]
    several = waiting_requests([[at] for at, _ in sorted(drawn)], rank)
    plain = WaitingRequests(several.slack_ns, several.slo_ns, rank)
    assert most_likely_on_time(several, table, cost()) == most_likely_on_time(plain, table, cost())
    found, expected = (propose(each, table, cost(0.3)) for each in (several, plain))
    if found is None or expected is None:
        assert found is expected
        return
    np.testing.assert_array_equal(found.members, expected.members)
    np.testing.assert_array_equal(found.present, expected.present)
    # Sums of chances are of double precision, a chance alone is of single.
    np.testing.assert_allclose(found.score, expected.score, rtol=1e-5)


def test_a_batch_may_settle_for_the_second_deadlines_of_more_requests() -> None:
    table = tabulate([EmpiricalDistribution([10.0])])
    # Alone they take 15, two together 25, four 45.
    waiting = waiting_requests([[20, 60], [21, 60], [22, 60], [23, 60]], np.zeros(4, dtype=np.intp))
    found = propose(waiting, table, cost())
    assert found is not None
    scores = {tuple(found.batch(at)): found.score[at] for at in range(len(found.score))}
    assert scores[(0,)] == pytest.approx(1 / 15)
    assert scores[0, 1, 2, 3] == pytest.approx(4 * 0.6 / 45)


def test_who_can_gain_most_is_not_kept_back_by_who_has_lost_some() -> None:
    table = tabulate([EmpiricalDistribution([10.0])])
    # The first two have only .25 left to gain; by deadline they come first. Two take 25.
    slack_ns = np.array([[26.0, 27.0, 28.0, 29.0]] * 2)
    gain = np.array([[0.25, 0.25, 1.0, 1.0], [0.0] * 4])
    steps = Steps(slack_ns, np.full((2, 4), SLO_NS), gain)
    assert [tier.tolist() for tier in steps.tiers()] == [[2, 3]]
    found = propose(
        WaitingRequests(slack_ns[0], steps.slo_ns[0], np.zeros(4, dtype=np.intp), steps),
        table,
        cost(),
    )
    assert found is not None
    assert found.batch(int(np.argmax(found.score))) == [2, 3]


def test_who_is_expected_to_gain_most_is_tried_when_nobody_likely_makes_it() -> None:
    table = tabulate([EmpiricalDistribution([10.0, 30.0, 30.0, 30.0])])
    waiting = waiting_requests([[16, 31], [17]], np.zeros(2, dtype=np.intp))
    assert propose(waiting, table, cost()) is None
    single = most_likely_on_time(waiting, table, cost())
    assert single is not None
    assert single == pytest.approx((0, 0.25 / 6))


@given(
    st.lists(DEADLINES, min_size=1, max_size=8),
    st.lists(st.integers(1, 120).map(float), min_size=1, max_size=6).map(sorted),
)
def test_orloj_sums_the_priorities_of_the_single_deadlines(
    queue: list[list[int]], times: list[float]
) -> None:
    waiting = waiting_requests(sorted(queue), np.zeros(len(queue), dtype=np.intp))
    batch_ns = np.array(times) * 1e7
    assert waiting.steps is not None
    steps = Steps(waiting.steps.slack_ns * 1e7, waiting.steps.slo_ns, waiting.steps.gain)
    found = step_priorities(steps, batch_ns)
    for deadlines, priority in zip(sorted(queue), found, strict=True):
        by_hand = sum(
            step.utility * float(priorities(np.array([step.by_ns * 1e7 + 1]), batch_ns)[0])
            for step in single_deadlines(ladder(deadlines))
        )
        assert priority == pytest.approx(by_hand, rel=1e-9)


def test_a_request_waits_for_the_earliest_deadline_that_it_can_still_make() -> None:
    waits = DeadlineQueues(lambda variant, app: 10.0)
    several = request(1, 50 / MS, later=[(80 / MS, 0.5), (120 / MS, 0.2)])
    for each in (several, request(2, 60 / MS), request(3, 90 / MS)):
        waits.admit(each, VARIANT, 0)
    for at in (1, 2):
        waits.prepared(RequestId(at))
    queue = waits.queues[VARIANT]
    assert queue.requests == [1, 2]
    assert waits.expired(40) == []
    assert waits.expired(41) == []
    assert (queue.requests, queue.deadlines, queue.slos) == ([2, 1], [60, 80], [60, 80])
    steps = queue.columns.steps
    assert steps is not None
    assert steps.deadline_ns.tolist() == [[60, 80], [60, 120]]
    np.testing.assert_allclose(steps.gain, [[1, 0.3], [0, 0.2]])
    assert waits.expired(51) == [2]
    waits.abandon([RequestId(1)], 52)
    assert (queue.deadlines, waits.expired(53)) == ([120], [])
    assert queue.columns.steps is not None
    assert queue.columns.steps.gain.tolist() == [[0.2]]
    assert waits.expired(110) == [3]
    assert waits.expired(111) == [1]


class Bench:
    """One executor that is busy for as long as the test likes."""

    def __init__(self, policy: str) -> None:
        self.scheduler = Scheduler(SchedulerParameters(), make_policy(policy))
        self.tell(0, VariantsAvailable(FAMILY[:1]))
        self.tell(0, ExecutorStarted(CPU, (profile(128),)))
        self.tell(0, CameraConnected(camera()))

    def tell(self, at_ms: float, *facts: object) -> list[object]:
        return list(self.scheduler.handle_together(facts, round(at_ms * MS)))  # type: ignore[arg-type]

    def arrive(self, made: Request) -> list[object]:
        at_ms = made.arrival_ns / MS
        return self.tell(at_ms, RequestArrived(made), RequestPrepared(made.id, 0))


# coral refuses on arrival what no slot answers in time, and runs nothing between slots: test_coral.
@pytest.mark.parametrize("policy", sorted(set(POLICIES) - {"clipper", "coral"}))
def test_a_request_is_dropped_by_its_last_deadline_only(policy: str) -> None:
    bench = Bench(policy)
    bench.arrive(request(1, 900))
    bench.tell(20)  # some wait a while before they start
    bench.arrive(request(2, 60, arrival_ms=20, later=[(120, 0.4)]))
    bench.arrive(request(3, 61, arrival_ms=20))
    dropped: dict[int, float] = {}
    while (due_ns := bench.scheduler.next_wakeup_ns()) is not None and len(dropped) < 2:
        for action in bench.tell(due_ns / MS):
            if isinstance(action, Drop) and action.reason is DropReason.QUEUE:
                dropped[action.request] = due_ns / MS
    assert 40 < dropped[3] <= 62
    assert 100 < dropped[2] <= 121


@pytest.mark.parametrize("policy", sorted(set(POLICIES) - {"coral"}))
def test_what_is_late_but_worth_something_is_answered_and_counts_as_late(policy: str) -> None:
    bench = Bench(policy)
    (infer,) = infers(bench.arrive(request(1, 900)) + bench.tell(15))  # type: ignore[arg-type]
    bench.arrive(request(2, 40, arrival_ms=16, later=[(200, 0.4)]))
    bench.tell(70)
    actions = bench.tell(100, BatchCompleted(CPU, infer.batch, 60 * MS)) + bench.tell(115)
    (infer,) = infers(actions)  # type: ignore[arg-type]
    assert infer.requests == (2,)
    ended = bench.tell(120, BatchCompleted(CPU, infer.batch, 5 * MS))
    assert ended == [Finish(RequestId(2), infer.batch, Outcome.LATE)]


def test_on_arrival_a_variant_is_chosen_for_the_first_deadline_that_any_makes() -> None:
    parameters = SchedulerParameters(first_pixels_max=LARGE)
    scheduler = Scheduler(parameters, make_policy("edf"))
    for event in (
        VariantsAvailable(FAMILY),
        ExecutorStarted(CPU, (profile(128), profile(256))),
        CameraConnected(camera()),
    ):
        scheduler.handle(event, 0)

    def runs_on(at: int, deadline_ms: float, *later: tuple[float, float]) -> list[VariantName]:
        arrived = RequestArrived(request(at, deadline_ms, later=later))
        return [a.variant for a in scheduler.handle(arrived, 0) if isinstance(a, Prepare)]

    assert runs_on(1, 300) == [name(256)]
    assert runs_on(2, 8) == runs_on(3, 8, (300, 0.5)) == [name(128)]
    assert runs_on(4, 1) == []
    assert runs_on(5, 1, (300, 0.5)) == [name(256)]
