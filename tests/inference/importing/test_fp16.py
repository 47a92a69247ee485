"""Half precision: what is rounded, what is not, and that only what finds the same is taken."""

from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
from numpy.typing import NDArray
from onnx import (
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    checker,
    helper,
    numpy_helper,
    shape_inference,
)

from edgebox.domain.errors import ModelError
from edgebox.inference.importing.fp16 import halve
from edgebox.inference.importing.importer import ImportOptions, import_family
from tests.inference.importing.planted import LABELS, write
from tests.inference.importing.zoo_of_layouts import DETECTORS

FLOATS = {"x", "w", "a", "b", "c", "v", "out"}


def weights(name: str, values: NDArray[np.float32]) -> TensorProto:
    return numpy_helper.from_array(values, name)


def network(*more: NodeProto) -> ModelProto:
    """Return two products with a relu between them, a sigmoid behind, and more nodes."""
    rng = np.random.default_rng(1)
    first, second = (rng.standard_normal((4, 4)).astype(np.float32) for _ in range(2))
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("MatMul", ["b", "v"], ["c"]),
        helper.make_node("Sigmoid", ["c"], ["out"]),
        *more,
    ]
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", 4]) for n in ("x", "out")]
    graph = helper.make_graph(
        nodes, "g", values[:1], values[1:], [weights("w", first), weights("v", second)]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def kinds(graph: GraphProto) -> list[str]:
    return [node.op_type for node in graph.node]


def answer(model: ModelProto, x: NDArray[np.float32]) -> NDArray[np.float32]:
    checker.check_model(model, full_check=True)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"x": x})
    return np.asarray(found)


def test_the_heavy_and_what_leads_to_it_is_rounded_and_nothing_behind() -> None:
    model = network()
    x = np.random.default_rng(2).standard_normal((3, 4)).astype(np.float32)
    before = answer(model, x)
    assert halve(model.graph, 0, 4, FLOATS) == 3
    assert kinds(model.graph) == ["Cast", "MatMul", "Relu", "MatMul", "Cast", "Sigmoid"]
    assert {t.name: t.data_type for t in model.graph.initializer} == {
        "w_half": TensorProto.FLOAT16,
        "v_half": TensorProto.FLOAT16,
    }
    after = answer(model, x)
    assert after.dtype == np.float32
    assert 0 < np.abs(after - before).max() < 5e-3


def test_what_reads_a_rounded_tensor_gets_it_in_single_precision_once() -> None:
    model = network(helper.make_node("Neg", ["b"], ["d"]), helper.make_node("Abs", ["b"], ["e"]))
    halve(model.graph, 0, 6, FLOATS)
    casts = [node for node in model.graph.node if node.op_type == "Cast"]
    assert [list(cast.output) for cast in casts] == [["x_half"], ["c"], ["b"]]
    answer(model, np.zeros((1, 4), np.float32))


def test_what_is_not_known_to_be_single_precision_stays() -> None:
    model = network()
    assert halve(model.graph, 0, 4, set()) == 0
    assert kinds(model.graph) == ["MatMul", "Relu", "MatMul", "Sigmoid"]


def test_a_branch_that_reads_a_rounded_tensor_still_finds_it() -> None:
    def branch(name: str) -> GraphProto:
        value = helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
        return helper.make_graph([helper.make_node("Identity", ["b"], [name])], name, [], [value])

    model = network(
        helper.make_node("Constant", [], ["yes"], value=helper.make_tensor(
            "yes", TensorProto.BOOL, [], [True])),
        helper.make_node("If", ["yes"], ["d"], then_branch=branch("t"), else_branch=branch("f")),
    )  # fmt: skip
    halve(model.graph, 0, 6, FLOATS)
    answer(model, np.zeros((1, 4), np.float32))


def test_weights_beyond_the_range_become_the_largest_number() -> None:
    model = network()
    model.graph.initializer[0].CopyFrom(weights("w", np.full((4, 4), 1e6, np.float32)))
    halve(model.graph, 0, 4, FLOATS)
    (halved,) = [t for t in model.graph.initializer if t.name == "w_half"]
    assert np.isfinite(numpy_helper.to_array(halved)).all()


def with_convolution(tmp_path: Path) -> Path:
    """Write a detector whose pictures pass a convolution that leaves them as they are."""
    path = tmp_path / "gate.onnx"
    tiny = DETECTORS["nanodet_plus"][0]()
    model = ModelProto.FromString(write(tiny))
    pictures = model.graph.input[0].name
    for node in model.graph.node:
        for at, name in enumerate(node.input):
            if name == pictures:
                node.input[at] = "convolved"
    same = np.eye(3, dtype=np.float32).reshape(3, 3, 1, 1)
    model.graph.initializer.append(numpy_helper.from_array(same, "same"))
    model.graph.node.insert(0, helper.make_node("Conv", [pictures, "same"], ["convolved"]))
    path.write_bytes(model.SerializeToString())
    return path


def test_an_import_in_half_precision_finds_the_same_and_says_what_it_costs(tmp_path: Path) -> None:
    path = with_convolution(tmp_path)
    imported = import_family([path], tmp_path / "models", ImportOptions(labels=LABELS, half=True))
    assert imported.compared > 0
    (remark,) = [text for text in imported.remarks if "half precision" in text]
    assert "on this machine's CPU a picture takes" in remark
    content = imported.family.model_files[0].path.read_bytes()
    types = {t.data_type for t in ModelProto.FromString(content).graph.initializer}
    assert TensorProto.FLOAT16 in types


def test_an_import_that_finds_something_else_in_half_precision_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = with_convolution(tmp_path)
    model = ModelProto.FromString(path.read_bytes())
    # Beyond half precision's range, and back: single precision does not notice.
    for tensor in model.graph.initializer:
        if tensor.name == "same":
            big = 1e6 * numpy_helper.to_array(tensor)
            tensor.CopyFrom(numpy_helper.from_array(big.astype(np.float32), "same"))
    model.graph.initializer.append(numpy_helper.from_array(np.array(1e-6, np.float32), "back"))
    for node in model.graph.node:
        if node.op_type == "Conv":
            node.output[0] = "huge"
    model.graph.node.insert(1, helper.make_node("Mul", ["huge", "back"], ["convolved"]))
    path.write_bytes(model.SerializeToString())
    import_family([path], tmp_path / "single", ImportOptions(labels=LABELS))
    with pytest.raises(ModelError, match=r"without --precision fp16 it may well be taken"):
        import_family([path], tmp_path / "half", ImportOptions(labels=LABELS, half=True))
    assert not (tmp_path / "half").exists()


def test_a_model_that_is_in_half_precision_already_is_refused(tmp_path: Path) -> None:
    path = with_convolution(tmp_path)
    model = ModelProto.FromString(path.read_bytes())
    graph = shape_inference.infer_shapes(model).graph
    known = {v.name: v.type.tensor_type.elem_type for v in (*graph.input, *graph.value_info)}
    known |= {t.name: t.data_type for t in graph.initializer}
    floats = {name for name, kind in known.items() if kind == TensorProto.FLOAT}
    assert halve(model.graph, 0, len(model.graph.node), floats) > 0
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ModelError, match="leave --precision out"):
        import_family([path], tmp_path / "models", ImportOptions(labels=LABELS, half=True))
    assert not (tmp_path / "models").exists()
