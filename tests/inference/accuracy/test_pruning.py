"""Dominated variants: worked by hand, and promises that hold for whatever hypothesis finds."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.inference.accuracy.pruning import GAIN_MIN, PICTURES_MIN, VariantTradeOff, dominated

CPU, GPU = ExecutorId("cpu/0"), ExecutorId("cuda:0/0")
NOISE = np.random.default_rng(5).normal(0.0, 1.0, 200)


def weighed(  # noqa: PLR0917 - rows of a table
    name: str, pixels: int, ms: float, accuracy: float, own: float = 0.0, gpu_ms: float = 1.0
) -> VariantTradeOff:
    """Return a variant; resamples have much noise in common, and some of its own."""
    noise = np.random.default_rng(len(name)).normal(0.0, own, 200) if own else 0.0
    took = {CPU: int(ms * 1e6), GPU: int(gpu_ms * 1e6)}
    return VariantTradeOff(
        VariantName(name), pixels, took, accuracy, accuracy + 0.05 * NOISE + noise
    )


def test_slower_and_worse_is_set_aside_with_the_reason() -> None:
    found = dominated([weighed("b", 2, 20, 0.58), weighed("a", 1, 10, 0.6)], 100)
    assert found == {
        "b": "a is no slower (10.0 ms, this 20.0 ms) and no less accurate (0.600, this 0.580)"
    }


def test_what_could_still_be_better_stays() -> None:
    small, large = weighed("a", 1, 10, 0.6), weighed("bb", 2, 20, 0.598, own=0.02)
    assert large.gain_max(small) > GAIN_MIN
    assert dominated([small, large], 100) == {}


def test_noise_that_both_share_decides_nothing() -> None:
    small, large = weighed("a", 1, 10, 0.6), weighed("bb", 2, 20, 0.598)
    assert large.resampled.std() > 0.04
    assert set(dominated([small, large], 100)) == {"bb"}


def test_few_pictures_decide_nothing() -> None:
    both = [weighed("a", 1, 10, 0.6), weighed("b", 2, 20, 0.1)]
    assert dominated(both, PICTURES_MIN - 1) == {}
    assert set(dominated(both, PICTURES_MIN)) == {"b"}


def test_smaller_pictures_are_worth_keeping_for_weak_links() -> None:
    assert dominated([weighed("small", 1, 10, 0.4), weighed("large", 2, 10, 0.6)], 100) == {}


def test_faster_anywhere_is_worth_keeping() -> None:
    slow_on_cpu = weighed("b", 1, 20, 0.5, gpu_ms=0.5)
    assert dominated([weighed("a", 1, 10, 0.6), slow_on_cpu], 100) == {}


def test_of_twins_one_stays() -> None:
    assert set(dominated([weighed("a", 1, 10, 0.5), weighed("b", 1, 10, 0.5)], 100)) == {"b"}


variants = st.lists(
    st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(0, 20), st.integers(0, 3)),
    min_size=1,
    max_size=7,
)


@given(variants)
def test_whoever_is_set_aside_has_a_better_one_that_stays(
    rows: list[tuple[int, int, int, int]],
) -> None:
    every = {
        f"v{n:0{n + 1}}": weighed(f"v{n:0{n + 1}}", pixels, ms, accuracy / 20, own / 100)
        for n, (pixels, ms, accuracy, own) in enumerate(rows)
    }
    aside = dominated(list(every.values()), 100)
    kept = [each for name, each in every.items() if name not in aside]
    for name, each in every.items():
        better = [
            other
            for other in kept
            if other.name != name
            and other.pixels <= each.pixels
            and other.took_ns[CPU] <= each.took_ns[CPU]
            and other.accuracy >= each.accuracy
            and each.gain_max(other) < GAIN_MIN
        ]
        assert name not in aside or better
    assert kept
    best = max(each.accuracy for each in every.values())
    assert max(each.accuracy for each in kept) > best - GAIN_MIN
