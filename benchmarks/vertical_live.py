"""Threads chosen for each batch against all threads, live: `python -m benchmarks.vertical_live`.

Two boxes that differ in `threads` only ("auto" and "all") take turns on this machine, with the same
profiles and the same cameras. The cameras' total rate is a share of what this machine can answer
with all threads: its cores by the CPU time per frame of the box and the cameras together, which
compute on the same cores. Printed for each share: what a box spent per frame that was on time, as
core-seconds that batches held and as the CPU time of its process, and the frames that were not on
time.

Limits: other programs of this machine disturb deadlines; the CPU time of a process is disturbed
least.
"""

import asyncio
import json
import os
import tempfile
import time
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import click

from benchmarks.dynamic_boxes import RunningBox, serving
from benchmarks.one_size import write_one_size
from edgebox.app.offline_profiling import measure_and_store
from edgebox.camera.daemon import Camera
from edgebox.config.config_file import load
from edgebox.media.sources import PictureSource
from edgebox.media.typical import typical_pictures

CAMERAS = 3
THREADS = ("auto", "all")
IDLE_S = 3.0
CALIBRATION_HZ = 9.0
CALIBRATION_S = 8.0
FAMILY = "one-size"
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Spent:
    """What a box answered and spent in its turns."""

    captured: int = 0
    on_time: int = 0
    process_s: float = 0.0
    """CPU time of its process."""
    core_s: float = 0.0
    """Threads that batches computed with, over time."""
    ended: Counter[str] = field(default_factory=Counter)
    """Frames that were not on time, by what became of them."""


def write_config(folder: Path, family: Path, threads: str, database: Path) -> Path:
    """Write a box's configuration; return the file."""
    folder.mkdir(exist_ok=True)
    file = folder / "edgebox.toml"
    file.write_text(
        f'[server]\nport = 0\n[access]\nopen_to = "everybody"\n[storage]\npath = "{database}"\n'
        f'[[executors]]\ndevice = "cpu"\nthreads = "{threads}"\n'
        f'[inference]\nbundled = []\nfamilies = ["{family}"]\nfamily = "{FAMILY}"\nprofile_s = 10\n'
        # The plan must not lower what the cameras send.
        "[planner]\nutilisation_max = 0.98\n[scheduler]\nsample_share = 0\n",
        encoding="utf-8",
    )
    return file


def process_s(pid: int) -> float:
    """Return the CPU time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


async def core_s(box: RunningBox) -> float:
    """Return the core-seconds of a box's executors."""
    async with aiohttp.ClientSession() as client, client.get(f"{box.url}/metrics") as answer:
        lines = (await answer.text()).splitlines()
    name = "edgebox_executor_core_seconds_total{"
    return sum(float(line.split()[-1]) for line in lines if line.startswith(name))


async def turn(box: RunningBox, rate_hz: float, slo_ms: float, turn_s: float, spent: Spent) -> None:
    """Let the cameras stream to a box for a while, and note what it spent."""
    pictures = typical_pictures()
    height_px, width_px = pictures[0].shape[:2]
    cameras = [
        Camera(
            PictureSource(
                (width_px, height_px),
                rate_hz / CAMERAS,
                lambda number, of=of: pictures[(number + of) % len(pictures)],  # type: ignore[misc]
                round(turn_s * rate_hz / CAMERAS),
            ),
            box.url.replace("http", "ws", 1),
            name=f"camera-{of}",
            slo_ms=slo_ms,
            rate_hz=rate_hz / CAMERAS,
            min_rate_hz=rate_hz / CAMERAS,
        )
        for of in range(CAMERAS)
    ]
    cpu_before_s, core_before_s = process_s(box.pid), await core_s(box)
    await asyncio.gather(*(camera.run() for camera in cameras))
    spent.process_s += process_s(box.pid) - cpu_before_s
    spent.core_s += await core_s(box) - core_before_s
    for camera in cameras:
        summary = camera.summary()
        spent.captured += summary.captured
        spent.on_time += summary.on_time
        spent.ended["late"] += summary.late
        spent.ended.update(summary.dropped)


