"""Pipelines as ensembles of the Open Inference Protocol: the same answers as POST /v1/infer."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException

from edgebox.app.composition import App
from edgebox.inference.importing.importer import ImportOptions, import_family
from tests.end_to_end.running import post, running
from tests.end_to_end.streets import street_jpeg
from tests.end_to_end.test_open_inference import (
    DEADLINE,
    base64_images,
    client_of,
    images,
    in_json,
)
from tests.end_to_end.test_pipelines import PIPELINE
from tests.inference.importing.test_embeddings import LENGTH, write_reid

pytestmark = pytest.mark.usefixtures("few_sizes")

MORE = """
[[pipelines]]
name = "people"

[[pipelines.stages]]
name = "street"
family = "street"

[[pipelines.stages]]
name = "who"
family = "reid"
after = ["street"]
labels = ["person"]

[[pipelines.stages]]
name = "closer"
family = "street"
after = ["street"]
labels = ["car", "bus", "truck"]
crops_max = 3

[[pipelines.stages]]
name = "vehicle"
family = "vehicles"
after = ["closer"]
"""


def pictures() -> tuple[bytes, bytes]:
    return street_jpeg(11), street_jpeg(12)


@pytest.fixture
async def app(tmp_path: Path, database: Path) -> AsyncIterator[App]:
    file = tmp_path / "edgebox.toml"
    file.write_text(PIPELINE + MORE)
    pictures()  # painted while no box waits
    models = tmp_path / "mine"
    import_family([write_reid(tmp_path / "reid.onnx")], models, ImportOptions(embeds=True))
    async with running(database, file=file, inference__models=str(models)) as app:
        yield app


async def native(app: App, jpeg: bytes, pipeline: str) -> list[dict[str, Any]]:
    """Return what POST /v1/infer answers to the same picture."""
    status, answer = await post(app, jpeg, {**DEADLINE, "pipeline": pipeline})
    assert status == 200, answer
    assert "missing" not in answer
    found: list[dict[str, Any]] = answer["detections"]
    return found


def row_of(result: triton.InferResult, name: str, picture: int) -> list[Any]:
    """Return the row of a picture; texts that came as binary data are decoded."""
    values = result.as_numpy(name)[picture].tolist()
    return [value.decode() if isinstance(value, bytes) else value for value in values]


def assert_classified(
    result: triton.InferResult, prefix: str, picture: int, stages: list[dict[str, Any]]
) -> None:
    """Insist that the tensors of `vehicle` say what these documents say, object by object."""
    said = [of.get("vehicle", {}) for of in stages]
    count = len(said)
    variants = row_of(result, f"{prefix}vehicle.variant", picture)
    assert variants[:count] == [of.get("variant", "") for of in said]
    assert not any(variants[count:])
    for name in ("type", "colour"):
        attribute = [of.get("attributes", {}).get(name, {}) for of in said]
        labels = row_of(result, f"{prefix}vehicle.{name}.label", picture)
        scores = row_of(result, f"{prefix}vehicle.{name}.score", picture)
        assert labels[:count] == [of.get("label", "") for of in attribute]
        assert scores[:count] == pytest.approx([of.get("score", 0) for of in attribute], abs=2e-3)
        assert not any(labels[count:])
        assert not any(scores[count:])


@pytest.mark.parametrize("binary", [True, False])
async def test_an_ensemble_says_what_the_pipeline_does(app: App, binary: bool) -> None:
    found = [await native(app, jpeg, "traffic") for jpeg in pictures()]
    async with client_of(app) as client:
        metadata = await client.get_model_metadata("traffic")
        names = [each["name"] for each in metadata["outputs"]]
        both = images(*pictures()) if binary else base64_images(*pictures())
        wanted = None if binary else in_json(*names)
        result = await client.infer("traffic", [both], outputs=wanted, parameters=DEADLINE)
    assert [each["name"] for each in result.get_response()["outputs"]] == names
    assert result.as_numpy("missing").tolist() == ([b"", b""] if binary else ["", ""])
    for picture, objects in enumerate(found):
        assert result.as_numpy("counts")[picture] == len(objects) > 0
        assert row_of(result, "names", picture)[: len(objects)] == [of["label"] for of in objects]
        assert any("stages" in of for of in objects)
        assert_classified(result, "", picture, [of.get("stages", {}) for of in objects])


async def test_embeddings_and_what_comes_after_a_later_detector(app: App) -> None:
    (jpeg, _) = pictures()
    objects = await native(app, jpeg, "people")
    said = [of.get("stages", {}) for of in objects]
    async with client_of(app) as client:
        result = await client.infer("people", [images(jpeg)], parameters=DEADLINE)
    embeddings = result.as_numpy("who.embedding")[0]
    assert embeddings.shape == (len(objects), LENGTH)
    for embedding, of in zip(embeddings, said, strict=True):
        wanted = of["who"]["embedding"] if "who" in of else np.zeros(LENGTH)
        assert embedding == pytest.approx(wanted, abs=2e-3)
    assert any("who" in of for of in said)
    closer = [
        (at, one)
        for at, of in enumerate(said)
        for one in of.get("closer", {}).get("detections", ())
    ]
    assert result.as_numpy("closer.counts").tolist() == [len(closer)]
    assert any("vehicle" in one.get("stages", {}) for _, one in closer)
    assert row_of(result, "closer.objects", 0) == [at for at, _ in closer]
    assert row_of(result, "closer.names", 0) == [one["label"] for _, one in closer]
    boxes = np.array([one["box"] for _, one in closer])
    assert result.as_numpy("closer.boxes")[0] == pytest.approx(boxes, abs=0.2)
    assert_classified(result, "closer.", 0, [one.get("stages", {}) for _, one in closer])


async def test_metadata_name_every_pipeline_as_an_ensemble(app: App) -> None:
    async with client_of(app) as client:
        listed = [row["name"] for row in await client.get_model_repository_index()]
        assert listed[-2:] == ["traffic", "people"]
        street = await client.get_model_metadata("street")
        assert street["platform"] == "onnxruntime_onnx"
        for name in ("traffic", "people"):
            assert await client.is_model_ready(name, "1")
            model, config = (
                await client.get_model_metadata(name),
                await client.get_model_config(name),
            )
            assert model["platform"] == config["platform"] == "ensemble"
            assert model["inputs"] == street["inputs"]
            own = [each["name"] for each in model["outputs"]]
            assert own == [each["name"] for each in config["output"]]
            assert own[: len(street["outputs"])] == [each["name"] for each in street["outputs"]]
            steps = config["ensemble_scheduling"]["step"]
            for step in steps:
                assert await client.is_model_ready(step["model_name"])
        assert [step["model_name"] for step in steps] == ["street", "reid", "street", "vehicles"]
        embedding = next(each for each in model["outputs"] if each["name"] == "who.embedding")
        assert embedding == {"name": "who.embedding", "datatype": "FP32", "shape": [-1, -1, LENGTH]}


async def test_what_an_ensemble_does_not_have_is_refused_as_for_models(app: App) -> None:
    async with client_of(app) as client:
        with pytest.raises(
            InferenceServerException, match=r"no model 'trafic'; .*, traffic, people"
        ):
            await client.infer("trafic", [images(street_jpeg(11))])
        with pytest.raises(InferenceServerException, match=r"no model 'traffic-608'"):
            await client.infer("traffic-608", [images(street_jpeg(11))])
        with pytest.raises(InferenceServerException, match="no version '2'"):
            await client.infer("traffic", [images(street_jpeg(11))], model_version="2")
        wanted = in_json("vehicle.size.label")
        with pytest.raises(InferenceServerException, match=r"vehicle\.type\.label, ") as refused:
            await client.infer("traffic", [images(street_jpeg(11))], outputs=wanted)
        assert 'there is no output "vehicle.size.label"; there are boxes' in str(refused.value)
        assert refused.value.status() == "400"
        flat = triton.InferInput("pixels", [4, 4, 3], "UINT8")
        flat.set_data_from_numpy(np.zeros((4, 4, 3), np.uint8))
        with pytest.raises(InferenceServerException, match=r"must be \[n, height, width, 3\]"):
            await client.infer("traffic", [flat])
