"""The profiler on an executor of known speed, and once on a real one."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgebox.domain.errors import ModelError
from edgebox.domain.model_family import ExecutorId, FamilyName, Variant, VariantName
from edgebox.inference import profiler
from edgebox.inference.executor_thread import BatchResult
from edgebox.inference.onnx_executor import OnnxExecutor
from edgebox.inference.profiler import ProfilingLimits, without_hiccups
from edgebox.inference.sessions import CPU, CUDA
from edgebox.inference.zoo import bundled_folders, load_zoo
from edgebox.media.typical import typical_canvases
from edgebox.vision.detections import Detections

SIZES = (1, 2, 4, 8, 16)
NO_TIME = ProfilingLimits(budget_s=1e-9)
MS = 1_000_000


def variant(width_px: int) -> Variant:
    return Variant(VariantName(f"v-{width_px}"), FamilyName("v"), width_px, 32, 0.5)


class KnownSpeed:
    """An executor that answers at once and claims to have taken what a formula says."""

    id = ExecutorId("known/0")
    device = note = ""
    cpu_threads = 1
    takes_encoded = False
    thread_counts: tuple[int, ...] = ()
    cores = families = ()

    def __init__(self, provider: str, took_ns: Callable[[VariantName, int], int]) -> None:
        self.provider = provider
        self.runs: list[tuple[VariantName, int]] = []
        self.seen: list[list[int]] = []
        self._took_ns = took_ns

    def submit(
        self,
        variant: VariantName,
        canvases: Sequence[Any],
        batch_size: int,
        threads: int = 0,
        *,
        deadline_ns: int | None = None,
    ) -> Future[BatchResult]:
        assert len(canvases) == batch_size
        self.runs.append((variant, batch_size))
        self.seen.append([int(canvas.max()) for canvas in canvases])
        future: Future[BatchResult] = Future()
        found = [Detections.empty() for _ in canvases]
        future.set_result(BatchResult(found, 0, self._took_ns(variant, batch_size)))
        return future

    def warm(self, variants: Sequence[VariantName], batch_sizes: Sequence[int]) -> None: ...

    def abandon(self) -> None: ...

    def close(self) -> None: ...


def plain(variant: Variant) -> list[NDArray[np.uint8]]:
    """Return one grey picture."""
    return [np.full((variant.height_px, variant.width_px, 3), 114, np.uint8)]


profile = partial(profiler.profile, pictures=plain)


def sizes_found(executor: KnownSpeed) -> tuple[int, ...]:
    (found,) = profile(executor, [variant(64)], SIZES, NO_TIME)
    return found.batch_sizes


def test_on_a_cpu_batches_that_gain_nothing_are_not_offered() -> None:
    assert sizes_found(KnownSpeed(CPU, lambda _, size: 10 * MS * size)) == (1,)
    assert sizes_found(KnownSpeed(CPU, lambda _, size: MS * (size + 4))) == SIZES
    # 1 ms + 10 ms a picture: 4.5 % gained by 2, 2.4 % more by 4.
    assert sizes_found(KnownSpeed(CPU, lambda _, size: MS * (1 + 10 * size))) == (1, 2)


def test_on_a_gpu_a_size_that_gains_nothing_does_not_hide_one_that_does() -> None:
    padded = {1: 10, 2: 20, 4: 22, 8: 23, 16: 40}
    assert sizes_found(KnownSpeed(CUDA, lambda _, size: padded[size] * MS)) == SIZES


def test_a_slow_batch_is_the_last() -> None:
    # 120, 180, 300 and 540 ms: the first above 300 ms is still offered, nothing beyond it.
    assert sizes_found(KnownSpeed(CUDA, lambda _, size: (60 + 60 * size) * MS)) == (1, 2, 4, 8)


def test_larger_inputs_are_not_tried_with_more_than_smaller_ones() -> None:
    executor = KnownSpeed(CUDA, lambda name, size: (200 if name == "v-32" else 250) * MS * size)
    small, large = profile(executor, [variant(96), variant(32)], SIZES, NO_TIME)
    assert (small.variant, small.batch_sizes) == ("v-32", (1, 2))
    assert (large.variant, large.batch_sizes) == ("v-96", (1, 2))


def test_profiles_hold_the_measured_times_and_never_fall() -> None:
    times = {("v-32", 1): 9, ("v-32", 2): 8, ("v-64", 1): 7, ("v-64", 2): 20}
    executor = KnownSpeed(CUDA, lambda name, size: times[name, size] * MS)
    small, large = profile(executor, [variant(32), variant(64)], (1, 2), NO_TIME)
    assert [small.quantile_ns(size, 0.5) // MS for size in (1, 2)] == [9, 9]
    assert [large.quantile_ns(size, 0.5) // MS for size in (1, 2)] == [9, 20]
    assert small.executor == "known/0"


def test_times_are_made_to_rise_with_the_size_within_a_network_only() -> None:
    took = {"v-32": 50, "v-64": 20, "v-96": 30}
    executor = KnownSpeed(CPU, lambda name, size: took[name] * MS)
    three = [variant(32), variant(64), variant(96)]
    networks = {VariantName("v-32"): "large", VariantName("v-64"): "n", VariantName("v-96"): "n"}
    separate = profile(executor, three, (1,), NO_TIME, networks=networks)
    assert [each.quantile_ns(1, 0.5) for each in separate] == [50 * MS, 20 * MS, 30 * MS]
    together = profile(executor, three, (1,), NO_TIME)
    assert [each.quantile_ns(1, 0.5) for each in together] == [50 * MS] * 3


def test_runs_are_interleaved() -> None:
    executor = KnownSpeed(CUDA, lambda _, size: MS)
    profile(executor, [variant(32), variant(64)], (1, 2), NO_TIME)
    exploring, measuring = executor.runs[:16], executor.runs[16:]
    assert exploring == sorted(exploring)
    rounds = [measuring[at : at + 4] for at in range(0, len(measuring), 4)]
    assert len(rounds) == 5
    assert all(len(set(one)) == 4 for one in rounds)
    assert len({tuple(one) for one in rounds}) > 1


def test_times_are_those_of_different_pictures() -> None:
    """Half of the pictures take ten times as long: the profile of one picture knew one time."""

    def pictures(of: Variant) -> list[NDArray[np.uint8]]:
        return [np.full((of.height_px, of.width_px, 3), level, np.uint8) for level in (1, 10)]

    class BySight(KnownSpeed):
        def submit(
            self,
            variant: VariantName,
            canvases: Sequence[Any],
            batch_size: int,
            threads: int = 0,
            *,
            deadline_ns: int | None = None,
        ) -> Future[BatchResult]:
            super().submit(variant, canvases, batch_size)
            future: Future[BatchResult] = Future()
            future.set_result(BatchResult([], 0, MS * max(self.seen[-1])))
            return future

    executor = BySight(CUDA, lambda _, __: 0)
    (found,) = profile(executor, [variant(32)], (1, 2), NO_TIME, pictures=pictures)
    assert [found.quantile_ns(1, q) // MS for q in (0, 1)] == [1, 10]
    assert found.quantile_ns(2, 0.05) // MS == 10, "a batch of two sees both"
    exploring, measuring = executor.seen[:8], executor.seen[8:]
    assert all(set(seen) == {1} for seen in exploring), "sizes are compared on the same picture"
    assert {1, 10} == {level for seen in measuring if len(seen) == 1 for level in seen}


def test_typical_pictures_show_much_little_and_next_to_nothing() -> None:
    family = load_zoo(bundled_folders()).family("street")
    executor = OnnxExecutor(ExecutorId("cpu/0"), [family], providers="cpu", cpu_threads=1)
    largest = family.variants[-1]
    canvases = typical_canvases(largest.width_px, largest.height_px)
    found = executor.submit(largest.name, canvases, len(canvases)).result().detections
    executor.close()
    counts = sorted(int((each.scores > 0.3).sum()) for each in found)
    assert counts[0] <= 2
    assert counts[-1] >= 20
    assert len(set(counts)) >= 4


def test_progress_rises_to_one() -> None:
    shares: list[float] = []
    executor = KnownSpeed(CUDA, lambda _, size: MS)
    profile(executor, [variant(32)], (1,), NO_TIME, shares.append)
    assert shares == sorted(shares)
    assert shares[0] == 0.0
    assert shares[-1] == 1.0


def test_progress_goes_on_where_the_rounds_take_longer_than_the_budget() -> None:
    shares: list[float] = []
    executor = KnownSpeed(CUDA, lambda _, size: MS)
    profile(executor, [variant(32)], (1,), NO_TIME, shares.append)
    assert shares == pytest.approx([0.0, 0.3, 0.44, 0.58, 0.72, 0.86, 1.0])


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=200))
def test_only_few_and_only_far_samples_are_left_out(samples: list[int]) -> None:
    kept = without_hiccups(samples)
    gone = sorted(samples)[len(kept) :]
    assert kept == sorted(samples)[: len(kept)]
    assert len(gone) <= max(1, len(samples) // 20)
    middle = sorted(samples)[(len(samples) - 1) // 2]
    assert all(sample > 3 * middle for sample in gone)


def test_one_pause_of_the_machine_does_not_become_the_p99() -> None:
    assert max(without_hiccups([10] * 30 + [11] * 9 + [500])) == 11
    slow_now_and_then = [10] * 30 + [50] * 10
    assert without_hiccups(slow_now_and_then).count(50) >= 8


def test_a_real_executor_is_measured_within_its_budget() -> None:
    family = load_zoo(bundled_folders()).family("street")
    executor = OnnxExecutor(ExecutorId("cpu/0"), [family], providers="cpu", cpu_threads=1)
    small = family.variants[:2]
    profiles = profile(executor, small, family.batch_sizes(4), ProfilingLimits(budget_s=0.2))
    assert [p.variant for p in profiles] == [v.name for v in small]
    assert all(p.quantile_ns(1, 0.5) > 10_000 for p in profiles)
    executor.close()
    with pytest.raises(ModelError, match="closed"):
        profile(executor, small, (1,))
