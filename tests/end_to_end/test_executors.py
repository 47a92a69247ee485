"""A box with executors that differ: threads, cores, families; real server, cameras and sessions."""

import os
import threading
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from edgebox.app.composition import App
from edgebox.camera.daemon import Camera
from edgebox.domain.errors import ModelError
from edgebox.inference.executor_thread import BatchJob, BatchResult
from edgebox.inference.onnx_executor import OnnxExecutor
from edgebox.inference.sessions import Session, open_session
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

pytestmark = pytest.mark.usefixtures("few_sizes")

CORES = sorted(os.sched_getaffinity(0))
FIRST, LAST = CORES[0], CORES[-1]


@pytest.fixture
def families(tmp_path: Path) -> dict[str, Any]:
    """Return the configuration of a box that has two families of its own."""
    folders = [family_of_files(tmp_path / name, name, (64, 96)) for name in ("gate", "yard")]
    return {
        "inference__families": [str(folder) for folder in folders],
        "inference__family": "gate",
    }


async def executors(app: App) -> dict[str, dict[str, Any]]:
    _, state = await get_json(app, "/v1/state")
    return {each["id"]: each for each in state["box"]["executors"]}


async def ran(app: App) -> dict[str, set[str]]:
    """Return the families whose batches each executor has run."""
    _, state = await get_json(app, "/v1/state")
    found: dict[str, set[str]] = defaultdict(set)
    for row in state["box"]["latencies"]:
        found[row["executor"]].add(row["variant"].partition("-")[0])
    return found


def affinity(executor: str, others: set[threading.Thread]) -> set[int]:
    """Return where the kernel lets an executor's thread run.

    Not `others`, of earlier boxes: a thread that hangs outlives its box.
    """
    named = [t for t in threading.enumerate() if t.name == f"edgebox-{executor}"]
    (thread,) = [t for t in named if t not in others]
    assert thread.native_id is not None
    return os.sched_getaffinity(thread.native_id)


def _answered(camera: Camera, count: int) -> bool:
    return camera.summary().on_time >= count


async def test_each_serves_what_it_holds_on_its_own_cores(
    database: Path, families: dict[str, Any]
) -> None:
    tables = [
        {"device": "cpu", "cores": [FIRST], "families": ["gate"]},
        {"device": "cpu", "cores": [LAST], "families": ["yard"]},
        {"device": "cpu", "threads": 2, "families": ["yard"]},
    ]
    others = set(threading.enumerate())
    async with running(database, executors=tables, **families) as app:
        shown = await executors(app)
        assert [each["families"] for each in shown.values()] == [["gate"], ["yard"], ["yard"]]
        assert [each["threads"] for each in shown.values()] == [1, 1, 2]
        assert [each["cores"] for each in shown.values()] == [[FIRST], [LAST], []]
        assert all(each["interference"] >= 0 for each in shown.values())
        assert [affinity(each, others) for each in shown] == [{FIRST}, {LAST}, set(CORES)]
        async with (
            streaming(app, "one", family="gate") as one,
            streaming(app, "two", family="yard") as two,
            streaming(app, "three", family="yard") as three,
        ):
            for camera in (one, two, three):
                begun = camera.summary().on_time
                await until(partial(_answered, camera, begun + 20), "answers")
        for camera in (one, two, three):
            await gone(app, camera.summary().camera)
            assert_counts_agree(app, camera.summary())
        on = await ran(app)
        assert on["cpu/0"] == {"gate"}
        assert on["cpu/1"] | on["cpu/2"] == {"yard"}
        assert texts(app, "error") == []
        measured = {key: of.values() for key, of in app.box.profiles.items()}
    # What they cost each other is known at the next start, too, and only for these executors.
    async with running(database, executors=tables, **families) as app:
        assert not app.profiled
        again = {key: of.values() for key, of in app.box.profiles.items()}
        assert {key: list(of) for key, of in again.items()} == {
            key: list(of) for key, of in measured.items()
        }
    async with running(database, executors=tables[:2], **families) as app:
        assert not app.profiled


@pytest.mark.parametrize("fails", ["opening", "running"])
async def test_a_family_that_fails_on_one_still_runs_on_the_other(
    database: Path, families: dict[str, Any], monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    def opened(path: Path, provider: Any, threads: int, *how: Any, **options: Any) -> Session:
        if threads == 2 and path.name.startswith("yard"):
            raise ModelError("out of memory")
        return open_session(path, provider, threads, *how, **options)

    run = OnnxExecutor._run

    def ran_there(executor: OnnxExecutor, job: BatchJob) -> BatchResult:
        if executor.cpu_threads == 2 and job.variant.startswith("yard"):
            raise ModelError("out of memory")
        return run(executor, job)

    if fails == "opening":
        monkeypatch.setattr("edgebox.inference.session_store.open_session", opened)
    else:
        monkeypatch.setattr(OnnxExecutor, "_run", ran_there)
    both = {"device": "cpu", "families": ["gate", "yard"]}
    tables = [{**both, "threads": threads} for threads in (2, 1)]
    async with running(database, executors=tables, **families) as app:
        assert texts(app, "error") == ["yard does not run on cpu/0: out of memory"]
        shown = await executors(app)
        assert shown["cpu/0"]["families"] == ["gate"]
        assert shown["cpu/1"]["families"] == ["gate", "yard"]
        async with (
            streaming(app, "one", family="gate") as one,
            streaming(app, "two", family="yard") as two,
        ):
            for camera in (one, two):
                begun = camera.summary().on_time
                await until(partial(_answered, camera, begun + 10), "answers")
        assert "failed" not in one.summary().dropped
        assert "failed" not in two.summary().dropped
        on = await ran(app)
        # Which of the two runs a frame of the other family is the scheduler's affair.
        assert on["cpu/0"] <= {"gate"}
        assert "yard" in on["cpu/1"]
