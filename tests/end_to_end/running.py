"""A running box for a test, real cameras beside it, and the checks that their counts agree."""

import asyncio
import bisect
import contextlib
import math
import random
import socket
import time
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
from numpy.typing import NDArray

from edgebox.app.composition import App
from edgebox.camera.accounting import Summary
from edgebox.camera.daemon import Camera
from edgebox.camera.records import FrameRecord
from edgebox.config.config_file import load
from edgebox.domain.access import Scope
from edgebox.domain.requests import CameraId, DropReason, Outcome
from edgebox.link.box_address import authorization
from edgebox.media.sources import PictureSource
from edgebox.runtime.frame_metrics import Counts
from edgebox.runtime.journal import Journal
from tests.conftest import PATIENCE_S, settings
from tests.end_to_end.on_time_shares import OnTimeShares

SIZE_PX = (320, 180)
CLOSED: dict[str, Any] = {"access__open_to": "nobody"}
"""A box that needs tokens, as every box does that is not told otherwise."""
SLO_MS = 30_000.0
"""A deadline that a machine keeps however busy it is; only what stands still misses it."""
HARM_S = 1.0
"""A camera that waits for so much computing is harmed by whoever makes it wait."""
PICTURE = (
    np.random.default_rng(1).integers(80, 176, (18, 32, 3), np.uint8).repeat(10, 0).repeat(10, 1)
)
"""(180, 320, 3) RGB: coarse squares, so that its JPEG is small but not nothing."""
_chance = random.SystemRandom()


def free_port() -> int:
    """Return a port that nobody listens on just now.

    It lies below those that systems give to who asks for any, so it stays free for a while.
    """
    while True:
        port = _chance.randrange(10_000, 30_000)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port


@contextlib.asynccontextmanager
async def running(
    database: Path, *, file: Path | None = None, journal: Journal | None = None, **overrides: Any
) -> AsyncIterator[App]:
    """Run a box whose configuration is a file's, the tests' own and `overrides`.

    Their keys are written "limits__silent_s=1".
    """
    dotted = {key.replace("__", "."): value for key, value in overrides.items()}
    app = App(load(file, settings(database, **dotted)), journal=journal)
    await app.start()
    try:
        yield app
    finally:
        await app.stop()


@contextlib.asynccontextmanager
async def streaming(
    app: App, name: str = "bystander", *, answered: bool = True, **options: Any
) -> AsyncIterator[Camera]:
    """Stream from a real camera meanwhile; it has said bye when this ends.

    Begins with its first answer, or if not `answered` at once.
    """
    rate_hz = options.setdefault("rate_hz", 8.0)
    options.setdefault("slo_ms", SLO_MS)
    if "token" not in options and not app.access.is_open:
        options["token"] = await new_token(app, Scope.CAMERA, name)
    source = options.pop("source", None) or PictureSource(SIZE_PX, rate_hz, lambda number: PICTURE)
    camera = Camera(source, app.url, name=name, **options)
    run = asyncio.create_task(camera.run())
    try:
        if answered:
            await until(lambda: camera.summary().on_time >= 1 or run.done(), "its first answer")
        yield camera
    finally:
        camera.stop()
        await run


class Computing:
    """How much this process computes, on all its threads, from a frame's capture to its answer.

    Box, camera and whatever disturbs them are one process. A busy machine gives it less time, but
    no more to compute: what others cost a camera shows, and how busy the machine is does not.
    """

    def __init__(self) -> None:
        """Begin with no frame."""
        self._made: list[tuple[int, float]] = []
        """(instant, computed until then) of each picture, in order."""
        self.worst_s = 0.0

    def picture(self, number: int) -> NDArray[np.uint8]:
        """Return a frame that is captured now."""
        self._made.append((time.monotonic_ns(), time.process_time()))
        return PICTURE

    def ended(self, frame: FrameRecord) -> None:
        """Note what came of a frame."""
        if frame.outcome is Outcome.ON_TIME:
            at = bisect.bisect(self._made, (frame.captured_ns, math.inf))
            self.worst_s = max(self.worst_s, time.process_time() - self._made[at - 1][1])


