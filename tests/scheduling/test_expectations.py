"""What applications are expected to take, and what admission and snapshots make of it."""

from itertools import count, pairwise

import numpy as np
import pytest

from edgebox.domain.model_family import LatencyProfile, VariantName, Weights, WeightsId
from edgebox.domain.requests import DropReason, Outcome, RequestId
from edgebox.scheduling.actions import Action, ComputePlan, Drop, Finish, Infer, Prepare
from edgebox.scheduling.adaptive import DistributionAware
from edgebox.scheduling.distributions import SAMPLES_MIN
from edgebox.scheduling.events import (
    BatchCompleted,
    CameraConnected,
    MemoryLimited,
    RequestArrived,
    RequestPrepared,
    RequestSampled,
)
from edgebox.scheduling.expectations import STALE_NS
from edgebox.scheduling.policies import make_policy
from edgebox.scheduling.request_stages import Cause
from edgebox.scheduling.scheduler import SchedulerParameters
from tests.scheduling.scene import (
    CPU,
    LARGE,
    MS,
    STREET,
    Bench,
    camera,
    infers,
    name,
    profile,
    request,
    row,
)

SLOW = name(608)
"""Takes 40 ms by its profile; the smallest of the family, 128, takes 2 ms."""


def learned(
    bench: Bench,
    app: str,
    took_ms: float,
    *,
    px: int = 608,
    samples: int = 200,
    at_ms: float = 1,
) -> None:
    for _ in range(samples):
        bench(RequestSampled(CPU, name(px), app, round(took_ms * MS)), at_ms)


def only(px: int, **parameters: object) -> Bench:
    """Return a box with one variant."""
    made = SchedulerParameters(first_pixels_max=LARGE, **parameters)  # type: ignore[arg-type]
    return Bench([profile(px)], made, DistributionAware())


def admitted(bench: Bench, app: str, left_ms: float, number: int = 1) -> object:
    at_ms = 10 * number
    bench(CameraConnected(camera("gate", app=app)), at_ms)
    # Decoding is taken to cost 4 ms.
    arrived = request(number, at_ms + 4 + left_ms, of="gate", app=app)
    ended = [a for a in bench(RequestArrived(arrived), at_ms) if isinstance(a, (Prepare, Drop))]
    assert len(ended) == 1, ended
    return ended[0]


def test_a_short_application_under_a_long_profile_is_admitted() -> None:
    """200 samples of a tenth of the profile, and half of the profile's time left."""
    bench = only(608, sample_share=0)
    assert admitted(bench, "short", 24) == Drop(RequestId(1), DropReason.INFEASIBLE, Cause.REFUSED)
    learned(bench, "short", 4, at_ms=11)
    assert admitted(bench, "short", 24, 2) == Prepare(RequestId(2), SLOW)


def test_a_long_application_under_a_short_profile_is_not() -> None:
    bench = only(608, sample_share=0)
    learned(bench, "long", 120)
    assert admitted(bench, "long", 100) == Drop(RequestId(1), DropReason.INFEASIBLE, Cause.REFUSED)
    assert admitted(bench, "other", 100, 2) == Prepare(RequestId(2), SLOW)


def test_one_shot_requests_go_by_their_application_too() -> None:
    bench = only(608, sample_share=0)
    learned(bench, "short", 4)
    [sent] = bench(RequestArrived(request(1, 10 + 4 + 6, of="http", variant=SLOW)), 10)
    assert sent == Drop(RequestId(1), DropReason.INFEASIBLE, Cause.REFUSED)


def plans(actions: list[Action]) -> list[ComputePlan]:
    return [each for each in actions if isinstance(each, ComputePlan)]


def test_what_was_learned_at_one_size_holds_at_another() -> None:
    bench = Bench(parameters=SchedulerParameters(first_pixels_max=LARGE, sample_share=0))
    learned(bench, "long", 8, px=128)  # four times the profile
    alone = bench.scheduler.times.expectations.single_request(SLOW, "long")
    assert alone is not None
    assert alone.usual_ns == pytest.approx(160 * MS, rel=0.05)


