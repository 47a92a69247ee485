"""Faults of a running box, made for real: each breaks something when it is entered, and mends it.

For `benchmarks.faults_live` and the end-to-end tests. What is broken is the box's own file, thread
or socket; what answers is ONNX Runtime, SQLite and the kernel. A GPU that is lost is simulated: the
executor raises what ONNX Runtime raises then, and cannot be opened.
"""

import asyncio
import base64
import contextlib
import os
import socket
import sqlite3
import struct
import threading
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import orjson

from edgebox.app.composition import App
from edgebox.domain.errors import ModelError
from edgebox.domain.model_family import ExecutorId, Variant
from edgebox.domain.plans import Plan, PlanningSnapshot
from edgebox.inference.onnx_executor import OnnxExecutor
from edgebox.planning.planner import plan
from edgebox.runtime import frame_decoder
from edgebox.runtime.frames import PendingFrame
from edgebox.runtime.preparation import CanvasPool, prepare

CUDA_ERROR = (
    "CUDA failure 719: unspecified launch failure ; GPU=0 ; hostname=box ; "
    "expr=cudaStreamSynchronize(stream)"
)
"""What ONNX Runtime raises from every call once a GPU is lost."""


def database_of(app: App) -> Path:
    """Return the file of a box's database."""
    return Path(app.config.storage.path)


def _connection(app: App) -> Any:
    """Return the connection that writes a box's database."""
    assert app._storage is not None
    return app._storage._writer._connection


def executor_of(app: App, executor: ExecutorId) -> OnnxExecutor:
    """Return an executor of a box."""
    assert app._opened is not None
    return next(
        each
        for each in app._opened.executors
        if isinstance(each, OnnxExecutor) and each.id == executor
    )


