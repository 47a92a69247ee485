"""What breaks while a box serves: a camera's share of frames on time before, during and after."""

import asyncio
import contextlib
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from benchmarks import live_faults
from edgebox.app.composition import App
from edgebox.camera.daemon import Camera
from edgebox.domain.loss_cause import LossCause
from edgebox.domain.model_family import ExecutorId
from edgebox.domain.requests import CameraId, DropReason
from edgebox.runtime import frame_decoder, planning_thread
from edgebox.scheduling.events import ExecutorHung
from edgebox.scheduling.supervised import ExecutorState
from edgebox.web import health
from tests.conftest import PATIENCE_S
from tests.end_to_end.on_time_shares import OnTimeShares
from tests.end_to_end.program import configured, finish, serving
from tests.end_to_end.running import (
    assert_counts_agree,
    counts_of,
    get_json,
    gone,
    running,
    streaming,
    texts,
    until,
)
from tests.end_to_end.wire import WireCamera

pytestmark = pytest.mark.usefixtures("few_sizes")

STOP_MAX_S = 60.0
"""The box's own limit is 8 s; the rest is the machine's."""
FRAMES = 8
"""Answers that each part of a test waits for."""


CUT = live_faults.cut_connections


@pytest.fixture
async def app(database: Path) -> AsyncIterator[App]:
    async with running(database) as app:
        yield app


async def answered(camera: Camera) -> None:
    """Wait for so many answers."""
    before = camera.summary().on_time
    await until(lambda: camera.summary().on_time >= before + FRAMES, "answers")


@contextlib.asynccontextmanager
async def nothing() -> AsyncIterator[None]:
    """Break nothing."""
    yield


async def shares(
    app: App,
    fault: AbstractAsyncContextManager[None],
    noticed: Callable[[], Awaitable[object]] = lambda: asyncio.sleep(0),
    mended: Callable[[], Awaitable[object]] = lambda: asyncio.sleep(0),
) -> None:
    """Insist that a camera is answered on time before, during and after a fault.

    `noticed` and `mended` wait for what the box says of it.
    """
    async with streaming(app) as camera:
        measured = OnTimeShares(camera)
        await answered(camera)
        measured.part("during")
        async with fault:
            await noticed()
            await answered(camera)
        measured.part("after")
        await mended()
        await answered(camera)
        assert measured.end() == {"before": 1.0, "during": 1.0, "after": 1.0}
    summary = camera.summary()
    assert summary.reconnects == 0
    await gone(app, "bystander")
    assert_counts_agree(app, summary)


async def _not_kept(app: App, said: str) -> None:
    """Record until the box says that nothing is kept, for this reason."""
    deadline_s = time.monotonic() + PATIENCE_S
    while True:
        app.box.notices.publish("info", "x" * 4000)
        _, readiness = await get_json(app, "/readyz")
        if said in readiness["database"]["reason"]:
            break
        assert time.monotonic() < deadline_s, readiness
        await asyncio.sleep(0.02)
    assert readiness["ready"]
    assert app._storage_notices is not None
    app._storage_notices.look()
    assert any("serving goes on" in text and said in text for text in texts(app, "error"))


async def _kept(app: App) -> None:
    assert app._storage is not None
    app._storage._writer._wake.set()
    await until(lambda: app._storage is not None and not app._storage.last_error, "rows to be kept")
    assert app._storage_notices is not None
    app._storage_notices.look()
    assert "the database is written again; nothing is lost" in texts(app, "info")


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (live_faults.locked_database, "locked"),
        (live_faults.full_disk, "full"),
        (live_faults.read_only_database, "readonly"),
    ],
)
async def test_a_database_that_cannot_be_written(
    app: App, fault: Callable[[App], AbstractAsyncContextManager[None]], said: str
) -> None:
    await shares(app, fault(app), lambda: _not_kept(app, said), lambda: _kept(app))


