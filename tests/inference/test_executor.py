"""Executors on real ONNX Runtime sessions: results, padding, failures, closing."""

import itertools
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnxruntime as ort
import pytest
from numpy.typing import NDArray

from edgebox.domain.errors import ModelError
from edgebox.domain.model_family import ExecutorId, Variant, VariantName
from edgebox.domain.requests import DropReason
from edgebox.inference.executor import blank_canvas
from edgebox.inference.executor_thread import BatchResult
from edgebox.inference.family import Family
from edgebox.inference.null_executor import NullExecutor
from edgebox.inference.onnx_executor import OnnxExecutor
from edgebox.inference.sessions import CPU
from edgebox.inference.zoo import bundled_folders, load_family, load_zoo
from edgebox.vision.detections import Detections
from tests.conftest import PATIENCE_S
from tests.inference.tiny_onnx import (
    FAILING_32,
    MERGING_32,
    ROOTS_32,
    YOLOX_32,
    write_family,
)

CPU_0 = ExecutorId("cpu/0")
TINY = VariantName("tiny-32")


@pytest.fixture(scope="module")
def street() -> Family:
    return load_zoo(bundled_folders()).family("street")


@pytest.fixture(scope="module")
def executor(street: Family) -> Iterator[OnnxExecutor]:
    opened = OnnxExecutor(CPU_0, [street], providers="cpu", cpu_threads=1, score_floor=0.0)
    yield opened
    opened.close()


def noise(variant: Variant, seed: int) -> NDArray[np.uint8]:
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (variant.height_px, variant.width_px, 3), dtype=np.uint8)


def same(a: Detections, b: Detections) -> bool:
    return (
        len(a) == len(b)
        and np.allclose(a.boxes, b.boxes, atol=1e-2)
        and np.allclose(a.scores, b.scores, atol=1e-4)
        and np.array_equal(a.labels, b.labels)
    )


def failure(future: Future[BatchResult]) -> ModelError:
    error = future.exception(timeout=PATIENCE_S)
    assert isinstance(error, ModelError)
    return error


def test_an_executor_says_where_it_runs(executor: OnnxExecutor) -> None:
    assert executor.provider == CPU
    assert executor.device.endswith("1 thread")
    assert executor.note == ""


def test_results_are_those_of_bare_onnx_runtime(executor: OnnxExecutor, street: Family) -> None:
    variant = street.variants[0]
    picture = noise(variant, 1)
    (found,) = executor.submit(variant.name, [picture], 1).result().detections
    session = ort.InferenceSession(str(street.model_files[0].path), providers=[CPU])
    boxes, scores, labels = session.run(None, {"images": picture[None]})
    limits = (variant.width_px, variant.height_px) * 2
    clipped = np.clip(boxes[0], 0, limits)
    inside = (clipped[:, 2] > clipped[:, 0]) & (clipped[:, 3] > clipped[:, 1])
    assert same(found, Detections(clipped[inside], scores[0][inside], labels[0][inside]))
    assert len(found) > 0


def test_pictures_of_a_batch_are_kept_apart_and_padding_is_left_out(
    executor: OnnxExecutor, street: Family
) -> None:
    variant = street.variants[1]
    batch = [noise(variant, seed) for seed in range(3)]
    alone = [executor.submit(variant.name, [p], 1).result().detections[0] for p in batch]
    together = executor.submit(variant.name, batch, 4).result().detections
    assert len(together) == 3
    assert all(same(a, b) for a, b in zip(alone, together, strict=True))
    assert not same(alone[0], alone[1])


def test_one_session_serves_every_variant(executor: OnnxExecutor, street: Family) -> None:
    for variant in street.variants:
        result = executor.submit(variant.name, [blank_canvas(variant)], 1).result()
        (found,) = result.detections
        assert found.boxes.max(initial=0) <= variant.width_px


def test_instants_are_on_the_given_clock_and_in_order(street: Family) -> None:
    ticks = itertools.count(1000, 7)
    executor = OnnxExecutor(
        CPU_0, [street], providers="cpu", cpu_threads=1, clock_ns=lambda: next(ticks)
    )
    variant = street.variants[0]
    first, second = (
        executor.submit(variant.name, [blank_canvas(variant)], 1).result() for _ in range(2)
    )
    executor.close()
    assert (first.started_ns, first.ended_ns, first.took_ns) == (1000, 1007, 7)
    assert second.started_ns == 1014


def test_the_score_floor_cuts(street: Family) -> None:
    strict = OnnxExecutor(CPU_0, [street], providers="cpu", cpu_threads=1, score_floor=1.1)
    variant = street.variants[0]
    assert len(strict.submit(variant.name, [noise(variant, 1)], 1).result().detections[0]) == 0
    strict.close()


