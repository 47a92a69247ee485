"""A box whose models do not all fit its memory: it serves while it loads, and says what it does."""

import asyncio
import hashlib
import math
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from edgebox.app.composition import App
from edgebox.config.config_file import load
from edgebox.domain.errors import ModelError
from edgebox.domain.model_family import AccuracyReport, FamilyName, VariantName
from edgebox.domain.plans import Assignment, Plan, PlanningSnapshot
from edgebox.inference.onnx_executor import OnnxExecutor
from edgebox.inference.zoo import bundled_folders, load_zoo
from edgebox.media.jpeg import encode
from edgebox.storage.database import Storage
from tests.conftest import settings
from tests.end_to_end.running import closed, get_json, post, running, streaming, texts, until

pytestmark = pytest.mark.usefixtures("few_sizes")

SIZES_PX = (64, 160, 192)
"""Small: what is in memory is the question, and every test measures its families anew."""
FILE_BYTES = (bundled_folders()[0] / "street.onnx").stat().st_size
FILE_MB = round(FILE_BYTES / 1e6 + 0.1, 1)
"""A bit more than the bundled detector's file."""


@pytest.fixture(autouse=True)
def sizes_are_those_of_files(monkeypatch: pytest.MonkeyPatch) -> None:
    # What a session takes beyond its weights differs from machine to machine.
    monkeypatch.setattr(OnnxExecutor, "memory_used_bytes", lambda self: None)


def planned(monkeypatch: pytest.MonkeyPatch, px: int) -> None:
    """Let every plan give every camera this size: what this machine can do is not the question."""

    def plan(snapshot: PlanningSnapshot, *_: Any, **__: Any) -> Plan:
        given = {
            c.camera.id: Assignment(c.camera.id, VariantName(f"gate-{px}"), 10.0, 85, True, "fits")
            for c in snapshot.cameras
        }
        return Plan(snapshot.taken_ns, given)

    monkeypatch.setattr("edgebox.app.composition.plan", plan)


def family_of_files(folder: Path, name: str, sizes_px: Sequence[int] = SIZES_PX) -> Path:
    """Write a family with a file for each size: copies of the bundled detector."""
    street = bundled_folders()[0]
    folder.mkdir(parents=True)
    text = (street / "family.toml").read_text()
    labels = next(line for line in text.splitlines() if line.startswith("labels"))
    content = (street / "street.onnx").read_bytes()
    tables = text[text.index("[input]") : text.index("[[variants]]")]
    lines = [f'name = "{name}"', 'task = "detect"', 'licence = "Apache-2.0"', labels, tables]
    for px in sizes_px:
        (folder / f"{name}-{px}.onnx").write_bytes(content)
        lines += [
            "[[variants]]",
            f'name = "{name}-{px}"',
            f"width_px = {px}",
            f"height_px = {px}",
            f"accuracy = {0.3 + px / 1000}",
            f'file = "{name}-{px}.onnx"',
            f'sha256 = "{hashlib.sha256(content).hexdigest()}"',
        ]
    (folder / "family.toml").write_text("\n".join(lines))
    return folder


