"""What is learned outlives a restart, and counts for less with age."""

import pytest

from edgebox.domain.learned import Learned, LearnedDrift, LearnedWork
from edgebox.domain.model_family import LatencyProfile
from edgebox.runtime.entries import read_entry, write_entry
from edgebox.scheduling.checkpoint import read_state, write_state
from edgebox.scheduling.events import ExecutorStarted, LearningRestored, RequestSampled
from edgebox.scheduling.remembered import HALF_LIFE_NS, faded, thinned, work_of
from edgebox.scheduling.scheduler import Scheduler, SchedulerParameters
from tests.scheduling.scene import CPU, LARGE, MS, Bench, name, profile

DAY_NS = HALF_LIFE_NS


def taught() -> Bench:
    bench = Bench(parameters=SchedulerParameters(first_pixels_max=LARGE))
    for number in range(200):
        bench(RequestSampled(CPU, name(608), "short", 4 * MS + 7919 * number % 200), 1)
        bench(RequestSampled(CPU, name(608), "rare", 30 * MS), 1) if number < 10 else None
    return bench


def usual_ms(scheduler: Scheduler) -> float:
    alone = scheduler.times.expectations.single_request(name(608), "short")
    assert alone is not None
    return alone.usual_ns / MS


def test_a_restarted_box_knows_what_it_knew() -> None:
    kept = work_of(taught().scheduler.times.learning, 2 * MS)
    assert [(each.variant, each.app, len(each.work)) for each in kept] == [
        (name(608), "short", 100)
    ]
    again = Bench()
    assert usual_ms(again.scheduler) == 40
    again(LearningRestored(Learned(tuple(kept))), 5)
    assert usual_ms(again.scheduler) == pytest.approx(4, rel=0.02)


def test_what_is_quicker_than_the_fixed_part_of_its_profile_is_remembered() -> None:
    def box() -> Bench:
        flat = {size: (ms * MS,) * 9 for size, ms in ((1, 40), (2, 42))}
        return Bench([LatencyProfile(name(608), CPU, flat)])

    before = box()
    for _ in range(200):
        before(RequestSampled(CPU, name(608), "short", 4 * MS), 1)
    again = box()
    again(LearningRestored(Learned(tuple(work_of(before.scheduler.times.learning, 2 * MS)))), 5)
    assert usual_ms(again.scheduler) == usual_ms(before.scheduler) == pytest.approx(4)


@pytest.mark.parametrize(("days", "left"), [(0, 100), (1, 50), (2, 25), (8, 0)])
def test_samples_count_half_as_much_every_day(days: int, left: int) -> None:
    work = LearnedWork(name(608), "short", tuple(at / 100 for at in range(100)), days * DAY_NS)
    found = thinned(work)
    assert len(found) == left
    if left:
        assert sorted(found)[left // 2] == pytest.approx(0.5, abs=0.03)


def test_a_factor_fades_to_one() -> None:
    factors = [faded(LearnedDrift(CPU, name(608), 4.0, days * DAY_NS)) for days in (0, 1, 2)]
    assert factors == pytest.approx([4, 2, 2**0.5])


def test_drift_is_in_force_again() -> None:
    bench = Bench()
    drifts = (LearnedDrift(CPU, name(608), 1.5, 0), LearnedDrift(CPU, name(128), 1.05, 0))
    bench(LearningRestored(Learned((), drifts)), 1)
    assert bench.scheduler.corrections == {CPU: {name(608): 1.5}}
    alone = bench.scheduler.times.expectations.single_request(name(608), "new")
    assert alone is not None
    assert alone.usual_ns == 60 * MS


def test_what_is_known_already_is_not_replaced() -> None:
    bench = taught()
    old = LearnedWork(name(608), "short", (3.0,) * 100, 0)
    bench(LearningRestored(Learned((old,))), 5)
    assert usual_ms(bench.scheduler) == pytest.approx(4, rel=0.02)


def test_restored_samples_look_like_no_change() -> None:
    bench = Bench()
    work = tuple(at / 100 for at in range(100))
    bench(LearningRestored(Learned((LearnedWork(name(608), "short", work, 0),))), 5)
    distribution = bench.scheduler.times.learning.distribution(name(608), "short")
    assert distribution is not None
    assert (distribution.samples, distribution.resets) == (100, 0)


def test_the_journal_replays_it() -> None:
    """The event goes through a line of JSON, and the state that follows is the same."""
    kept = tuple(work_of(taught().scheduler.times.learning, 2 * MS))
    event = LearningRestored(Learned(kept, (LearnedDrift(CPU, name(608), 1.5, DAY_NS),)))
    entry = read_entry(write_entry(7 * MS, event, []))
    assert entry.event == event
    one, two = Bench(), Bench()
    one(event, 7)
    two(entry.event, 7)
    assert write_state(one.scheduler) == write_state(two.scheduler)
    assert usual_ms(read_state(write_state(one.scheduler))) == usual_ms(one.scheduler)


def test_what_is_not_in_memory_at_the_start_is_known_when_it_is_loaded() -> None:
    """Nobody has the variant yet, and its profile comes only with the executor."""
    work = tuple((50 + at % 5) / 100 for at in range(100))
    scheduler = Scheduler(SchedulerParameters(), Bench().scheduler.policy)
    learned = Learned((LearnedWork(name(608), "short", work, 0),))
    scheduler.handle(LearningRestored(learned), 5)
    scheduler.handle(ExecutorStarted(CPU, (profile(608), profile(128))), 10)
    scheduler._times.latencies.set_resident(CPU, [name(128)])
    assert scheduler.times.expectations.single_request(name(608), "short") is None, (
        "it is not in memory"
    )
    scheduler._times.latencies.set_resident(CPU, [name(608)])
    alone = scheduler.times.expectations.single_request(name(608), "short")
    assert alone is not None
    assert alone.usual_ns / MS == pytest.approx(0.52 * 40, rel=0.05)
    unknown = scheduler.times.expectations.single_request(name(608), "new")
    assert unknown is not None
    assert unknown.usual_ns == 40 * MS