def test_a_variant_that_is_not_in_memory_is_planned_by_what_was_learned_too() -> None:
    bench = Bench(parameters=SchedulerParameters(first_pixels_max=LARGE, sample_share=0))
    stock = tuple(
        Weights(WeightsId(name(px)), STREET, 10, px * px, (name(px),)) for px in (128, 608)
    )
    bench(MemoryLimited(CPU, 10, stock, (stock[0].id,)), 0)
    learned(bench, "long", 8, px=128)  # four times the profile
    bench(CameraConnected(camera(app="long")), 2)
    own = bench.scheduler.snapshot(3 * MS).applications["long"][CPU][SLOW]
    assert own.quantile_ns(1, 0.5) == pytest.approx(160 * MS, rel=0.05)
    assert bench.scheduler.times.expectations.single_request(SLOW, "long") is None


def test_what_was_learned_lately_elsewhere_counts_for_more() -> None:
    bench = Bench(parameters=SchedulerParameters(first_pixels_max=LARGE, sample_share=0))
    learned(bench, "gate", 120)
    at_ms = 2 + STALE_NS / MS
    for _ in range(20):
        bench(RequestSampled(CPU, name(128), "gate", 2 * MS), at_ms)
    alone = bench.scheduler.times.expectations.single_request(SLOW, "gate")
    assert alone is not None
    assert alone.usual_ns == pytest.approx(40 * MS, rel=0.05)


def test_the_snapshot_has_the_profiles_of_those_that_differ_only() -> None:
    bench = Bench(parameters=SchedulerParameters(first_pixels_max=LARGE, sample_share=0))
    learned(bench, "short", 4)
    bench(CameraConnected(camera("one", app="short")), 2)
    bench(CameraConnected(camera("two", app="usual")), 2)
    snapshot = bench.scheduler.snapshot(3 * MS)
    assert set(snapshot.applications) == {"short"}
    own = snapshot.applications["short"][CPU][SLOW]
    assert own.quantile_ns(1, 0.5) == pytest.approx(4 * MS, rel=0.05)
    assert (
        bench.scheduler.times.expectations.profile(CPU, SLOW, "usual")
        is snapshot.profiles[CPU][SLOW]
    )


def test_a_learned_profile_of_a_plan_stays_until_there_is_news() -> None:
    bench = only(608, sample_share=0)
    learned(bench, "short", 4)
    (plan,) = plans(bench(CameraConnected(camera("gate", app="short")), 2))
    before = plan.snapshot.applications["short"][CPU][SLOW]
    learned(bench, "short", 4.2, at_ms=3)
    assert bench.scheduler.times.expectations.profile(CPU, SLOW, "short") is before
    learned(bench, "short", 8, samples=2000, at_ms=3)
    after = bench.scheduler.times.expectations.profile(CPU, SLOW, "short")
    assert after.quantile_ns(1, 0.5) == pytest.approx(8 * MS, rel=0.05)


def test_who_asks_between_plans_changes_no_plan() -> None:
    benches = [only(608, sample_share=0) for _ in range(2)]
    made = []
    for asked, bench in enumerate(benches):
        learned(bench, "short", 4)
        if asked:
            bench.scheduler.times.expectations.single_request_percentiles(CPU, SLOW, "short")
        learned(bench, "short", 4.2)  # close to what was learned before
        made += plans(bench(CameraConnected(camera("gate", app="short")), 2))
    unasked, asked_before = made
    assert unasked == asked_before
    assert unasked.snapshot.applications


def test_what_would_never_be_admitted_is_tried_now_and_then_and_learned() -> None:
    """By its profile a frame takes 40 ms; it really takes 4, and 24 are left."""
    bench = only(608)
    bench(CameraConnected(camera("gate", app="short")), 0)
    tried, admitted_at = [], None
    for number in range(1, 5_000):
        at_ms = 100.0 * number
        arrived = bench(RequestArrived(request(number, at_ms + 28, of="gate", app="short")), at_ms)
        if any(isinstance(a, Drop) for a in arrived):
            continue
        tried.append(at_ms)
        [infer] = infers(bench(RequestPrepared(RequestId(number), MS), at_ms + 1))
        bench(BatchCompleted(CPU, infer.batch, 4 * MS), at_ms + 5)
        known = bench.scheduler.times.expectations.single_request(SLOW, "short")
        assert known is not None
        if known.usual_ns < 24 * MS:
            admitted_at = number
            break
    assert admitted_at is not None
    gaps = [after - before for before, after in pairwise(tried)]
    assert min(gaps) >= 400, "a hundredth of an executor's time at most"
    assert max(gaps) <= 600, "of what it took, not of what it was thought to take"
    assert len(tried) <= 20


