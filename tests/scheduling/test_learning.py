"""What is learnt of single requests: against the profile, and with those of whom it is known."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.model_family import LatencyProfile
from edgebox.domain.requests import BatchId, RequestId
from edgebox.scheduling.actions import Infer
from edgebox.scheduling.applications import APP_IDLE_NS, APPS_MAX, OTHER_APPS
from edgebox.scheduling.distributions import SAMPLES_ENOUGH
from edgebox.scheduling.events import ExecutorStarted, RequestSampled
from edgebox.scheduling.expected_latencies import Latencies
from edgebox.scheduling.learning import REFRESH_SAMPLES, Learning
from edgebox.scheduling.policies import POLICIES, make_policy
from edgebox.scheduling.scheduler import Scheduler, SchedulerParameters
from tests.scheduling.scene import CPU, MS, name, profile, row

HALL = name(256)
S = 1_000 * MS
APPS = {"quick": (6, 9), "slow": (8, 20)}


def learning(horizon_ns: int = 600 * S) -> tuple[Latencies, Learning]:
    latencies = Latencies(SchedulerParameters(sample_horizon_ns=horizon_ns))
    latencies.executor_started(CPU, [profile(256)])
    return latencies, Learning(latencies)


def high_ms(learnt: Learning, app: str = "a") -> float:
    known = learnt.known(CPU, HALL, app)
    assert known is not None
    return known.high_ns / MS


def count(learnt: Learning, app: str = "a") -> int:
    known = learnt.known(CPU, HALL, app)
    assert known is not None
    return known.samples


def test_before_anything_was_sampled_the_profile_is_believed() -> None:
    _, learnt = learning()
    # 8 ms in the median, 12 ms at P99.
    assert 10 < high_ms(learnt) < 17
    assert count(learnt) == 0
    assert learnt.known(CPU, name(128), "a") is None, "it is not loaded there"


def test_a_reference_takes_in_applications_that_came_since() -> None:
    # One executor's reference is older than an application that so far ran on another.
    _, learnt = learning()
    for at in range(30):
        learnt.sampled(CPU, HALL, "a", 24 * MS, at * S)
    held = learnt.reference(HALL)
    learnt.sampled(CPU, HALL, "b", 9 * MS, 30 * S)
    again = learnt.reference(HALL, held)
    assert again.measured == (True, False)
    assert again.distribution(0).quantile(0.5) == held.distribution(0).quantile(0.5)


def test_samples_replace_the_profile() -> None:
    _, learnt = learning()
    for at in range(30):
        learnt.sampled(CPU, HALL, "a", 24 * MS, at * S)
    assert count(learnt) == 30
    assert round(high_ms(learnt)) == 24
    assert high_ms(learnt, "b") < 17, "the other application has not been sampled"
    known = learnt.known(CPU, HALL, "a")
    assert known is not None
    assert known.newest_ns == 29 * S


def test_a_single_request_is_held_against_the_profile_and_not_against_the_pace() -> None:
    _, learnt = learning()
    times = learnt.times(CPU, HALL)
    assert times is not None
    for at in range(200):
        times.served(2, 1.0, 64 * MS, at * 100 * MS)
    assert times.pace > 1.5, "batches took four times as long"
    for _ in range(30):
        learnt.sampled(CPU, HALL, "a", 8 * MS, 20 * S)
    assert round(learnt.distributions(HALL)[0].mean, 2) == 1.0


def test_old_samples_leave() -> None:
    _, learnt = learning(horizon_ns=60 * S)
    for at in range(400):
        learnt.sampled(CPU, HALL, "a", (8 + at % 5) * MS, at * S // 10)
    assert count(learnt) == 400
    for at in range(SAMPLES_ENOUGH):
        learnt.sampled(CPU, HALL, "a", (8 + at % 5) * MS, 1000 * S + at)
    assert count(learnt) == SAMPLES_ENOUGH


def test_a_change_is_in_the_table_at_once() -> None:
    _, learnt = learning()
    for at in range(300):
        learnt.sampled(CPU, HALL, "a", 8 * MS, at)
    assert learnt.table(HALL).greatest == pytest.approx(1.0)
    learnt.sampled(CPU, HALL, "a", 16 * MS, 301)
    assert learnt.table(HALL).greatest == pytest.approx(1.0), "one sample is no news yet"
    samples = 1
    while count(learnt) > 200:
        learnt.sampled(CPU, HALL, "a", 16 * MS, 400)
        samples += 1
    assert samples < REFRESH_SAMPLES
    assert learnt.table(HALL).least_of[0] == pytest.approx(2.0)


def replaced(latencies: Latencies, by: LatencyProfile) -> None:
    latencies.executor_stopped(CPU)
    latencies.executor_started(CPU, [by])


def test_a_profile_that_is_measured_anew_voids_nothing() -> None:
    """What requests need relative to each other is no matter of how fast the machine is."""
    latencies, learnt = learning()
    assert [learnt.app(HALL, app) for app in ("a", "b")] == [0, 1]
    for at in range(50):
        learnt.sampled(CPU, HALL, "a", 24 * MS, at)
    slower = LatencyProfile(HALL, CPU, {n: row(24 * n) for n in (1, 2, 4)})
    replaced(latencies, slower)
    assert count(learnt) == 50
    assert round(high_ms(learnt)) == 72, "three times the new profile, as of the old one"
    assert 30 < high_ms(learnt, "b") < 50, "of whom nothing is known the new profile is believed"
    assert [learnt.app(HALL, app) for app in ("a", "b")] == [0, 1], "waiting requests have these"
    assert learnt.table(HALL).ranked[1].samples == 50


def test_the_same_profile_again_voids_nothing() -> None:
    latencies, learnt = learning()
    for at in range(50):
        learnt.sampled(CPU, HALL, "a", 24 * MS, at)
    replaced(latencies, profile(256))
    assert count(learnt) == 50
    assert round(high_ms(learnt)) == 24


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_the_scheduler_learns_whatever_the_policy(policy: str) -> None:
    scheduler = Scheduler(SchedulerParameters(), make_policy(policy))
    scheduler.handle(ExecutorStarted(CPU, (profile(256),)), 0)
    for at in range(30):
        scheduler.handle(RequestSampled(CPU, HALL, "a", 24 * MS), at * S)
    known = scheduler.times.learning.known(CPU, HALL, "a")
    assert known is not None
    assert known.samples == 30
    quantile_ns = scheduler.times.learning.quantile_ns(CPU, HALL, ["a"], 1, 0.5)
    assert quantile_ns == pytest.approx(24 * MS, rel=0.01)


def test_the_time_of_a_batch_is_that_of_its_longest_member() -> None:
    _, learnt = learning()
    rng = random.Random(3)
    drawn = {app: [rng.uniform(*of) for _ in range(200)] for app, of in APPS.items()}
    for app, times_ms in drawn.items():
        for took_ms in times_ms:
            learnt.sampled(CPU, HALL, app, took_ms * MS, 0)
    apps = ["quick", "slow", "quick"]
    longest = sorted(max(rng.choice(drawn[app]) for app in apps) for _ in range(20_000))
    times = learnt.times(CPU, HALL)
    assert times is not None

    def batch_ms(alone_ms: float) -> float:
        return times.profiled_ns(4, times.work_of(alone_ms * MS)) / MS

    for q in (0.05, 0.25, 0.5, 0.75, 0.99):
        found_ns = learnt.quantile_ns(CPU, HALL, apps, 3, q)
        assert found_ns is not None
        assert found_ns / MS == pytest.approx(batch_ms(longest[int(q * 20_000)]), rel=0.04)
    mean_ns = learnt.expected_ns(CPU, HALL, apps, 3)
    assert mean_ns is not None
    assert mean_ns / MS == pytest.approx(batch_ms(sum(longest) / 20_000), rel=0.02)
    assert learnt.quantile_ns(CPU, name(128), apps, 3, 0.5) is None, "it is not loaded there"


def test_what_batches_of_several_said_gives_way_to_single_requests() -> None:
    """They were slow; since then nobody has waited for anybody."""
    _, learnt = learning()
    of = Infer(CPU, BatchId(1), HALL, (RequestId(1), RequestId(2)), 2)
    for at in range(16):
        learnt.completed(of, ["a", "a"], 32 * MS, at * S, at * S - 32 * MS)
    slow_ns = learnt.quantile_ns(CPU, HALL, ["a"], 1, 0.5)
    assert slow_ns is not None
    assert slow_ns > 1.5 * 8 * MS
    for at in range(SAMPLES_ENOUGH):
        single = Infer(CPU, BatchId(2 + at), HALL, (RequestId(3 + at),), 1)
        learnt.completed(single, ["a"], 8 * MS, (16 + at) * S, (16 + at) * S - 8 * MS)
    assert learnt.quantile_ns(CPU, HALL, ["a"], 1, 0.5) == pytest.approx(8 * MS, rel=0.05)


def test_of_an_application_that_is_new_the_profile_is_expected() -> None:
    _, learnt = learning()
    for q, expected_ms in ((0.5, 8), (0.99, 12)):
        found_ns = learnt.quantile_ns(CPU, HALL, ["new"], 1, q)
        assert found_ns is not None
        assert found_ns / MS == pytest.approx(expected_ms, rel=0.1)


def test_a_client_that_names_ten_thousand_applications_costs_no_more_than_a_few() -> None:
    scheduler = Scheduler(SchedulerParameters(), make_policy("adaptive"))
    scheduler.handle(ExecutorStarted(CPU, (profile(256),)), 0)
    learnt = scheduler.times.learning
    for at in range(30):
        scheduler.handle(RequestSampled(CPU, HALL, "own", 24 * MS), at * MS)
    for at in range(10_000):
        now_ns = (30 + at) * MS
        scheduler.handle(RequestSampled(CPU, HALL, f"hostile-{at}", 4 * MS), now_ns)
        learnt.app(HALL, "own", now_ns)
    assert len(learnt.distributions(HALL)) == APPS_MAX + 1
    assert len(learnt.table(HALL).rank) == APPS_MAX + 1
    assert learnt.generation < 1000, "how often anything is computed again"
    assert learnt.quantile_ns(CPU, HALL, ["own"], 1, 0.5) == pytest.approx(24 * MS, rel=0.01)
    assert OTHER_APPS not in [app for _, app, _ in learnt.known_distributions()]
    later_ns = 11 * S + APP_IDLE_NS
    at = learnt.app(HALL, "new", later_ns)
    assert learnt.name(HALL, at) == "new", "who is new gets the place of one long gone"
    of = learnt.distribution(HALL, "new")
    assert of is not None
    assert of.samples == 0


SEEN = st.tuples(st.integers(0, 100), st.integers(0, APP_IDLE_NS // 40), st.booleans())


@given(st.lists(SEEN, min_size=APPS_MAX, max_size=300))
def test_an_index_is_that_of_its_application_while_it_is_in_use(
    seen: list[tuple[int, int, bool]],
) -> None:
    """Judged by names: what waits less than the idle time has its own index, or the shared one."""
    _, learnt = learning()
    now_ns = 0
    given_at: dict[str, tuple[int, int]] = {}
    for number, after_ns, sampled in seen:
        now_ns += after_ns
        name = f"app-{number}"
        at = learnt.app(HALL, name, now_ns)
        given_at[name] = at, now_ns
        if sampled:
            learnt.sampled(CPU, HALL, name, (1 + number) * MS, now_ns)
        assert len(learnt.distributions(HALL)) <= APPS_MAX + 1
        for other, (index, since_ns) in given_at.items():
            if now_ns - since_ns < APP_IDLE_NS:
                assert learnt.name(HALL, index) in (other, OTHER_APPS)
    assert len(learnt.table(HALL).rank) == len(learnt.distributions(HALL))


def test_batches_of_who_lost_its_place_are_not_those_of_who_got_it() -> None:
    _, learnt = learning()
    learnt.app(HALL, "gone", 1)
    for at in range(20):
        batch = Infer(CPU, BatchId(at), HALL, (RequestId(1), RequestId(2)), 2)
        learnt.completed(batch, ["gone", "gone"], 160 * MS, at + 1, at + 1 - 160 * MS)
    for number in range(APPS_MAX):
        learnt.app(HALL, f"app-{number}", 100 + number)
    assert learnt.replaced(HALL) == 0
    now_ns = 100 + APP_IDLE_NS
    assert learnt.app(HALL, "new", now_ns) == 0
    assert learnt.replaced(HALL) == 1
    for at in range(20):
        batch = Infer(CPU, BatchId(at), HALL, (RequestId(1), RequestId(2)), 2)
        learnt.completed(batch, ["new", "new"], 16 * MS, now_ns + at, now_ns + at - 16 * MS)
    expected_ns = learnt.expected_ns(CPU, HALL, ["new"], 1)
    assert expected_ns is not None
    assert expected_ns < 12 * MS, "a batch of its like takes 16 ms for two"
