"""Measures edgebox's executor by variant and batch size, beside bare ONNX Runtime.

Overhead is the median time that a batch keeps edgebox's executor (filling the input, running,
decoding) over the median time of bare `session.run` with the same session options on a ready
tensor, the two alternating. Gain is pictures/s at a batch size over pictures/s at batch 1.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from benchmarks.gpu_results import Figures, Row, failing
from edgebox.domain.errors import EdgeboxError, ModelError
from edgebox.domain.model_family import QUANTILES, ExecutorId, Variant, quantiles_of
from edgebox.inference.executor import come_back
from edgebox.inference.family import Family
from edgebox.inference.onnx_executor import OnnxExecutor
from edgebox.inference.sessions import TENSORRT, Provider, Session, open_session
from edgebox.inference.tensors import Canvas, InputTensors

WARM_RUNS = 5
RUNS_MIN = 6
ENGINES = Path(tempfile.gettempdir()) / "edgebox-benchmark-engines"
"""TensorRT builds each shape for many seconds; a later call finds what an earlier one built."""

Run = Callable[[], int]
"""Does something once; returns how long it took, in ns."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What is measured where."""

    family: Family
    device: Literal["cuda", "cpu"]
    runs: int
    """Of each row and way of running, at most."""
    row_s: float
    """No new run of a row begins after this."""

    @property
    def variants(self) -> tuple[Variant, ...]:
        """The variants that everything is measured with."""
        return self.family.variants if self.device == "cuda" else self.family.variants[::5]

    @property
    def few_variants(self) -> tuple[Variant, ...]:
        """Those that what takes long is measured with, the smallest and a large one among them."""
        return self.family.variants[::5] if self.device == "cuda" else self.family.variants[::10]

    @property
    def batch_sizes(self) -> tuple[int, ...]:
        """All batch sizes."""
        return self.family.batch_sizes(32 if self.device == "cuda" else 4)

    @property
    def few_sizes(self) -> tuple[int, ...]:
        """Some batch sizes, the ends among them."""
        return self.batch_sizes[::5] if self.device == "cuda" else self.batch_sizes[::2]


def pictures(variant: Variant, count: int) -> list[Canvas]:
    """Return some noise of a variant's size."""
    rng = np.random.default_rng(count)
    shape = (variant.height_px, variant.width_px, 3)
    return [rng.integers(0, 256, shape, dtype=np.uint8) for _ in range(count)]


def alternating(first: Run, second: Run, runs: int, row_s: float) -> tuple[list[int], list[int]]:
    """Return how long two things took in turns, in ns, after some turns that do not count.

    Args:
        first, second: the two.
        runs: of each, at most; at least `RUNS_MIN`.
        row_s: no new turn begins after this.
    """
    took: tuple[list[int], list[int]] = [], []
    until_s = time.monotonic() + row_s
    for turn in range(WARM_RUNS + max(runs, RUNS_MIN)):
        if turn >= WARM_RUNS + RUNS_MIN and time.monotonic() > until_s:
            break
        for run, times_ns in zip((first, second), took, strict=True):
            times_ns.append(run())
    return took[0][WARM_RUNS:], took[1][WARM_RUNS:]


def timed(work: Callable[[], object]) -> Run:
    """Return what does a piece of work and measures it by the wall clock."""

    def run() -> int:
        began_ns = time.monotonic_ns()
        work()
        return time.monotonic_ns() - began_ns

    return run


def batch_of(executor: OnnxExecutor, variant: Variant, batch_size: int) -> Run:
    """Return what runs a batch on an executor; its time is the executor's own."""
    batch = pictures(variant, batch_size)

    def run() -> int:
        future = executor.submit(variant.name, batch, batch_size)
        return come_back(future, executor, f"a batch of {variant.name}").took_ns

    return run


def opened(family: Family, provider: Provider, name: str = "bench/0", **named: Any) -> OnnxExecutor:
    """Open an executor.

    Args:
        family: what it runs.
        provider: where, and nowhere else.
        name: of the executor.
        named: further arguments of the executor.

    Raises:
        ModelError: it cannot be opened there.
    """
    engines = ENGINES if provider == "tensorrt" else None
    executor = OnnxExecutor(
        ExecutorId(name), [family], providers=provider, engine_folder=engines, **named
    )
    if provider == "tensorrt" and executor.provider != TENSORRT:
        executor.close()
        raise ModelError(executor.note)
    return executor


def rows(setup: Setup) -> Iterator[Row]:
    """Yield every variant and batch size: on the device, and with TensorRT some of them."""
    yield from _of_provider(setup, setup.device, setup.variants)
    if setup.device == "cuda":
        yield from _of_provider(setup, "tensorrt", setup.few_variants)


def _of_provider(setup: Setup, provider: Provider, variants: Sequence[Variant]) -> Iterator[Row]:
    try:
        executor = opened(setup.family, provider)
    except EdgeboxError as error:
        yield failing(provider, error)
        return
    with closing(executor):
        # With TensorRT a bare session would build everything once more.
        bare = None
        if provider != "tensorrt":
            path = setup.family.model_files[0].path
            bare = open_session(path, provider, executor.cpu_threads)
        for variant in variants:
            for size in setup.batch_sizes:
                yield Row(
                    f"{provider} {variant.name} x{size}",
                    lambda variant=variant, size=size: _point(  # type: ignore[misc]
                        setup, executor, bare, variant, size
                    ),
                )


def _point(
    setup: Setup, executor: OnnxExecutor, bare: Session | None, variant: Variant, size: int
) -> Figures:
    ours = batch_of(executor, variant, size)
    if bare is None:
        ours_ns, _ = alternating(ours, lambda: 0, setup.runs, setup.row_s)
        bare_ms = None
    else:
        batch = pictures(variant, size)
        tensor = InputTensors().fill(setup.family.input, variant, batch, size)
        feed = {bare.input_name: tensor}
        ours_ns, bare_ns = alternating(
            ours, timed(lambda: bare.session.run(None, feed)), setup.runs, setup.row_s
        )
        bare_ms = float(np.median(bare_ns)) / 1e6
    quantiles_ms = [ns / 1e6 for ns in quantiles_of(ours_ns)]
    p50_ms = quantiles_ms[QUANTILES.index(0.5)]
    return {
        "batch_size": size,
        "p50_ms": p50_ms,
        "p99_over_p50": quantiles_ms[QUANTILES.index(0.99)] / p50_ms,
        "bare_ms": bare_ms,
        "overhead": None if bare_ms is None else p50_ms / bare_ms,
        "pictures_hz": 1e3 * size / p50_ms,
        "runs": len(ours_ns),
        "quantiles_ms": quantiles_ms,
    }


def with_gains(points: Mapping[str, Figures]) -> dict[str, Figures]:
    """Return points with what each batch size gains over batch 1, where that was measured."""
    return {
        key: row
        if "pictures_hz" not in row
        else row | {"gain": _gain(row, points.get(f"{key.rpartition(' ')[0]} x1"))}
        for key, row in points.items()
    }


def _gain(row: Figures, alone: Figures | None) -> float | None:
    return None if alone is None else row["pictures_hz"] / alone["pictures_hz"]
