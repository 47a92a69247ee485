"""Times plans, and what they do to the event loop: `python -m benchmarks.planning [--json]`.

Part one: the CPU time of one plan for 4 to 1,000 cameras on one or two executors where batching
pays, with links of 5 to 30 Mbit/s: the median over seeds.

Part two: an asyncio loop that wakes up every 2 ms, with one thread beside it that plans without a
pause, as it is on a box, or a process that does. How late the loop wakes up is what planning does
to it.

The interpreter is set as on a box: its switch interval, and no full garbage collections, which
would hold the loop for 50 to 80 ms where 1,000 cameras are planned.
"""

import asyncio
import gc
import json
import platform
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from statistics import median
from typing import Any

import click

from benchmarks.adaptation import SIZES_PX, accuracy, p99_ms
from edgebox.app.composition import SWITCH_INTERVAL_S
from edgebox.domain.model_family import (
    QUANTILES,
    ExecutorId,
    FamilyName,
    LatencyProfile,
    Variant,
    VariantName,
)
from edgebox.domain.plans import CameraSnapshot, Plan, PlanningSnapshot
from edgebox.domain.requests import Camera, CameraId, LinkState
from edgebox.planning.planner import plan
from edgebox.runtime.garbage import collect_on_request_only

FAMILY = FamilyName("family")
VARIANTS = tuple(Variant(VariantName(f"v{px}"), FAMILY, px, px, accuracy(px)) for px in SIZES_PX)
BATCHES = (1, 2, 4, 8, 16, 32, 64)
CASES = (
    (4, 1, 1.0),
    (64, 1, 0.2),
    (64, 2, 0.2),
    (256, 1, 0.05),
    (256, 2, 0.1),
    (1000, 1, 0.02),
    (32, 8, 1.0),
)
"""Cameras, executors, and the factor on the batch times of `benchmarks.adaptation`."""
ITERATIONS = 1_000
_PERIOD_S = 0.002


def box(cameras: int, executors: int, factor: float, seed: int) -> PlanningSnapshot:
    """Return cameras of 10 frames/s and 150 or 300 ms behind links of 5 to 30 Mbit/s."""
    rng = random.Random(seed)
    seen = [
        CameraSnapshot(
            Camera(
                CameraId(f"c{at}"), "default", FAMILY, rng.choice((150, 300)) * 10**6, 10, 608, 608
            ),
            LinkState(rng.uniform(5, 30) * 1e6, 2_000_000, 10**6, 0.3, None),
            None,
        )
        for at in range(cameras)
    ]
    profiles = {
        ExecutorId(f"gpu/{at}"): {
            v.name: LatencyProfile(
                v.name,
                ExecutorId(f"gpu/{at}"),
                {
                    size: (int(factor * p99_ms(v.width_px, size) * 1e6),) * len(QUANTILES)
                    for size in BATCHES
                },
            )
            for v in VARIANTS
        }
        for at in range(executors)
    }
    return PlanningSnapshot(0, tuple(seen), VARIANTS, profiles, {}, 3_000_000)


def in_force(of: PlanningSnapshot, by: Plan) -> PlanningSnapshot:
    """Return a box that has carried out a plan, and whose links have changed by a tenth or less."""
    rng = random.Random(1)

    def later(each: CameraSnapshot) -> CameraSnapshot:
        bps = (each.link.bandwidth_bps or 0.0) * rng.uniform(0.9, 1.1)
        link = LinkState(bps, each.link.rtt_ns, each.link.clock_error_ns, 0.3, None)
        return CameraSnapshot(each.camera, link, by.assignments[each.camera.id])

    return PlanningSnapshot(
        of.taken_ns,
        tuple(later(each) for each in of.cameras),
        of.variants,
        of.profiles,
        of.slowdown,
        of.fixed_ns,
        groups=by.groups,
    )


def plan_ms(
    cameras: int, executors: int, factor: float, seeds: Sequence[int], *, new: bool
) -> float:
    """Return the median CPU time of a plan for new cameras, or for a box that has one already."""
    took_ms = []
    for seed in seeds:
        of = box(cameras, executors, factor, seed)
        if not new:
            of = in_force(of, plan(of, ITERATIONS))
        gc.collect()
        for _ in range(3):
            started_ns = time.process_time_ns()
            plan(of, ITERATIONS)
            took_ms.append((time.process_time_ns() - started_ns) / 1e6)
    return median(took_ms)


def _planned(of: PlanningSnapshot) -> Plan:
    return plan(of, ITERATIONS)


@dataclass(slots=True)
class Planning:
    """Plans that are computed without a pause."""

    plans: int = 0
    cpu_clock: int | None = None
    """Of the thread that computes them here; None: nothing is computed in this process."""

    def cpu_s(self) -> float:
        """Return what computing them has taken of this interpreter's time."""
        return 0.0 if self.cpu_clock is None else time.clock_gettime(self.cpu_clock)


