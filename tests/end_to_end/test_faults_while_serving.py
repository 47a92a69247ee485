"""What breaks while a box serves: a camera's share of frames on time before, during and after."""

import asyncio
import os
import signal
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from edgebox.app.composition import App
from edgebox.camera.daemon import Camera
from edgebox.domain.plans import Plan, PlanningSnapshot
from edgebox.planning.planner import plan
from edgebox.runtime import planning_thread
from edgebox.web import health
from tests.end_to_end.program import configured, finish, serving
from tests.end_to_end.running import get_json, running, streaming, texts, until

STOP_MAX_S = 15.0
"""The box's own limit is 8 s; the rest is the machine's."""
FRAMES = 8
"""Answers that each part of a test waits for."""


@pytest.fixture
async def app(database: Path) -> AsyncIterator[App]:
    async with running(database) as app:
        yield app


async def share(camera: Camera) -> float:
    """Return the share on time of the frames that are sent while so many are answered."""
    before = camera.summary()
    await until(lambda: camera.summary().on_time >= before.on_time + FRAMES, "answers")
    now = camera.summary()
    ended = now.on_time + now.late + sum(now.dropped.values()) - now.dropped.get("sender", 0)
    earlier = (
        before.on_time
        + before.late
        + sum(before.dropped.values())
        - before.dropped.get("sender", 0)
    )
    return (now.on_time - before.on_time) / (ended - earlier)


async def shares(
    app: App,
    breaks: Callable[[], Awaitable[object]],
    mends: Callable[[], Awaitable[object]],
    record: Callable[[str, object], None],
) -> None:
    """Insist that a camera is answered on time throughout, and report its shares."""
    async with streaming(app) as camera:
        found = {"before": await share(camera)}
        await breaks()
        found["during"] = await share(camera)
        await mends()
        found["after"] = await share(camera)
    record("on-time share", found)
    assert found == {"before": 1.0, "during": 1.0, "after": 1.0}
    assert camera.summary().reconnects == 0


async def nothing() -> None:
    """Change nothing."""


def _connection(app: App) -> Any:
    assert app._storage is not None
    return app._storage._writer._connection


async def _not_kept(app: App, said: str) -> None:
    """Record until the box says that nothing is kept, for this reason."""
    deadline_s = time.monotonic() + 30
    while True:
        app.box.notices.publish("info", "x" * 4000)
        _, readiness = await get_json(app, "/readyz")
        if said in readiness["database"]["reason"]:
            break
        assert time.monotonic() < deadline_s, readiness
        await asyncio.sleep(0.02)
    assert readiness["ready"]
    app._report_storage_error()
    assert any("serving goes on" in text and said in text for text in texts(app, "error"))


async def _kept(app: App) -> None:
    assert app._storage is not None
    app._storage._writer._wake.set()
    await until(lambda: app._storage is not None and not app._storage.last_error, "rows to be kept")


async def test_a_database_that_is_locked(
    app: App, database: Path, record_property: Callable[[str, object], None]
) -> None:
    other = sqlite3.connect(database, isolation_level=None)

    async def lock() -> None:
        other.execute("BEGIN EXCLUSIVE")
        await _not_kept(app, "locked")

    async def unlock() -> None:
        other.execute("ROLLBACK")
        await _kept(app)

    await shares(app, lock, unlock, record_property)
    other.close()


async def test_a_database_whose_disk_is_full(
    app: App, record_property: Callable[[str, object], None]
) -> None:
    async def fill() -> None:
        # SQLite refuses at the present size as it does on a full disk.
        await _connection(app).execute_fetchall("PRAGMA max_page_count = 1")
        await _not_kept(app, "full")

    async def make_room() -> None:
        await _connection(app).execute_fetchall("PRAGMA max_page_count = 1000000")
        await _kept(app)

    await shares(app, fill, make_room, record_property)


async def test_a_database_that_becomes_read_only(
    app: App, record_property: Callable[[str, object], None]
) -> None:
    async def protect() -> None:
        await _connection(app).execute_fetchall("PRAGMA query_only = ON")
        await _not_kept(app, "readonly")

    async def unprotect() -> None:
        await _connection(app).execute_fetchall("PRAGMA query_only = OFF")
        await _kept(app)

    await shares(app, protect, unprotect, record_property)


async def test_a_database_that_is_deleted(
    app: App, database: Path, record_property: Callable[[str, object], None]
) -> None:
    async def delete() -> None:
        await asyncio.to_thread(os.unlink, database)
        await _not_kept(app, "deleted or replaced")

    await shares(app, delete, nothing, record_property)


