"""What faults cost the cameras of one box, live: `python -m benchmarks.faults_live [--fault F]...`

A real box with two executors of one CPU thread each, and real cameras in this process, which
follow its advice. Each fault of `benchmarks.live_faults` lasts for a while; before and after it
nothing is broken. Printed for each: the share of the cameras' frames that were on time before,
during and after it. Frames that a camera itself skips do not count: it does so to keep its window.

Limits: box and cameras share the cores and one event loop, so that a loop that stands still stops
the cameras as well.
"""

import asyncio
import json
import logging
import os
import platform
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import click

from benchmarks import live_faults
from edgebox.app.composition import App
from edgebox.camera.daemon import Camera
from edgebox.config.config_file import load
from edgebox.domain.model_family import ExecutorId
from edgebox.media.sources import open_source

WARM_S = 5.0
HANGS_ON = ExecutorId("cpu/0")
VICTIM = "gate"
"""The camera that the faults of decoding are about; it is not counted."""
PARTS = ("before", "during", "after")
RESULTS = Path(__file__).parent / "results" / "faults_live.json"

Fault = Callable[[App], AbstractAsyncContextManager[None]]
FAULTS: Mapping[str, Fault] = {
    "nothing": lambda app: nullcontext(),
    "database locked": live_faults.locked_database,
    "disk full": live_faults.full_disk,
    "database read-only": live_faults.read_only_database,
    "planner raises": live_faults.failing_planner,
    "planner does not end": live_faults.endless_planner,
    "event loop stands still 1.5 s": live_faults.stalled_loop,
    "clock set back by an hour": partial(live_faults.wall_clock, step_s=-3600),
    "decoding threads die": live_faults.dying_decoders,
    "decoding hangs": live_faults.hanging_decoder,
    "batch hangs": partial(live_faults.hanging_batch, executor=HANGS_ON),
    "GPU lost": partial(live_faults.lost_gpu, executor=HANGS_ON),
    "connections reset in mid frame": live_faults.cut_connections,
    "connections mute in mid frame": live_faults.half_open,
    "database deleted": live_faults.deleted_database,
}
"""The last one stays, so that nothing follows it."""


def config(folder: Path) -> dict[str, Any]:
    """Return the settings of the box."""
    return {
        "server.port": 0,
        "access.open_to": "everybody",
        "storage.path": str(folder / "box.sqlite3"),
        "inference.models": str(folder / "models"),
        "executors": [{"device": "cpu", "streams": 2, "threads": 1}],
    }


@asynccontextmanager
async def running(app: App, names: list[str], rate_hz: float, slo_ms: float) -> Any:
    """Run cameras meanwhile."""
    cameras = [
        Camera(open_source("scene:", rate_hz=rate_hz), app.url, name=name, slo_ms=slo_ms)
        for name in names
    ]
    tasks = [asyncio.create_task(camera.run()) for camera in cameras]
    try:
        yield cameras
    finally:
        for camera in cameras:
            camera.stop()
        await asyncio.gather(*tasks)


def counted(cameras: list[Camera]) -> Counter[str]:
    """Return how the frames of the cameras have ended, by outcome or reason."""
    ends: Counter[str] = Counter()
    for summary in (camera.summary() for camera in cameras):
        ends.update(summary.dropped)
        ends.update({"on_time": summary.on_time, "late": summary.late})
    for never_sent in ("sender", "plan"):
        del ends[never_sent]
    return ends


async def measure(app: App, fault: Fault, cameras: list[Camera], part_s: float) -> dict[str, Any]:
    """Return what became of the cameras' frames in each part."""
    at = [counted(cameras)]
    await asyncio.sleep(part_s)
    at.append(counted(cameras))
    async with fault(app):
        await asyncio.sleep(part_s)
        at.append(counted(cameras))
    await asyncio.sleep(part_s)
    at.append(counted(cameras))
    found = {}
    for part, began, ended in zip(PARTS, at, at[1:], strict=False):
        ends = ended - began
        share = ends["on_time"] / max(1, ends.total())
        found[part] = {"on_time": round(share, 4), "frames": dict(sorted(ends.items()))}
    return found


async def run(
    names: list[str], count: int, part_s: float, rate_hz: float, slo_ms: float
) -> dict[str, Any]:
    """Measure these faults, one after the other, on one box."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        app = App(load(None, config(Path(folder))))
        await app.start()
        try:
            others = [f"camera-{number}" for number in range(count)]
            async with running(app, [*others, VICTIM], rate_hz, slo_ms) as cameras:
                await asyncio.sleep(WARM_S)
                for name in names:
                    found[name] = await measure(app, FAULTS[name], cameras[:count], part_s)
                    click.echo(row(name, found[name]))
                    await asyncio.sleep(WARM_S)
        finally:
            await app.stop()
    return found


def row(name: str, found: Mapping[str, Any]) -> str:
    """Return a fault's line of the table."""
    shares = " | ".join(f"{found[part]['on_time']:.3f}" for part in PARTS)
    lost = {k: v for k, v in found["during"]["frames"].items() if k != "on_time"}
    return f"| {name} | {shares} | {', '.join(f'{v} {k}' for k, v in lost.items()) or '-'} |"


@click.command()
@click.option("--fault", "names", multiple=True, type=click.Choice(list(FAULTS)))
@click.option("--part-s", default=5.0, show_default=True, help="Before, during and after each.")
@click.option("--cameras", "count", default=4, show_default=True, help="Without the victim.")
@click.option("--rate-hz", default=5.0, show_default=True, help="Of each camera.")
@click.option("--slo-ms", default=300.0, show_default=True, help="Of each camera.")
@click.option("--out", type=click.Path(path_type=Path), default=RESULTS, show_default=False)
def main(  # noqa: PLR0917 - the options of a command
    names: tuple[str, ...], part_s: float, count: int, rate_hz: float, slo_ms: float, out: Path
) -> None:
    """Break one box in every way, and say what that costs its cameras."""
    logging.disable(logging.CRITICAL)
    click.echo("| fault | before | during | after | frames that were not on time during it |")
    click.echo("|---|---|---|---|---|")
    load_before = os.getloadavg()[0]
    found = asyncio.run(run(list(names) or list(FAULTS), count, part_s, rate_hz, slo_ms))
    document = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "load_average": [round(load_before, 1), round(os.getloadavg()[0], 1)],
        "cameras": count,
        "rate_hz": rate_hz,
        "slo_ms": slo_ms,
        "part_s": part_s,
        "faults": found,
    }
    out.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
