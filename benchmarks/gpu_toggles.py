"""Measures what each option of an executor is worth: the same batches with and without it.

Both ways alternate, so what the machine does meanwhile meets both; `nothing` compares a way with
itself, and so shows how far a ratio may be from 1 by chance.

nothing        no difference
page_locked    input in page-locked host memory
cuda_graphs    runs with fixed buffers, recorded as CUDA graphs where the device is a GPU
fp16           half precision
shape_change   the batch before was of another variant
two_streams    two executors on the device: pictures/s of both together, and the second one's memory
fp16_accuracy  mAP of both precisions on the same synthetic streets
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np

from benchmarks.gpu_half import halved, precision, streets
from benchmarks.gpu_points import Run, Setup, alternating, batch_of, opened, pictures, timed
from benchmarks.gpu_results import Figures, Row, failing
from edgebox.domain.errors import EdgeboxError, ModelError
from edgebox.domain.model_family import Variant
from edgebox.inference.cuda_libraries import cuda_runtime_library
from edgebox.inference.cuda_runtime import CudaRuntime
from edgebox.inference.executor import come_back
from edgebox.inference.family import Family
from edgebox.inference.onnx_executor import OnnxExecutor
from edgebox.inference.session_store import run_bound
from edgebox.inference.sessions import open_session
from edgebox.inference.tensors import InputTensors

ROUNDS = 5
"""Of one and two executors, by turns."""
BATCHES = 16
"""Of each executor in a round."""

Ways = tuple[Run, Run]
"""Without and with an option."""


def rows(setup: Setup) -> Iterator[Row]:
    """Yield a row for each option, variant and batch size."""
    with closing(opened(setup.family, setup.device)) as plain:
        yield from _same(setup, plain)
        yield from _page_locked(setup)
        yield from _against(setup, plain, "cuda_graphs", setup.family, cuda_graphs=True)
        yield from _shape_change(setup, plain)
        yield from _two_streams(setup, plain)
        with tempfile.TemporaryDirectory() as folder:
            half = halved(setup.family, Path(folder) / "half")
            yield from _against(setup, plain, "fp16", half)
            yield Row("fp16_accuracy", lambda: _accuracy(setup, half))


def _each(
    setup: Setup,
    option: str,
    ways: Callable[[Variant, int], Ways],
    note: Callable[[], str] = lambda: "",
) -> Iterator[Row]:
    """Yield the rows of an option; `note` is asked for after the runs of each."""
    for variant in setup.few_variants:
        for size in setup.few_sizes:

            def measure(variant: Variant = variant, size: int = size) -> Figures:
                without, with_it = ways(variant, size)
                without_ns, with_ns = alternating(without, with_it, setup.runs, setup.row_s)
                before, after = (float(np.median(each)) / 1e6 for each in (without_ns, with_ns))
                return {
                    "without_ms": before,
                    "with_ms": after,
                    "with_over_without": after / before,
                    "runs": len(with_ns),
                    "note": note(),
                }

            yield Row(f"{option} {variant.name} x{size}", measure)


def _same(setup: Setup, plain: OnnxExecutor) -> Iterator[Row]:
    def ways(variant: Variant, size: int) -> Ways:
        run = batch_of(plain, variant, size)
        return run, run

    return _each(setup, "nothing", ways)


def _page_locked(setup: Setup) -> Iterator[Row]:
    library = cuda_runtime_library() if setup.device == "cuda" else None
    if library is None:
        yield failing("page_locked", ModelError("page-locked memory is for GPUs: not measured"))
        return
    path = setup.family.model_files[0].path
    session = open_session(path, setup.device, 1)
    locked, plain = InputTensors(CudaRuntime(library, 0)), InputTensors()

    def ways(variant: Variant, size: int) -> Ways:
        batch = pictures(variant, size)

        def through(tensors: InputTensors) -> Run:
            return timed(
                lambda: run_bound(session, tensors.fill(setup.family.input, variant, batch, size))
            )

        return through(plain), through(locked)

    yield from _each(setup, "page_locked", ways)
    locked.release()


def _against(
    setup: Setup, plain: OnnxExecutor, option: str, family: Family, *, cuda_graphs: bool = False
) -> Iterator[Row]:
    """Yield the rows of an option that an executor of its own has."""
    try:
        changed = opened(family, setup.device, "bench/1", cuda_graphs=cuda_graphs)
    except EdgeboxError as error:
        yield failing(option, error)
        return
    with closing(changed):

        def ways(variant: Variant, size: int) -> Ways:
            return batch_of(plain, variant, size), batch_of(changed, variant, size)

        yield from _each(setup, option, ways, lambda: changed.note)


def _shape_change(setup: Setup, plain: OnnxExecutor) -> Iterator[Row]:
    def ways(variant: Variant, size: int) -> Ways:
        run = batch_of(plain, variant, size)
        other = next(each for each in setup.variants if each.name != variant.name)
        before = batch_of(plain, other, size)

        def changed() -> int:
            before()
            return run()

        # The two alternate, so that `run` alone always follows itself.
        return run, changed

    return _each(setup, "shape_change", ways)


def _two_streams(setup: Setup, plain: OnnxExecutor) -> Iterator[Row]:
    largest, most = setup.few_variants[-1], setup.few_sizes[-1]
    batch_of(plain, largest, most)()  # it has the memory that it will have
    began_s, used = time.monotonic(), plain.memory_used_bytes()
    try:
        second = opened(setup.family, setup.device, "bench/1")
    except EdgeboxError as error:
        yield failing("two_streams", error)
        return
    opening_s = time.monotonic() - began_s
    with closing(second):
        batch_of(second, largest, most)()
        now = second.memory_used_bytes()
        more = None if used is None or now is None else (now - used) / 2**20
        for variant in setup.few_variants:
            for size in setup.few_sizes:

                def measure(variant: Variant = variant, size: int = size) -> Figures:
                    one, two = [], []
                    for _ in range(ROUNDS + 1):
                        one.append(pictures_hz([plain], variant, size))
                        two.append(pictures_hz([plain, second], variant, size))
                    one_hz, two_hz = statistics.median(one[1:]), statistics.median(two[1:])
                    return {
                        "one_hz": one_hz,
                        "two_hz": two_hz,
                        "two_over_one": two_hz / one_hz,
                        "opening_s": opening_s,
                        "second_mib": more,
                    }

                yield Row(f"two_streams {variant.name} x{size}", measure)


def pictures_hz(executors: list[OnnxExecutor], variant: Variant, size: int) -> float:
    """Return the pictures/s of executors that are never without a batch.

    Raises:
        ModelError: a batch failed.
    """
    batch = pictures(variant, size)
    began_s = time.monotonic()
    futures = [
        (executor, executor.submit(variant.name, batch, size))
        for _ in range(BATCHES)
        for executor in executors
    ]
    for executor, future in futures:
        come_back(future, executor, f"a batch of {variant.name}")
    return len(futures) * size / (time.monotonic() - began_s)


def _accuracy(setup: Setup, half: Family) -> Figures:
    frames = streets(60 if setup.device == "cuda" else 8)
    variants = setup.few_variants
    single, rounded = (
        precision(family, setup.device, variants, frames) for family in (setup.family, half)
    )
    lost = {name: value - rounded[name] for name, value in single.items()}
    return {
        "scenes": len(frames),
        "map_fp32": statistics.mean(single.values()),
        "map_fp16": statistics.mean(rounded.values()),
        "largest_loss": max(lost.values()),
        "by_variant": {name: [single[name], rounded[name]] for name in single},
    }
