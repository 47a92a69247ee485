"""Measures what the flight recorder costs: `python -m benchmarks.recorder [--json]`.

A simulated box with 50 cameras of 10 frames per second runs for 90 s under virtual time. The
events and actions of its Scheduler are then recorded again as the driver does it, and only that
is timed.
"""

import gc
import json
import platform
import random
import statistics
import time
from typing import Any

import click

from edgebox.domain.model_family import ExecutorId, FamilyName, LatencyProfile, Variant, VariantName
from edgebox.domain.requests import Camera, CameraId
from edgebox.link.shaping import BandwidthTrace
from edgebox.planning.planner import plan
from edgebox.runtime.journal import Journal
from edgebox.runtime.recordings import compressed
from edgebox.scheduling.edf import EarliestDeadlineFirst
from edgebox.scheduling.events import RequestArrived
from edgebox.scheduling.invariants import check_invariants
from edgebox.scheduling.scheduler import Scheduler, SchedulerParameters
from edgebox.simulation.report import SchedulerCall
from edgebox.simulation.simulated_cameras import SimulatedCamera
from edgebox.simulation.simulation_parameters import SimulationParameters
from edgebox.simulation.simulator import Simulator

MS = 1_000_000
LIFE_S = 90
CAMERAS = 50
RATE_HZ = 10
SIZES_PX = (128, 192, 256, 320, 416, 512, 608, 704)
SPREAD = (0.9, 0.92, 0.95, 1.0, 1.05, 1.1, 1.2, 1.5, 2.0)
EXECUTOR = ExecutorId("cuda:0/0")
FAMILY = FamilyName("street")


def fresh() -> Scheduler:
    """Return a Scheduler as a box has it."""
    return Scheduler(SchedulerParameters(), EarliestDeadlineFirst())


def lived() -> list[SchedulerCall]:
    """Return the events and actions of a busy box's Scheduler."""
    variants, profiles = [], []
    for at, px in enumerate(SIZES_PX):
        name = VariantName(f"street-{px}")
        variants.append(Variant(name, FAMILY, px, px, 0.3 + 0.05 * at))
        median_ns = 0.5 * MS + px * px * 8
        rows = {
            size: tuple(round(median_ns * (0.8 + 0.2 * size) * k) for k in SPREAD)
            for size in (1, 2, 4, 8, 16)
        }
        profiles.append(LatencyProfile(name, EXECUTOR, rows))
    cameras = [
        SimulatedCamera(
            Camera(CameraId(f"gate-{at}"), "default", FAMILY, 300 * MS, RATE_HZ, 1280, 720),
            BandwidthTrace.constant(20),
        )
        for at in range(CAMERAS)
    ]
    simulator = Simulator(
        fresh(),
        plan,
        variants=variants,
        profiles={EXECUTOR: profiles},
        cameras=cameras,
        rng=random.Random(1),
        parameters=SimulationParameters(),
    )
    return simulator.run(LIFE_S * 1000 * MS).journal


def record(steps: list[SchedulerCall]) -> tuple[Journal, dict[str, Any]]:
    """Record a life; return the journal and what that cost."""
    scheduler, journal = fresh(), Journal()
    journal.attach(scheduler, lambda: 0)
    spent_ns, checkpoints_ns = 0, []
    for step in steps:
        actions = scheduler.handle(step.event, step.now_ns)
        start_ns = time.perf_counter_ns()
        journal.record(step.now_ns, step.event, actions)
        if step.now_ns >= journal.due_ns:
            began_ns = time.perf_counter_ns()
            check_invariants(scheduler)
            journal.checkpoint(step.now_ns)
            checkpoints_ns.append(time.perf_counter_ns() - began_ns)
        spent_ns += time.perf_counter_ns() - start_ns
    frames = sum(isinstance(step.event, RequestArrived) for step in steps)
    return journal, {
        "frames_per_s": round(frames / LIFE_S, 1),
        "calls_per_s": round(len(steps) / LIFE_S, 1),
        "record_us": round((spent_ns - sum(checkpoints_ns)) / len(steps) / 1e3, 2),
        "checkpoint_ms_median": round(statistics.median(checkpoints_ns) / 1e6, 2),
        "checkpoint_ms_max": round(max(checkpoints_ns) / 1e6, 2),
        "core_percent": round(spent_ns / (LIFE_S * 1e9) * 100, 2),
    }


def collection_ms() -> float:
    """Return what a full garbage collection takes now."""
    gc.collect()
    start_ns = time.perf_counter_ns()
    gc.collect()
    return (time.perf_counter_ns() - start_ns) / 1e6


def measure() -> dict[str, Any]:
    """Return all figures."""
    steps = lived()
    gc.collect()
    gc.freeze()
    empty_ms = collection_ms()
    journal, figures = record(steps)
    figures["collection_ms"] = round(collection_ms() - empty_ms, 2)
    recording = journal.recording()
    figures["kept_mib"] = round(sum(map(len, recording.lines())) / 2**20, 1)
    start_ns = time.perf_counter_ns()
    figures["file_mib"] = round(sum(map(len, compressed(recording))) / 2**20, 1)
    figures["file_s"] = round((time.perf_counter_ns() - start_ns) / 1e9, 2)
    window_ns = (LIFE_S - 60) * 1000 * MS
    references = [step for step in lived() if step.now_ns >= window_ns]
    figures["collection_ms_of_references"] = round(collection_ms() - empty_ms, 2)
    del references
    return {"machine": platform.machine(), "python": platform.python_version(), **figures}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def main(as_json: bool) -> None:
    """Measure and print."""
    figures = measure()
    if as_json:
        print(json.dumps(figures, indent=2))
        return
    for name, value in figures.items():
        print(f"{name:30} {value}")


if __name__ == "__main__":
    main()