@contextlib.asynccontextmanager
async def locked_database(app: App) -> AsyncIterator[None]:
    """Another program holds the database."""
    other = sqlite3.connect(database_of(app), isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    try:
        yield
    finally:
        other.close()


@contextlib.asynccontextmanager
async def full_disk(app: App) -> AsyncIterator[None]:
    """SQLite refuses to grow the file, as it does on a full disk."""
    await _connection(app).execute_fetchall("PRAGMA max_page_count = 1")
    yield
    await _connection(app).execute_fetchall("PRAGMA max_page_count = 1000000")


@contextlib.asynccontextmanager
async def read_only_database(app: App) -> AsyncIterator[None]:
    """SQLite refuses every write."""
    await _connection(app).execute_fetchall("PRAGMA query_only = ON")
    yield
    await _connection(app).execute_fetchall("PRAGMA query_only = OFF")


@contextlib.asynccontextmanager
async def deleted_database(app: App) -> AsyncIterator[None]:
    """The file is deleted, and stays so."""
    await asyncio.to_thread(os.unlink, database_of(app))
    yield


@contextlib.asynccontextmanager
async def endless_planner(app: App) -> AsyncIterator[None]:
    """The planner does not end."""
    go_on = threading.Event()

    def waits(snapshot: PlanningSnapshot, iterations_max: int) -> Plan:
        go_on.wait()
        return plan(snapshot, iterations_max)

    with patch.object(app.box.driver.planning, "_planner", waits):
        try:
            yield
        finally:
            go_on.set()


@contextlib.asynccontextmanager
async def failing_planner(app: App) -> AsyncIterator[None]:
    """The planner raises every time."""

    def fails(snapshot: PlanningSnapshot, iterations_max: int) -> Plan:
        raise ZeroDivisionError("no cameras to divide by")

    with patch.object(app.box.driver.planning, "_planner", fails):
        yield


@contextlib.asynccontextmanager
async def stalled_loop(app: App, stall_s: float = 1.5) -> AsyncIterator[None]:
    """The event loop stands still for a while, once."""
    time.sleep(stall_s)  # noqa: ASYNC251 - that is the fault
    yield


@contextlib.asynccontextmanager
async def wall_clock(app: App, step_s: int) -> AsyncIterator[None]:
    """The wall clock is set."""
    now_s, now_ns = time.time, time.time_ns
    with (
        patch.object(time, "time", lambda: now_s() + step_s),
        patch.object(time, "time_ns", lambda: now_ns() + step_s * 1_000_000_000),
    ):
        yield


@contextlib.asynccontextmanager
async def _decoding(harm: Callable[[], None], victim: str) -> AsyncIterator[None]:
    def harmed(frame: PendingFrame, variant: Variant, canvases: CanvasPool) -> None:
        if frame.request.camera == victim:
            harm()
        prepare(frame, variant, canvases)

    with patch.object(frame_decoder, "prepare", harmed):
        yield


@contextlib.asynccontextmanager
async def dying_decoders(app: App, victim: str = "gate") -> AsyncIterator[None]:
    """Every picture of one camera raises what ends a thread."""

    def die() -> None:
        raise SystemExit

    async with _decoding(die, victim):
        yield


@contextlib.asynccontextmanager
async def hanging_decoder(app: App, victim: str = "gate") -> AsyncIterator[None]:
    """Pictures of one camera are never decoded."""
    go_on = threading.Event()

    def hang() -> None:
        go_on.wait()

    async with _decoding(hang, victim):
        try:
            yield
        finally:
            go_on.set()


@contextlib.asynccontextmanager
async def hanging_batch(app: App, executor: ExecutorId) -> AsyncIterator[None]:
    """The next batch of an executor does not come back."""
    go_on, run = threading.Event(), executor_of(app, executor)._worker._run

    def hangs(job: Any) -> Any:
        go_on.wait()
        return run(job)

    with patch.object(executor_of(app, executor)._worker, "_run", hangs):
        try:
            yield
        finally:
            go_on.set()


@contextlib.asynccontextmanager
async def lost_gpu(app: App, executor: ExecutorId) -> AsyncIterator[None]:
    """Every batch of an executor raises, and it cannot be opened, until this ends."""
    supervisor = app.box.driver.supervisor
    opener = supervisor._opener
    assert opener is not None

    def raises(job: Any) -> Any:
        raise RuntimeError(CUDA_ERROR)

    def cannot_open(lost: ExecutorId) -> Any:
        if lost == executor:
            raise ModelError(f"CUDA cannot be used: {CUDA_ERROR}")
        return opener(lost)

    with (
        patch.object(executor_of(app, executor)._worker, "_run", raises),
        patch.object(supervisor, "_opener", cannot_open),
    ):
        yield


async def cut_in_mid_frame(app: App, name: str) -> socket.socket:
    """Say hello, send half of a frame, and return the socket; closing it resets the connection."""
    connection = socket.socket()
    connection.setblocking(False)
    # What is closed without waiting for anything is reset (RST), not finished (FIN).
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    loop = asyncio.get_running_loop()
    await loop.sock_connect(connection, ("127.0.0.1", app.port))
    key = base64.b64encode(os.urandom(16)).decode()
    upgrade = (
        f"GET /v1/stream HTTP/1.1\r\nHost: 127.0.0.1:{app.port}\r\nUpgrade: websocket\r\n"
        f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    hello = {"type": "hello", "versions": [1], "camera": name}
    await loop.sock_sendall(connection, upgrade.encode())
    await loop.sock_sendall(connection, _frame(1, orjson.dumps({**hello, **_WANTS})))
    heard = b""
    while b"welcome" not in heard:
        heard += await loop.sock_recv(connection, 65536)
        assert heard
    await loop.sock_sendall(connection, _frame(2, bytes(50_000), 100_000))
    return connection


_WANTS = {"width_px": 320, "height_px": 180}


def _frame(opcode: int, payload: bytes, promised: int | None = None) -> bytes:
    """Return a WebSocket frame, masked with zeros, that promises so many bytes."""
    length = len(payload) if promised is None else promised
    return struct.pack(">BBQI", 0x80 | opcode, 0x80 | 127, length, 0) + payload


@contextlib.asynccontextmanager
async def cut_connections(app: App, count: int = 8) -> AsyncIterator[None]:
    """Cameras are reset in the middle of a frame, one after the other, until this ends."""

    async def cut() -> None:
        for number in range(10**9):
            connection = await cut_in_mid_frame(app, f"cut-{number % count}")
            connection.close()
            await asyncio.sleep(0.1)

    task = asyncio.create_task(cut())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@contextlib.asynccontextmanager
async def half_open(app: App, count: int = 8) -> AsyncIterator[None]:
    """Cameras stop in the middle of a frame and say nothing more, their sockets open."""
    connections = [await cut_in_mid_frame(app, f"mute-{number}") for number in range(count)]
    try:
        yield
    finally:
        for connection in connections:
            connection.close()
