"""Measures what an accelerator gives by variant and batch, and edgebox against bare ONNX Runtime.

    python benchmarks/gpu.py [--out results.json]     on any machine with CUDA
    python benchmarks/gpu.py --cpu                    smaller, anywhere

Overhead is the median time a batch keeps edgebox's executor (filling the input, running, decoding)
over the median time of bare `session.run` with the same session options on a ready tensor, the two
alternating. Gain is pictures/s at a batch size over pictures/s at batch 1.
"""

import argparse
import json
import re
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import edgebox
from edgebox.domain.errors import EdgeboxError
from edgebox.domain.model_family import QUANTILES, ExecutorId, Variant, quantiles_of
from edgebox.inference.doctor import examine
from edgebox.inference.executor import OnnxExecutor
from edgebox.inference.family import Family
from edgebox.inference.findings import Finding, to_json
from edgebox.inference.fingerprint import fingerprint
from edgebox.inference.machine import processor_name, usable_cores
from edgebox.inference.sessions import open_session, runtime_version
from edgebox.inference.tensors import InputTensors
from edgebox.inference.zoo import bundled_folders, load_zoo

RESULTS = Path(__file__).resolve().parent / "results"
WARM_RUNS = 5


@dataclass(frozen=True, slots=True)
class Point:
    """What was measured of one variant at one batch size."""

    variant: str
    batch_size: int
    runs: int
    quantiles_ms: list[float]
    """Times of edgebox's executor, at `QUANTILES`."""
    bare_ms: float
    """Median of bare ONNX Runtime."""
    overhead: float
    pictures_hz: float
    gain: float

    @property
    def p50_ms(self) -> float:
        """Median time of the executor."""
        return self.quantiles_ms[QUANTILES.index(0.5)]

    @property
    def tail(self) -> float:
        """P99 over median."""
        return self.quantiles_ms[QUANTILES.index(0.99)] / self.p50_ms


def pictures(variant: Variant, count: int) -> list[np.ndarray[Any, np.dtype[np.uint8]]]:
    """Return some noise of a variant's size."""
    rng = np.random.default_rng(count)
    shape = (variant.height_px, variant.width_px, 3)
    return [rng.integers(0, 256, shape, dtype=np.uint8) for _ in range(count)]


class Bench:
    """One family on one device, through edgebox and bare."""

    def __init__(
        self, family: Family, providers: Literal["cuda", "cpu"], runs: int, point_s: float
    ) -> None:
        """Open both sessions.

        Args:
            family: what to run.
            providers: where.
            runs: of each point and kind, at most.
            point_s: no new run of a point starts after this.
        """
        self.family = family
        self.executor = OnnxExecutor(ExecutorId("bench/0"), [family], providers=providers)
        self._bare = open_session(family.model_files[0].path, providers, self.executor.cpu_threads)
        self._tensors = InputTensors()
        self._runs = runs
        self._point_s = point_s

    def measure(self, variant: Variant, batch_size: int, alone_hz: float | None) -> Point:
        """Measure one point; `alone_hz` is pictures/s at batch 1."""
        batch = pictures(variant, batch_size)
        tensor = self._tensors.fill(self.family.input, variant, batch, batch_size)
        feed = {self._bare.input_name: tensor}
        ours_ns: list[int] = []
        bare_ns: list[int] = []
        until = time.monotonic() + self._point_s
        for done in range(WARM_RUNS + self._runs):
            ours_ns.append(self.executor.submit(variant.name, batch, batch_size).result().took_ns)
            before = time.monotonic_ns()
            self._bare.session.run(None, feed)
            bare_ns.append(time.monotonic_ns() - before)
            if done > 2 * WARM_RUNS and time.monotonic() > until:
                break
        quantiles_ms = [ns / 1e6 for ns in quantiles_of(ours_ns[WARM_RUNS:])]
        bare_ms = float(np.median(bare_ns[WARM_RUNS:])) / 1e6
        p50_ms = quantiles_ms[QUANTILES.index(0.5)]
        hz = 1e3 * batch_size / p50_ms
        return Point(
            variant=variant.name,
            batch_size=batch_size,
            runs=len(ours_ns) - WARM_RUNS,
            quantiles_ms=quantiles_ms,
            bare_ms=bare_ms,
            overhead=p50_ms / bare_ms,
            pictures_hz=hz,
            gain=hz / (alone_hz or hz),
        )

    def points(self, variants: Sequence[Variant], sizes: Sequence[int]) -> Iterator[Point]:
        """Measure every variant at every size."""
        for variant in variants:
            alone_hz: float | None = None
            for size in sizes:
                point = self.measure(variant, size, alone_hz)
                alone_hz = alone_hz or point.pictures_hz
                yield point


