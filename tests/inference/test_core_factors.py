"""How much longer batches take on fewer threads, measured: the arithmetic, and real sessions."""

import os
from collections.abc import Sequence
from concurrent.futures import Future

import numpy as np
import pytest

from edgebox.domain.model_family import ExecutorId, FamilyName, Variant, VariantName
from edgebox.inference.core_factor_measurement import measure_core_factors
from edgebox.inference.executor import come_back
from edgebox.inference.executor_thread import BatchResult
from edgebox.inference.machine import offered_threads
from edgebox.inference.null_executor import NullExecutor
from edgebox.inference.onnx_executor import OnnxExecutor
from edgebox.inference.tensors import ModelInput
from edgebox.inference.zoo import bundled_folders, load_zoo

NAME = VariantName("v")
V = Variant(NAME, FamilyName("v"), 32, 32, 0.5)


class TimedExecutor(NullExecutor):
    """An executor whose batches take what the test says, and a first one of each kind longer."""

    thread_counts = (1, 2, 4)

    def __init__(self) -> None:
        super().__init__(ExecutorId("cpu/0"))
        self.ran: list[tuple[int, int]] = []

    def submit(
        self,
        name: VariantName,
        canvases: Sequence[ModelInput],
        batch_size: int,
        threads: int = 0,
        *,
        deadline_ns: int | None = None,
    ) -> Future[BatchResult]:
        first = (batch_size, threads) not in self.ran
        self.ran.append((batch_size, threads))
        # Small batches gain nothing from a fourth thread: they are even slower with it.
        took_us = {(1, 1): 150, (1, 2): 90, (1, 4): 100}.get(
            (batch_size, threads), 100 * batch_size / threads
        )
        done: Future[BatchResult] = Future()
        done.set_result(BatchResult([], 0, round(took_us * 1000 * (50 if first else 1))))
        return done


def test_factors_are_ratios_of_medians_of_the_smallest_and_the_largest_batch() -> None:
    calls = TimedExecutor()
    found = measure_core_factors(calls, {NAME: (V, (1, 2, 8))}, 0.0)
    assert {(each.batch_size, each.threads): each.factor for each in found} == {
        (1, 1): 1.5,
        (1, 2): 1.0,
        (8, 1): 4.0,
        (8, 2): 2.0,
    }
    # Thread counts alternate: a machine that becomes slower looks like none of them.
    assert [threads for _, threads in calls.ran[:6]] == [1, 2, 4, 1, 2, 4]


def test_a_variant_with_one_batch_size_is_measured_once() -> None:
    calls = TimedExecutor()
    found = measure_core_factors(calls, {NAME: (V, (1,))}, 0.0)
    assert [(each.batch_size, each.threads) for each in found] == [(1, 1), (1, 2)]


@pytest.mark.parametrize(
    ("most", "offered"), [(1, (1,)), (2, (1, 2)), (3, (1, 2, 3)), (8, (1, 2, 4, 8))]
)
def test_powers_of_two_and_the_most_are_offered(most: int, offered: tuple[int, ...]) -> None:
    assert offered_threads(most) == offered


def test_each_thread_count_has_a_session_with_the_same_answers() -> None:
    street = load_zoo(bundled_folders()).family("street")
    executor = OnnxExecutor(
        ExecutorId("cpu/0"), [street], providers="cpu", cpu_threads=2, thread_counts=(1, 2)
    )
    try:
        assert executor.thread_counts == (1, 2)
        variant = street.variants[0]
        shape = (variant.height_px, variant.width_px, 3)
        picture = np.random.default_rng(1).integers(0, 256, shape, dtype=np.uint8)
        answers = [
            come_back(executor.submit(variant.name, [picture], 1, threads), executor, "a batch")
            for threads in (0, 1, 2)
        ]
        for answer in answers[1:]:
            assert len(answer.detections[0]) == len(answers[0].detections[0])
        if len(os.sched_getaffinity(0)) > 1:
            (factor,) = measure_core_factors(executor, {variant.name: (variant, (1,))}, 0.5)
            assert factor.threads == 1 and 1 <= factor.factor < 20
    finally:
        executor.close()


def test_one_thread_count_is_no_choice() -> None:
    street = load_zoo(bundled_folders()).family("street")
    executor = OnnxExecutor(
        ExecutorId("cpu/0"),
        [street],
        providers="cpu",
        cpu_threads=1,
        thread_counts=(1,),
    )
    assert executor.thread_counts == ()
    executor.close()
