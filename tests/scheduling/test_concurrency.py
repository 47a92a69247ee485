"""How many batches run at once on a device: the rule, and that dispatch keeps to it."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.interference import MeasuredInterference, with_interference
from edgebox.domain.model_family import ExecutorId, FamilyName, LatencyProfile, VariantName
from edgebox.domain.requests import RequestId
from edgebox.scheduling.concurrency import (
    ALIKE,
    GAIN_MIN,
    GAIN_MIN_ALIKE,
    concurrent_batches,
    device_concurrency,
    gain_min,
    throughput_gains,
)
from edgebox.scheduling.events import (
    BatchCompleted,
    CameraConnected,
    RequestArrived,
    RequestPrepared,
)
from edgebox.scheduling.policies import POLICIES
from edgebox.scheduling.scheduler import SchedulerParameters
from tests.scheduling.scene import MEDIAN_MS, MS, Bench, camera, infers, name, profile, request

K = st.floats(0, 3)


def executors(count: int, device: str = "cuda:0") -> list[ExecutorId]:
    return [ExecutorId(f"{device}/{at}") for at in range(count)]


def profiles(k: float, of: Iterable[ExecutorId], *pixels: int) -> list[LatencyProfile]:
    return [replace(profile(px, each), interference=k) for each in of for px in pixels or (128,)]


@pytest.mark.parametrize(
    ("k", "streams", "limit"),
    [(0.0, 8, 8), (0.05, 12, 12), (0.15, 4, 4), (0.3, 4, 4), (0.45, 4, 2), (0.6, 2, 2), (0.6, 4, 2),
     (0.7, 2, 1), (1.0, 4, 1), (1.5, 4, 1)],
)  # fmt: skip
def test_the_number_at_once_follows_from_interference(k: float, streams: int, limit: int) -> None:
    gains = throughput_gains(profiles(k, executors(1)), streams)
    assert gains == pytest.approx([n / (1 + k * (n - 1)) for n in range(1, streams + 1)])
    assert concurrent_batches(gains) == limit


def test_what_was_never_measured_beside_others_does_not_lift_the_limit() -> None:
    there = executors(3)
    known = {
        each: {name(px): of for px in (128, 256) for of in profiles(1.0, [each], px)}
        for each in there
    }
    (before,) = device_concurrency(known).values()
    for each in there:
        known[each] |= {VariantName(f"new-{px}"): profile(px, each) for px in (128, 256)}
    (after,) = device_concurrency(known).values()
    assert (before.limit, after.limit) == (1, 1)
    assert before.gains == after.gains == pytest.approx((1, 1, 1))


@pytest.mark.parametrize(("k", "limit"), [(0.3, 4), (0.45, 4), (0.6, 4), (0.8, 2), (1.0, 1)])
def test_more_at_once_let_a_short_batch_pass_a_long_one(k: float, limit: int) -> None:
    there = executors(4)
    unlike = profiles(k, there, 128, 608)
    assert MEDIAN_MS[608] > ALIKE * MEDIAN_MS[128]
    known = {
        executor: {of.variant: of for of in unlike if of.executor == executor} for executor in there
    }
    assert device_concurrency(known)["cuda:0"].limit == limit
    assert gain_min(unlike) == GAIN_MIN
    assert gain_min(profiles(k, there)) == GAIN_MIN_ALIKE


@given(
    st.lists(st.floats(0.01, 100), min_size=1, max_size=12),
    st.sampled_from([GAIN_MIN, GAIN_MIN_ALIKE]),
)
def test_every_batch_at_once_is_worthwhile(gains: list[float], least: float) -> None:
    limit = concurrent_batches(gains, least)
    steps = [after - before for before, after in pairwise(gains)]
    assert all(step >= least for step in steps[: limit - 1])
    assert limit == len(gains) or steps[limit - 1] < least


@given(st.floats(0, 0.1), st.integers(1, 8))
def test_executors_that_hardly_interfere_are_not_limited(k: float, streams: int) -> None:
    assert concurrent_batches(throughput_gains(profiles(k, executors(1)), streams)) == streams


@given(K, K, st.integers(1, 6), st.integers(1, 6))
def test_devices_are_limited_apart(here: float, there: float, one: int, other: int) -> None:
    known = {
        of.executor: {of.variant: of}
        for of in profiles(here, executors(one)) + profiles(there, executors(other, "cpu"))
    }
    found = device_concurrency(known)
    for device, k, count in (("cuda:0", here, one), ("cpu", there, other)):
        gains = [n / (1 + k * (n - 1)) for n in range(1, count + 1)]
        assert found[device].limit == concurrent_batches(gains)
        assert len(found[device].executors) == count
    assert all(
        of.limit == min(2, len(of.executors)) for of in device_concurrency(known, 2).values()
    )


@given(
    st.dictionaries(st.integers(1, 8), st.lists(st.floats(1, 9), min_size=1), min_size=1),
    st.floats(0, 12),
    st.floats(0, 2),
)
def test_measured_factors_are_kept_and_never_fall(
    factors: dict[int, list[float]], others: float, more: float
) -> None:
    variant, street = name(128), FamilyName("street")
    measured = [
        MeasuredInterference(variant, street, n, factor)
        for n, of in factors.items()
        for factor in of
    ]
    of = with_interference(profile(128), measured)
    assert len(of.interference_factors) == max(factors)
    assert of.slowed(0) == 1.0
    assert 1.0 <= of.slowed(others) <= of.slowed(others + more) + 1e-9
    least = min(factors)
    assert of.slowed(least) == pytest.approx(sum(factors[least]) / len(factors[least]))
    unmeasured = profile(256)
    assert with_interference(unmeasured, measured) == unmeasured


class Box:
    """A box that is fed requests and lets batches end; it notes what ran at once."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.at_once: list[Counter[str]] = []
        self.ran: list[tuple[ExecutorId, VariantName]] = []

    def tell(self, event: object, at_ms: float) -> None:
        for infer in infers(self.bench(event, at_ms)):  # type: ignore[arg-type]
            self.ran.append((infer.executor, infer.variant))
        running = self.bench.scheduler.running
        self.at_once.append(Counter(each.rpartition("/")[0] for each in running))

    def come(self, at: int, at_ms: float, px: int = 128) -> None:
        of = request(at, at_ms + 2000, arrival_ms=at_ms)
        self.tell(RequestArrived(replace(of, variant=name(px))), at_ms)
        self.tell(RequestPrepared(RequestId(at), MS), at_ms)

    def end(self, executor: ExecutorId, at_ms: float) -> None:
        batch = self.bench.scheduler.running[executor].batch
        self.tell(BatchCompleted(executor, batch, 2 * MS), at_ms)


