"""Pictures that are decoded where their batch runs."""

from pathlib import Path

import numpy as np

from edgebox.domain.model_family import ExecutorId
from edgebox.domain.requests import DropReason
from edgebox.inference.onnx_executor import OnnxExecutor
from edgebox.inference.tensors import EncodedPicture, ModelInput
from edgebox.inference.zoo import load_family
from edgebox.media.jpeg import decode_into, encode
from edgebox.vision.letterbox import Placement
from tests.end_to_end.streets import street_picture
from tests.end_to_end.test_residency import family_of_files
from tests.end_to_end.wire import jpeg_claiming


def test_every_executor_takes_them_and_answers_in_their_own_pixels(tmp_path: Path) -> None:
    family = load_family(family_of_files(tmp_path / "gate", "gate", (192,)))
    (variant,) = family.variants
    jpeg = encode(street_picture(3, 640, 360))
    canvas = np.empty((192, 192, 3), np.uint8)
    decode_into(jpeg, canvas, family.input.fill, family.input.fit)
    executor = OnnxExecutor(ExecutorId("cpu/0"), [family], cpu_threads=1)
    try:
        pictures: list[ModelInput] = [
            canvas,
            EncodedPicture(jpeg, 640, 360),
            EncodedPicture(jpeg_claiming(64, 64), 64, 64),
        ]
        result = executor.submit(variant.name, pictures, 4).result()
    finally:
        executor.close()
    on_canvas, encoded, _ = result.detections
    place = Placement.on_canvas(640, 360, 192, 192, family.input.fit)
    assert len(on_canvas) > 0
    wanted = place.to_source(on_canvas, 640, 360)
    assert len(encoded) == len(wanted)
    np.testing.assert_allclose(encoded.boxes, wanted.boxes, atol=0.01)
    np.testing.assert_allclose(encoded.scores, wanted.scores, atol=1e-5)
    assert list(result.refused) == [2]
    assert result.refused[2].reason is DropReason.INVALID
