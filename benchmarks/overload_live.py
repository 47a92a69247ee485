"""Ten times the load by cameras that ignore advice: python -m benchmarks.overload_live [--json]

The real server, core, driver and decoding run in this process; the executor is a timer, so that
figures are about the box and not about a model, or with --model the bundled one on one thread. Two
other processes play the cameras on loopback: established ones that use nine tenths of the executor
and obey advice, and a crowd that joins them for a while and sends whatever it is told. With --apart
the cameras have a core of their own.

goodput    frames answered on time per second, of all cameras, as a share of the executor's capacity
share      on-time share of the frames that the established cameras send
loop       CPU time of the event loop's thread per frame that arrives, or is dropped
recovery   from when the crowd leaves until the established cameras have their share back
"""

import asyncio
import base64
import contextlib
import functools
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import Any

import click
import uvloop

from benchmarks.ingest import CLIENT, PICTURE_PX, SWITCH_INTERVAL_S, bare_box, machine, picture
from edgebox.app.composition import App
from edgebox.config.config_file import Config, LimitParameters
from edgebox.domain.access import OpenTo
from edgebox.domain.requests import CameraId
from edgebox.runtime.box import Box
from edgebox.runtime.looplag import LoopLag

WINDOW = 10_000
"""Frames that a camera has at the box, unanswered: it never waits."""
LOAD = 0.9
"""Load of the established cameras."""
RECOVERED = 0.95
"""The part of its earlier on-time share with which a camera has recovered."""
STEP_S = 0.5
RECOVERY_MAX_S = 20.0


@dataclass(frozen=True, slots=True)
class Counted:
    """Frames of some cameras until an instant."""

    at_s: float
    captured: int
    on_time: int

    @classmethod
    def of(cls, box: Box, wanted: Callable[[CameraId], bool]) -> "Counted":
        """Count the frames of the wanted cameras."""
        counts = [box.metrics.of(name).counts for name in box.cameras if wanted(name)]
        return cls(
            time.monotonic(),
            sum(each.captured for each in counts),
            sum(each.on_time for each in counts),
        )

    def rates(self, before: "Counted") -> tuple[float, float]:
        """Return the frames on time per second since then, and their share."""
        on_time = self.on_time - before.on_time
        captured = max(1, self.captured - before.captured)
        return on_time / (self.at_s - before.at_s), on_time / captured


def established(name: CameraId) -> bool:
    """Return whether a camera was there first."""
    return name.startswith("first-")


@dataclass(frozen=True, slots=True)
class Tested:
    """A box that is measured."""

    box: Box
    port: int
    capacity_hz: float
    """Frames that its executor can answer in a second."""
    min_accuracy: float = 0.0
    """What cameras ask for, so that all run on one variant."""


@contextlib.asynccontextmanager
async def with_timer(frame_ms: float) -> AsyncIterator[Tested]:
    """Run a box whose executor is a timer."""
    async with bare_box("adaptive", config=config(), frame_ns=round(frame_ms * 1e6)) as found:
        yield Tested(*found, capacity_hz=1e3 / frame_ms)


@contextlib.asynccontextmanager
async def with_model() -> AsyncIterator[Tested]:
    """Run a whole box with the bundled model, all cameras on its largest variant."""
    with tempfile.TemporaryDirectory() as folder:
        given = config()
        app = App(
            replace(
                given,
                server=replace(given.server, port=0),
                storage=replace(given.storage, path=f"{folder}/edgebox.sqlite3"),
                access=replace(given.access, open_to=OpenTo.EVERYBODY),
            )
        )
        await app.start()
        try:
            largest = app.box.families[app.box.models.default_family].offered[-1]
            profiles = (of[largest.name] for of in app.box.profiles.values())
            capacity_hz = sum(1e9 / profile.mean_ns(1) for profile in profiles)
            yield Tested(app.box, app.port, capacity_hz, largest.accuracy)
        finally:
            await app.stop()


def config() -> Config:
    """Return the configuration: the usual one, for many cameras."""
    return replace(Config(), limits=replace(LimitParameters(), cameras_max=1_000))


@contextlib.asynccontextmanager
async def cameras(order: dict[str, Any], core: int | None) -> AsyncIterator[None]:
    """Run cameras in a process of their own, on this core."""
    client = await asyncio.create_subprocess_exec(
        sys.executable, str(CLIENT), stdin=asyncio.subprocess.PIPE
    )
    if core is not None:
        os.sched_setaffinity(client.pid, {core})
    assert client.stdin is not None
    client.stdin.write(json.dumps(order).encode() + b"\n")
    try:
        yield
    finally:
        client.kill()
        await client.wait()


async def recovered_s(box: Box, share: float) -> float | None:
    """Return how long the established cameras take to recover; None: too long."""
    began_s = time.monotonic()
    before = Counted.of(box, established)
    while time.monotonic() - began_s < RECOVERY_MAX_S:
        await asyncio.sleep(STEP_S)
        now = Counted.of(box, established)
        if now.rates(before)[1] >= RECOVERED * share:
            return round(before.at_s - began_s, 1)
        before = now
    return None


