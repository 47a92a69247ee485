"""Measuring and importing through the API of a running box: what happens, and what is refused."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from edgebox.app.composition import App
from edgebox.domain.model_family import FamilyName
from edgebox.inference.fingerprint import fingerprint
from edgebox.inference.onnx_executor import OnnxExecutor
from edgebox.runtime.job_runner import Job
from edgebox.storage.database import Storage
from tests.conftest import PATIENCE_S
from tests.end_to_end.running import get_json, running, streaming, texts, until
from tests.inference.importing.planted import HEIGHT, LABELS, WIDTH, write
from tests.inference.importing.zoo_of_layouts import DETECTORS

pytestmark = pytest.mark.usefixtures("few_sizes")


def model(
    layout: str = "yolov8",
    *,
    batch: int | str = "batch",
    width: int | str = WIDTH,
    height: int | str = HEIGHT,
) -> bytes:
    """Return a small detector as it is exported; an axis with a name is free."""
    tiny = replace(DETECTORS[layout][0](), batch=batch, width=width, height=height)
    tiny.metadata = {"names": str(dict(enumerate(LABELS))), "license": "AGPL-3.0"}
    return write(tiny)


async def ask(
    app: App, path: str, body: bytes | None = None, **options: Any
) -> tuple[int, dict[str, Any]]:
    options.setdefault("headers", {"Content-Type": "application/octet-stream"} if body else {})
    async with (
        aiohttp.ClientSession() as client,
        client.post(app.url + path, data=body, **options) as response,
    ):
        return response.status, await response.json()


async def end_of(app: App, job: dict[str, Any]) -> dict[str, Any]:
    """Follow a job to its end."""
    async with asyncio.timeout(PATIENCE_S):
        while job["state"] == "running":
            await asyncio.sleep(0.05)
            job = (await get_json(app, f"/v1/jobs/{job['id']}"))[1]
    return job


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*")) if folder.exists() else []


async def test_it_needs_an_administrator(database: Path) -> None:
    async with running(database) as app:
        for path, body in (("/v1/models?name=gate", model()), ("/v1/models/street/profile", None)):
            status, problem = await ask(app, path, body)
            assert (status, problem["code"]) == (403, "forbidden")
            assert "scope admin" in problem["detail"]
        assert (await get_json(app, "/v1/jobs"))[1] == {"jobs": []}
    assert left_in(database.parent / "models") == []


async def test_new_profiles_are_used_at_once_and_kept(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shares: list[float] = []
    progress = Job.progress

    def noted(job: Job, text: str, share: float) -> None:
        progress(job, text, share)
        shares.append(job.share)

    monkeypatch.setattr(Job, "progress", noted)
    async with running(database, access__open_scope="admin") as app:
        (executor,) = app.box.driver.executors
        assert isinstance(executor, OnnxExecutor)
        family = app.box.families[FamilyName("street")]
        before = app.box.profiles[executor.id]
        status, job = await ask(app, "/v1/models/street/profile")
        assert (status, job["kind"], job["state"]) == (202, "profile", "running")
        status, problem = await ask(app, "/v1/models/street/profile")
        assert (status, problem["code"]) == (409, "busy")
        job = await end_of(app, job)
        assert (job["state"], job["share"], job["problem"]) == ("done", 1, None)
        assert shares == sorted(shares)
        assert len(set(shares)) > 3
        after = app.box.profiles[executor.id]
        assert set(after) == set(before)
        assert all(after[name] is not before[name] for name in after)
        snapshot = app.box.driver.scheduler.snapshot(app.box.driver.clock_ns())
        assert snapshot.profiles[executor.id] == after
        async with streaming(app, "gate") as camera:
            await until(lambda: camera.summary().on_time > 3, "answers by the new profiles")
        key = fingerprint(executor, family)
    storage = await Storage.open(str(database))
    found = [p for p in await storage.load_profiles(key) if p.executor == executor.id]
    await storage.close()
    stored = {p.variant: p.quantiles_ns for p in found}
    assert stored == {name: profile.quantiles_ns for name, profile in after.items()}


async def test_what_shares_a_limited_memory_is_not_measured(database: Path) -> None:
    async with running(database, access__open_scope="admin", inference__memory_limit_mb=900) as app:
        status, problem = await ask(app, "/v1/models/street/profile")
    assert (status, problem["code"]) == (409, "memory_limited")
    assert "edgebox profile" in problem["detail"]


async def test_cameras_are_not_measured_beside_and_a_new_one_ends_it(database: Path) -> None:
    async with running(database, access__open_scope="admin", inference__profile_s=30.0) as app:
        before = app.box.profiles
        async with streaming(app, "gate"):
            status, problem = await ask(app, "/v1/models/street/profile")
            assert (status, problem["code"]) == (409, "cameras_connected")
        await until(lambda: not app.box.connected, "the camera to leave")
        _, job = await ask(app, "/v1/models/street/profile")
        async with streaming(app, "gate"):
            job = await end_of(app, job)
        assert job["state"] == "failed"
        assert job["problem"]["code"] == "cameras_connected"
        assert "a camera connected" in job["problem"]["detail"]
        assert app.box.profiles is before


async def test_an_imported_model_is_served_at_once_and_after_a_restart(database: Path) -> None:
    models = database.parent / "models"
    async with (
        running(database, access__open_scope="admin") as app,
        streaming(app, "gate") as camera,
    ):
        status, job = await ask(app, "/v1/models?name=tiny&licence=MIT", model())
        assert (status, job["kind"], job["family"]) == (202, "import", "tiny")
        on_time = camera.summary().on_time
        job = await end_of(app, job)
        assert job["state"] == "done", job
        assert camera.summary().on_time > on_time
        assert "served from now on, on cpu/0" in job["text"]
        assert list(app.box.families) == ["street", "tiny"]
        assert job["remarks"]
        assert any(text.startswith("imported as tiny") for text in texts(app, "info"))
        assert left_in(models) == ["tiny"]
        status, problem = await ask(app, "/v1/models?name=tiny", model())
        assert (status, problem["code"]) == (409, "family_exists")
    async with running(database, access__open_scope="admin") as app:
        families = (await get_json(app, "/v1/models"))[1]["families"]
        (tiny,) = [each for each in families if each["name"] == "tiny"]
        assert (tiny["licence"], tiny["labels"]) == ("MIT", list(LABELS))
        (variant,) = tiny["variants"]
        assert (variant["width_px"], variant["height_px"]) == (WIDTH, HEIGHT)
        assert variant["profiles"]


async def test_a_broken_file_is_refused_and_leaves_nothing(database: Path) -> None:
    async with running(database, access__open_scope="admin") as app:
        for body in (b"this is no model", model()[:-100]):
            _, job = await ask(app, "/v1/models?name=gate", body)
            job = await end_of(app, job)
            assert job["state"] == "failed"
            problem = job["problem"]
            assert (problem["code"], problem["status"]) == ("import_refused", 422)
            assert problem["detail"].startswith("gate.onnx: is not an ONNX model, or is cut short")
            explained = await get_json(app, problem["type"])
            assert (explained[0], explained[1]["title"]) == (200, problem["title"])
            assert left_in(database.parent / "models") == []


@pytest.mark.parametrize(
    ("query", "body", "status", "code"),
    [
        ("", b"x", 400, "invalid"),
        ("?name=..", b"x", 400, "invalid"),
        ("?name=%2Fetc", b"x", 400, "invalid"),
        ("?name=street", b"x", 409, "family_exists"),
        ("?name=gate&layout=yolo99", b"x", 400, "invalid"),
        ("?name=gate", b"x" * 2001, 413, "too_large"),
        ("?name=gate", b"", 400, "invalid"),
    ],
)
async def test_what_cannot_be_an_import_is_refused_at_once(
    database: Path, query: str, body: bytes, status: int, code: str
) -> None:
    async with running(database, access__open_scope="admin", limits__model_bytes_max=2000) as app:
        binary = {"Content-Type": "application/octet-stream"}
        answer = await ask(app, f"/v1/models{query}", body, headers=binary)
        assert (answer[0], answer[1]["code"]) == (status, code)
        assert (await get_json(app, "/v1/jobs"))[1] == {"jobs": []}
        assert left_in(database.parent / "models") == []


async def test_too_large_is_noticed_although_the_sender_does_not_say_how_much(
    database: Path,
) -> None:
    async def endless() -> Any:
        while True:
            yield b"x" * 1000

    async with running(database, access__open_scope="admin", limits__model_bytes_max=2000) as app:
        binary = {"Content-Type": "application/octet-stream"}
        async with (
            aiohttp.ClientSession() as client,
            client.post(
                f"{app.url}/v1/models?name=gate", data=endless(), headers=binary
            ) as response,
        ):
            assert (response.status, (await response.json())["code"]) == (413, "too_large")
        assert left_in(database.parent / "models") == []


async def test_what_is_not_there_is_said(database: Path) -> None:
    async with running(database, access__open_scope="admin") as app:
        assert (await ask(app, "/v1/models/cats/profile"))[0] == 404
        for name in ("1", "x"):
            assert (await get_json(app, f"/v1/jobs/{name}"))[0] == 404


async def test_a_box_that_stops_ends_an_import_and_clears_away(database: Path) -> None:
    async with running(database, access__open_scope="admin") as app:
        status, _ = await ask(app, "/v1/models?name=gate", model())
        assert status == 202
    assert left_in(database.parent / "models") in ([], ["gate"])