def box_of(of: list[LatencyProfile], *, policy: str = "edf", concurrent_batches: int = 0) -> Box:
    parameters = SchedulerParameters(concurrent_batches=concurrent_batches, sample_share=0.0)
    bench = Bench(of, parameters=parameters, policy=POLICIES[policy]())
    bench(CameraConnected(camera(slo_ms=2000)), 0)
    return Box(bench)


@given(
    k=st.sampled_from([0.0, 0.3, 0.6, 1.0, 2.0]),
    counts=st.tuples(st.integers(1, 4), st.integers(0, 2)),
    configured=st.sampled_from([0, 0, 1, 2]),
    policy=st.sampled_from(["edf", "adaptive"]),
    ends=st.lists(st.booleans(), min_size=4, max_size=24),
)
def test_never_more_at_once_on_a_device_than_its_limit(
    k: float, counts: tuple[int, int], configured: int, policy: str, ends: list[bool]
) -> None:
    there = executors(counts[0]) + executors(counts[1], "cpu")
    box = box_of(profiles(k, there), policy=policy, concurrent_batches=configured)
    limits = box.bench.scheduler.times.latencies.concurrency
    for at, ended in enumerate(ends):
        if ended and box.bench.scheduler.running:
            box.end(min(box.bench.scheduler.running), at * 3 + 2)
        else:
            box.come(at, at * 3 + 2)
    for at_once in box.at_once:
        for device, count in at_once.items():
            assert count <= limits[device].limit
    running = box.at_once[-1]
    # No policy here leaves an executor idle beside a queue, so only the limits may.
    if box.bench.scheduler.queue_length:
        assert all(running[device] == of.limit for device, of in limits.items())


def test_executors_that_may_not_run_at_once_take_turns() -> None:
    one, other = executors(2)
    box = box_of([*profiles(1.0, [one], 128), *profiles(1.0, [other], 256)])
    # Requests of the variant that only the first has come without end.
    for at in range(4):
        box.come(at, 2)
    box.come(4, 2, px=256)
    for at in range(5, 9):
        box.come(at, 3 + at)
        (running,) = box.bench.scheduler.running
        box.end(running, 3 + at)
    assert (other, name(256)) in box.ran[:3]