@contextmanager
def without_a_pause(compute: Callable[[], object]) -> Iterator[Planning]:
    """Have a thread of this process compute plans."""
    stopping, planning = threading.Event(), Planning()

    def work() -> None:
        while not stopping.is_set():
            compute()
            planning.plans += 1

    thread = threading.Thread(target=work)
    thread.start()
    assert thread.ident is not None
    planning.cpu_clock = time.pthread_getcpuclockid(thread.ident)
    try:
        yield planning
    finally:
        stopping.set()
        thread.join()


@contextmanager
def in_a_thread(of: PlanningSnapshot) -> Iterator[Planning]:
    """Plan in a thread of this process."""
    with without_a_pause(lambda: _planned(of)) as planning:
        yield planning


@contextmanager
def in_a_process(of: PlanningSnapshot) -> Iterator[Planning]:
    """Plan in another process; a thread of this one hands over and takes back."""
    with (
        ProcessPoolExecutor(1) as pool,
        without_a_pause(lambda: pool.submit(_planned, of).result()) as planning,
    ):
        yield planning


@contextmanager
def nowhere(of: PlanningSnapshot) -> Iterator[Planning]:
    """Plan nothing: what the machine alone does to a loop."""
    yield Planning()


WHERE = {"nothing": nowhere, "a thread": in_a_thread, "a process": in_a_process}


async def lags_ms(planning: Planning, seconds: float) -> tuple[list[float], list[float]]:
    """Return how late this loop woke up, each time, and how long planning ran meanwhile.

    Planning runs for at most a period while the loop sleeps. What it ran beyond that, it ran while
    the loop was due: it held the loop up, or other programs had the loop's core. What these alone
    do to the loop is not counted.
    """
    late, ran, ends_s = [], [], time.monotonic() + seconds
    while (due_s := time.monotonic() + _PERIOD_S) < ends_s:
        before_s = planning.cpu_s()
        await asyncio.sleep(_PERIOD_S)
        late.append(max(0.0, (time.monotonic() - due_s) * 1e3))
        ran.append(max(0.0, (planning.cpu_s() - before_s - _PERIOD_S) * 1e3))
    return sorted(late), sorted(ran)


def lag(where: str, cameras: int, seconds: float) -> dict[str, Any]:
    """Return what planning for so many cameras does to a loop."""
    factor = next(f for n, executors, f in CASES if n == cameras and executors == 1)
    of = box(cameras, 1, factor, 1)
    with WHERE[where](of) as planning:
        if where != "nothing":
            while not planning.plans:  # until all is warm
                time.sleep(0.05)
        before = planning.plans
        late, ran = asyncio.run(lags_ms(planning, seconds))
        made = planning.plans - before
    return {
        "cameras": cameras,
        "where": where,
        "p50_ms": round(late[len(late) // 2], 2),
        "p99_ms": round(late[int(0.99 * len(late))], 2),
        "max_ms": round(late[-1], 2),
        "ran_p99_ms": round(ran[int(0.99 * len(ran))], 2),
        "ran_max_ms": round(ran[-1], 2),
        "plans_per_s": round(made / seconds, 1),
    }


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--seeds", default=3, show_default=True, help="Boxes of each kind.")
@click.option("--seconds", default=5.0, show_default=True, help="Of each measurement of the loop.")
def main(*, as_json: bool, seeds: int, seconds: float) -> None:
    """Print how long plans take, and how late they make the event loop."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    collect_on_request_only()
    took = []
    for cameras, executors, factor in CASES:
        new_ms = plan_ms(cameras, executors, factor, range(seeds), new=True)
        found_ms = plan_ms(cameras, executors, factor, range(seeds), new=False)
        took.append(
            {
                "cameras": cameras,
                "executors": executors,
                "new_ms": round(new_ms, 1),
                "ms": round(found_ms, 1),
            }
        )
        if not as_json:
            click.echo(
                f"{cameras:5} cameras on {executors} executors: {new_ms:7.1f} ms new, "
                f"{found_ms:7.1f} ms with a plan in force"
            )
    loop = []
    for cameras in (64, 1000):
        for where in WHERE:
            loop.append(lag(where, cameras, seconds))
            if not as_json:
                click.echo(
                    f"{cameras:5} cameras planned in {where:9}: the loop wakes up late by "
                    "{p50_ms} ms, P99 {p99_ms}, at most {max_ms}; planning ran meanwhile for P99 "
                    "{ran_p99_ms}, at most {ran_max_ms}; {plans_per_s} plans/s".format(**loop[-1])
                )
    if as_json:
        machine = f"{platform.machine()}, Python {platform.python_version()}"
        document = {"date": date.today().isoformat(), "machine": machine}
        json.dump({**document, "plans": took, "loop": loop}, sys.stdout, indent=1)
        click.echo()


if __name__ == "__main__":
    main()
