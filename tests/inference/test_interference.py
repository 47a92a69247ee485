"""What executors cost each other, measured: the arithmetic, and two that share a core."""

import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace

import pytest

from edgebox.domain.errors import ModelError
from edgebox.domain.model_family import ExecutorId, FamilyName, Variant, VariantName
from edgebox.inference import interference_measurement as measuring
from edgebox.inference.executor_thread import BatchResult
from edgebox.inference.interference_measurement import Load, interference, kept_busy, load_of
from edgebox.inference.null_executor import NullExecutor
from edgebox.inference.onnx_executor import OnnxExecutor
from edgebox.inference.tensors import ModelInput
from edgebox.inference.zoo import bundled_folders, load_zoo

CORE = min(os.sched_getaffinity(0))


def variant(px: int) -> Variant:
    return Variant(VariantName(f"v-{px}"), FamilyName("v"), px, px, 0.5)


class TimedExecutor(NullExecutor):
    """An executor whose batches take what the test says, by the variant's size."""

    def __init__(self, k: dict[int, float]) -> None:
        super().__init__(ExecutorId("cpu/0"))
        self.k = k
        self.others = 0
        self.ran: list[str] = []

    def submit(
        self,
        name: VariantName,
        canvases: Sequence[ModelInput],
        batch_size: int,
        threads: int = 0,
        *,
        deadline_ns: int | None = None,
    ) -> Future[BatchResult]:
        px = int(name.removeprefix("v-"))
        took_ns = 1000 * px * (1.0 + self.others * self.k[px])
        self.ran.append(name)
        done: Future[BatchResult] = Future()
        done.set_result(BatchResult([], 0, round(took_ns)))
        return done


def test_the_factor_for_each_number_of_others_and_each_family_beside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = TimedExecutor({1000: 0.2, 2000: 0.6, 4000: -0.1})

    @contextmanager
    def all_busy(loads: Sequence[Load]) -> Iterator[None]:
        calls.others = sum(2 if load.variant.family == "w" else 1 for load in loads)
        yield
        calls.others = 0

    monkeypatch.setattr(measuring, "kept_busy", all_busy)
    variants = {v.name: (v, 1) for v in (variant(4000), variant(1000), variant(2000))}
    own = [load_of(calls, variant(10), 1)] * 4
    other_family = [load_of(calls, replace(variant(10), family=FamilyName("w")), 1)]
    found = interference(calls, variants, [own, other_family], 0.0)
    assert {(each.variant, each.beside, each.others): each.factor for each in found} == {
        (f"v-{px}", family, others): pytest.approx(factor)
        for px, k in ((1000, 0.2), (2000, 0.6), (4000, 0.0))
        for family, others, factor in (
            ("v", 1, 1 + k), ("v", 2, 1 + 2 * k), ("v", 4, 1 + 4 * k), ("w", 1, 1 + 2 * k)
        )
    }  # fmt: skip
    # Of many variants three are measured, and the others are like the nearest.
    many = {v.name: (v, 1) for v in (variant(px) for px in (1000, 1100, 2000, 3900, 4000))}
    calls.ran.clear()
    by_variant = {e.variant: e.factor for e in interference(calls, many, [own[:1]], 0.0)}
    assert set(calls.ran) == {"v-1000", "v-2000", "v-4000"}
    assert by_variant[VariantName("v-1100")] == by_variant[VariantName("v-1000")]
    assert by_variant[VariantName("v-3900")] == 1.0
    calls.close()


def test_an_executor_that_fails_is_told_and_ends_the_load() -> None:
    closed = NullExecutor(ExecutorId("cpu/1"))
    closed.close()
    with (
        pytest.raises(ModelError, match="closed"),
        kept_busy([load_of(closed, variant(8), 1)]),
    ):
        pass


def test_two_that_share_a_core_take_its_time_from_each_other() -> None:
    street = load_zoo(bundled_folders()).family("street")
    small, medium = street.variants[0], street.variants[2]
    one, other = (OnnxExecutor(ExecutorId(f"cpu/{at}"), [street], cores=(CORE,)) for at in range(2))
    try:
        for executor in (one, other):
            executor.warm([small.name, medium.name], [1])
        for _ in range(5):
            # Half of a core's time each makes 1. Where other programs have most of the core, one
            # more of them takes little from each.
            free = free_share(CORE)
            beside = [[load_of(other, medium, 1)]]
            (found,) = interference(one, {small.name: (small, 1)}, beside, 0.5)
            if found.factor - 1 > 0.2 * free:
                return
    finally:
        one.close()
        other.close()
    raise AssertionError(f"{found.factor:.3f} of {free:.3f}")


def free_share(core: int, during_s: float = 0.5) -> float:
    """Return the share of a core's time that one busy thread gets."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        began_s, computed_s = time.monotonic(), time.thread_time()
        while (passed_s := time.monotonic() - began_s) < during_s:
            pass
        return (time.thread_time() - computed_s) / passed_s
    finally:
        os.sched_setaffinity(0, before)
