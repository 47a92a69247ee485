"""Profiles of an executor that change while it works: they apply once it runs nothing."""

from dataclasses import replace

import pytest

from edgebox.domain.learned import Learned, LearnedDrift
from edgebox.domain.model_family import LatencyProfile, VariantName
from edgebox.domain.requests import Outcome, RequestId
from edgebox.scheduling.actions import Action, Finish, Infer
from edgebox.scheduling.events import (
    BatchCompleted,
    BatchFailed,
    Event,
    ExecutorGone,
    ExecutorStarted,
    LearningRestored,
    ProfilesChanged,
    RequestArrived,
    RequestPrepared,
    VariantsAvailable,
)
from tests.scheduling.scene import CPU, FAMILY, MEDIAN_MS, MS, Bench, infers, name, profile, request

ALL = tuple(profile(px) for px in MEDIAN_MS)
SMALL = (profile(128), profile(256))


Profiles = dict[VariantName, LatencyProfile]


def runs(bench: Bench) -> Profiles:
    return dict(bench.scheduler.times.latencies.profiles(CPU))


def of(profiles: tuple[LatencyProfile, ...]) -> Profiles:
    return {each.variant: each for each in profiles}


def begin(bench: Bench, at: int, at_ms: float) -> Infer:
    """Let a request arrive and be prepared; return the batch that it runs in."""
    ready(bench, at, at_ms, 416)
    return bench.scheduler.running[CPU]


def ready(bench: Bench, at: int, at_ms: float, px: int) -> list[Action]:
    asked = request(at, at_ms + 300, of="http", arrival_ms=at_ms, variant=name(px))
    bench(RequestArrived(asked), at_ms)
    return bench(RequestPrepared(RequestId(at), MS), at_ms)


def test_an_executor_that_runs_nothing_has_them_at_once() -> None:
    bench = Bench()
    bench(ProfilesChanged(CPU, SMALL), 1)
    assert runs(bench) == of(SMALL)
    assert bench.scheduler.supervised[CPU].variants == of(SMALL).keys()
    assert not bench.scheduler.awaits_profiles(CPU)


def test_one_that_always_has_more_to_do_loses_no_batch() -> None:
    bench = Bench()
    infer = begin(bench, 1, 0)
    assert not infers(ready(bench, 2, 1, 416))
    assert not infers(ready(bench, 3, 1, 256))
    bench(ProfilesChanged(CPU, SMALL), 2)
    assert runs(bench) == of(ALL), "its batch goes on"
    assert bench.scheduler.awaits_profiles(CPU)
    actions = bench(BatchCompleted(CPU, infer.batch, 20 * MS), 20)
    assert Finish(RequestId(1), infer.batch, Outcome.ON_TIME) in actions
    assert not bench.scheduler.awaits_profiles(CPU)
    assert runs(bench) == of(SMALL), "before it is given another batch"
    assert [(each.variant, each.requests) for each in infers(actions)] == [(name(256), (3,))]


@pytest.mark.parametrize("last", [SMALL, ALL[:1]])
def test_of_two_changes_the_newer_one_counts(last: tuple[LatencyProfile, ...]) -> None:
    bench = Bench()
    infer = begin(bench, 1, 0)
    for change in (ALL[1:], last):
        bench(ProfilesChanged(CPU, change), 1)
    bench(BatchFailed(CPU, infer.batch), 2)
    assert runs(bench) == of(last)


@pytest.mark.parametrize("lost", [ExecutorGone(CPU), ExecutorStarted(CPU, ALL)])
def test_one_that_is_lost_meanwhile_has_what_it_is_opened_with(lost: Event) -> None:
    bench = Bench()
    begin(bench, 1, 0)
    bench(ProfilesChanged(CPU, SMALL), 1)
    bench(lost, 2)
    assert not bench.scheduler.awaits_profiles(CPU)
    bench(ExecutorStarted(CPU, ALL), 4)
    assert runs(bench) == of(ALL)


def test_one_that_is_lost_does_not_get_them() -> None:
    bench = Bench()
    bench(ExecutorGone(CPU), 1)
    bench(ProfilesChanged(CPU, SMALL), 2)
    assert not bench.scheduler.awaits_profiles(CPU)
    assert bench.scheduler.stale_events == {"ProfilesChanged": 1}


def slow(bench: Bench, factor: float) -> None:
    """Let some batches take longer than profiled, for 30 s."""
    for at in range(1, 30):
        at_ms = at * 1000
        infer = begin(bench, at, at_ms)
        took = round(factor * profile(416).quantile_ns(infer.batch_size, 0.75))
        bench(BatchCompleted(CPU, infer.batch, took), at_ms + took / MS)


def test_what_is_known_of_an_executor_s_speed_stays_unless_its_times_are_new() -> None:
    bench = Bench()
    slow(bench, 1.5)
    known = bench.scheduler.slowdown[CPU]
    assert known > 1.2
    another = replace(profile(256), variant=VariantName("another"))
    bench(ProfilesChanged(CPU, (*ALL, another)), 30_000)
    assert bench.scheduler.slowdown[CPU] == known
    bench(ProfilesChanged(CPU, ALL), 30_000)
    assert bench.scheduler.slowdown[CPU] == known
    bench(ProfilesChanged(CPU, tuple(each.scaled(known) for each in ALL)), 30_000)
    assert bench.scheduler.slowdown[CPU] == 1


def drifted(bench: Bench, px: int, at_ms: float) -> None:
    """Let the core know from before that a variant takes twice its profile's time."""
    drift = LearnedDrift(CPU, name(px), 2.0, 0)
    bench(LearningRestored(Learned((), (drift,))), at_ms)


def test_what_is_known_of_drift_stays_with_the_profiles_that_stay() -> None:
    bench = Bench()
    drifted(bench, 416, 0)
    bench(ProfilesChanged(CPU, (*SMALL, profile(416))), 1)
    assert bench.scheduler.corrections[CPU] == {name(416): 2.0}
    assert runs(bench)[name(416)] == profile(416).scaled(2.0)
    bench(ProfilesChanged(CPU, (*SMALL, profile(416).scaled(2.0))), 2)
    assert bench.scheduler.corrections[CPU] == {}
    assert runs(bench)[name(416)] == profile(416).scaled(2.0)


def test_drift_that_is_known_of_a_slow_executor_leaves_nothing_contradictory() -> None:
    bench = Bench()
    slow(bench, 1.5)
    assert bench.scheduler.slowdown[CPU] > 1.2
    drifted(bench, 416, 30_000)
    assert bench.scheduler.slowdown[CPU] == 1, "the corrected profiles contain it"


def test_a_variant_that_is_offered_anew_on_a_slow_executor_leaves_nothing_contradictory() -> None:
    bench = Bench()
    drifted(bench, 256, 0)
    slow(bench, 1.5)
    assert bench.scheduler.slowdown[CPU] > 1.2
    others = tuple(each for each in FAMILY if each.name != name(256))
    bench(VariantsAvailable(others), 30_000)
    bench(VariantsAvailable(FAMILY), 30_000)
    assert bench.scheduler.corrections[CPU] == {}
    assert bench.scheduler.slowdown[CPU] == 1
