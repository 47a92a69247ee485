"""Kills real boxes of a fleet: `python -m benchmarks.fleet_live`.

Three `edgebox serve` in processes of their own, each with one thread for inference, and twelve
cameras at 2 Hz in this process. One box is killed (its cameras notice at once), then one is stopped
without being ended (nothing is heard from it any more). Printed is how long it took until all
cameras of the lost box were connected to another one, and what became of all frames. A minute.
"""

import asyncio
import json
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from edgebox.camera.daemon import Camera
from edgebox.client import SubscriptionRefusedError, get_document
from edgebox.media.sources import PictureSource

BOXES, CAMERAS, RATE_HZ = 3, 12, 2.0
SIZE_PX = (320, 180)
SETTLE_S = 10.0
"""How long is waited after a loss."""
READY_S = 120.0


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


async def _start(folder: Path, number: int, ports: list[int]) -> asyncio.subprocess.Process:
    own = folder / f"box-{number}"
    own.mkdir()
    boxes = json.dumps([f"http://127.0.0.1:{port}" for port in ports])
    (own / "edgebox.toml").write_text(
        f'server.port = {ports[number]}\nserver.name = "box-{number}"\n'
        'access.open_to = "everybody"\nstorage.path = "box.sqlite3"\ninference.profile_s = 2\n'
        f'fleet.boxes = {boxes}\nfleet.secret_file = "../secret"\n'
        'executors = [{device = "cpu", threads = 1}]\n'
    )
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "edgebox", "serve", "--config", str(own / "edgebox.toml"),
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip


async def _all_up(port: int) -> None:
    async with asyncio.timeout(READY_S):
        while True:
            try:
                found = await get_document(f"http://127.0.0.1:{port}", "fleet")
                if sum(bool(box["services"]) for box in found["boxes"]) == BOXES:
                    return
            except SubscriptionRefusedError:
                pass  # it is starting
            await asyncio.sleep(0.5)


def _at(cameras: list[Camera], port: int) -> int:
    """Return how many cameras are connected to a box, or to none."""
    return sum(not camera.status().connected or f":{port}/" in camera.url for camera in cameras)


async def _lose(
    box: asyncio.subprocess.Process, port: int, how: signal.Signals, cameras: list[Camera]
) -> dict[str, Any]:
    hit = _at(cameras, port)
    began_s = back_s = time.monotonic()
    box.send_signal(how)
    while time.monotonic() - began_s < SETTLE_S:
        await asyncio.sleep(0.01)
        if _at(cameras, port):
            back_s = time.monotonic()
    return {"how": how.name, "cameras": hit, "all_back_s": round(back_s - began_s, 2)}


async def measure() -> dict[str, Any]:
    """Return what was measured."""
    picture = np.random.default_rng(1).integers(80, 176, (180, 320, 3), np.uint8)
    ports = _free_ports(BOXES)
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "secret").write_text("shared by the boxes of this benchmark")
        boxes = [await _start(Path(name), number, ports) for number in range(BOXES)]
        try:
            await asyncio.gather(*map(_all_up, ports))
            cameras = [
                Camera(
                    PictureSource(SIZE_PX, RATE_HZ, lambda _: picture),
                    f"http://127.0.0.1:{ports[number % BOXES]}",
                    name=f"camera-{number}",
                    rate_hz=RATE_HZ,
                    slo_ms=2_000,
                )
                for number in range(CAMERAS)
            ]
            runs = [asyncio.create_task(camera.run()) for camera in cameras]
            await asyncio.sleep(SETTLE_S)
            losses = [
                await _lose(boxes[0], ports[0], signal.SIGKILL, cameras),
                await _lose(boxes[1], ports[1], signal.SIGSTOP, cameras),
            ]
            for camera in cameras:
                camera.stop()
            ended = [await run for run in runs]
        finally:
            for box in boxes:
                if box.returncode is None:
                    box.kill()
                await box.wait()
    dropped: dict[str, int] = {}
    for summary in ended:
        for reason, count in summary.dropped.items():
            dropped[reason] = dropped.get(reason, 0) + count
    captured = sum(summary.captured for summary in ended)
    on_time, late = (sum(getattr(each, of) for each in ended) for of in ("on_time", "late"))
    return {
        "losses": losses,
        "captured": captured,
        "on_time": on_time,
        "late": late,
        "dropped": dropped,
        "adds_up": captured == on_time + late + sum(dropped.values()),
    }


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def main(as_json: bool) -> None:
    """Kill real boxes of a fleet."""
    found = asyncio.run(measure())
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    for loss in found["losses"]:
        click.echo(
            f"{loss['how']}: {loss['cameras']} cameras, all back after {loss['all_back_s']} s"
        )
    click.echo(
        f"{found['captured']} frames: {found['on_time']} on time, {found['late']} late, "
        f"dropped {found['dropped']}; adds up: {found['adds_up']}"
    )


if __name__ == "__main__":
    main()
