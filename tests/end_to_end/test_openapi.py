"""The served API against its own document: Schemathesis over a real socket, and strict schemas."""

import asyncio
import os
import re
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from hypothesis.configuration import storage_directory
from jsonschema import Draft202012Validator

from edgebox.app.composition import App
from edgebox.domain.access import Scope
from edgebox.fleet.ticket import box_ticket
from edgebox.link.override_messages import NAMES as SETTINGS
from edgebox.web.result_formats import RESULT_FORMATS
from tests.conftest import PATIENCE_S
from tests.end_to_end.program import SOURCE_TREE
from tests.end_to_end.running import (
    CLOSED,
    assert_adds_up,
    closed,
    counts_of,
    free_port,
    get_json,
    gone,
    new_token,
    post,
    running,
    streaming,
    texts,
    unharmed_bystander,
    until,
)
from tests.end_to_end.wire import JPEG

pytestmark = pytest.mark.usefixtures("few_sizes")

HERE = Path(__file__).parent
SECRET = "shared by the boxes of a fleet"
OF_BOXES = {"/v1/fleet/report": "", "/v1/fleet/history": "?camera=gate"}
"""What boxes of a fleet ask each other, and with which query."""
GET_PATHS = (
    *("/healthz", "/readyz", "/v1/state", "/v1/plan", "/v1/events", "/v1/cameras"),
    *("/v1/cameras/gate", "/v1/models", "/v1/config", "/v1/system", "/v1/problems"),
    *("/v1/problems/unknown", "/v1/addresses", "/v1/fleet", "/v1/timeline"),
    *("/v1/history", "/v1/cameras/gate/history", "/v1/cameras/gate/explanation"),
    *("/v1/jobs", "/v1/jobs/1", "/v1/pipelines", "/v1/session", "/v1/tokens"),
    "/v1/cameras/gate/history/boxes",
)
NAMES = (("/gate", "/{id}"), ("/unknown", "/{code}"), ("/jobs/1", "/jobs/{id}"))


@pytest.fixture
async def app(database: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[App]:
    """Run a closed box. Settings may leave a camera without answers: no request waits long."""
    monkeypatch.setattr("edgebox.web.picture_routes._WAIT_S", 1.0)
    async with running(database, **CLOSED) as app:
        yield app


async def schemathesis(app: App, folder: Path, camera: str, within: str = "") -> str:
    """Run Schemathesis on a box; return what it says, having found nothing.

    Args:
        app: the box.
        folder: for its files.
        camera: what paths with a camera's name are about.
        within: only paths that begin so; empty: all.
    """
    settings = ("[parameters]", f'"path.id" = "{camera}"')
    file = folder / "schemathesis.toml"
    file.write_text("\n".join([(HERE / "schemathesis.toml").read_text(), *settings]))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(file)),
        *("run", f"{app.url}/v1/openapi.json", "--checks", "all", "--no-color"),
        *("--header", f"Authorization: Bearer {await new_token(app, Scope.ADMIN)}"),
        *("--max-examples", "8"),
        *("--suppress-health-check", "too_slow"),  # that is the machine's
        *("--generation-database", "none"),
        *(("--include-path-regex", f"^{re.escape(within)}") if within else ()),
        *(("--seed", "1") if "CI" in os.environ else ()),  # as hypothesis does by itself
        # For each request it looks for proxies in every variable.
        env={
            **{name: os.environ[name] for name in ("PATH", "CI") if name in os.environ},
            "HOME": str(folder),
            "PYTHONPATH": str(SOURCE_TREE),
            "SCHEMATHESIS_HOOKS": "tests.end_to_end.schemathesis_hooks",
            # Tables of characters, which take seconds to make, are kept there.
            "HYPOTHESIS_STORAGE_DIRECTORY": str(storage_directory().path),
        },
        cwd=folder,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(10 * PATIENCE_S):
        said = (await process.communicate())[0].decode(errors="replace")
    assert process.returncode == 0, said
    tested = re.search(r"Tested: (\d+)", said)
    assert tested is not None, said
    document = (await get_json(app, "/v1/openapi.json"))[1]
    paths = [path for path in document["paths"] if path.startswith(within)]
    operations = sum(len(document["paths"][path]) for path in paths)
    # Asked for all, it leaves out the document it has read.
    assert int(tested[1]) == operations - (not within) > 0, said
    return said


