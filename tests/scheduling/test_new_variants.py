"""A variant that was not offered before: nothing is known of it, whatever had its name."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.learned import Learned, LearnedDrift
from edgebox.domain.model_family import LatencyProfile
from edgebox.domain.requests import BatchId, RequestId
from edgebox.scheduling.actions import Infer
from edgebox.scheduling.batch_times import BatchTimes
from edgebox.scheduling.events import (
    ExecutorStarted,
    LearningRestored,
    RequestSampled,
    VariantsAvailable,
)
from edgebox.scheduling.expected_latencies import Latencies
from edgebox.scheduling.learning import Learning
from edgebox.scheduling.scheduler import SchedulerParameters
from edgebox.simulation.faults.judge import World
from tests.scheduling.scene import CPU, FAMILY, MEDIAN_MS, MS, Bench, name, profile

NEW, KEPT = name(256), name(128)
OTHERS = tuple(variant for variant in FAMILY if variant.name != NEW)
SLOWER = 10


def slower(of: LatencyProfile) -> LatencyProfile:
    return of.scaled(SLOWER)


def usual_ms(bench: Bench, app: str = "gate") -> float:
    alone = bench.scheduler.times.expectations.single_request(NEW, app)
    assert alone is not None
    return alone.usual_ns / MS


def exchanged(bench: Bench, at_ms: float) -> None:
    """Withdraw a variant, as where its family was removed, and offer another under its name."""
    kept = [profile(px) for px in MEDIAN_MS if name(px) != NEW]
    bench(ExecutorStarted(CPU, tuple(kept)), at_ms)
    bench(VariantsAvailable(OTHERS), at_ms)
    bench(VariantsAvailable(FAMILY), at_ms)
    bench(ExecutorStarted(CPU, (*kept, slower(profile(256)))), at_ms)


def test_another_model_under_a_name_inherits_no_execution_times() -> None:
    bench = Bench()
    for at in range(200):
        for variant in (NEW, KEPT):
            bench(RequestSampled(CPU, variant, "gate", 6 * MS), at)
    assert usual_ms(bench) == pytest.approx(6, rel=0.05)
    exchanged(bench, 300)
    learning = bench.scheduler.times.learning
    # Of its family, what was learned elsewhere still says what the application takes.
    assert not learning.is_known(NEW, "gate")
    assert learning.is_known(KEPT, "gate")
    assert usual_ms(bench, "other") == SLOWER * MEDIAN_MS[256]
    bench(RequestSampled(CPU, NEW, "gate", 70 * MS), 301)
    found = learning.distribution(NEW, "gate")
    assert found is not None
    assert found.samples == 1


def test_what_is_offered_again_in_another_order_keeps_what_was_learned() -> None:
    bench = Bench()
    for at in range(200):
        bench(RequestSampled(CPU, NEW, "gate", 6 * MS), at)
    bench(VariantsAvailable((*FAMILY[::-1],)), 300)
    assert usual_ms(bench) == pytest.approx(6, rel=0.05)


def test_another_model_under_a_name_inherits_no_profile_that_is_close_to_its_own() -> None:
    def decided(bench: Bench, *each_ms: float) -> LatencyProfile:
        """Return the profile of decisions after models of these times, one after the other."""
        expectations = bench.scheduler.times.expectations
        for took_ms in each_ms:
            bench(VariantsAvailable(OTHERS), 1)
            bench(VariantsAvailable(FAMILY), 1)
            for _ in range(200):
                bench(RequestSampled(CPU, NEW, "gate", round(took_ms * MS)), 1)
            expectations.deciding = True
            found = expectations.profile(CPU, NEW, "gate")
        return found

    # So close that of one model what was learned first would stay.
    assert decided(Bench(), 6, 6.2) == decided(Bench(), 6.2) != decided(Bench(), 6)


def test_another_model_under_a_name_inherits_no_drift() -> None:
    bench = Bench()
    drifts = (LearnedDrift(CPU, NEW, 2.0, 0), LearnedDrift(CPU, KEPT, 3.0, 0))
    bench(LearningRestored(Learned((), drifts)), 0)
    bench(VariantsAvailable(OTHERS), 1)
    bench(VariantsAvailable(FAMILY), 1)
    assert bench.scheduler.corrections == {CPU: {KEPT: 3.0}}
    assert usual_ms(bench) == MEDIAN_MS[256]


def test_the_drift_of_a_variant_that_comes_leaves_that_of_others() -> None:
    bench = Bench()
    bench(LearningRestored(Learned((), (LearnedDrift(CPU, KEPT, 3.0, 0),))), 0)
    bench(LearningRestored(Learned((), (LearnedDrift(CPU, NEW, 2.0, 0),))), 1)
    assert bench.scheduler.corrections == {CPU: {KEPT: 3.0, NEW: 2.0}}


FACTS = st.lists(
    st.tuples(
        st.lists(st.sampled_from("abc"), min_size=1, max_size=4),
        st.floats(0.3, 3),
        st.integers(0, 400),
    ),
    max_size=60,
)


def learn(
    learning: Learning, facts: Sequence[tuple[list[str], float, int]], from_ms: int, ms: float
) -> int:
    """Have batches of these applications take so many times `ms`; return when the last ended."""
    at_ms = from_ms
    for number, (apps, factor, after_ms) in enumerate(facts):
        at_ms += after_ms
        size = 1 << (len(apps) - 1).bit_length()
        members = tuple(RequestId(member) for member in range(len(apps)))
        batch = Infer(CPU, BatchId(number), NEW, members, size)
        took_ns = round(size * ms * factor * MS)
        learning.completed(batch, apps, took_ns, at_ms * MS, at_ms * MS - took_ns)
    return at_ms


FLAT = LatencyProfile(NEW, CPU, {size: (size * MS,) * 9 for size in (1, 2, 4)})


@given(FACTS, FACTS, st.sampled_from([profile(256), slower(profile(256)), FLAT]), st.booleans())
def test_what_was_forgotten_leaves_no_trace(
    before: Sequence[tuple[list[str], float, int]],
    after: Sequence[tuple[list[str], float, int]],
    second: LatencyProfile,
    between: bool,
) -> None:
    """Told of the exchange, `Learning` goes on as one that never knew the model before."""
    latencies, fresh_latencies = Latencies(SchedulerParameters()), Latencies(SchedulerParameters())
    latencies.executor_started(CPU, [profile(256)])
    fresh_latencies.executor_started(CPU, [second])
    learning, fresh = Learning(latencies), Learning(fresh_latencies)
    for app in "abc":
        # Slots outlive it, so that requests which refer to them stay valid.
        learning.app(NEW, app)
        fresh.app(NEW, app)
    at_ms = learn(learning, before, 0, MEDIAN_MS[256])
    if between:
        latencies.executor_started(CPU, [])
        learning.forget([NEW])
        latencies.executor_started(CPU, [second])
    else:
        latencies.executor_started(CPU, [second])
        learning.forget([NEW])
    for one in (learning, fresh):
        learn(one, after, at_ms, second.quantile_ns(1, 0.5) / MS)
    for app in "abc":
        assert learning.known(CPU, NEW, app) == fresh.known(CPU, NEW, app)
        assert learning.is_known(NEW, app) == fresh.is_known(NEW, app)
        for q in (0.01, 0.5, 0.99):
            for size in (1, 2, 4):
                asked = CPU, NEW, [app], size, q
                assert learning.quantile_ns(*asked) == fresh.quantile_ns(*asked)
    own, of_fresh = learning.times(CPU, NEW), fresh.times(CPU, NEW)
    assert isinstance(own, BatchTimes)
    assert isinstance(of_fresh, BatchTimes)
    assert [own.batch_ns(at, 1.0) for at in range(3)] == [
        of_fresh.batch_ns(at, 1.0) for at in range(3)
    ]


def test_the_judge_of_random_events_knows_that_a_new_variant_is_not_excluded() -> None:
    world = World("edf")
    world.tell(VariantsAvailable(FAMILY))
    world.tell(ExecutorStarted(CPU, (profile(256), profile(128))))
    world.excluded[CPU] = {NEW}
    world.scheduler.supervised[CPU].excluded = frozenset((NEW,))
    for offered in (OTHERS, FAMILY):
        world.now_ns += MS
        world.tell(VariantsAvailable(offered))
    world.tell(ExecutorStarted(CPU, (profile(256), profile(128))))
    assert world.loaded[CPU].keys() == world.scheduler.supervised[CPU].variants == {NEW, KEPT}