@dataclass(frozen=True, slots=True)
class LoopUse:
    """What the event loop's thread has done until an instant."""

    cpu_s: float
    frames: int

    @classmethod
    def of(cls, box: Box) -> "LoopUse":
        """Read the meters; to be called by that thread."""
        return cls(time.thread_time(), box.metrics.total().captured)

    def us_per_frame(self, before: "LoopUse") -> float:
        """Return its CPU time per frame since then."""
        return round((self.cpu_s - before.cpu_s) / max(1, self.frames - before.frames) * 1e6, 1)


async def measure(
    tested: Tested, factor: float, crowd: int, seconds: float, core: int | None
) -> dict[str, Any]:
    """Measure before, while and after the crowd is there."""
    box, capacity_hz, lag = tested.box, tested.capacity_hz, LoopLag()
    width_px, height_px = PICTURE_PX
    order = {
        "port": tested.port,
        "jpeg": base64.b64encode(picture()).decode(),
        "width_px": width_px,
        "height_px": height_px,
        "window": WINDOW,
        "slo_ms": 500.0,
        "min_accuracy": tested.min_accuracy,
    }
    few = {**order, "cameras": 4, "frames_hz": LOAD * capacity_hz, "prefix": "first-"}
    many = {**order, "cameras": crowd, "frames_hz": (factor - LOAD) * capacity_hz}
    everybody = functools.partial(Counted.of, box, lambda name: True)
    first = functools.partial(Counted.of, box, established)
    async with cameras({**few, "obey": True}, core):
        await asyncio.sleep(3.0)
        start, idle = everybody(), LoopUse.of(box)
        await asyncio.sleep(seconds)
        before, used = everybody(), LoopUse.of(box)
        async with cameras({**many, "prefix": "crowd-"}, core):
            await asyncio.sleep(3.0)
            lag.start()
            busy, all_start, first_start = LoopUse.of(box), everybody(), first()
            await asyncio.sleep(seconds)
            all_end, first_end, end = everybody(), first(), LoopUse.of(box)
            lag.stop()
        alone_hz, alone_share = before.rates(start)
        recovery_s = await recovered_s(box, alone_share)
    during_hz, _ = all_end.rates(all_start)
    first_hz, first_share = first_end.rates(first_start)
    offered = all_end.captured - all_start.captured
    return {
        "capacity_hz": round(capacity_hz, 1),
        "before": {
            "goodput_hz": round(alone_hz, 1),
            "share": round(alone_share, 3),
            "loop_us": used.us_per_frame(idle),
        },
        "during": {
            "offered_hz": round(offered / (all_end.at_s - all_start.at_s), 1),
            "goodput_hz": round(during_hz, 1),
            "goodput_of_capacity": round(during_hz / capacity_hz, 3),
            "goodput_of_before": round(during_hz / max(alone_hz, 1e-9), 3),
            "first_hz": round(first_hz, 1),
            "share": round(first_share, 3),
            "loop_us": end.us_per_frame(busy),
            "loop_lag_ms": {k: round(v, 2) for k, v in (lag.quantiles_ms() or {}).items()},
            "dropped": dict(box.metrics.total().dropped),
        },
        "recovery_s": recovery_s,
    }


async def run(
    factor: float, crowd: int, seconds: float, frame_ms: float | None, apart: bool
) -> dict[str, Any]:
    """Run a box and measure it; without `frame_ms`, one with the bundled model."""
    cores = sorted(os.sched_getaffinity(0))
    core = cores[-1] if apart and len(cores) > 1 else None
    if core is not None:
        os.sched_setaffinity(0, set(cores[:-1]))
    async with with_model() if frame_ms is None else with_timer(frame_ms) as tested:
        return await measure(tested, factor, crowd, seconds, core)


@click.command()
@click.option("--factor", default=10.0, show_default=True, help="Load of all, in capacities.")
@click.option("--crowd", default=36, show_default=True, help="Cameras that join.")
@click.option("--seconds", default=10.0, show_default=True, help="Of each measurement.")
@click.option("--frame-ms", default=20.0, show_default=True, help="Inference of a frame.")
@click.option("--model", is_flag=True, help="Run the bundled model in place of a timer.")
@click.option("--apart", is_flag=True, help="Run the cameras on the last core, the box elsewhere.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def main(
    *,
    factor: float,
    crowd: int,
    seconds: float,
    frame_ms: float,
    model: bool,
    apart: bool,
    as_json: bool,
) -> None:
    """Measure goodput under overload by cameras that ignore advice."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    figures = uvloop.run(run(factor, crowd, seconds, None if model else frame_ms, apart))
    document = {"machine": machine(), "factor": factor, "crowd": crowd, **figures}
    click.echo(json.dumps(document, indent=None if as_json else 1))


if __name__ == "__main__":
    main()
