"""Ten times the load by cameras that ignore advice: python -m benchmarks.overload_live [--json]

The real server, core, driver and decoding run in this process; the executor is a timer, so that
figures are about the box and not about a model. Two other processes play the cameras on loopback:
established ones that use nine tenths of the executor, and a crowd that joins them for a while. The
crowd sends whatever it is told.

goodput    frames answered on time per second, of all cameras, as a share of the executor's capacity
share      on-time share of the established cameras
recovery   from when the crowd leaves until the established cameras have their share back
"""

import asyncio
import base64
import contextlib
import json
import sys
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import Any

import click
import uvloop

from benchmarks.ingest import CLIENT, PICTURE_PX, SWITCH_INTERVAL_S, bare_box, machine, picture
from edgebox.config.config_file import Config, LimitParameters
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


@contextlib.asynccontextmanager
async def cameras(order: dict[str, Any]) -> AsyncIterator[None]:
    """Run cameras in a process of their own."""
    client = await asyncio.create_subprocess_exec(
        sys.executable, str(CLIENT), stdin=asyncio.subprocess.PIPE
    )
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


async def measure(factor: float, crowd: int, seconds: float, frame_ms: float) -> dict[str, Any]:
    """Measure before, while and after the crowd is there."""
    capacity_hz = 1e3 / frame_ms
    config = replace(Config(), limits=replace(LimitParameters(), cameras_max=1_000))
    lag = LoopLag()
    async with bare_box("adaptive", config=config, frame_ns=round(frame_ms * 1e6)) as (box, port):
        width_px, height_px = PICTURE_PX
        order = {
            "port": port,
            "jpeg": base64.b64encode(picture()).decode(),
            "width_px": width_px,
            "height_px": height_px,
            "window": WINDOW,
            "slo_ms": 500.0,
        }
        few = {**order, "cameras": 4, "frames_hz": LOAD * capacity_hz, "prefix": "first-"}
        many = {**order, "cameras": crowd, "frames_hz": (factor - LOAD) * capacity_hz}
        async with cameras(few):
            await asyncio.sleep(3.0)
            start = Counted.of(box, lambda name: True)
            await asyncio.sleep(seconds)
            before = Counted.of(box, lambda name: True)
            async with cameras({**many, "prefix": "crowd-"}):
                await asyncio.sleep(2.0)
                lag.start()
                all_start = Counted.of(box, lambda name: True)
                first_start = Counted.of(box, established)
                await asyncio.sleep(seconds)
                all_end, first_end = (
                    Counted.of(box, lambda name: True),
                    Counted.of(box, established),
                )
                lag.stop()
            alone_hz, alone_share = before.rates(start)
            recovery_s = await recovered_s(box, alone_share)
        during_hz, _ = all_end.rates(all_start)
        _, first_share = first_end.rates(first_start)
        return {
            "capacity_hz": capacity_hz,
            "before": {"goodput_hz": round(alone_hz, 1), "share": round(alone_share, 3)},
            "during": {
                "offered_hz": round(
                    (all_end.captured - all_start.captured) / (all_end.at_s - all_start.at_s), 1
                ),
                "goodput_hz": round(during_hz, 1),
                "goodput_of_capacity": round(during_hz / capacity_hz, 3),
                "goodput_of_before": round(during_hz / max(alone_hz, 1e-9), 3),
                "share": round(first_share, 3),
                "loop_lag_ms": {k: round(v, 2) for k, v in (lag.quantiles_ms() or {}).items()},
                "dropped": dict(box.metrics.total().dropped),
            },
            "recovery_s": recovery_s,
        }


@click.command()
@click.option("--factor", default=10.0, show_default=True, help="Load of all, in capacities.")
@click.option("--crowd", default=36, show_default=True, help="Cameras that join.")
@click.option("--seconds", default=10.0, show_default=True, help="Of each measurement.")
@click.option("--frame-ms", default=20.0, show_default=True, help="Inference of a frame.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def main(factor: float, crowd: int, seconds: float, frame_ms: float, as_json: bool) -> None:
    """Measure goodput under overload by cameras that ignore advice."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    figures = uvloop.run(measure(factor, crowd, seconds, frame_ms))
    document = {"machine": machine(), "factor": factor, "crowd": crowd, **figures}
    click.echo(json.dumps(document, indent=None if as_json else 1))


if __name__ == "__main__":
    main()
