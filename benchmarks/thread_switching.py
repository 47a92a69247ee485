"""Two ways to give a batch fewer CPU cores, compared: `python -m benchmarks.thread_switching`.

`sessions`: a session of ONNX Runtime for each thread count. `affinity`: one session with all
threads, which are moved to fewer cores. Printed for both, each in a process of its own: the
memory they take beyond one session, what it costs to have another count than the batch before
(median of alternating less median of steady batches, the same count), and the time of a batch on
each count, relative to all.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import click
import numpy as np

from edgebox.inference.family import Family
from edgebox.inference.machine import offered_threads, usable_cores
from edgebox.inference.session_store import run_bound
from edgebox.inference.sessions import Session, open_session
from edgebox.inference.zoo import bundled_folders, load_zoo

WAYS = ("one", "sessions", "affinity")
ROUNDS = 40

Run = Callable[[int], None]


def rss_bytes() -> int:
    """Return the resident memory of this process."""
    pages = Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def thread_ids() -> set[int]:
    """Return the ids of this process's threads."""
    return {int(entry.name) for entry in Path("/proc/self/task").iterdir()}


def prepared(way: str, family: Family, side_px: int) -> Run:
    """Open what a way needs; return what runs a batch on so many cores."""
    variant = next(each for each in family.variants if each.width_px == side_px)
    path = family.files[variant.name].path
    most = usable_cores()
    shape = (1, variant.height_px, variant.width_px, 3)
    picture = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    tensor = picture if family.input.layout == "nhwc" else picture.transpose(0, 3, 1, 2).copy()

    def opened(threads: int) -> Session:
        return open_session(path, "cpu", threads, 0)

    def run_on(session: Session) -> None:
        run_bound(session, tensor)

    if way != "affinity":
        counts = offered_threads(most) if way == "sessions" else (most,)
        sessions = {threads: opened(threads) for threads in counts}
        for session in sessions.values():
            run_on(session)
        return lambda threads: run_on(sessions[threads])
    before = thread_ids()
    session = opened(most)
    run_on(session)
    pool = [*(thread_ids() - before), os.getpid()]
    cores = sorted(os.sched_getaffinity(0))

    def run(threads: int) -> None:
        for thread in pool:
            os.sched_setaffinity(thread, cores[:threads])
        run_on(session)

    return run


def took_ms(run: Run, threads: int) -> float:
    """Return the time of one batch."""
    began_ns = time.perf_counter_ns()
    run(threads)
    return (time.perf_counter_ns() - began_ns) / 1e6


def measured(way: str, side_px: int) -> dict[str, object]:
    """Return the figures of one way."""
    family = load_zoo(bundled_folders()).family("street")
    before = rss_bytes()
    run = prepared(way, family, side_px)
    out: dict[str, object] = {"rss_mb": round((rss_bytes() - before) / 1e6, 1)}
    if way == "one":
        return out
    counts = offered_threads(usable_cores())
    steady = {
        threads: median([took_ms(run, threads) for _ in range(ROUNDS)][2:]) for threads in counts
    }
    mixed: dict[int, list[float]] = {threads: [] for threads in counts}
    for _ in range(ROUNDS):
        for threads in counts:
            mixed[threads].append(took_ms(run, threads))
    out["steady_ms"] = {threads: round(each, 2) for threads, each in steady.items()}
    out["switching_ms"] = {
        threads: round(median(each) - steady[threads], 2) for threads, each in mixed.items()
    }
    return out


@click.command()
@click.option("--side-px", default=416, show_default=True, help="Width of street's variant.")
@click.option("--way", type=click.Choice(WAYS), help="Measure one way, in this process.")
def main(side_px: int, way: str | None) -> None:
    """Compare the ways and print one JSON document."""
    if way is not None:
        click.echo(json.dumps(measured(way, side_px)))
        return
    found = {}
    for each in WAYS:
        command = [sys.executable, "-m", "benchmarks.thread_switching"]
        command += ["--way", each, "--side-px", str(side_px)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found[each] = json.loads(done.stdout)
    click.echo(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
