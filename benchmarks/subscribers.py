"""Measures what subscribers to results cost the loop: `python -m benchmarks.subscribers [--json]`.

A real box, real WebSockets on loopback, clients in another process. Frames with five detections
end at a steady rate; the loop's thread is charged with all it does meanwhile, less what the same
rate costs where the result goes to nobody.
"""

import argparse
import asyncio
import json
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import aiohttp
import numpy as np
import uvloop

from edgebox.app.composition import App
from edgebox.config.config_file import load
from edgebox.domain.model_family import FamilyName, VariantName
from edgebox.domain.requests import Camera, CameraId, Outcome, Request, RequestId
from edgebox.runtime.camera_record import CameraRecord
from edgebox.runtime.frames import Answer, FrameResult, PendingFrame, Timing
from edgebox.vision.detections import Detections

COUNTS = (0, 1, 10)
RATE_HZ = 500
SECONDS = 4.0
ROUNDS = 5
DETECTIONS = 5


def ended_frame(number: int, now_ns: int) -> tuple[CameraRecord, PendingFrame, FrameResult]:
    """Return a frame of a camera that has just been answered."""
    camera = Camera(CameraId("gate"), "default", FamilyName("street"), 300_000_000, 10, 1280, 720)
    request = Request(
        RequestId(number), camera.id, "default", now_ns, now_ns, now_ns, 640, 360, 40_000
    )
    rng = np.random.default_rng(number)
    corners = rng.uniform(0, 600, (DETECTIONS, 2))
    found = Detections(
        np.concatenate((corners, corners + 50), 1).astype(np.float32),
        rng.uniform(0.3, 1, DETECTIONS).astype(np.float32),
        rng.integers(0, 5, DETECTIONS),
    )
    timing = Timing(20_000_000, 3_000_000, 8_000_000, 500_000, 31_500_000, 1)
    answer = Answer(Outcome.ON_TIME, VariantName("street-256"), found, timing, 1.0)
    frame = PendingFrame(request, b"", 1280, 720, 0, lambda frame, ending: None, number=number)
    return CameraRecord(camera, "benchmark", None, None), frame, answer


def subscribe(url: str, count: int, ready: "multiprocessing.synchronize.Event") -> None:
    """Read everything on so many connections, until the box ends them."""

    async def one(client: aiohttp.ClientSession, first: "asyncio.Queue[None]") -> None:
        async with client.ws_connect(f"{url}/v1/results") as socket:
            await socket.receive()
            first.put_nowait(None)
            async for _ in socket:
                pass

    async def everyone() -> None:
        first: asyncio.Queue[None] = asyncio.Queue()
        async with aiohttp.ClientSession() as client, asyncio.TaskGroup() as group:
            for _ in range(count):
                group.create_task(one(client, first))
            for _ in range(count):
                await first.get()
            ready.set()

    asyncio.run(everyone())


async def publish(app: App) -> float:
    """Have frames end for `SECONDS`; return the loop's CPU time per frame, us."""
    frames = [ended_frame(number, time.monotonic_ns()) for number in range(1_000)]
    total = round(SECONDS * RATE_HZ)
    began_s, cpu_s = time.monotonic(), time.thread_time()
    for number in range(total):
        app.box.observers.notify(*frames[number % len(frames)])
        await asyncio.sleep(max(0.0, began_s + number / RATE_HZ - time.monotonic()))
    return (time.thread_time() - cpu_s) / total * 1e6


async def nobody_left(app: App, others: int) -> None:
    """Wait until the box has noticed that the subscribers are gone."""
    for _ in range(200):
        if len(app.box.observers) == others:
            return
        await asyncio.sleep(0.05)
    raise TimeoutError("subscribers that were ended are still there")


async def measure(database: Path) -> dict[int, list[float]]:
    """Return the CPU times by number of subscribers, a round each."""
    settings = {
        "server.port": 0,
        "access.open_to": "everybody",
        "storage.path": str(database),
        "inference.profile_s": 1.0,
    }
    app = App(load(None, settings))
    await app.start()
    context = multiprocessing.get_context("spawn")
    took: dict[int, list[float]] = {count: [] for count in COUNTS}
    others = len(app.box.observers)
    try:
        for _ in range(ROUNDS):
            for count in COUNTS:
                ready = context.Event()
                client = context.Process(target=subscribe, args=(app.url, count, ready))
                if count:
                    client.start()
                    await asyncio.to_thread(ready.wait)
                took[count].append(await publish(app))
                if count:
                    client.terminate()
                    await asyncio.to_thread(client.join)
                    await nobody_left(app, others)
    finally:
        await app.stop()
    return took


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    with (
        tempfile.TemporaryDirectory() as folder,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        took = runner.run(measure(Path(folder) / "edgebox.sqlite3"))
    nobody_us = statistics.median(took[0])
    added_us = {count: statistics.median(rounds) - nobody_us for count, rounds in took.items()}
    if options.json:
        print(json.dumps({"loop_us": took, "added_us": added_us}))
        return
    print(f"CPU of the event loop per result, {RATE_HZ} results/s, medians of {ROUNDS} rounds:")
    for count, us in added_us.items():
        spread = f"{min(took[count]):.0f} to {max(took[count]):.0f}"
        print(f"{count:3} subscribers: {us:6.1f} us more than without  (in all {spread} us)")


if __name__ == "__main__":
    main()
