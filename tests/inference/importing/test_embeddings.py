"""Embedding models: imported on request, fed as their graph wants, served with length 1."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from edgebox.domain.errors import ModelError
from edgebox.inference.importing.importer import ImportOptions, import_family
from edgebox.inference.importing.layouts import layout_named
from edgebox.inference.importing.recognition import on_canvas
from tests.inference.importing.planted import Raw, Tiny, write
from tests.inference.importing.test_layouts import found_by, imported, pictures

LENGTH = 256
WEIGHTS = np.random.default_rng(5).normal(0, 1, (3, LENGTH)).astype(np.float32)
BIAS = np.random.default_rng(6).normal(0, 0.5, LENGTH).astype(np.float32)


def write_reid(path: Path, *, batch: int | str = 1, length: int = LENGTH, raw: bool = True) -> Path:
    """Write a model like those for person re-identification: (b, 256, 128, 3) to (b, length).

    It embeds the mean colour. With `raw` it normalises the pictures itself.
    """
    constants = [
        numpy_helper.from_array(np.array([1 / 255], np.float32), "share"),
        numpy_helper.from_array(WEIGHTS[:, :length], "weights"),
        numpy_helper.from_array(BIAS[:length], "bias"),
    ]
    first = (
        helper.make_node("Mul", ["pictures", "share"], ["fed"])
        if raw
        else helper.make_node("Identity", ["pictures"], ["fed"])
    )
    nodes = [
        first,
        helper.make_node("ReduceMean", ["fed"], ["colour"], axes=[1, 2], keepdims=0),
        helper.make_node("MatMul", ["colour", "weights"], ["product"]),
        helper.make_node("Add", ["product", "bias"], ["features"]),
    ]
    shown = [batch, 256, 128, 3]
    graph = helper.make_graph(
        nodes,
        "reid",
        [helper.make_tensor_value_info("pictures", TensorProto.FLOAT, shown)],
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, [batch, length])],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


def embedded(picture: NDArray[np.uint8], name: str) -> NDArray[np.float64]:
    """Return the embedding that the model gives a picture when it is fed by a layout."""
    layout = layout_named(name)
    assert layout is not None
    how = layout.preprocessing
    colour = on_canvas(picture, how, (128, 256)).reshape(-1, 3).mean(axis=0)
    if how.order == "bgr":
        colour = colour[::-1]
    fed = (colour / how.divisor - np.array(how.mean)) / np.array(how.std)
    values: NDArray[np.float64] = fed * (1 / 255 if name == "embedding_bgr" else 1.0) @ WEIGHTS
    values = values + BIAS
    return np.asarray(values / np.linalg.norm(values), np.float64)


@pytest.mark.parametrize("batch", [1, "batch"])
@pytest.mark.parametrize("raw", [True, False])
def test_a_re_identification_model_is_imported_and_serves(
    tmp_path: Path, batch: int | str, raw: bool
) -> None:
    file = write_reid(tmp_path / "reid.onnx", batch=batch, raw=raw)
    result = import_family([file], tmp_path / "models", ImportOptions(embeds=True))
    family, name = result.family, "embedding_bgr" if raw else "embedding"
    assert result.candidate.name == name
    assert (family.task, family.embedding_length, family.decoder) == ("embed", 256, "embedding")
    assert family.labels == ("embedding",)
    assert [(v.width_px, v.height_px) for v in family.variants] == [(128, 256)]
    assert family.batch_size_fixed == (1 if batch == 1 else None)
    assert result.compared
    assert result.candidate.summary() == "embeddings of length 256"
    reason = "normalises" if raw else "does not normalise"
    assert any(f"its graph {reason} the pictures itself" in each for each in result.remarks)
    for found, picture in zip(found_by(result, pictures()), pictures(), strict=True):
        assert found.embeddings is not None
        assert found.embeddings.shape == (1, 256)
        assert found.embeddings[0] == pytest.approx(embedded(picture, name), abs=1e-4)
        assert found.boxes.tolist() == [[0, 0, 128, 256]]


def test_a_layout_says_how_it_is_fed(tmp_path: Path) -> None:
    file = write_reid(tmp_path / "reid.onnx", raw=False)
    options = ImportOptions(layout=layout_named("embedding_bgr"), labels=("person",))
    result = import_family([file], tmp_path / "models", options)
    assert result.candidate.name == "embedding_bgr"
    assert result.family.labels == ("person",)


def test_files_of_other_lengths_are_no_family(tmp_path: Path) -> None:
    files = [write_reid(tmp_path / f"{n}.onnx", length=n) for n in (256, 128)]
    with pytest.raises(ModelError, match=r"128\.onnx: gives embeddings of another length \(128\)"):
        import_family(files, tmp_path / "models", ImportOptions(embeds=True))


def refusal(tmp_path: Path, outputs: Sequence[Raw], options: ImportOptions) -> str:
    with pytest.raises(ModelError) as caught:
        imported(tmp_path, Tiny(list(outputs)), options)
    return str(caught.value)


def test_what_gives_no_embeddings_is_refused(tmp_path: Path) -> None:
    boxes = Raw("output", np.zeros((10, 6), np.float32))
    text = refusal(tmp_path, [boxes], ImportOptions(embeds=True))
    assert "an embedding model gives [pictures, numbers]; this one gives output [1, 10, 6]" in text
    file = write_reid(tmp_path / "reid.onnx")
    with pytest.raises(ModelError, match="there are 2 labels, but the model scores 1 classes"):
        import_family([file], tmp_path / "m", ImportOptions(embeds=True, labels=("a", "b")))


def test_a_graph_that_mixes_pictures_gets_single_ones(tmp_path: Path) -> None:
    values = Raw("output", np.ones(8, np.float32), np.arange(8, dtype=np.float32))
    tiny = Tiny([values], lies=True)
    (tmp_path / "tiny.onnx").write_bytes(write(tiny))
    options = ImportOptions(embeds=True)
    result = import_family([tmp_path / "tiny.onnx"], tmp_path / "m", options)
    assert result.family.batch_size_fixed == 1
    assert "cosine of the two embeddings" in " ".join(result.remarks)