def show_findings(console: Console, findings: Sequence[Finding]) -> None:
    """Print what the doctor found."""
    for finding in findings:
        console.print(f"[bold]{finding.health:4}[/] {finding.check}: {finding.found}")


def show_points(console: Console, points: Sequence[Point]) -> None:
    """Print the figures, one row a point."""
    table = Table("variant", "batch", "P50 ms", "P99/P50", "bare ms", "overhead", "pict/s", "gain")
    table.columns[0].no_wrap = True
    for column in table.columns[1:]:
        column.justify = "right"
    for point in points:
        table.add_row(
            point.variant if point.batch_size == 1 else "",
            str(point.batch_size),
            f"{point.p50_ms:.2f}",
            f"{point.tail:.2f}",
            f"{point.bare_ms:.2f}",
            f"{point.overhead:.3f}",
            f"{point.pictures_hz:,.0f}",
            f"{point.gain:.2f}",
        )
    console.print(table)


def document(bench: Bench, findings: Sequence[Finding], points: Sequence[Point]) -> dict[str, Any]:
    """Return the results as they are kept."""
    executor = bench.executor
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "edgebox": edgebox.__version__,
        "onnxruntime": runtime_version(),
        "machine": {"processor": processor_name(), "cores": usable_cores()},
        "device": executor.device,
        "provider": executor.provider,
        "note": executor.note,
        "fingerprint": fingerprint(executor, bench.family),
        "family": {"name": bench.family.name, "sha256": bench.family.sha256},
        "doctor": to_json(findings),
        "quantiles": list(QUANTILES),
        "overhead_median": float(np.median([point.overhead for point in points])),
        "points": [asdict(point) for point in points],
    }


def main() -> int:
    """Run the benchmark; 1 where it cannot run."""
    parser = argparse.ArgumentParser(description="Measure what an accelerator gives edgebox.")
    parser.add_argument(
        "--cpu", action="store_true", help="on the CPU: four variants, batches to 4"
    )
    parser.add_argument("--out", type=Path, help="results file (default: benchmarks/results/...)")
    parser.add_argument("--runs", type=int, default=100, help="runs of each point")
    parser.add_argument("--point-s", type=float, default=3.0, help="seconds of each point, at most")
    arguments = parser.parse_args()
    console = Console()
    findings = examine(families=bundled_folders())
    show_findings(console, findings)
    try:
        family = load_zoo(bundled_folders()).family("street")
        providers: Literal["cuda", "cpu"] = "cpu" if arguments.cpu else "cuda"
        bench = Bench(family, providers, arguments.runs, arguments.point_s)
    except EdgeboxError as error:
        console.print(f"[red]{error}[/]\n--cpu runs a smaller measurement on the CPU")
        return 1
    variants = family.variants[::5] if arguments.cpu else family.variants
    sizes = family.batch_sizes(4 if arguments.cpu else 32)
    total = len(variants) * len(sizes)
    points = list(track(bench.points(variants, sizes), "measuring", total, console=console))
    show_points(console, points)
    results = document(bench, findings, points)
    bench.executor.close()
    slug = re.sub(r"[^a-z0-9]+", "-", results["device"].lower()).strip("-")
    kind = "cpu" if arguments.cpu else "gpu"
    out: Path = arguments.out or RESULTS / f"{kind}-{slug}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(results, indent=1) + "\n")
    console.print(f"overhead {results['overhead_median']:.3f} (median); written to {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
