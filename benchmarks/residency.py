"""Measures what sessions of a model take in memory, and what loading one costs others.

    python -m benchmarks.residency [FILE.onnx] [--json]

The first part, on the bundled detector or a file of the same kind: the memory of one session that
has run 1, 2, 3... input sizes, beside one session for each size. The second: a thread runs batches
of one on a session while another opens, warms and drops a second one again and again; times of
the batches are compared with those before, and the longest time that a third thread, which only
wants the interpreter every millisecond, had to wait. CPU only; single precision.
"""

import argparse
import json
import multiprocessing
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import numpy as np
from rich.console import Console
from rich.table import Table

from edgebox.inference.machine import processor_name
from edgebox.inference.memory import give_back, resident_bytes
from edgebox.inference.session_store import run_bound
from edgebox.inference.sessions import Session, open_session
from edgebox.inference.zoo import bundled_folders

SIZES_PX = (128, 192, 256, 320, 416, 512, 608)
_BESIDE_S = 6.0
_TICK_S = 0.001


def _resident() -> int:
    held = resident_bytes()
    assert held is not None, "this system does not tell what a process has resident"
    return held


def _run(session: Session, px: int) -> None:
    run_bound(session, np.zeros((1, px, px, 3), np.uint8))


def _grown(path: Path, groups: Sequence[Sequence[int]]) -> int:
    """Return what a session for each group of sizes takes, in a process that was empty before."""
    warm = open_session(path, "cpu", 1)  # the library itself
    _run(warm, min(SIZES_PX))
    del warm
    give_back()
    before = _resident()
    sessions = []
    for group in groups:
        session = open_session(path, "cpu", 1)
        for px in group:
            _run(session, px)
        sessions.append(session)
    return _resident() - before


def memory(path: Path) -> list[dict[str, float]]:
    """Return a row for each number of sizes."""
    rows = []
    # A fresh process each: what was freed before would hide what is taken.
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for count in range(1, len(SIZES_PX) + 1):
            sizes = SIZES_PX[-count:]
            shared = pool.apply(_grown, (path, [sizes]))
            separate = pool.apply(_grown, (path, [[px] for px in sizes]))
            rows.append({"sizes": count, "shared_mb": shared / 1e6, "apart_mb": separate / 1e6})
    return rows


def beside(path: Path, px: int = 320) -> dict[str, float]:
    """Return what batches took alone and beside loads, what loads took, and who had to wait."""
    served = open_session(path, "cpu", 1)
    _run(served, px)
    alone = _batches(served, px, _BESIDE_S)
    waits: list[float] = []
    loads: list[float] = []
    ended = threading.Event()

    def tick() -> None:
        last = time.perf_counter()
        while not ended.is_set():
            time.sleep(_TICK_S)
            now = time.perf_counter()
            waits.append(now - last - _TICK_S)
            last = now

    def load() -> None:
        while not ended.is_set():
            started = time.perf_counter()
            _run(open_session(path, "cpu", 1), px)
            loads.append(time.perf_counter() - started)
            give_back()
            time.sleep(0.1)

    threads = [threading.Thread(target=each) for each in (tick, load)]
    for thread in threads:
        thread.start()
    together = _batches(served, px, _BESIDE_S)
    ended.set()
    for thread in threads:
        thread.join()
    return {
        "batch_ms": 1e3 * median(alone),
        "batch_beside_ms": 1e3 * median(together),
        "batch_p99_ms": 1e3 * float(np.quantile(alone, 0.99)),
        "batch_p99_beside_ms": 1e3 * float(np.quantile(together, 0.99)),
        "load_ms": 1e3 * median(loads),
        "loads": len(loads),
        "wait_p99_ms": 1e3 * float(np.quantile(waits, 0.99)),
        "wait_max_ms": 1e3 * max(waits),
    }


def _batches(session: Session, px: int, seconds: float) -> list[float]:
    took: list[float] = []
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        started = time.perf_counter()
        _run(session, px)
        took.append(time.perf_counter() - started)
    return took


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    path = arguments.file or bundled_folders()[0] / "street.onnx"
    rows, cost = memory(path), beside(path)
    if arguments.json:
        print(json.dumps({"machine": processor_name(), "memory": rows, "beside": cost}, indent=1))
        return
    out = Console()
    shown = Table(title=f"{path.name} on {processor_name()}: MB of sessions")
    for heading in ("sizes", "one session", "one for each"):
        shown.add_column(heading, justify="right")
    for row in rows:
        shown.add_row(*(f"{row[key]:.0f}" for key in ("sizes", "shared_mb", "apart_mb")))
    out.print(shown)
    for name, value in cost.items():
        out.print(f"{name}: {value:.1f}")


if __name__ == "__main__":
    main()
