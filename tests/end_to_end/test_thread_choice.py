"""A box that chooses the CPU threads of each batch: real server, camera, sessions, database."""

import os
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from edgebox.app.composition import App
from edgebox.camera.daemon import Camera
from tests.end_to_end.running import (
    assert_counts_agree,
    get_json,
    gone,
    running,
    streaming,
    texts,
    until,
)
from tests.end_to_end.test_residency import family_of_files

CORES = len(os.sched_getaffinity(0))
AUTO = [{"device": "cpu", "threads": "auto"}]


async def metric(app: App, name: str) -> float | None:
    """Return a metric of the only executor; None: it is not there."""
    async with aiohttp.ClientSession() as client, client.get(f"{app.url}/metrics") as answer:
        lines = (await answer.text()).splitlines()
    values = [line.split()[-1] for line in lines if line.startswith(f"{name}{{")]
    return float(values[0]) if values else None


def answered(camera: Camera, count: int) -> bool:
    return camera.summary().on_time >= count


@pytest.mark.skipif(CORES < 2, reason="one core leaves no choice")
async def test_batches_without_hurry_get_one_thread(
    no_other_families: None, database: Path, tmp_path: Path
) -> None:
    folder = family_of_files(tmp_path / "gate", "gate", (128,))
    families: dict[str, Any] = {
        "inference__families": [str(folder)],
        "inference__family": "gate",
    }
    async with running(database, executors=AUTO, **families) as app:
        (executor,) = app.box.driver.executors
        assert executor.cpu_threads == CORES
        assert executor.thread_counts[0] == 1 and executor.thread_counts[-1] == CORES
        for profile in app.box.profiles[executor.id].values():
            assert profile.thread_counts == executor.thread_counts
            assert all(profile.core_factor(n, CORES) == 1 for n in profile.batch_sizes)
        async with streaming(app, slo_ms=20_000, rate_hz=5) as camera:
            await until(partial(answered, camera, 10), "answers")
        await gone(app, "bystander")
        assert_counts_agree(app, camera.summary())
        _, shown = await get_json(app, "/v1/timeline")
        threads = [b["threads"] for b in shown["batches"] if b["kind"] == "batch"]
        # With 20 s for a batch of milliseconds the fewest threads do, however busy the machine is.
        assert threads and set(threads) == {1}
        core_s = await metric(app, "edgebox_executor_core_seconds_total")
        busy_s = await metric(app, "edgebox_executor_busy_seconds_total")
        assert core_s is not None and busy_s is not None and core_s >= busy_s > 0
        assert texts(app, "error") == []
        measured = dict(app.box.profiles[executor.id])
    # The factors are known at the next start.
    async with running(database, executors=AUTO, **families) as app:
        assert not app.profiled
        assert app.box.profiles[executor.id] == measured


async def test_all_threads_leave_no_choice(
    no_other_families: None, database: Path, tmp_path: Path
) -> None:
    folder = family_of_files(tmp_path / "gate", "gate", (128,))
    tables = [{"device": "cpu", "threads": "all"}]
    async with running(
        database,
        executors=tables,
        inference__families=[str(folder)],
        inference__family="gate",
    ) as app:
        (executor,) = app.box.driver.executors
        assert executor.cpu_threads == CORES and executor.thread_counts == ()
        async with streaming(app, slo_ms=20_000, rate_hz=5) as camera:
            await until(partial(answered, camera, 3), "answers")
        _, shown = await get_json(app, "/v1/timeline")
        assert {batch["threads"] for batch in shown["batches"]} == {None}
        core_s = await metric(app, "edgebox_executor_core_seconds_total")
        busy_s = await metric(app, "edgebox_executor_busy_seconds_total")
        assert core_s == pytest.approx(CORES * (busy_s or 0))