@pytest.mark.parametrize(
    ("name", "shape", "batch_size", "problem"),
    [
        ("street-128", (96, 130, 3), 1, "takes pictures (96, 128, 3)"),
        ("street-999", (96, 128, 3), 1, "no variant 'street-999'"),
        ("street-128", (96, 128, 3), 0, "do not fit a batch of 0"),
    ],
)
def test_a_wrong_batch_is_reported_and_the_next_one_runs(
    executor: OnnxExecutor,
    street: Family,
    *,
    name: str,
    shape: tuple[int, int, int],
    batch_size: int,
    problem: str,
) -> None:
    error = failure(executor.submit(VariantName(name), [np.zeros(shape, np.uint8)], batch_size))
    assert problem in str(error)
    variant = street.variants[0]
    assert executor.submit(variant.name, [blank_canvas(variant)], 1).result()


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        (FAILING_32, "tiny-32: the batch failed"),
        (MERGING_32, "does not keep pictures of a batch apart"),
        (YOLOX_32, "has 21 anchors"),
    ],
)
def test_a_model_that_fails_is_reported_and_the_thread_survives(
    tmp_path: Path, model: bytes, problem: str
) -> None:
    family = load_family(write_family(tmp_path, model))
    executor = OnnxExecutor(CPU_0, [family], providers="cpu", cpu_threads=1)
    canvas = blank_canvas(family.variants[0])
    for _ in range(2):
        assert problem in str(failure(executor.submit(TINY, [canvas, canvas], 2)))
    with pytest.raises(ModelError):
        executor.warm([TINY], [2])
    executor.close()


def test_a_picture_of_which_a_model_makes_no_numbers_costs_itself_alone(tmp_path: Path) -> None:
    """It would be answered as if nothing were there."""
    family = load_family(write_family(tmp_path, ROOTS_32))
    executor = OnnxExecutor(CPU_0, [family], providers="cpu", cpu_threads=1)
    bright, dark = blank_canvas(family.variants[0]), np.zeros((32, 32, 3), np.uint8)
    (alone,) = executor.submit(TINY, [bright], 1).result().detections
    result = executor.submit(TINY, [bright, dark, bright], 4).result()
    assert len(alone) > 0
    assert [len(each) for each in result.detections] == [len(alone), 0, len(alone)]
    assert {row: each.reason for row, each in result.refused.items()} == {1: DropReason.FAILED}
    assert result.refused[1].text.startswith("tiny-32: the model answered boxes that are no finite")
    assert "no finite numbers" in str(failure(executor.submit(TINY, [dark, dark], 2)))
    executor.close()


def test_warming_runs_every_combination(street: Family) -> None:
    ticks = itertools.count()
    executor = OnnxExecutor(
        CPU_0, [street], providers="cpu", cpu_threads=1, clock_ns=lambda: next(ticks)
    )
    executor.warm([v.name for v in street.variants[:2]], [1, 2])
    executor.close()
    assert next(ticks) == 2 * 2 * 2  # each batch looks at the clock twice


def test_closing_answers_what_waits_and_ends_the_thread(street: Family) -> None:
    held, released = threading.Event(), threading.Event()

    def clock_ns() -> int:  # holds the first batch until the test lets it go
        held.set()
        assert released.wait(30)
        return 0

    executor = OnnxExecutor(
        ExecutorId("cpu/7"), [street], providers="cpu", cpu_threads=1, clock_ns=clock_ns
    )
    variant = street.variants[0]
    canvas = blank_canvas(variant)
    running = executor.submit(variant.name, [canvas], 1)
    waiting = [executor.submit(variant.name, [canvas], 1) for _ in range(3)]
    assert held.wait(30)
    closing = threading.Thread(target=executor.close)
    closing.start()
    # close() marks the executor before it waits for the thread, so this settles.
    while not (late := executor.submit(variant.name, [canvas], 1)).done():
        waiting.append(late)
    released.set()
    closing.join(30)
    assert not closing.is_alive()
    assert running.result(30).detections
    assert all("closed" in str(failure(future)) for future in [*waiting, late])
    executor.close()
    assert "edgebox-cpu/7" not in [thread.name for thread in threading.enumerate()]


def test_a_cancelled_batch_is_skipped(street: Family) -> None:
    held, released = threading.Event(), threading.Event()

    def clock_ns() -> int:
        held.set()
        assert released.wait(30)
        return 0

    executor = OnnxExecutor(CPU_0, [street], providers="cpu", cpu_threads=1, clock_ns=clock_ns)
    variant = street.variants[0]
    futures = [executor.submit(variant.name, [blank_canvas(variant)], 1) for _ in range(3)]
    assert held.wait(30)
    assert futures[1].cancel()
    released.set()
    assert futures[2].result(30).detections
    executor.close()


def test_an_executor_without_families_is_refused() -> None:
    with pytest.raises(ModelError, match="at least one"):
        OnnxExecutor(CPU_0, [])


