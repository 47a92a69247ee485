"""What a mix of variants takes of the executors' time."""

from dataclasses import replace

import pytest

from edgebox.domain.model_family import ExecutorId
from edgebox.planning.capacity import ExecutorPool, batch_times, batching_pays
from tests.planning.scene import snapshot
from tests.scheduling.scene import CPU, MS, name

TWO = (CPU, ExecutorId("cpu/1"))
S = 1000 * MS


def test_without_gain_from_batches_a_rate_costs_its_single_batches() -> None:
    of = batch_times(snapshot([]), 0.99)[name(256)]
    assert of.single_ns == 12 * MS
    for window_ns in (1, S):
        assert of.share(25, window_ns) == pytest.approx(25 * 0.012)


@pytest.mark.parametrize(
    ("rate_hz", "window_ms", "per_request_ms"),
    [
        (5, 100, 12),  # half a request gathers: no batch
        (20, 100, 7.2),  # two: a batch of two takes 14.4 ms
        (30, 100, 6.4),  # three: a batch of four takes 19.2 ms
        (400, 100, 3.6),  # forty: batches of eight, the largest there are, take 28.8 ms
        (400, 20, 4.8),  # eight, but only a batch of four fits the window
        (400, 1, 12),  # not even one fits: it runs all the same
    ],
)
def test_a_batch_counts_when_enough_requests_gather_and_it_fits(
    rate_hz: float, window_ms: int, per_request_ms: float
) -> None:
    of = batch_times(snapshot([], gain=0.8), 0.99)[name(256)]
    share = of.share(rate_hz, window_ms * MS)
    assert share == pytest.approx(rate_hz * per_request_ms / 1000)


def test_two_executors_share_the_work_and_slowdown_counts() -> None:
    of = batch_times(snapshot([], executors=TWO, slowdown=1.5), 0.99)[name(256)]
    assert of.single_ns == 18 * MS
    assert of.share(10, S) == pytest.approx(10 * 0.018 / 2)


def test_others_that_run_slow_what_is_planned_for() -> None:
    of = snapshot([], executors=(CPU, ExecutorId("cpu/1")))
    profiles = {
        executor: {variant: replace(p, interference=0.4) for variant, p in known.items()}
        for executor, known in of.profiles.items()
    }
    plain, beside = batch_times(of, 0.99), replace(of, profiles=profiles, others=0.5)
    slowed = batch_times(beside, 0.99)
    for variant in slowed:
        assert slowed[variant].single_ns == pytest.approx(1.2 * plain[variant].single_ns, rel=1e-6)
    # A part of the executors still has all the others beside it.
    part = ExecutorPool(beside, 0.99).timing((CPU,))
    assert part[name(128)].single_ns == slowed[name(128)].single_ns


@pytest.mark.parametrize(
    ("gain", "pays"),
    [
        (0.0, False),
        (0.22, False),  # a batch of eight takes 6.46 times one: 0.81 each
        (0.23, True),  # 0.799
        (0.9, True),
    ],
)
def test_full_batches_are_worth_it_where_they_save_a_fifth(gain: float, pays: bool) -> None:
    assert batching_pays(batch_times(snapshot([], gain=gain), 0.99)) is pays
    both = batch_times(snapshot([], gain=gain, executors=TWO, slowdown=2.0), 0.99)
    assert batching_pays(both) is pays


def test_one_variant_whose_batches_pay_is_enough() -> None:
    plain = batch_times(snapshot([], gain=0.0), 0.99)
    paying = batch_times(snapshot([], gain=0.9), 0.99)
    assert batching_pays({**plain, name(608): paying[name(608)]})
    assert not batching_pays({})


def test_only_executors_with_the_same_variants_may_work_apart() -> None:
    of = snapshot([], executors=TWO)
    assert ExecutorPool(of, 0.99).executors == TWO
    assert ExecutorPool(of, 0.99, divisible=False).executors == ()
    fewer = dict(list(of.profiles[TWO[1]].items())[:3])
    differ = ExecutorPool(replace(of, profiles={**of.profiles, TWO[1]: fewer}), 0.99)
    assert differ.executors == ()
    assert differ.all_executors == TWO
    assert differ.together[name(608)].batches == differ.timing(TWO[:1])[name(608)].batches


def test_executors_that_are_alike_share_what_is_known_of_their_batches() -> None:
    four = tuple(ExecutorId(f"gpu/{at}") for at in range(4))
    of = snapshot([], executors=four)
    alike = ExecutorPool(of, 0.99)
    assert alike.timing(four[:2]) is alike.timing(four[2:])
    assert alike.timing(four[:2]) is not alike.timing(four[:3])
    last = ExecutorPool(replace(of, slowdown={four[3]: 2.0}), 0.99)
    assert last.timing(four[:1]) is last.timing(four[2:3])
    times = {at: last.timing(four[at : at + 1])[name(608)].single_ns for at in range(4)}
    assert times == {0: times[0], 1: times[0], 2: times[0], 3: 2 * times[0]}