def test_who_is_known_to_be_too_long_is_tried_all_the_same() -> None:
    """By a hundred samples a frame takes 40 ms; it takes 4 from now on, and 24 are left."""
    bench = only(608)
    learned(bench, "was-long", 40, samples=100)
    bench(CameraConnected(camera("gate", app="was-long")), 2)
    answered = []
    for number in range(1, 1_000):
        at_ms = 100.0 * number
        frame = request(number, at_ms + 28, of="gate", app="was-long")
        bench(RequestArrived(frame), at_ms)
        for infer in infers(bench(RequestPrepared(frame.id, MS), at_ms + 1)):
            bench(BatchCompleted(CPU, infer.batch, 4 * MS), at_ms + 5)
            answered.append(at_ms)
    assert sum(at_ms > 70_000 for at_ms in answered) > 290, "served for good within a minute"


def test_nothing_is_tried_while_anybody_waits() -> None:
    bench = only(608)
    bench(CameraConnected(camera("gate", app="short")), 0)
    bench(CameraConnected(camera("yard", app="usual")), 0)
    bench(RequestArrived(request(1, 500, of="yard", app="usual")), 1)
    [dropped] = bench(RequestArrived(request(2, 2 + 28, of="gate", app="short")), 2)
    assert dropped == Drop(RequestId(2), DropReason.INFEASIBLE, Cause.REFUSED)


def test_a_frame_that_is_tried_ends_when_it_is_too_late() -> None:
    bench = only(608)
    bench(CameraConnected(camera("gate", app="short")), 0)
    [ordered] = bench(RequestArrived(request(1, 28, of="gate", app="short")), 0)
    assert isinstance(ordered, Prepare)
    assert bench.scheduler.next_wakeup_ns() == 28 * MS + 1
    ended = [a for a in bench(None, 29) if not isinstance(a, ComputePlan)]
    assert ended == [Drop(RequestId(1), DropReason.INFEASIBLE, Cause.TRIAL_EXPIRED)]


def in_mixed_batches(bench: Bench, rounds: int, *, long_ms: float) -> float:
    """Serve frames of a long application beside usual ones only; return when the last ended."""
    numbers = count(1)

    def arrive(of: str, at_ms: float) -> list[Infer]:
        number = next(numbers)
        arrived = request(number, at_ms + 2_000, of=of, app=of, arrival_ms=at_ms)
        bench(RequestArrived(arrived), at_ms)
        return infers(bench(RequestPrepared(RequestId(number), MS), at_ms + 1))

    at_ms = 10.0
    for _ in range(rounds):
        [first] = arrive("usual", at_ms)
        assert arrive("long", at_ms + 2) == arrive("usual", at_ms + 4) == []
        ended = bench(BatchCompleted(CPU, first.batch, 40 * MS), at_ms + 41)
        [mixed] = infers(ended)
        assert len(mixed.requests) == 2
        bench(BatchCompleted(CPU, mixed.batch, round(long_ms * MS)), at_ms + 50 + long_ms)
        at_ms += 400
    return at_ms


def test_what_is_only_ever_served_in_mixed_batches_is_known_too() -> None:
    """A batch of two takes 44 ms by the profile; with one of the long application in it 132."""
    parameters = SchedulerParameters(first_pixels_max=LARGE, sample_share=0)
    bench = Bench([profile(608, gain=0.9)], parameters)
    learned(bench, "usual", 40)
    for of in ("usual", "long"):
        bench(CameraConnected(camera(of, app=of, slo_ms=2_000)), 2)
    at_ms = in_mixed_batches(bench, 150, long_ms=132)
    direct = bench.scheduler.times.learning.distribution(SLOW, "long")
    assert direct is not None and direct.samples == 0
    own = bench.scheduler.snapshot(round(at_ms * MS)).applications["long"][CPU][SLOW]
    assert own.quantile_ns(1, 0.5) == pytest.approx(3 * 40 * MS, rel=0.1)
    arrived = request(9_000, at_ms + 4 + 100, of="long", app="long", arrival_ms=at_ms)
    assert Drop(RequestId(9_000), DropReason.INFEASIBLE, Cause.REFUSED) in bench(
        RequestArrived(arrived), at_ms
    )