@contextlib.asynccontextmanager
async def unharmed_bystander(app: App, rate_hz: float = 8.0) -> AsyncIterator[Camera]:
    """Stream from another camera meanwhile, and insist at the end that it noticed nothing."""
    computing = Computing()
    source = PictureSource(SIZE_PX, rate_hz, computing.picture)
    async with streaming(
        app, source=source, rate_hz=rate_hz, on_frame_end=computing.ended
    ) as camera:
        shares, before = OnTimeShares(camera), camera.summary().on_time
        shares.part("during")
        yield camera
        shares.part("after")
        least = max(before + 5, camera.summary().on_time + 2)
        await until(lambda: camera.summary().on_time >= least, "more answers")
        shares.end()
    assert_unharmed(camera.summary())
    assert computing.worst_s < HARM_S
    await gone(app, "bystander")
    assert_counts_agree(app, camera.summary())


def assert_unharmed(summary: Summary) -> None:
    """Insist that all it sent was answered in time, over one connection.

    On a busy machine it skips frames to keep its window, or because the plan lowers its rate; how
    many, the test cannot say.
    """
    assert summary.reconnects == 0
    assert set(summary.dropped) <= {"sender", "plan"}, summary.dropped
    assert summary.late == 0
    assert summary.on_time == summary.sent > 0, summary
    assert_adds_up(summary.captured, summary.on_time, summary.late, summary.dropped)


def assert_adds_up(captured: int, on_time: int, late: int, dropped: Mapping[str, int]) -> None:
    assert captured == on_time + late + sum(dropped.values())


def assert_counts_agree(app: App, summary: Summary) -> None:
    """Insist that camera and box counted the same frames, each of which has ended."""
    counts = counts_of(app, summary.camera)
    assert counts.pending == 0
    assert counts.captured == summary.captured
    assert counts.accepted == summary.accepted
    assert counts.on_time + counts.late == summary.on_time + summary.late
    assert unsent_together(counts.dropped) == unsent_together(summary.dropped)


def unsent_together(dropped: Mapping[str, int]) -> dict[str, int]:
    """Add up frames that were never sent. Which of them the plan ordered, the box says by the rate

    and the camera by its own decision; frame by frame these may differ.
    """
    unsent = (DropReason.PLAN.value, DropReason.SENDER.value)
    together = {reason: count for reason, count in dropped.items() if reason not in unsent}
    return {**together, "unsent": sum(dropped.get(reason, 0) for reason in unsent)}


def counts_of(app: App, camera: str) -> Counts:
    return app.box.metrics.of(CameraId(camera)).counts


async def gone(app: App, camera: str) -> None:
    """Wait until the box has noticed that a camera has left."""
    await until(lambda: not app.box.cameras[CameraId(camera)].connected, f"{camera} to leave")


async def until(condition: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
    """Wait for a condition; fail with what was waited for."""
    deadline_s = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline_s, f"waited {patience_s:g} s for {what}"
        await asyncio.sleep(0.01)


def texts(app: App, level: str | None = None) -> list[str]:
    """Return what the box has told people."""
    return [event.text for event in app.box.notices.recent if level in (None, event.level)]


async def new_token(app: App, scope: Scope, camera: str | None = None) -> str:
    """Make a token of a box that is closed; return its text."""
    _, text = await app.access.issue("x", scope, None if camera is None else CameraId(camera))
    return text


async def get_json(app: App, path: str, token: str | None = None) -> tuple[int, dict[str, Any]]:
    async with (
        aiohttp.ClientSession(headers=authorization(token)) as client,
        client.get(app.url + path) as response,
    ):
        return response.status, await response.json()


async def post(
    app: App, body: Any, query: Mapping[str, Any] | None = None, **options: Any
) -> tuple[int, dict[str, Any]]:
    """POST a picture to /v1/infer; return status and document."""
    async with (
        aiohttp.ClientSession() as client,
        client.post(f"{app.url}/v1/infer", data=body, params=query, **options) as response,
    ):
        return response.status, await response.json()


def closed(schema: Any) -> Any:
    """Return a schema that allows no field which it does not name."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {name: closed(part) for name, part in schema.items()}
    if isinstance(schema.get("properties"), dict) and "type" in schema:
        parts.setdefault("additionalProperties", False)
    return parts
