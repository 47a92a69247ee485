"""What a box writes is for its user only, and an import is told no secrets."""

import asyncio
import os
import stat
from pathlib import Path

import aiohttp
import pytest

from edgebox.app import import_process
from tests.end_to_end.program import configured, serving
from tests.end_to_end.running import get_json, running
from tests.end_to_end.test_model_jobs import ask, end_of, model

WORKER = """
import os, resource, sys, json
sys.stdin.readline()
from edgebox.inference.importing.import_worker import _limit_resources
_limit_resources()
limits = [resource.getrlimit(k)[0] for k in (
    resource.RLIMIT_CORE, resource.RLIMIT_CPU, resource.RLIMIT_AS, resource.RLIMIT_FSIZE)]
print(json.dumps({"refused": json.dumps([sorted(os.environ), limits])}))
"""


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_files_are_for_the_user_of_the_box_alone(tmp_path: Path, database: Path) -> None:
    home = tmp_path / "home"
    kept = home / "kept"
    kept.mkdir(parents=True)
    old = kept / "box.sqlite3"
    for file in database.parent.glob(f"{database.name}*"):
        (kept / file.name.replace(database.name, old.name)).write_bytes(file.read_bytes())
        (kept / file.name.replace(database.name, old.name)).chmod(0o644)
    models = f'models = "{home / "made" / "models"}"'
    file = configured(home, old, models)
    file.write_text(
        file.read_text().replace(
            'open_to = "everybody"', 'open_to = "everybody"\nopen_scope = "admin"'
        )
    )
    async with serving(home, "--config", str(file)) as (_, url), aiohttp.ClientSession() as client:
        async with client.post(
            f"{url}/v1/models?name=gate",
            data=model(),
            headers={"Content-Type": "application/octet-stream"},
        ) as answer:
            job = await answer.json()
        while job["state"] == "running":
            await asyncio.sleep(0.05)
            async with client.get(f"{url}/v1/jobs/{job['id']}") as answer:
                job = await answer.json()
        assert job["state"] == "done", job
        async with client.post(f"{url}/v1/recorder") as answer:
            assert answer.status < 500
    files = [path for path in (*kept.rglob("*"), *(home / "made").rglob("*")) if path.is_file()]
    assert {old.name, "family.toml", "gate.onnx"} <= {path.name for path in files}
    assert {oct(mode(path)) for path in files} == {oct(0o600)}
    folders = {home / "made", home / "made" / "models", home / "made" / "models" / "gate"}
    assert {oct(mode(folder)) for folder in folders} == {oct(0o700)}


async def test_an_import_has_no_secrets_and_bounded_resources(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "modules"
    module.mkdir()
    (module / "asked_worker.py").write_text(WORKER)
    monkeypatch.setenv("EDGEBOX_SECRET_TOKEN", "s3cret")
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(module), os.environ.get("PYTHONPATH", "")])
    )
    monkeypatch.setattr(import_process, "_WORKER_MODULE", "asked_worker")
    async with running(database, access__open_scope="admin") as app:
        _, job = await ask(app, "/v1/models?name=gate", model())
        job = await end_of(app, job)
        assert (await get_json(app, "/v1/jobs"))[0] == 200
    said = job["problem"]["detail"]
    assert "EDGEBOX" not in said
    assert "PATH" in said
    core, cpu_s, memory_bytes, file_bytes = map(
        int, said[said.rindex("[") + 1 : said.rindex("]]")].split(",")
    )
    assert core == 0
    assert 0 < cpu_s < 1e5
    assert 0 < memory_bytes < 1 << 50
    assert 0 < file_bytes < 1 << 40