@pytest.mark.parametrize(
    ("samples", "measured_ms", "high_ms"),
    [(5, 1, 80), (5, None, 400), (5, 1 - STALE_NS / MS, 400), (SAMPLES_MIN, 1, 120)],
    ids=["measured elsewhere", "nowhere else", "long ago", "measured here"],
)
def test_single_requests_at_another_size_outweigh_what_batches_say_of_this_one(
    samples: int, measured_ms: float | None, high_ms: float
) -> None:
    """An inference from few batches keeps the tail of the profile."""
    bench = Bench(parameters=SchedulerParameters(first_pixels_max=LARGE, sample_share=0))
    offset_ms = 2 * STALE_NS / MS
    if measured_ms is not None:
        learned(bench, "gate", 4, px=128, at_ms=offset_ms + measured_ms)  # twice the profile
    learned(bench, "gate", 120, samples=samples, at_ms=offset_ms + 1)
    if samples < SAMPLES_MIN:
        inferred = bench.scheduler.times.learning.distribution(SLOW, "gate")
        assert inferred is not None
        inferred.infer(np.array([2.0] * 60 + [10.0] * 4), round((offset_ms + 2) * MS))
    known = bench.scheduler.times.expectations.single_request(SLOW, "gate")
    assert known is not None
    assert known.high_ns == pytest.approx(high_ms * MS, rel=0.05)


def test_queries_have_no_side_effects() -> None:
    bench = only(608)
    expectations = bench.scheduler.times.expectations
    for number in range(100):
        expectations.single_request(SLOW, f"app-{number}")
        expectations.profile(CPU, SLOW, f"app-{number}")
    assert len(bench.scheduler.times.learning.distributions(SLOW)) == 0
    assert expectations.single_request(VariantName("nothing"), "gate") is None


@pytest.mark.parametrize("policy", ["edf", "adaptive"])
@pytest.mark.parametrize(
    "rows",
    [{1: row(100), 2: row(200)}, {1: (100 * MS,) * 9, 2: (104 * MS,) * 9}],
    ids=["all work", "hardly any work"],
)
def test_what_was_admitted_is_not_lost_while_it_waits(
    policy: str, rows: dict[int, tuple[int, ...]]
) -> None:
    """A tenth of the profile's 100 ms, 60 ms left: it waits behind another, and is answered."""
    parameters = SchedulerParameters(first_pixels_max=LARGE, sample_share=0)
    box = Bench([LatencyProfile(SLOW, CPU, rows)], parameters, make_policy(policy))
    learned(box, "short", 10)
    for number, left_ms in ((1, 500), (2, 64)):
        arrived = request(number, 10 + left_ms, arrival_ms=10, app="short", variant=SLOW)
        assert any(isinstance(a, Prepare) for a in box(RequestArrived(arrived), 10))
    (first,) = infers(box(RequestPrepared(RequestId(1), 0), 10))
    assert box(RequestPrepared(RequestId(2), 0), 14) == []
    actions = box(BatchCompleted(CPU, first.batch, 12 * MS), 22)
    (second,) = infers(actions)
    assert second.requests == (RequestId(2),)
    ended = box(BatchCompleted(CPU, second.batch, 10 * MS), 32)
    assert Finish(RequestId(2), second.batch, Outcome.ON_TIME) in ended


def test_earliest_deadline_first_drops_whom_its_application_leaves_no_time() -> None:
    box = Bench([profile(608)], SchedulerParameters(first_pixels_max=LARGE, sample_share=0))
    learned(box, "long", 400)
    for number, app in ((1, "new"), (2, "long"), (3, "new")):
        arrived = request(number, 500 + number, app=app, variant=SLOW)
        box(RequestArrived(arrived), 10)
    (first,) = infers(box(RequestPrepared(RequestId(1), 0), 10))
    box(RequestPrepared(RequestId(2), 0), 10)
    box(RequestPrepared(RequestId(3), 0), 10)
    actions = box(BatchCompleted(CPU, first.batch, 150 * MS), 160)
    assert [a.request for a in actions if isinstance(a, Drop)] == [RequestId(2)]
    assert [a.requests for a in infers(actions)] == [(RequestId(3),)]