async def answers_per_s(box: RunningBox, slo_ms: float) -> float:
    """Return the frames a second that this machine can send and answer with this box."""
    spent, before_s = Spent(), time.process_time()
    await turn(box, CALIBRATION_HZ, slo_ms, CALIBRATION_S, spent)
    per_frame_s = (spent.process_s + time.process_time() - before_s) / max(1, spent.on_time)
    return len(os.sched_getaffinity(0)) / per_frame_s


def document(load_share: float, rate_hz: float, by: dict[str, Spent]) -> dict[str, object]:
    """Return the figures of one load."""
    rows: dict[str, object] = {"load": load_share, "rate_hz": round(rate_hz, 2)}
    for threads, of in by.items():
        rows[threads] = {
            "captured": of.captured,
            "on_time": of.on_time,
            "missed_share": round(1 - of.on_time / max(1, of.captured), 4),
            "missed": {what: count for what, count in of.ended.items() if count},
            "core_ms_per_answer": round(1e3 * of.core_s / max(1, of.on_time), 2),
            "process_ms_per_answer": round(1e3 * of.process_s / max(1, of.on_time), 2),
        }
    auto, full = (by[threads] for threads in THREADS)
    for name in ("core_s", "process_s"):
        each = [getattr(of, name) / max(1, of.on_time) for of in (auto, full)]
        rows[f"{name}_ratio"] = round(each[0] / max(1e-9, each[1]), 3)
    return rows


def copy_database(of: Path, to: Path) -> None:
    """Copy a database, with what is not merged into it yet."""
    for part in of.parent.glob(f"{of.name}*"):
        to.with_name(part.name.replace(of.name, to.name)).write_bytes(part.read_bytes())


async def compare(
    side_px: int, slo_ms: float, loads: list[float], turn_s: float, turns: int
) -> dict[str, object]:
    """Return the figures of all loads."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        family = write_one_size(folder / "family", "street", side_px, FAMILY)
        measured = folder / "measured.sqlite3"
        config = write_config(folder / "auto", family, "auto", measured)
        ((_, executor, (profile, *_)),) = await measure_and_store(load(config, {}))
        found: list[dict[str, object]] = []
        async with AsyncExitStack() as stack:
            boxes = {}
            for threads in THREADS:
                own = folder / threads / "box.sqlite3"
                config = write_config(folder / threads, family, threads, own)
                await asyncio.to_thread(copy_database, measured, own)
                boxes[threads] = await stack.enter_async_context(serving(threads, config))
            before = {threads: process_s(box.pid) for threads, box in boxes.items()}
            await asyncio.sleep(IDLE_S)
            idle = {
                threads: round((process_s(box.pid) - before[threads]) / IDLE_S, 4)
                for threads, box in boxes.items()
            }
            capacity_hz = await answers_per_s(boxes["all"], slo_ms)
            for share in loads:
                rate_hz = share * capacity_hz
                by = {threads: Spent() for threads in THREADS}
                for number in range(turns):
                    order = THREADS if number % 2 == 0 else THREADS[::-1]
                    for threads in order:
                        await turn(boxes[threads], rate_hz, slo_ms, turn_s, by[threads])
                found.append(document(share, rate_hz, by))
                click.echo(json.dumps(found[-1]), err=True)
        return {
            "machine": executor.device,
            "load_average": [round(each, 2) for each in os.getloadavg()],
            "variant": profile.variant,
            "slo_ms": slo_ms,
            "p50_ms": {n: round(profile.quantile_ns(n, 0.5) / 1e6, 2) for n in profile.batch_sizes},
            "core_factors": {n: dict(of) for n, of in profile.core_factors.items()},
            "idle_cores": idle,
            "capacity_hz": round(capacity_hz, 1),
            "loads": found,
        }


@click.command()
@click.option("--side-px", default=416, show_default=True, help="Width of street's variant.")
@click.option("--slo-ms", default=300.0, show_default=True)
@click.option("--load", "loads", multiple=True, type=float, default=(0.2, 0.5, 0.8))
@click.option("--turn-s", default=8.0, show_default=True)
@click.option("--turns", default=4, show_default=True, help="Turns of each box at each load.")
def main(side_px: int, slo_ms: float, loads: tuple[float, ...], turn_s: float, turns: int) -> None:
    """Compare both boxes and print one JSON document."""
    found = asyncio.run(compare(side_px, slo_ms, list(loads), turn_s, turns))
    click.echo(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
