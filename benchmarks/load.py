"""How many cameras one core carries: python -m benchmarks.load [--rate-hz 10] [--json]

The real server, core, driver and planner run in this process, which is kept on one core; the
executor finds nothing, at once, and nothing is decoded. So this is what an accelerator of any speed
needs beside it. All cameras are one other process on the other cores, over real WebSockets on
loopback, with frames of 20 KB. Cameras are doubled until the 99th percentile of the time from
handing a frame to the socket to its ack is above the bound, then the limit is narrowed down.

A machine that others use makes acks late by itself: `timer_lag_ms`, of a loop that does nothing on
the same core just before. CPU time depends on that far less: `cameras_by_cpu_time` is how many use
the core up at the CPU time that a frame takes here. `generator_cores` is what the cameras' process
used; near 1 it, and not the box, is what is measured.
"""

import base64
import json
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import click
import uvloop

from benchmarks.ingest import (
    FRAME_BYTES,
    PICTURE_PX,
    SWITCH_INTERVAL_S,
    bare_box,
    config_of,
    drive,
    idle,
    machine,
    picture,
    quantiles_ms,
)
from edgebox.config.config_file import Config

POLICY = "adaptive"
FIRST = 2
NARROW = 1.1
"""The limit is known to this factor."""
CAMERAS_MAX = 4096
SLO_MS = 500.0
WINDOW = 4
"""Frames that a camera has at the box, unanswered, before it skips one."""
IDLE_S = 2.0


async def highest(
    holds: Callable[[int], Awaitable[bool]], first: int, narrow: float, most: int
) -> int:
    """Return the largest number that holds, to a factor.

    Args:
        holds: whether a number does; false for all above one that does not.
        first: where to begin; it is doubled.
        narrow: the factor, above 1.
        most: no number above it is tried.

    Returns:
        The number; 0 if not even `first` holds.
    """
    low, high = 0, first
    while high <= most and await holds(high):
        low, high = high, 2 * high
    high = min(high, most + 1)
    while low and high > max(low + 1, narrow * low):
        middle = (low + high) // 2
        if await holds(middle):
            low = middle
        else:
            high = middle
    return low


def config() -> Config:
    """Return the configuration: many cameras, and nothing is kept."""
    base = config_of(POLICY)
    return replace(base, limits=replace(base.limits, cameras_max=CAMERAS_MAX))


async def measure(
    cameras: int, rate_hz: float, seconds: float, generators: set[int]
) -> dict[str, Any]:
    """Measure a number of cameras."""
    width_px, height_px = PICTURE_PX
    quiet = await idle(IDLE_S, POLICY, {})
    async with bare_box(POLICY, config=config()) as (box, port):
        order = {
            "port": port, "cameras": cameras, "frames_hz": cameras * rate_hz,
            "jpeg": base64.b64encode(picture()).decode(), "window": WINDOW, "slo_ms": SLO_MS,
            "width_px": width_px, "height_px": height_px,
        }  # fmt: skip
        run = await drive(box, seconds, order, generators)
        decision_us = box.driver.decisions.quantiles_us()
    sent = run.client["sent"]
    cpu_s = run.after.cpu_s - run.before.cpu_s
    return {
        "cameras": cameras,
        "received_hz": round(sent / run.wall_s, 1),
        "cpu_us_per_frame": round(cpu_s / max(1, sent) * 1e6, 1),
        "cameras_by_cpu_time": round(sent / cpu_s / rate_hz),
        "box_cores": round(cpu_s / run.wall_s, 2),
        "answered": run.frames,
        "dropped": run.after.dropped - run.before.dropped,
        "sent": sent,
        "skipped": run.client["skipped"],
        "ack_ms": quantiles_ms(run.client["ack_ns"]),
        "answer_ms": quantiles_ms(run.client["answer_ns"]),
        "loop_lag_ms": {name: round(ms, 2) for name, ms in run.lag_ms.items()},
        "decision_us": decision_us,
        "generator_cores": round(run.client["cpu_s"] / run.wall_s, 2),
        **quiet,
    }


async def search(
    rate_hz: float, seconds: float, bound_ms: float, told: Callable[[dict[str, Any]], None]
) -> dict[str, Any]:
    """Find the most cameras whose acks are in time."""
    steps: list[dict[str, Any]] = []
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) > 1:
        os.sched_setaffinity(0, cores[:1])

    async def holds(cameras: int) -> bool:
        step = await measure(cameras, rate_hz, seconds, set(cores[1:]))
        steps.append(step)
        told(step)
        return bool(step["ack_ms"]["p99"] <= bound_ms and step["skipped"] <= 0.01 * step["sent"])

    most = await highest(holds, FIRST, NARROW, CAMERAS_MAX)
    found = next((step for step in steps if step["cameras"] == most), None)
    return {
        "cores": {"box": cores[:1], "cameras": cores[1:] or cores},
        "cameras_per_core": most,
        "frames_hz": found["received_hz"] if found else 0.0,
        "steps": steps,
    }


@click.command()
@click.option("--rate-hz", default=10.0, show_default=True, help="Of each camera.")
@click.option("--seconds", default=5.0, show_default=True, help="Of each measurement.")
@click.option("--bound-ms", default=20.0, show_default=True, help="Of the acks' P99.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def main(*, rate_hz: float, seconds: float, bound_ms: float, as_json: bool) -> None:
    """Find how many cameras one core carries."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    about = {"machine": machine(), "rate_hz": rate_hz, "seconds": seconds, "bound_ms": bound_ms}

    def told(step: dict[str, Any]) -> None:
        click.echo(
            f"{step['cameras']:5} cameras  {step['received_hz']:7.0f} frames/s  "
            f"ack P99 {step['ack_ms']['p99']:7.2f} ms  {step['cpu_us_per_frame']:5.0f} us/frame  "
            f"box {step['box_cores']:.2f} cores, generator {step['generator_cores']:.2f}",
            err=as_json,
        )

    found = uvloop.run(search(rate_hz, seconds, bound_ms, told))
    if as_json:
        click.echo(json.dumps({**about, "frame_bytes": FRAME_BYTES, **found}, indent=1))
    else:
        click.echo(f"{found['cameras_per_core']} cameras at {rate_hz:g} Hz on one core")


if __name__ == "__main__":
    main()