async def test_generated_requests_find_nothing(app: App, tmp_path: Path) -> None:
    async with unharmed_bystander(app, rate_hz=4.0):
        # The bystander's own settings are left alone; the next test is about these.
        await schemathesis(app, tmp_path, camera="nobody")


async def test_generated_settings_of_a_camera_harm_no_frame(app: App, tmp_path: Path) -> None:
    async with streaming(app, "gate", rate_hz=4.0) as camera:
        await schemathesis(app, tmp_path, camera="gate", within="/v1/cameras/{id}")
        viewer = await new_token(app, Scope.VIEWER)
        overrides = (await get_json(app, "/v1/cameras/gate", viewer))[1]["overrides"]
    await gone(app, "gate")
    assert set(overrides) == set(SETTINGS)
    summary, counts = camera.summary(), counts_of(app, "gate")
    # Another model has other labels. The camera connects again for these, and for nothing else.
    left = [text for text in texts(app) if text.startswith("gate left: ")]
    assert all(text.endswith((": it has finished", "was changed on the box")) for text in left)
    assert_adds_up(summary.captured, summary.on_time, summary.late, summary.dropped)
    assert counts.pending == 0
    assert counts.captured == summary.captured or summary.reconnects
    assert counts.captured <= summary.captured


@pytest.fixture
async def telling(database: Path, tmp_path: Path) -> AsyncIterator[App]:
    """A box with a webhook and a fleet that nobody answers, open to imports."""
    (tmp_path / "secret").write_text(SECRET)
    file = tmp_path / "edgebox.toml"
    file.write_text(
        f"""
        [[webhooks]]
        url = "http://127.0.0.1:{free_port()}/sesame"
        [[detections]]
        [fleet]
        boxes = ["http://127.0.0.1:{free_port()}"]
        secret_file = "secret"
        """,
        encoding="utf-8",
    )
    async with running(database, file=file, access__open_scope="admin") as app:
        yield app


def templated(path: str) -> str:
    """Return a path as the document names it."""
    for name, parameter in NAMES:
        path = path.replace(name, parameter)
    return path


async def test_answers_have_the_documented_fields_and_no_others(telling: App) -> None:
    app = telling
    await until(lambda: app.box.destinations[0].error != "", "the webhook to fail")
    document = (await get_json(app, "/v1/openapi.json"))[1]
    strict = closed(document)

    def check(path: str, method: str, answer: Any, status: int = 200) -> None:
        content = strict["paths"][path][method]["responses"][str(status)]["content"]
        schema = content["application/json"]["schema"]
        Draft202012Validator({**schema, "components": strict["components"]}).validate(answer)

    async with streaming(app, "gate"):
        check("/v1/models", "post", await begun_import(app), 202)
        await until_ended(app)
        for path in GET_PATHS:
            check(templated(path), "get", (await get_json(app, path))[1])
        ticket = box_ticket(SECRET, "another box", time.time())
        for path, asking in OF_BOXES.items():
            check(path, "get", (await get_json(app, path + asking, ticket))[1])
        for form in RESULT_FORMATS:
            query = {"deadline_ms": 30_000, "score_min": 0, "format": form}
            check("/v1/infer", "post", (await post(app, JPEG, query))[1])
    tested = {*OF_BOXES, *map(templated, GET_PATHS)}
    untested = {p for p, methods in document["paths"].items() if "get" in methods} - tested
    binary = {"/v1/journal", "/v1/models/files/{sha256}", "/v1/cameras/{id}/picture"}
    assert untested == {"/metrics", "/v1/openapi.json", *binary}, "add it above"


async def begun_import(app: App) -> Any:
    """Begin to import what is no model, so that there is a job with a problem."""
    binary = {"Content-Type": "application/octet-stream"}
    address = f"{app.url}/v1/models?name=none"
    async with (
        aiohttp.ClientSession() as client,
        client.post(address, data=b"no model", headers=binary) as response,
    ):
        return await response.json()


async def until_ended(app: App) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while (await get_json(app, "/v1/jobs/1"))[1]["problem"] is None:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