async def test_frames_are_answered_while_what_the_plan_wants_is_loaded(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned(monkeypatch, 192)
    folder = family_of_files(tmp_path / "gate", "gate")
    async with running(
        database,
        inference__families=[str(folder)],
        inference__family="gate",
        # The smallest of both families, and two more.
        inference__memory_limit_mb=4 * FILE_MB - 0.1,
        inference__profile_s=1.0,
    ) as app:
        assert app.box.families[FamilyName("gate")].variants[-1].name == "gate-192"
        async with streaming(app, rate_hz=10.0) as camera:
            await until(
                lambda: any(
                    a.variant == "gate-192" for a in app.box.driver.scheduler.advice.values()
                ),
                "the largest variant",
            )
            assert camera.summary().dropped.keys() <= {"sender", "plan"}
            status, state = await get_json(app, "/v1/state")
            assert status == 200
            (memory,) = state["box"]["memory"]
            assert memory["used_bytes"] <= memory["limit_bytes"]
            assert memory["hits"] + memory["misses"] >= 1
            held = [each["weights"] for each in memory["resident"]]
            assert {"gate/gate-64.onnx", "gate/gate-192.onnx", "street/street.onnx"} <= set(held)
            rows = [row for row in state["box"]["latencies"] if row["variant"] == "gate-192"]
            await until(lambda: camera.summary().on_time >= 20, "twenty answers")
        status, state = await get_json(app, "/v1/state")
        rows = [row for row in state["box"]["latencies"] if row["variant"].startswith("gate")]
        for row in rows:
            assert row["factor"] == 1.0
            assert row["measured_ms"].keys() == row["profile_ms"].keys() == {"p50", "p90", "p99"}
        meters = app.box.driver.measurements.meters.values()
        assert sum(row["count"] for row in rows) == sum(meter.batches.total() for meter in meters)


async def test_what_is_not_in_memory_is_loaded_when_a_plan_names_it(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned(monkeypatch, 160)
    folder = family_of_files(tmp_path / "gate", "gate", (64, 96, 128, 160))
    async with running(
        database,
        inference__families=[str(folder)],
        inference__family="gate",
        # The smallest of both families, and one more: at first the second smallest.
        inference__memory_limit_mb=3 * FILE_MB - 0.1,
        inference__profile_s=1.0,
    ) as app:
        (memory,) = app.box.driver.scheduler.memories.values()
        assert list(memory.resident) == [
            "gate/gate-64.onnx",
            "street/street.onnx",
            "gate/gate-96.onnx",
        ]
        async with streaming(app, rate_hz=10.0) as camera:
            await until(lambda: memory.switches > 0, "a load")
            assert "gate/gate-160.onnx" in memory.resident
            assert "gate/gate-96.onnx" not in memory.resident
            before = camera.summary().on_time
            await until(lambda: camera.summary().on_time >= before + 10, "ten more answers")
            # Nothing was lost to it; a slow machine may skip frames at the camera.
            assert camera.summary().dropped.keys() <= {"sender", "plan"}
        assert (memory.hits, memory.misses, memory.switches, memory.loads) == (0, 1, 1, 1)
        # A program that asks once gets the best that is in memory.
        picture = encode(np.full((640, 640, 3), 120, np.uint8))
        status, answer = await post(app, picture, {"family": "gate", "deadline_ms": 30_000})
        assert status == 200, answer
        assert answer["variant"] == "gate-160"


async def test_what_is_set_aside_takes_no_memory_but_is_listed(
    database: Path, tmp_path: Path
) -> None:
    folder = family_of_files(tmp_path / "gate", "gate")
    family = load_zoo([folder]).family("gate")
    smallest = VariantName("gate-64")
    aside = AccuracyReport(
        "F1", 0.25, 0.01, "yard.mp4", 500, 7, "gate-160 is no slower", {"recall": 0.5}
    )
    storage = await Storage.open(database)
    storage.save_accuracy_reports(family.name, family.sha256, {smallest: aside})
    await storage.close()
    async with running(
        database,
        inference__families=[str(folder)],
        inference__memory_limit_mb=2 * FILE_MB - 0.1,  # the smallest of both families
        inference__profile_s=1.0,
    ) as app:
        (memory,) = app.box.driver.scheduler.memories.values()
        assert set(memory.resident) == {"street/street.onnx", "gate/gate-160.onnx"}
        models = (await get_json(app, "/v1/models"))[1]
        listed = {v["name"]: v for f in models["families"] for v in f["variants"]}
        assert listed["gate-64"]["dominated"] == "gate-160 is no slower"
        assert listed["gate-64"]["accuracy"] == 0.25
        assert listed["gate-64"]["accuracy_report"] == {
            "kind": "F1",
            "standard_error": 0.01,
            "source": "yard.mp4",
            "pictures": 500,
            "measured_at_ms": 7,
            "details": {"recall": 0.5},
        }
        assert listed["gate-64"]["in_memory"] == []
        assert listed["gate-64"]["profiles"]["cpu/0"]
        assert listed["gate-160"]["in_memory"] == listed["street-128"]["in_memory"] == ["cpu/0"]
        assert listed["gate-160"]["dominated"] is None
        document = (await get_json(app, "/v1/openapi.json"))[1]
        strict = closed(document)
        for path in ("/v1/models", "/v1/state"):
            answers = strict["paths"][path]["get"]["responses"]["200"]["content"]
            schema = {**answers["application/json"]["schema"], "components": strict["components"]}
            Draft202012Validator(schema).validate((await get_json(app, path))[1])


async def test_what_does_not_fit_is_named_with_the_limit_that_would_do(
    database: Path, tmp_path: Path
) -> None:
    folder = family_of_files(tmp_path / "gate", "gate")
    limited: dict[str, Any] = {
        "inference__families": [str(folder)],
        "inference__memory_limit_mb": FILE_MB,
        "inference__profile_s": 1.0,
    }
    async with running(database, **limited) as app:
        assert list(app.box.families) == ["street"]
        (text,) = texts(app, "error")
    size = f"{FILE_BYTES / 1e6:.0f} MB"
    assert f"leaves out gate/gate-64.onnx ({size}), gate/gate-160.onnx" in text
    three, four = (math.ceil(count * FILE_BYTES / 1e6) for count in (3, 4))
    assert f"with {three} each of them could be held" in text
    assert f"with {four} all at once" in text
    limited["inference__memory_limit_mb"] = 1.0
    dotted = {key.replace("__", "."): value for key, value in limited.items()}
    app = App(load(None, settings(database, **dotted)))
    with pytest.raises(ModelError, match=r"memory_limit_mb = 1 leaves out street/street\.onnx"):
        await app.start()


async def test_a_file_that_is_gone_when_it_shall_be_loaded_harms_nobody(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned(monkeypatch, 160)
    folder = family_of_files(tmp_path / "gate", "gate", (64, 96, 160))
    async with running(
        database,
        inference__families=[str(folder)],
        inference__family="gate",
        inference__memory_limit_mb=3 * FILE_MB - 0.1,
        inference__profile_s=1.0,
    ) as app:
        shutil.rmtree(folder)
        (memory,) = app.box.driver.scheduler.memories.values()
        async with streaming(app, rate_hz=10.0) as camera:
            await until(lambda: bool(memory.failed_ns), "a load to fail")
            before = camera.summary().on_time
            await until(lambda: camera.summary().on_time >= before + 5, "five more answers")
            assert camera.summary().dropped.keys() <= {"sender", "plan"}
        await asyncio.sleep(0)
        assert app.failure is None
