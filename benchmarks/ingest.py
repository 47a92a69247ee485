"""Measures what a frame costs the box beside inference: socket, core and result.

    python benchmarks/ingest.py [--cameras 8] [--seconds 10] [--part PART]...
        [--policy edf] [--json]

The real server, core and driver run in this process; one other process plays all cameras over real
WebSockets on loopback, with frames of 20 KB. Four parts:

idle        an event loop with nothing to do: how late the machine itself makes timers
throughput  executor that finds nothing, cameras that send as soon as they are answered
pacing      the same at 500 frames/s: how long a frame waits for its ack
lag         the bundled model and real decoding at full load: how late the event loop's timers are

CPU time is that of this whole process, so 1 / (CPU time per frame) is what one core carries
however busy the machine is; wall figures are only as good as the machine is idle.
"""

import asyncio
import base64
import contextlib
import functools
import json
import os
import platform
import sys
import time
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np
import uvloop

import edgebox
from edgebox.app.composition import App
from edgebox.app.model_jobs import ModelJobs
from edgebox.config.config_file import (
    Config,
    LimitParameters,
)
from edgebox.config.inference_section import InferenceParameters
from edgebox.config.storage_section import StorageParameters
from edgebox.domain.access import OpenTo
from edgebox.domain.model_family import QUANTILES, ExecutorId, LatencyProfile
from edgebox.inference.machine import processor_name, usable_cores
from edgebox.inference.null_executor import NullExecutor
from edgebox.inference.zoo import bundled_folders, load_zoo
from edgebox.ingest.pulled_cameras import PulledCameras
from edgebox.link.bandwidth import EstimatorKind
from edgebox.media.jpeg import encode
from edgebox.planning.planner import plan
from edgebox.runtime.access_control import AccessControl
from edgebox.runtime.box import Box
from edgebox.runtime.callbacks import Callbacks
from edgebox.runtime.decode_queue import decode_threads
from edgebox.runtime.driver import Driver
from edgebox.runtime.garbage import collect_on_request_only
from edgebox.runtime.journal import Journal
from edgebox.runtime.looplag import LoopLag
from edgebox.runtime.machine_measurements import MachineMeasurements
from edgebox.runtime.model_choice import served
from edgebox.runtime.preparation import CanvasPool
from edgebox.scene.street_camera import Scene
from edgebox.scheduling.events import ExecutorStarted, VariantsAvailable
from edgebox.scheduling.policies import POLICIES, make_policy
from edgebox.scheduling.scheduler import Scheduler
from edgebox.storage.access_store import AccessStore
from edgebox.storage.credential_file import CredentialFile
from edgebox.storage.database import IN_MEMORY, Storage
from edgebox.web.feed import Feed
from edgebox.web.server import Server
from edgebox.web.state_document import StateCache
from edgebox.web.web_context import WebContext

CLIENT = Path(__file__).with_name("ingest_client.py")
FRAME_BYTES = 20_000
PICTURE_PX = (640, 360)
WINDOW = 16
CROWD = 60
"""Cameras that send as much as goes through: the box takes 125 frames/s of each at most."""
PACED_HZ = 500.0
WARM_S = 2.0
FULL_LOAD_HZ = 400.0
"""Offered to the real model; far more than two cores can infer."""
LAG_FACTOR = 3
"""The lag is measured this many times as long: P99.9 wants thousands of samples."""
BATCH_NS = 200_000
"""What the profiles of the executor that finds nothing say, so that the core forms batches."""
SWITCH_INTERVAL_S = 0.001
"""As edgebox/app/composition.py sets it."""


@dataclass(frozen=True, slots=True)
class Mark:
    """The server's meters at one instant."""

    wall_s: float
    cpu_s: float
    loop_cpu_s: float
    """CPU time of the event loop's thread alone."""
    answered: int
    dropped: int


def mark(box: Box) -> Mark:
    """Read the meters."""
    total = box.metrics.total()
    return Mark(
        time.monotonic(),
        time.process_time(),
        time.thread_time(),
        total.on_time + total.late,
        sum(total.dropped.values()),
    )


def picture() -> bytes:
    """Return a street scene as a JPEG of just `FRAME_BYTES`, bytes after its end included."""
    rgb = Scene(7, *PICTURE_PX).render(0.0).rgb
    jpeg = next(
        jpeg for quality in range(95, 20, -5) if len(jpeg := encode(rgb, quality)) <= FRAME_BYTES
    )
    return jpeg.ljust(FRAME_BYTES, b"\0")


def config_of(policy: str, **inference: Any) -> Config:
    """Return a configuration that keeps nothing and lets a camera send ahead."""
    return replace(
        Config(),
        scheduler=replace(Config().scheduler, batching=policy),
        limits=replace(
            LimitParameters(),
            unacknowledged_max=WINDOW,
            pending_per_camera_max=4 * WINDOW,
            pending_max=10_000,
        ),
        storage=replace(StorageParameters(), path=":memory:"),
        inference=replace(InferenceParameters(), **inference),
    )