def test_a_file_that_vanished_since_it_was_loaded(tmp_path: Path) -> None:
    family = load_family(write_family(tmp_path, YOLOX_32))
    family.model_files[0].path.unlink()
    with pytest.raises(ModelError, match=r"file names 'tiny\.onnx', which is missing"):
        OnnxExecutor(CPU_0, [family], providers="cpu")


def test_the_null_executor_finds_nothing_in_the_given_time() -> None:
    ticks = itertools.count(0, 5)
    executor = NullExecutor(CPU_0, clock_ns=lambda: next(ticks))
    executor.warm([TINY], [1])
    # Where nothing is decoded there are no pictures, yet every place in the batch is answered.
    result = executor.submit(TINY, [], 4).result()
    assert [len(found) for found in result.detections] == [0, 0, 0, 0]
    assert result.took_ns == 5
    slow = NullExecutor(CPU_0, batch_ns=2_000_000)
    assert slow.submit(TINY, [np.zeros((1, 1, 3), np.uint8)], 1).result().took_ns >= 2_000_000
    executor.close()
    slow.close()
    assert "closed" in str(failure(executor.submit(TINY, [], 1)))


def test_with_a_limit_nothing_is_in_memory_but_what_is_loaded(street: Family) -> None:
    executor = OnnxExecutor(0, [street], providers="cpu", cpu_threads=1, memory_limit_bytes=1)
    (file,) = street.model_files
    variant = street.variants[0]
    picture = noise(variant, 1)
    assert executor.id == CPU_0
    assert "not in memory" in str(failure(executor.submit(variant.name, [picture], 1)))
    executor.load(file.path, [(variant.name, 2)])
    assert executor.submit(variant.name, [picture], 1).result()
    executor.load(file.path)  # is there already
    executor.unload(file.path)
    assert "not in memory" in str(failure(executor.submit(variant.name, [picture], 1)))
    executor.close()


def test_a_load_whose_batches_fail_leaves_nothing_in_memory(tmp_path: Path) -> None:
    family = load_family(write_family(tmp_path, FAILING_32))
    executor = OnnxExecutor(0, [family], providers="cpu", memory_limit_bytes=1)
    with pytest.raises(ModelError, match="tiny-32: the batch failed"):
        executor.load(family.model_files[0].path, [(TINY, 1)])
    canvas = blank_canvas(family.variants[0])
    assert "not in memory" in str(failure(executor.submit(TINY, [canvas], 1)))
    executor.close()


def test_batches_run_while_another_file_is_loaded(street: Family, tmp_path: Path) -> None:
    other = load_family(write_family(tmp_path, YOLOX_32))
    executor = OnnxExecutor(0, [street, other], providers="cpu", memory_limit_bytes=1)
    executor.load(street.model_files[0].path)
    variant = street.variants[0]
    ended = threading.Event()

    def loads() -> None:
        for _ in range(20):
            executor.load(other.model_files[0].path)
            executor.unload(other.model_files[0].path)
        ended.set()

    thread = threading.Thread(target=loads)
    thread.start()
    count = 0
    while not ended.is_set():
        assert executor.submit(variant.name, [noise(variant, count)], 1).result()
        count += 1
    thread.join()
    executor.close()
    assert count > 0


def test_a_note_about_copies_adds_to_what_is_noted_of_the_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    executor = OnnxExecutor.__new__(OnnxExecutor)
    executor.provider, executor.note = "CUDAExecutionProvider", "TensorRT cannot be used"
    store = SimpleNamespace(cuda=None, not_recorded={})
    monkeypatch.setattr(executor, "_store", store, raising=False)
    executor._make_inputs()
    assert executor.note.startswith("TensorRT cannot be used; host memory is not page-locked")


def test_a_family_that_is_dropped_is_freed_and_others_run(street: Family, tmp_path: Path) -> None:
    folder = write_family(tmp_path / "tiny", ROOTS_32)
    tiny, other = load_family(folder), load_family(folder)
    canvas = blank_canvas(tiny.variants[0])
    opened = OnnxExecutor(CPU_0, [street, tiny], cpu_threads=1)
    try:
        (session,) = opened._store._sessions[tiny.model_files[0].path].values()
        gone = weakref.ref(session.session)
        del session
        opened.submit(TINY, [canvas], 1).result(PATIENCE_S)
        opened.drop_family(tiny)
        assert gone() is None, "nothing holds it"
        assert list(opened.families) == ["street"]
        assert not opened.is_loaded(TINY)
        assert "has no variant 'tiny-32'" in str(failure(opened.submit(TINY, [canvas], 1)))
        small = street.variants[0]
        assert opened.submit(small.name, [noise(small, 1)], 1).result(PATIENCE_S)
        # Dropping it once more leaves what has come under its name.
        opened.add_family(other)
        opened.drop_family(tiny)
        assert list(opened.families) == ["street", "tiny"]
        assert opened.submit(TINY, [canvas], 1).result(PATIENCE_S)
    finally:
        opened.close()
