"""An imported family on a real box: found at the start, measured, served to whom asks for it."""

from pathlib import Path

import numpy as np
import pytest
from aiohttp import ClientSession

from edgebox.inference.importing.importer import ImportOptions, import_family
from edgebox.media.jpeg import encode
from tests.end_to_end.running import post, running, streaming
from tests.inference.importing.planted import HEIGHT, LABELS, OBJECTS, WIDTH, write
from tests.inference.importing.test_embeddings import embedded, write_reid
from tests.inference.importing.zoo_of_layouts import DETECTORS


@pytest.mark.parametrize("batch", ["batch", 1, 2])
async def test_what_was_imported_is_served(
    database: Path, tmp_path: Path, batch: int | str
) -> None:
    path = tmp_path / "gate.onnx"
    tiny = DETECTORS["nanodet_plus"][0]()
    tiny.batch = batch
    path.write_bytes(write(tiny))
    models = tmp_path / "mine"
    import_family([path], models, ImportOptions(labels=LABELS))
    picture = encode(np.full((2 * HEIGHT, 2 * WIDTH, 3), 120, np.uint8))
    async with running(database, inference__models=str(models)) as app:
        assert list(app.box.families) == ["street", "gate"]
        status, answer = await post(app, picture, {"family": "gate", "deadline_ms": 30_000})
        async with streaming(app, family="gate") as camera:
            assert camera.summary().on_time >= 1
    assert status == 200, answer
    assert answer["variant"] == f"gate-{WIDTH}x{HEIGHT}"
    found = sorted((row["label"], row["box"]) for row in answer["detections"])
    expected = sorted((LABELS[each.label], [2 * side for side in each.box]) for each in OBJECTS)
    assert [label for label, _ in found] == [label for label, _ in expected]
    for (_, box), (_, planted) in zip(found, expected, strict=True):
        assert box == pytest.approx(planted, abs=0.2)


async def test_an_embedding_model_is_served_by_every_interface(
    database: Path, tmp_path: Path
) -> None:
    models = tmp_path / "mine"
    import_family([write_reid(tmp_path / "reid.onnx")], models, ImportOptions(embeds=True))
    rgb = np.full((120, 60, 3), (200, 90, 40), np.uint8)
    wanted = embedded(rgb, "embedding_bgr")
    async with running(database, inference__models=str(models)) as app:
        parameters = {"family": "reid", "deadline_ms": 30_000}
        status, answer = await post(app, encode(rgb), parameters)
        assert status == 200, answer
        (row,) = answer["detections"]
        assert (row["label"], row["score"], row["box"]) == ("embedding", 1.0, [0, 0, 60, 120])
        assert row["embedding"] == pytest.approx(wanted, abs=0.02)
        for result_format in ("coco", "supervision"):
            status, answer = await post(app, encode(rgb), {**parameters, "format": result_format})
            assert status == 200, answer
        async with ClientSession(app.url) as http:
            async with http.get("/v2/models/reid") as response:
                outputs = {each["name"]: each for each in (await response.json())["outputs"]}
            assert outputs["embeddings"]["shape"] == [-1, -1, 256]
            pixels = {
                "name": "pixels", "datatype": "UINT8", "shape": [1, *rgb.shape],
                "data": rgb.reshape(-1).tolist(),
            }  # fmt: skip
            request = {"inputs": [pixels], "parameters": {"deadline_ms": 30_000}}
            async with http.post("/v2/models/reid/infer", json=request) as response:
                answer = await response.json()
                assert response.status == 200, answer
            async with http.get("/v1/models") as response:
                families = {each["name"]: each for each in (await response.json())["families"]}
        (tensor,) = (each for each in answer["outputs"] if each["name"] == "embeddings")
        assert tensor["shape"] == [1, 1, 256]
        assert tensor["data"] == pytest.approx(wanted, abs=1e-3)
        assert (families["reid"]["task"], families["reid"]["embedding_length"]) == ("embed", 256)
        assert families["street"]["embedding_length"] is None
        async with streaming(app, family="reid") as camera:
            assert camera.summary().on_time >= 1