@contextlib.asynccontextmanager
async def bare_box(policy: str, *, config: Config | None = None) -> AsyncIterator[tuple[Box, int]]:
    """Run everything but models, decoding and the database; yield the box and its port."""
    config = config or config_of(policy)
    families = [load_zoo(bundled_folders()).family("street")]
    variants = {v.name: v for family in families for v in family.variants}
    executor = NullExecutor(ExecutorId("null/0"))
    rows = {size: (BATCH_NS,) * len(QUANTILES) for size in (1, 2, 4, 8, 16)}
    profiles = {name: LatencyProfile(name, executor.id, rows) for name in variants}
    box = Box(
        name="benchmark",
        version=edgebox.__version__,
        cameras_max=config.limits.cameras_max,
        unacknowledged_max=config.limits.unacknowledged_max,
        bandwidth=EstimatorKind(config.planner.bandwidth),
        on_event=lambda event: None,
        on_camera=lambda record: None,
    )
    box.offer(served(families, families[0].name)[0])
    journal = Journal()
    driver = Driver(
        Scheduler(config.scheduler_parameters(), make_policy(policy)),
        executors=[executor],
        variants=variants,
        canvases=CanvasPool({family.name: family.input for family in families}, needs_pixels=False),
        decode_threads=decode_threads(1),
        planner=functools.partial(plan, parameters=config.planning_parameters()),
        callbacks=Callbacks(on_advice=box.advised, on_plan=box.last_plan.replace),
        journal=journal,
    )
    machine = MachineMeasurements()
    storage = await Storage.open(IN_MEMORY)
    model_jobs = ModelJobs(config, box, storage)
    states, feed = StateCache(box, machine), Feed(box)
    access = AccessControl(AccessStore(IN_MEMORY), open_to=OpenTo.EVERYBODY)
    sources = PulledCameras(box, (), storage.sources, CredentialFile(None), 1)
    server = Server(
        WebContext(
            box, config, storage, machine, journal, states, feed, model_jobs, access, sources
        )
    )
    driver.start()
    driver.feed(VariantsAvailable(tuple(variants.values())))
    driver.feed(ExecutorStarted(executor.id, tuple(profiles.values())))
    box.attach(driver, {executor.id: profiles})
    await server.start("127.0.0.1", 0)
    machine.start()
    try:
        yield box, server.port
    finally:
        await driver.stop(1.0)
        await server.stop()
        await storage.close()
        executor.close()
        machine.stop()


@contextlib.asynccontextmanager
async def whole_box(policy: str) -> AsyncIterator[tuple[Box, int]]:
    """Run the product as it is; yield the box and its port."""
    config = config_of(policy, profile_s=5.0)
    app = App(
        replace(
            config,
            server=replace(config.server, port=0),
            access=replace(config.access, open_to=OpenTo.EVERYBODY),
        )
    )
    await app.start()
    try:
        yield app.box, app.port
    finally:
        await app.stop()


@dataclass(frozen=True, slots=True)
class Measured:
    """One run: the server's meters before and after, and what the cameras saw."""

    before: Mark
    after: Mark
    client: dict[str, Any]
    lag_ms: dict[str, float]

    @property
    def wall_s(self) -> float:
        """How long it was measured."""
        return self.after.wall_s - self.before.wall_s

    @property
    def frames(self) -> int:
        """Frames answered meanwhile."""
        return self.after.answered - self.before.answered

    def load(self) -> dict[str, float]:
        """Return rates and costs; a frame that is dropped costs as well."""
        cpu_s = self.after.cpu_s - self.before.cpu_s
        loop_s = self.after.loop_cpu_s - self.before.loop_cpu_s
        dropped = self.after.dropped - self.before.dropped
        frames = max(1, self.frames + dropped)
        return {
            "frames": self.frames,
            "dropped": dropped,
            "wall_hz": round(self.frames / self.wall_s, 1),
            "cpu_us_per_frame": round(cpu_s / frames * 1e6, 1),
            "loop_cpu_us_per_frame": round(loop_s / frames * 1e6, 1),
            "one_core_hz": round(frames / cpu_s, 1),
            "cores_used": round(cpu_s / self.wall_s, 2),
        }


async def drive(
    box: Box, seconds: float, order: dict[str, Any], cores: Collection[int] = ()
) -> Measured:
    """Let the client process send, on these cores or any; measure after it has warmed up."""
    client = await asyncio.create_subprocess_exec(
        sys.executable,
        str(CLIENT),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=1 << 26,
    )
    assert client.stdin is not None
    assert client.stdout is not None
    if cores:
        os.sched_setaffinity(client.pid, cores)
    lag = LoopLag()
    try:
        client.stdin.write(json.dumps(order).encode() + b"\n")
        await asyncio.sleep(WARM_S)
        collect_on_request_only()
        client.stdin.write(b"begin\n")
        lag.start()
        before = mark(box)
        await asyncio.sleep(seconds)
        after = mark(box)
        lag.stop()
        client.stdin.write(b"end\n")
        line = await asyncio.wait_for(client.stdout.readline(), 10.0)
        if not line:
            raise click.ClickException("the client process failed; see above")
        client.stdin.close()
        await asyncio.wait_for(client.wait(), 10.0)
    finally:
        if client.returncode is None:
            client.kill()
            await client.wait()
    return Measured(before, after, json.loads(line), lag.quantiles_ms() or {})


