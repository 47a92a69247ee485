"""An imported family on a real box: found at the start, measured, served to whom asks for it."""

from pathlib import Path

import numpy as np
import pytest

from edgebox.inference.importing.importer import ImportOptions, import_family
from edgebox.media.jpeg import encode
from tests.end_to_end.running import post, running, streaming
from tests.inference.importing.planted import HEIGHT, LABELS, OBJECTS, WIDTH, write
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