async def test_a_database_that_is_overwritten_is_set_aside_at_the_next_start(
    database: Path, record_property: Callable[[str, object], None]
) -> None:
    def overwrite() -> None:
        content = database.read_bytes()
        database.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))

    async with running(database) as app:
        await shares(app, lambda: asyncio.to_thread(overwrite), nothing, record_property)
    async with running(database) as app:
        (error,) = (text for text in texts(app, "error") if "is damaged" in text)
        assert "box.sqlite3" in error or database.name in error
        assert ".corrupt-" in error
        await shares(app, nothing, nothing, record_property)
        assert (await get_json(app, "/readyz"))[1]["database"] == {"ok": True, "reason": ""}


async def test_a_planner_that_does_not_end(
    app: App, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    began, go_on = threading.Event(), threading.Event()
    for module in (planning_thread, health):
        monkeypatch.setattr(module, "OVERDUE_NS", 50_000_000)

    def waits(snapshot: PlanningSnapshot, iterations_max: int) -> Plan:
        began.set()
        go_on.wait()
        return plan(snapshot, iterations_max)

    async def overrun() -> None:
        monkeypatch.setattr(app.box.driver.planning, "_planner", waits)
        await until(began.is_set, "the planner to begin")
        await until(lambda: (app.box.driver.planning.computing_ns or 0) > 50_000_000, "a while")
        app.box.end_minute()
        app.box.end_minute()
        (_,) = (text for text in texts(app, "warning") if "the planner has not ended for" in text)
        _, readiness = await get_json(app, "/readyz")
        assert readiness["ready"]
        assert "the planner has not ended for" in readiness["plan"]["reason"]
        assert readiness["plan"]["age_s"] > 0

    async def end() -> None:
        go_on.set()
        await until(lambda: "there is a new plan again" in texts(app, "info"), "the next plan")

    await shares(app, overrun, end, record_property)


async def test_an_event_loop_that_stands_still(
    app: App, record_property: Callable[[str, object], None]
) -> None:
    async def stall() -> None:
        time.sleep(1.5)  # noqa: ASYNC251 - that is the fault

    await shares(app, stall, nothing, record_property)


@pytest.mark.parametrize("step_s", [3600, -3600])
async def test_a_wall_clock_that_is_set(
    app: App,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
    step_s: int,
) -> None:
    now_s, now_ns = time.time, time.time_ns

    async def step() -> None:
        monkeypatch.setattr(time, "time", lambda: now_s() + step_s)
        monkeypatch.setattr(time, "time_ns", lambda: now_ns() + step_s * 1_000_000_000)
        await asyncio.sleep(1.1)  # a second of history passes

    async def back() -> None:
        monkeypatch.undo()

    await shares(app, step, back, record_property)
    assert (await get_json(app, "/v1/state"))[0] == 200


async def test_weights_that_find_no_memory_are_said_and_the_rest_goes_on(
    database: Path, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    async with running(database) as app:
        from edgebox.domain.model_family import ExecutorId
        from edgebox.scheduling.supervision import ExecutorState

        cpu = ExecutorId("cpu/0")

        def out_of_memory(executor: ExecutorId) -> Any:
            raise MemoryError("std::bad_alloc")

        opener = app.box.driver.supervisor._opener
        async with streaming(app) as camera:
            before = await share(camera)
            monkeypatch.setattr(app.box.driver.supervisor, "_opener", out_of_memory)
            from edgebox.scheduling.events import ExecutorHung

            app.box.driver.feed(ExecutorHung(cpu))
            said = "cpu/0 cannot be opened again: std::bad_alloc"
            await until(lambda: said in texts(app, "warning"), "the notice")
            status, readiness = await get_json(app, "/readyz")
            assert (status, readiness["executors"]["ok"]) == (503, False)
            assert readiness["executors"]["states"]["cpu/0"] in ("waiting", "opening")
            monkeypatch.setattr(app.box.driver.supervisor, "_opener", opener)
            up = app.box.driver.scheduler.supervised
            await until(lambda: up[cpu].state is ExecutorState.UP, "the executor", patience_s=60)
            after = await share(camera)
        record_property("on-time share", {"before": before, "after": after})
        assert (before, after) == (1.0, 1.0)


async def test_a_reader_of_the_log_that_is_gone(tmp_path: Path, database: Path) -> None:
    config = configured(tmp_path, database)
    async with serving(tmp_path, "--config", str(config)) as (process, url):
        assert process.stderr is not None
        process.stderr._transport.close()  # type: ignore[attr-defined]
        for _ in range(3):
            process.send_signal(signal.SIGUSR1)  # writes the journal, and says so
            await asyncio.sleep(0.2)
        async with aiohttp.ClientSession() as client, client.get(f"{url}/readyz") as answer:
            assert answer.status == 200
        process.send_signal(signal.SIGTERM)
        began_s = time.monotonic()
        ended = await finish(process)
    assert ended.code == 0
    assert time.monotonic() - began_s < STOP_MAX_S