def quantiles_ms(samples_ns: list[int]) -> dict[str, float]:
    """Return P50, P99 and the maximum in ms."""
    p50, p99, most = np.quantile(np.array(samples_ns or [0]), (0.5, 0.99, 1.0)) / 1e6
    return {"p50": round(float(p50), 2), "p99": round(float(p99), 2), "max": round(float(most), 2)}


def rounded(quantiles: dict[str, float] | None) -> dict[str, float]:
    """Return quantiles as people read them."""
    return {name: round(ms, 2) for name, ms in (quantiles or {}).items()}


async def idle(seconds: float, policy: str, order: dict[str, Any]) -> dict[str, Any]:
    """The machine without us: what no figure of the other parts can be better than."""
    lag = LoopLag()
    lag.start()
    await asyncio.sleep(seconds)
    lag.stop()
    return {"timer_lag_ms": rounded(lag.quantiles_ms())}


async def throughput(seconds: float, policy: str, order: dict[str, Any]) -> dict[str, Any]:
    """As many frames as go through."""
    async with bare_box(policy) as (box, port):
        greedy = {"port": port, "frames_hz": 0.0, "window": WINDOW, "cameras": CROWD}
        run = await drive(box, seconds, order | greedy)
        return {
            **run.load(),
            "decision_us": box.driver.decisions.quantiles_us(),
            "target": ">= 5000 one_core_hz",
        }


async def pacing(seconds: float, policy: str, order: dict[str, Any]) -> dict[str, Any]:
    """The way to the ack at a moderate rate."""
    async with bare_box(policy) as (box, port):
        paced = {"port": port, "frames_hz": PACED_HZ, "window": WINDOW}
        run = await drive(box, seconds, order | paced)
        return {
            **run.load(),
            "skipped": run.client["skipped"],
            "ack_ms": quantiles_ms(run.client["ack_ns"]),
            "answer_ms": quantiles_ms(run.client["answer_ns"]),
            "target": "ack_ms.p99 <= 5",
        }


async def lag(seconds: float, policy: str, order: dict[str, Any]) -> dict[str, Any]:
    """The event loop beside a busy model, with a page open."""
    async with whole_box(policy) as (box, port):
        full = {"port": port, "frames_hz": FULL_LOAD_HZ, "window": 4, "slo_ms": 300.0}
        run = await drive(box, LAG_FACTOR * seconds, order | full | {"viewers": 1})
        meters = box.driver.measurements.meters
        now_ns = box.driver.clock_ns()
        return {
            **run.load(),
            "loop_lag_ms": rounded(run.lag_ms),
            "lag_samples": round(100 * run.wall_s),
            "utilisation": {name: round(m.utilisation(now_ns), 2) for name, m in meters.items()},
            "decision_us": box.driver.decisions.quantiles_us(),
            "target": "loop_lag_ms.p999 <= 10",
        }


PARTS: dict[str, Callable[..., Any]] = {
    "idle": idle,
    "throughput": throughput,
    "pacing": pacing,
    "lag": lag,
}


def order_of(cameras: int) -> dict[str, Any]:
    """Return what all parts tell the client process of so many cameras."""
    jpeg = base64.b64encode(picture()).decode()
    width_px, height_px = PICTURE_PX
    return {"cameras": cameras, "jpeg": jpeg, "width_px": width_px, "height_px": height_px}


def machine() -> dict[str, Any]:
    """Return what the figures were measured on."""
    return {
        "edgebox": edgebox.__version__,
        "processor": processor_name(),
        "cores": usable_cores(),
        "python": platform.python_version(),
        "load_before": [round(load, 2) for load in os.getloadavg()],
    }


@click.command()
@click.option(
    "--cameras",
    default=8,
    show_default=True,
    help="Connections, but where all that goes through is sent: 60.",
)
@click.option("--seconds", default=10.0, show_default=True, help="Of each measurement.")
@click.option("--part", "parts", multiple=True, type=click.Choice(list(PARTS)), help="Only this.")
@click.option("--policy", default=Config().scheduler.batching, type=click.Choice(list(POLICIES)))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def main(cameras: int, seconds: float, parts: tuple[str, ...], policy: str, as_json: bool) -> None:
    """Measure what a frame costs the box beside inference."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    order = order_of(cameras)
    document: dict[str, Any] = {"machine": machine(), "policy": policy, "frame_bytes": FRAME_BYTES}
    for part in parts or tuple(PARTS):
        document[part] = uvloop.run(PARTS[part](seconds, policy, order))
        if not as_json:
            click.echo(f"{part}: {json.dumps(document[part], indent=1)}")
    if as_json:
        click.echo(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