async def test_a_database_that_is_deleted(app: App) -> None:
    fault = live_faults.deleted_database(app)
    await shares(app, fault, lambda: _not_kept(app, "deleted or replaced"))


async def test_a_database_that_is_overwritten_is_set_aside_at_the_next_start(
    database: Path,
) -> None:
    def overwrite() -> None:
        content = database.read_bytes()
        database.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))

    async with running(database) as before:
        await shares(before, nothing(), lambda: asyncio.to_thread(overwrite))
    async with running(database) as app:
        # Rows that were written meanwhile, or at the stop, may have met the damage first.
        told = [*texts(before, "error"), *texts(app, "error")]
        (error,) = (text for text in told if "is damaged" in text)
        assert "box.sqlite3" in error or database.name in error
        assert ".corrupt-" in error
        await shares(app, nothing())
        assert (await get_json(app, "/readyz"))[1]["database"] == {"ok": True, "reason": ""}


async def test_a_planner_that_does_not_end(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (planning_thread, health):
        monkeypatch.setattr(module, "OVERDUE_NS", 50_000_000)

    async def overrun() -> None:
        await until(lambda: (app.box.driver.planning.computing_ns or 0) > 50_000_000, "a while")
        app.box.end_minute()
        app.box.end_minute()
        (_,) = (text for text in texts(app, "warning") if "the planner has not ended for" in text)
        _, readiness = await get_json(app, "/readyz")
        assert readiness["ready"]
        assert "the planner has not ended for" in readiness["plan"]["reason"]
        assert readiness["plan"]["age_s"] > 0

    def planned() -> bool:
        return "there is a new plan again" in texts(app, "info")

    await shares(
        app, live_faults.endless_planner(app), overrun, lambda: until(planned, "the next plan")
    )


async def test_a_planner_that_raises(app: App) -> None:
    async def failed() -> None:
        said = "planning failed (ZeroDivisionError: no cameras to divide by)"
        await until(lambda: any(said in text for text in texts(app, "warning")), "the notice")
        readiness = (await get_json(app, "/readyz"))[1]
        assert readiness["ready"]
        assert not readiness["plan"]["ok"]
        assert readiness["plan"]["age_s"] > 0, "the last plan is in force"

    def planned() -> bool:
        return "there is a new plan again" in texts(app, "info")

    await shares(
        app, live_faults.failing_planner(app), failed, lambda: until(planned, "the next plan")
    )


async def test_an_event_loop_that_stands_still(app: App) -> None:
    await shares(app, live_faults.stalled_loop(app))


@pytest.mark.parametrize("step_s", [3600, -3600])
async def test_a_wall_clock_that_is_set(app: App, step_s: int) -> None:
    a_second_of_history = asyncio.sleep
    await shares(app, live_faults.wall_clock(app, step_s), lambda: a_second_of_history(1.1))
    assert (await get_json(app, "/v1/state"))[0] == 200


async def test_threads_that_die_while_they_decode(app: App) -> None:
    async with WireCamera(app) as camera:

        async def died() -> None:
            # More than there are threads.
            for _ in range(5):
                notice = await camera.drop(await camera.frame())
                assert notice.reason is DropReason.INVALID
                assert "could not be decoded (SystemExit)" in notice.message
            assert app.box.driver.decoder.hanging_threads[0] == 0

        await shares(app, live_faults.dying_decoders(app), died)
        await camera.result(await camera.frame())
    await gone(app, "gate")
    counts = counts_of(app, "gate")
    assert (counts.captured, counts.on_time, counts.pending) == (6, 1, 0)


async def test_a_thread_that_hangs_while_it_decodes_is_replaced(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frame_decoder, "DECODE_LIMIT_NS", 500_000_000)
    async with running(database, inference__decode_threads=2) as app, WireCamera(app) as camera:

        async def replaced() -> None:
            await camera.frame()
            said = "is abandoned; another one takes its place"
            await until(lambda: any(said in text for text in texts(app, "error")), "the notice")

        await shares(app, live_faults.hanging_decoder(app), replaced)
        await until(lambda: app.box.driver.decoder.hanging_threads[0] == 0, "the old thread")
        await camera.result(await camera.frame())
        assert app.failure is None


@pytest.mark.parametrize("fault", [live_faults.cut_connections, live_faults.half_open])
async def test_connections_that_are_cut_in_the_middle_of_a_frame(
    database: Path, fault: Callable[[App, int], AbstractAsyncContextManager[None]]
) -> None:
    async with running(database, limits__silent_s=1) as app:

        async def left() -> None:
            names = [CameraId(f"{'cut' if fault is CUT else 'mute'}-{at}") for at in range(3)]
            came = app.box.cameras
            await until(lambda: came.keys() >= set(names), "them to come")
            if fault is not CUT:
                for name in names:
                    await gone(app, name)
                assert any("mute-0 left: " in text for text in texts(app))

        await shares(app, fault(app, 3), left)
        await until(lambda: not app.box.connected, "the last of them to leave")
        for name in set(app.box.cameras) - {"bystander"}:
            assert counts_of(app, name).captured == 0, "half of a frame is none"


async def test_a_gpu_that_is_lost_while_the_cpu_goes_on(database: Path) -> None:
    gpu, other = ExecutorId("cpu/0"), ExecutorId("cpu/1")
    two = [{"device": "cpu", "streams": 2, "threads": 1}]
    async with running(database, executors=two) as app, streaming(app) as camera:
        up, measured = app.box.driver.scheduler.supervised, OnTimeShares(camera)
        await answered(camera)
        measured.part("during")
        async with live_faults.lost_gpu(app, gpu):
            said = f"{gpu} cannot be opened again: CUDA cannot be used: {live_faults.CUDA_ERROR}"
            await until(lambda: said in texts(app, "warning"), "the notice")
            assert up[gpu].losses[LossCause.FAILING] == 1
            assert "CUDA failure 719" in app.box.driver.supervisor.last_errors[gpu].text
            await answered(camera)
            assert up[other].state is ExecutorState.UP
        measured.part("after")
        await until(lambda: up[gpu].state is ExecutorState.UP, "the executor")
        await answered(camera)
        found = measured.end()
        assert (found["before"], found["after"]) == (1.0, 1.0)
        # Only what ran on it was lost, three batches of one camera: it is known by then.
        assert camera.summary().dropped.get("failed", 0) <= 3 * FRAMES
    await gone(app, "bystander")
    assert_counts_agree(app, camera.summary())


async def test_weights_that_find_no_memory_are_said_and_the_rest_goes_on(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(database) as app:
        cpu = ExecutorId("cpu/0")

        def out_of_memory(executor: ExecutorId) -> Any:
            raise MemoryError("std::bad_alloc")

        opener = app.box.driver.supervisor._opener
        async with streaming(app) as camera:
            measured = OnTimeShares(camera)
            await answered(camera)
            measured.part("during")
            monkeypatch.setattr(app.box.driver.supervisor, "_opener", out_of_memory)
            app.box.driver.feed(ExecutorHung(cpu))
            said = "cpu/0 cannot be opened again: std::bad_alloc"
            await until(lambda: said in texts(app, "warning"), "the notice")
            status, readiness = await get_json(app, "/readyz")
            assert (status, readiness["executors"]["ok"]) == (503, False)
            assert readiness["executors"]["states"]["cpu/0"] in ("waiting", "opening")
            monkeypatch.setattr(app.box.driver.supervisor, "_opener", opener)
            up = app.box.driver.scheduler.supervised
            await until(lambda: up[cpu].state is ExecutorState.UP, "the executor")
            # What the executor ran is lost, and what came while there was none.
            measured.part("after")
            await answered(camera)
            found = measured.end()
            assert (found["before"], found["after"]) == (1.0, 1.0)
        await gone(app, "bystander")
        assert_counts_agree(app, camera.summary())


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
