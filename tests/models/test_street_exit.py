"""The street detector in two parts: together they are the whole one, and the exit answers alone."""

from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

from edgebox.inference.zoo import bundled_folders, load_zoo
from edgebox.scene.street_camera import LABELS, Scene

MODELS = Path(__file__).parents[2] / "models"


def opened(name: str) -> ort.InferenceSession:
    ort.set_default_logger_severity(4)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    path = MODELS / name / f"{name}.onnx"
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


@pytest.fixture(scope="module")
def sessions() -> list[ort.InferenceSession]:
    return [opened(name) for name in ("street", "street-exit", "street-rest")]


@pytest.mark.parametrize(("size", "batch"), [((128, 96), 1), ((256, 160), 3), ((608, 352), 1)])
def test_the_parts_answer_what_the_whole_answers(
    sessions: list[ort.InferenceSession], size: tuple[int, int], batch: int
) -> None:
    whole, first, second = sessions
    pictures = np.stack([Scene(at, *size).render(3.0).rgb for at in range(batch)])
    wanted = whole.run(None, {"images": pictures})
    outputs = first.run(None, {"images": pictures})
    boxes, scores, labels = outputs[:3]
    assert boxes.shape == (batch, 100, 4)
    assert np.all(np.diff(scores) <= 0)
    assert set(np.unique(labels)) <= set(range(len(LABELS)))
    names = [each.name for each in second.get_inputs()]
    found = second.run(None, dict(zip(names, outputs[3:], strict=True)))
    np.testing.assert_allclose(found[1], wanted[1], atol=1e-4)
    shown = wanted[1] >= 0.05  # among equal scores below, the order is free
    np.testing.assert_allclose(found[0][shown], wanted[0][shown], atol=0.02)
    np.testing.assert_array_equal(found[2][shown], wanted[2][shown])


def test_the_parts_are_families_at_the_sizes_of_the_whole() -> None:
    zoo = load_zoo(bundled_folders())
    whole, first, second = (zoo.family(n) for n in ("street", "street-exit", "street-rest"))
    sizes = [[(v.width_px, v.height_px) for v in each.variants] for each in (whole, first, second)]
    assert sizes[0] == sizes[1] == sizes[2]
    assert [v.accuracy for v in whole.variants] == [v.accuracy for v in second.variants]
    assert all(e.accuracy < w.accuracy for e, w in zip(first.variants, whole.variants, strict=True))
    assert first.labels == second.labels == whole.labels == LABELS
    assert second.after == first.name
    assert (first.features_given, second.features_given) == (2, 0)
