"""A camera's frames through a network with an exit on a real box: some end there, some go on."""

import asyncio
import contextlib
import re
import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import aiohttp
import numpy as np
import pytest

from edgebox.app.composition import App
from edgebox.domain.cascades import Decider
from edgebox.domain.model_family import VariantName
from edgebox.inference.cascade_file import CascadeModel, write_cascade
from edgebox.inference.family import MANIFEST
from edgebox.inference.zoo import bundled_folders, load_zoo
from edgebox.vision.cascade_decider import FEATURES
from tests.conftest import BUNDLED_FOLDERS
from tests.end_to_end.conftest import PROFILING_LIMITS, hurried
from tests.end_to_end.running import running, until
from tests.end_to_end.streets import street_jpeg
from tests.end_to_end.test_cascades import FILE, cascade, streamed_through
from tests.end_to_end.test_pipelines import SIZE_PX

EXIT, REST = VariantName("street-exit-256"), VariantName("street-rest-256")
TEXT = FILE.replace('"small"\nfamily = "street"', '"small"\nfamily = "street-exit"').replace(
    '"large"\nfamily = "street"', '"large"\nfamily = "street-rest"'
)


@pytest.fixture(scope="module")
def families(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return the bundled families; the two parts are copies that have one size."""
    root = tmp_path_factory.mktemp("bundled")
    folders = [shutil.copytree(bundled, root / bundled.name) for bundled in bundled_folders()]
    for name, kept in (("street-exit", EXIT), ("street-rest", REST)):
        file = root / name / MANIFEST
        others = rf'\[\[variants\]\]\nname = "(?!{kept}").*\n(?:[^\[\n].*\n|\n)*'
        file.write_text(re.sub(others, "", file.read_text()))
    return folders


@pytest.fixture(scope="module")
def parts_measured(
    measured: Path, families: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return the folder of a database that has the profiles of the parts, too; copy it."""
    folder = shutil.copytree(measured.parent, tmp_path_factory.mktemp("parts") / "box")

    async def measure() -> None:
        async with box_with_exit(folder, families, 0.0):
            pass

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PROFILING_LIMITS, hurried)
        patch.setattr(BUNDLED_FOLDERS, lambda: families)
        asyncio.run(measure())
    return folder


@pytest.fixture(params=[5.0, -5.0], ids=["unsure", "sure"])
async def app(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    parts_measured: Path,
    families: list[Path],
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[App]:
    monkeypatch.setattr(BUNDLED_FOLDERS, lambda: families)
    folder = shutil.copytree(parts_measured, tmp_path / "box")
    async with box_with_exit(folder, families, request.param) as app:
        assert not app.profiled
        yield app


@contextlib.asynccontextmanager
async def box_with_exit(folder: Path, families: list[Path], bias: float) -> AsyncIterator[App]:
    """Run a box on the database in a folder, whose cascade's decider says the same of all."""
    zoo, sides = load_zoo(families), {}
    for side, variant in (("small", EXIT), ("large", REST)):
        family = zoo.family(variant.rpartition("-")[0])
        sides[side] = CascadeModel.of(family, variant)
    decider = Decider((0.0,) * len(FEATURES), bias)
    stored = replace(cascade(0.0), decider=decider, small=sides["small"], large=sides["large"])
    write_cascade(folder / "models", stored)
    file = folder / "edgebox.toml"
    file.write_text(TEXT.format(models=folder / "models"))
    database = folder / "edgebox.sqlite3"
    async with running(
        database, file=file, scheduler__sample_share=0, access__open_scope="admin"
    ) as app:
        yield app


async def test_answers_are_of_the_part_that_the_decider_chose(
    app: App, request: pytest.FixtureRequest
) -> None:
    sure = request.node.callspec.params["app"] < 0
    seen, answers, state, _ = await streamed_through(app, sure)
    assert {answer.variant for answer in answers} == {EXIT if sure else REST}
    assert state["continues"] is True
    assert state["share"] == (0.0 if sure else 1.0)
    driver = app.box.driver
    await until(lambda: driver.frames_pending == 0, "no frame is left")
    assert all(not frame.features and not frame.crops for frame, _, _ in seen)
    assert driver.decisions.timeline.failure == ""


async def test_what_goes_on_is_answered_as_the_whole_network_would(
    app: App, request: pytest.FixtureRequest
) -> None:
    sure = request.node.callspec.params["app"] < 0
    jpeg = street_jpeg(11, 256, 144)  # nothing is scaled

    async def infer(**parameters: str | int) -> dict[str, object]:
        of = {"deadline_ms": 30_000, **parameters}
        async with (
            aiohttp.ClientSession() as client,
            client.post(f"{app.url}/v1/infer", params=of, data=jpeg) as response,
        ):
            answer: dict[str, object] = await response.json()
            assert response.status == 200, answer
            return answer

    through = await infer(pipeline="gate")
    whole = await infer(family="street", variant="street-256")
    assert through["cascade"] == ("kept" if sure else "sent_on")
    boxes, wanted = (
        np.array([each["box"] for each in answer["detections"]])  # type: ignore[attr-defined]
        for answer in (through, whole)
    )
    if sure:
        assert boxes.shape != wanted.shape or not np.allclose(boxes, wanted, atol=1)
    else:
        np.testing.assert_allclose(boxes, wanted, atol=0.2)


async def test_a_second_part_is_no_model_for_pictures(app: App) -> None:
    jpeg = street_jpeg(11, *SIZE_PX)
    async with aiohttp.ClientSession() as client:
        of = {"family": "street-rest"}
        async with client.post(f"{app.url}/v1/infer", params=of, data=jpeg) as response:
            answer = await response.json()
        assert response.status == 400
        assert "street-rest is given features of street-exit, not pictures" in str(answer)
        async with client.get(f"{app.url}/v2/models/street-rest") as response:
            assert response.status == 404
        async with client.post(f"{app.url}/v1/models/street-rest/default") as response:
            assert (response.status, (await response.json())["code"]) == (400, "invalid")
