"""Measures what a GPU gives edgebox: python -m benchmarks.gpu [--only PART]... [--cpu]

points     edgebox's executor by variant and batch size, beside bare ONNX Runtime; with TensorRT,
           if it opens, some of them (`gpu_points.py`)
toggles    what each option of an executor is worth (`gpu_toggles.py`)
decoding   decoding of JPEGs, with nvImageCodec if it is installed (`gpu_decoding.py`)
box        a whole box with 16, 64 and 200 cameras: what its plan promises and what cameras see
           (`gpu_box.py`)

Rows go to one file as they are measured, and what is in it is not measured again: a call that ends
early, or `--budget-s`, costs only the row that it was at. With --cpu all is smaller and runs
anywhere; its figures say nothing about a GPU.
"""

import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click
from rich.console import Console

import edgebox
from benchmarks import gpu_box, gpu_decoding, gpu_points, gpu_toggles
from benchmarks.gpu_points import Setup
from benchmarks.gpu_results import Budget, Results, Row, tables
from edgebox.domain.errors import EdgeboxError
from edgebox.domain.model_family import QUANTILES
from edgebox.inference.doctor import examine
from edgebox.inference.findings import to_json
from edgebox.inference.machine import processor_name, usable_cores
from edgebox.inference.sessions import (
    CPU,
    CUDA,
    default_cpu_threads,
    device_name,
    open_session,
    runtime_version,
)
from edgebox.inference.zoo import bundled_folders, load_zoo

RESULTS = Path(__file__).resolve().parent / "results"
CAMERAS = {"cuda": (16, 64, 200), "cpu": (2, 4, 8)}
WIDTH = 120
"""Of what is printed to a file."""
SLO_MS = {"cuda": 200.0, "cpu": 500.0}


def about(setup: Setup) -> dict[str, Any]:
    """Return what a results file is about: the machine and the versions.

    Raises:
        ModelError: the device cannot be used here.
    """
    open_session(setup.family.model_files[0].path, setup.device, default_cpu_threads())
    provider = CPU if setup.device == "cpu" else CUDA
    return {
        "edgebox": edgebox.__version__,
        "onnxruntime": runtime_version(),
        "processor": processor_name(),
        "cores": usable_cores(),
        "device": device_name(provider, default_cpu_threads()),
        "provider": provider,
        "family": setup.family.sha256,
        "quantiles": list(QUANTILES),
    }


def _parts(
    setup: Setup, cameras: tuple[int, ...], load: gpu_box.Load
) -> dict[str, Callable[[], Iterable[Row]]]:
    return {
        "points": lambda: gpu_points.rows(setup),
        "toggles": lambda: gpu_toggles.rows(setup),
        "decoding": lambda: gpu_decoding.rows(setup),
        "box": lambda: gpu_box.rows(setup, cameras or CAMERAS[setup.device], load),
    }


PARTS = ("points", "toggles", "decoding", "box")


@click.command()
@click.option("--cpu", is_flag=True, help="On the CPU: fewer variants, batches to 4, few cameras.")
@click.option("--only", multiple=True, type=click.Choice(PARTS), help="This part alone.")
@click.option("--out", type=click.Path(path_type=Path), help="Results file.")
@click.option("--budget-s", default=540.0, show_default=True, help="No row begins after this.")
@click.option("--runs", default=100, show_default=True, help="Of each row, at most.")
@click.option("--row-s", default=2.0, show_default=True, help="Of each row, at most.")
@click.option("--cameras", multiple=True, type=int, help="Numbers of cameras of the whole box.")
@click.option("--seconds", default=20.0, show_default=True, help="Of each number of cameras.")
@click.option("--executor", multiple=True, help="A line for the box's [[executors]].")
def main(
    *,
    cpu: bool,
    only: tuple[str, ...],
    out: Path | None,
    budget_s: float,
    runs: int,
    row_s: float,
    cameras: tuple[int, ...],
    seconds: float,
    executor: tuple[str, ...],
) -> None:
    """Measure what a GPU gives edgebox."""
    budget = Budget(budget_s)
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    findings = examine(families=bundled_folders())
    for finding in findings:
        console.print(f"[bold]{finding.health:4}[/] {finding.check}: {finding.found}")
    family = load_zoo(bundled_folders()).family("street")
    setup = Setup(family, "cpu" if cpu else "cuda", runs, row_s)
    try:
        known = about(setup)
        slug = re.sub(r"[^a-z0-9]+", "-", known["device"].lower()).strip("-")
        file = out or RESULTS / f"{'cpu' if cpu else 'gpu'}-{slug}.json"
        results = Results(file, known)
    except EdgeboxError as error:
        hint = "" if cpu else "\n--cpu runs a smaller measurement on the CPU"
        console.print(f"[red]{error}[/]{hint}")
        sys.exit(1)
    results.document["doctor"] = to_json(findings)
    load = gpu_box.Load(SLO_MS[setup.device], seconds, executor)
    left_out = 0
    for part, rows in _parts(setup, cameras, load).items():
        if only and part not in only:
            continue
        left_out += results.measure(part, rows(), budget, console)
        if part == "points":
            results.document["parts"][part] = gpu_points.with_gains(results.rows(part))
        results.save()
        for table in tables(results.rows(part)):
            console.print(table)
    if left_out:
        console.print(f"{left_out} rows were left out for time: the same command goes on with them")
    console.print(f"written to {file}")


if __name__ == "__main__":
    main()
