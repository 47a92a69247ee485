"""What is learnt of single requests: against the profile, and anew when that is replaced."""

import pytest

from edgebox.domain.models import LatencyProfile
from edgebox.domain.requests import BatchId, RequestId
from edgebox.scheduling.distributions import SAMPLES_ENOUGH
from edgebox.scheduling.events import Infer
from edgebox.scheduling.latencies import Latencies
from edgebox.scheduling.learning import REFRESH_SAMPLES, Learning
from edgebox.scheduling.scheduler import SchedulerParameters
from tests.scheduling.scene import CPU, MS, name, profile, row

HALL = name(256)
S = 1_000 * MS


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


def test_a_sample_is_held_against_the_profile_and_not_against_the_pace_under_load() -> None:
    _, learnt = learning()
    learnt.app(HALL, "a")
    for at in range(200):
        learnt.started(CPU, ["a", "a"])
        batch = Infer(CPU, BatchId(at), HALL, (RequestId(1), RequestId(2)), 2)
        learnt.completed(batch, 64 * MS, at * 100 * MS)
    times = learnt.times(CPU, HALL)
    assert times is not None
    assert times.pace > 1.5, "batches took four times as long"
    for _ in range(30):
        learnt.sampled(CPU, HALL, "a", 8 * MS, 60 * S)
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
    told = 1
    while count(learnt) > 200:
        learnt.sampled(CPU, HALL, "a", 16 * MS, 400)
        told += 1
    assert told < REFRESH_SAMPLES
    assert learnt.table(HALL).least[0] == pytest.approx(2.0)


def replaced(latencies: Latencies, by: LatencyProfile) -> None:
    latencies.executor_stopped(CPU)
    latencies.executor_started(CPU, [by])


def test_a_profile_that_is_replaced_voids_what_was_learnt_against_it() -> None:
    latencies, learnt = learning()
    assert [learnt.app(HALL, app) for app in ("a", "b")] == [0, 1]
    for at in range(50):
        learnt.sampled(CPU, HALL, "a", 24 * MS, at)
    slower = LatencyProfile(HALL, CPU, {n: row(24 * n) for n in (1, 2, 4)})
    replaced(latencies, slower)
    assert count(learnt) == 0
    assert 30 < high_ms(learnt) < 50, "the new profile is believed"
    assert [learnt.app(HALL, app) for app in ("a", "b")] == [0, 1], "waiting requests have these"
    assert learnt.table(HALL).ranked[0].samples == 0


def test_the_same_profile_again_voids_nothing() -> None:
    latencies, learnt = learning()
    for at in range(50):
        learnt.sampled(CPU, HALL, "a", 24 * MS, at)
    replaced(latencies, profile(256))
    assert count(learnt) == 50
    assert round(high_ms(learnt)) == 24
