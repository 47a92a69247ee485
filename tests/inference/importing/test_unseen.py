"""Models nobody planned for: what is not proven is asked about, and never taken wrongly."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnxruntime import quantization

from edgebox.domain.errors import ModelError
from edgebox.inference.importing.files import read_source
from edgebox.inference.importing.importer import ImportOptions, import_family
from edgebox.inference.importing.labels import decoding_for
from edgebox.inference.importing.layouts import Preprocessing
from edgebox.inference.importing.matching import match
from edgebox.inference.importing.original import Original
from edgebox.inference.importing.parity import SHARE_MIN
from edgebox.inference.importing.recognition import UncertainLayoutError
from edgebox.inference.importing.serving import served_model, written
from edgebox.inference.importing.siblings import siblings
from edgebox.inference.importing.verification import Subject, check_served, open_served
from edgebox.inference.importing.writing import Rows
from edgebox.inference.onnx_runtime import onnx_runtime
from edgebox.scene.street_camera import Scene
from tests.inference.importing.planted import Raw, Tiny, write
from tests.inference.importing.zoo_of_layouts import layout
from tests.real_models import real_model

RNG = np.random.default_rng(8)


def refusal(
    tmp_path: Path, outputs: Sequence[Raw], options: ImportOptions | None = None
) -> ModelError:
    path = tmp_path / "unseen.onnx"
    path.write_bytes(write(Tiny(list(outputs))))
    with pytest.raises(ModelError) as caught:
        import_family([path], tmp_path / "models", options or ImportOptions())
    assert not (tmp_path / "models").exists()
    return caught.value


def shares(*shape: int) -> np.ndarray:
    return RNG.uniform(0.0, 0.9, shape).astype(np.float32)


def by_stride(anchors: int, *columns: int) -> list[Raw]:
    """Outputs one for each of the strides 8, 16 and 32 on 96 × 64 px."""
    counts = [anchors * cells for cells in (96, 24, 6)]
    return [
        Raw(f"out{kind}_{rows}", shares(rows, width))
        for kind, width in enumerate(columns)
        for rows in counts
    ]


def test_scores_boxes_and_key_points_of_faces_fit_no_layout(tmp_path: Path) -> None:
    # As SCRFD gives them, two anchors a cell, and as YuNet does, with an objectness.
    for outputs in (by_stride(2, 1, 4, 10), by_stride(1, 1, 1, 4, 10)):
        message = str(refusal(tmp_path, outputs))
        assert "fits no layout; nearest is " in message
        assert "outputs that are one for each stride" in message
        assert "argmax" not in message


def test_scores_of_boxes_are_not_those_of_a_classifiers_classes(tmp_path: Path) -> None:
    # As edgebox's own detector gives them.
    outputs = [Raw("boxes", shares(20, 4)), Raw("scores", shares(20)), Raw("labels", shares(20))]
    message = str(refusal(tmp_path, outputs))
    assert "fits no layout; nearest is classifier" in message
    assert "another output has four numbers for each of its classes, as boxes have" in message


def test_what_is_one_for_each_stride_is_never_read_in_part(tmp_path: Path) -> None:
    # 36 columns of shares look like boxes and 32 classes, as any number of queries would.
    path = tmp_path / "unseen.onnx"
    path.write_bytes(write(Tiny(by_stride(1, 36))))
    result = import_family([path], tmp_path / "all", ImportOptions())
    assert [len(sources) for sources in result.candidate.match.outputs] == [3]
    forced = ImportOptions(layout=layout("rtdetr_ultralytics"))
    remarks = import_family([path], tmp_path / "one", forced).remarks
    assert any("it leaves out some of the 3 outputs that are one for" in each for each in remarks)


def test_siblings_are_found_by_their_rows() -> None:
    arrays = [np.zeros((1, rows, columns)) for columns in (3, 32) for rows in (6, 96, 24)]
    assert siblings(arrays, 96, 64) == [(1, 2, 0), (4, 5, 3)]
    assert siblings(arrays, 320, 320) == []
    assert siblings([np.zeros((1, 300, 4)), np.zeros((1, 300, 80))], 640, 640) == []


def test_a_detector_that_finds_nothing_is_asked_about(tmp_path: Path) -> None:
    values = np.full((20, 18), 0.01, np.float32)  # as palms are given, where there is none
    error = refusal(tmp_path, [Raw("regressors", values)])
    assert isinstance(error, UncertainLayoutError)
    assert [each.name for each in error.candidates] == ["rtdetr_ultralytics"]
    assert "nothing was found on the pictures that would prove it" in str(error)
    named = ImportOptions(layout=layout("rtdetr_ultralytics"))
    path = tmp_path / "unseen.onnx"
    assert import_family([path], tmp_path / "models", named).candidate.evidence == 0.0


@pytest.mark.parametrize(("name", "length"), [("out", 256), ("embedding", 100)])
def test_nameless_numbers_may_be_an_embedding(tmp_path: Path, name: str, length: int) -> None:
    numbers = Raw(name, RNG.normal(size=length).astype(np.float32))
    error = refusal(tmp_path, [numbers])
    assert isinstance(error, UncertainLayoutError)
    assert {each.match.layout.task for each in error.candidates} == {"classify", "embed"}
    assert "--task embed" in str(error)
    path = tmp_path / "unseen.onnx"
    options = ImportOptions(labels=tuple(f"name {at}" for at in range(length)))
    assert import_family([path], tmp_path / "m1", options).family.task == "classify"
    chosen = import_family(
        [path], tmp_path / "m2", ImportOptions(), ask=lambda _, possible: possible[-1].match.layout
    )
    assert chosen.family.task == error.candidates[-1].match.layout.task


def test_a_candidate_that_cannot_be_read_is_one_less(tmp_path: Path) -> None:
    # A background and no class: once "argmax of an empty sequence".
    logits, boxes = Raw("logits", shares(20, 1) - 5.0), Raw("pred_boxes", shares(20, 4))
    path = tmp_path / "unseen.onnx"
    path.write_bytes(write(Tiny([logits, boxes])))
    result = import_family([path], tmp_path / "models", ImportOptions(labels=("palm",)))
    assert result.candidate.name == "hf_rtdetr"


# -- equal to the last bit -------------------------------------------------------------------------


def rounding(how: Preprocessing) -> bytes:
    """Return a model that shows what it was fed, but for a rounding of its own in between."""
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["images"], ["levels", "scale", "zero"]),
        helper.make_node("Conv", ["images", "w"], ["mixed"], strides=[8, 8]),
        helper.make_node("Reshape", ["mixed", "dims"], ["output"]),
    ]
    constants = [
        numpy_helper.from_array(RNG.normal(size=(7, 3, 8, 8)).astype(np.float32), "w"),
        numpy_helper.from_array(np.array([0, 7, -1], np.int64), "dims"),
    ]
    graph = helper.make_graph(
        nodes,
        "rounding",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, [1, 3, 64, 96])],
        [
            helper.make_tensor_value_info("output", TensorProto.FLOAT, [1, 7, 96]),
            helper.make_tensor_value_info("levels", TensorProto.UINT8, [1, 3, 64, 96]),
        ],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    content: bytes = model.SerializeToString()
    return content


@pytest.mark.parametrize("name", ["yolov8", "yolox", "rfdetr", "nanodet"])
def test_what_rounds_is_fed_to_the_last_bit(tmp_path: Path, name: str) -> None:
    from edgebox.inference.importing.operators import Operators
    from edgebox.inference.importing.serving import _feed_pictures, _names_in

    of = layout(name)
    path = tmp_path / "rounding.onnx"
    path.write_bytes(rounding(of.preprocessing))
    original = Original(read_source(path))
    model = ModelProto()
    model.CopyFrom(original.source.model)
    ops = Operators(13, _names_in(model))
    before = model.SerializeToString()
    _feed_pictures(ops, model, original, of, "pictures")
    assert model.SerializeToString() == before  # nothing is folded into its weights
    feeding = helper.make_graph(
        ops.nodes,
        "feeding",
        [helper.make_tensor_value_info("pictures", TensorProto.UINT8, [1, 64, 96, 3])],
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, [1, 3, 64, 96])],
        ops.constants,
    )
    made = helper.make_model(feeding, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    session = onnx_runtime().InferenceSession(
        made.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    canvas = RNG.integers(0, 256, (64, 96, 3), dtype=np.uint8)
    (fed,) = session.run(None, {"pictures": canvas[None]})
    assert (fed == original.feed([canvas], of.preprocessing)["images"]).all()


def flipping(path: Path, flips: int, kept: float = 1.0) -> Subject:
    """Return a classifier on a white picture; the last bit of white decides on some of 20 classes.

    `kept` is the share of their scores, as another graph would compute them.
    """
    flipped = np.where(np.arange(20) < flips, kept * 0.3, 0.0).astype(np.float32)
    nodes = [
        helper.make_node("ReduceMax", ["images"], ["white"], axes=[1, 2, 3], keepdims=0),
        helper.make_node("Floor", ["white"], ["level"]),
        helper.make_node("Mul", ["level", "flipped"], ["more"]),
        helper.make_node("Add", ["more", "plain"], ["scores"]),
        helper.make_node("Unsqueeze", ["scores", "first"], ["output"]),
    ]
    graph = helper.make_graph(
        nodes,
        "flipping",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, [1, 3, 32, 32])],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, [1, 20])],
        [
            numpy_helper.from_array(flipped, "flipped"),
            numpy_helper.from_array(np.full(20, 0.5, np.float32), "plain"),
            numpy_helper.from_array(np.array([0], np.int64), "first"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    original, of = Original(read_source(path)), layout("classifier_ultralytics")
    white = np.full((32, 32, 3), 255, np.uint8)
    found = match(
        of, original.outputs, original.run([white], of.preprocessing), frozenset(), (32, 32)
    )
    assert found is not None
    decoding = decoding_for(found, tuple(f"name {at}" for at in range(20)))
    assert decoding is not None
    return Subject(original, found, decoding, [white])


def served(subject: Subject) -> Any:
    made = served_model(
        subject.original, subject.found.layout, subject.decoding, (("output",),),
        batch=1, fixed_px=(32, 32), rows=Rows(None, None),
    )  # fmt: skip
    return open_served(written(made, "flipping"), "flipping")


def test_a_graph_may_differ_as_much_as_the_original_from_itself(tmp_path: Path) -> None:
    subject = flipping(tmp_path / "one.onnx", flips=2)
    expected = subject.one_by_one((32, 32))
    assert check_served(subject, served(subject), (32, 32), 1, expected)[1] == SHARE_MIN
    other = served(flipping(tmp_path / "other.onnx", flips=2, kept=0.5))
    _, least = check_served(subject, other, (32, 32), 1, expected)
    assert 0.5 <= least < SHARE_MIN


def test_a_graph_that_differs_more_is_refused(tmp_path: Path) -> None:
    subject = flipping(tmp_path / "one.onnx", flips=2)
    other = served(flipping(tmp_path / "other.onnx", flips=8))
    expected = subject.one_by_one((32, 32))
    with pytest.raises(ModelError, match="does not find what the original finds"):
        check_served(subject, other, (32, 32), 1, expected)


def test_outputs_that_are_no_numbers_and_too_many_are_refused(tmp_path: Path) -> None:
    values = [Raw(f"out{at}", shares(3)) for at in range(65)]
    assert "has 65 outputs; at most 64 are read" in str(refusal(tmp_path, values))
    model = onnx.load_from_string(write(Tiny([Raw("output", shares(3))])))
    model.graph.node.append(helper.make_node("Cast", ["output"], ["texts"], to=TensorProto.STRING))
    model.graph.output.append(helper.make_tensor_value_info("texts", TensorProto.STRING, [None, 3]))
    path = tmp_path / "texts.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ModelError, match=r"'texts' is tensor\(string\); edgebox reads tensors"):
        Original(read_source(path))
    model.graph.output.pop()
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 65
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ModelError, match="takes 65 pictures at once"):
        Original(read_source(path))


def test_errors_of_onnx_runtime_come_without_its_code(tmp_path: Path) -> None:
    model = onnx.load_from_string(write(Tiny([Raw("output", shares(3))])))
    model.ir_version = 99
    path = tmp_path / "newer.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ModelError, match="cannot open it: Unsupported model IR version: 99"):
        Original(read_source(path))


# -- real files ------------------------------------------------------------------------------------


def test_a_real_nanodet_with_split_heads(tmp_path: Path) -> None:
    result = import_family([real_model("nanodet_m_416.onnx")], tmp_path / "models", ImportOptions())
    assert result.candidate.name == "nanodet_split"
    assert result.compared >= 20
    assert "person" in result.candidate.summary()


def test_a_real_embedding_is_questioned(tmp_path: Path) -> None:
    with pytest.raises(UncertainLayoutError, match="--task embed"):
        import_family([real_model("person_reid_0288.onnx")], tmp_path / "models", ImportOptions())


def test_a_real_yolo_in_dynamic_int8_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "int8.onnx"
    quantization.quantize_dynamic(
        str(real_model("yolox_nano.onnx")), str(path), weight_type=quantization.QuantType.QUInt8
    )
    picture = Scene(3).render(2.0).rgb
    options = ImportOptions(layout=layout("yolox"), pictures=(picture,))
    assert import_family([path], tmp_path / "models", options).compared
