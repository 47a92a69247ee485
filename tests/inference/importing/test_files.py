"""What is refused before ONNX Runtime sees it, each with its reason."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto, helper, numpy_helper

from edgebox.domain.errors import ModelError
from edgebox.inference.importing import files
from edgebox.inference.importing.files import read_source, unique_names
from tests.inference.importing.planted import Tiny, write
from tests.inference.importing.zoo_of_layouts import DETECTORS

GOOD = write(DETECTORS["yolov8"][0]())


def refused(path: Path, content: bytes | ModelProto) -> str:
    path.write_bytes(content if isinstance(content, bytes) else content.SerializeToString())
    with pytest.raises(ModelError) as caught:
        read_source(path)
    assert str(caught.value).startswith(f"{path}: ")
    return str(caught.value)


def changed(change: Callable[[ModelProto], object]) -> ModelProto:
    model = ModelProto()
    model.ParseFromString(GOOD)
    change(model)
    return model


@pytest.mark.parametrize(
    "content", [b"", b"no model at all", b"\x89PNG\r\n\x1a\n" * 9, b"\x00" * 99]
)
def test_what_is_no_model(tmp_path: Path, content: bytes) -> None:
    assert "is not an ONNX model" in refused(tmp_path / "a.onnx", content)


@pytest.mark.parametrize("kept", [0.01, 0.3, 0.7, 0.99])
def test_a_truncated_model(tmp_path: Path, kept: float) -> None:
    message = refused(tmp_path / "a.onnx", GOOD[: int(kept * len(GOOD))])
    assert "cut short" in message


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="there is no such file"):
        read_source(tmp_path / "nowhere.onnx")
    with pytest.raises(ModelError, match="cannot be read"):
        read_source(tmp_path)


def test_weights_in_another_file(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(4000))

    def point_elsewhere(model: ModelProto) -> None:
        tensor = model.graph.initializer[0]
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="../../etc/passwd")

    message = refused(tmp_path / "a.onnx", changed(point_elsewhere))
    assert "keeps the weights 'c0' in another file" in message


def test_weights_of_another_file_hidden_in_the_default_of_a_function(tmp_path: Path) -> None:
    tensor = numpy_helper.from_array(np.zeros(3, np.float32), "hidden")
    tensor.data_location = TensorProto.EXTERNAL
    inner = helper.make_graph(
        [helper.make_node("Constant", [], ["x"], value=tensor)], "inner", [], []
    )
    defaults = [helper.make_attribute("value", tensor), helper.make_attribute("body", inner)]
    for default in defaults:
        own = helper.make_function(
            "mine", "F", [], [], [], [helper.make_opsetid("", 17)], attribute_protos=[default]
        )
        model = changed(lambda model: None)
        model.functions.append(own)
        assert "keeps the weights 'hidden' in another file" in refused(tmp_path / "a.onnx", model)


def test_weights_of_another_file_hidden_in_an_operator(tmp_path: Path) -> None:
    tensor = numpy_helper.from_array(np.zeros(3, np.float32), "hidden")
    tensor.data_location = TensorProto.EXTERNAL
    inner = helper.make_graph(
        [helper.make_node("Constant", [], ["x"], value=tensor)], "inner", [], []
    )
    branch = helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=inner)
    model = changed(lambda model: model.graph.node.append(branch))
    assert "keeps the weights 'hidden' in another file" in refused(tmp_path / "a.onnx", model)


def test_operators_of_others(tmp_path: Path) -> None:
    node = helper.make_node("EfficientNMS_TRT", ["a"], ["b"], domain="TRT")
    model = changed(lambda model: model.graph.node.append(node))
    message = refused(tmp_path / "a.onnx", model)
    assert "uses the operator 'EfficientNMS_TRT' of 'TRT'" in message


def test_functions_that_the_model_brings_itself_are_no_strangers(tmp_path: Path) -> None:
    opset = helper.make_opsetid("", 13)
    inner = helper.make_node("Identity", ["x"], ["y"])
    own = helper.make_function("mine", "Same", ["x"], ["y"], [inner], [opset])
    call = helper.make_node("Same", ["images"], ["z"], domain="mine")

    def bring(model: ModelProto) -> None:
        model.functions.append(own)
        model.graph.node.append(call)

    path = tmp_path / "a.onnx"
    path.write_bytes(changed(bring).SerializeToString())
    assert len(read_source(path).model.functions) == 1


def test_weights_that_claim_more_than_there_is(tmp_path: Path) -> None:
    def claim(model: ModelProto) -> None:
        model.graph.initializer[0].dims[:] = [1 << 20, 1 << 20]

    assert "claim 1099511627776 numbers" in refused(tmp_path / "a.onnx", changed(claim))


def test_files_and_graphs_out_of_proportion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "NODES_MAX", 10)
    assert "at most 10 are taken" in refused(tmp_path / "a.onnx", GOOD)
    monkeypatch.setattr(files, "FILE_BYTES_MAX", 1 << 20)
    assert "has 3 MiB; at most 1 are taken" in refused(tmp_path / "a.onnx", bytes(3 << 20))


def test_an_old_opset_is_converted_or_refused(tmp_path: Path) -> None:
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])
    node = helper.make_node("Squeeze", ["x"], ["y"], axes=[0])
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 8, 8])
    graph = helper.make_graph([node], "old", [value], [out])
    path = tmp_path / "a.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9)], ir_version=6)
    path.write_bytes(model.SerializeToString())
    assert read_source(path).opset == 13
    unknown = helper.make_node("NoSuchOperator", ["x"], ["z"])
    model.graph.node.append(unknown)
    assert "is written for opset 9" in refused(path, model)


@pytest.mark.parametrize(
    ("metadata", "names", "size"),
    [
        ({"names": "{0: 'a', 1: 'b'}", "imgsz": "[480, 640]"}, ("a", "b"), (480, 640)),
        ({"names": "['a', 'a']", "imgsz": "320"}, ("a", "a (1)"), (320, 320)),
        ({"names": "{1: 'a', 2: 'b'}", "imgsz": "[0, 1]"}, None, None),
        ({"names": "__import__('os').system('true')", "imgsz": "(1,2,3)"}, None, None),
        ({"names": "{" * 5000, "imgsz": "x"}, None, None),
        ({}, None, None),
    ],
)
def test_metadata_is_read_as_data(
    tmp_path: Path,
    metadata: dict[str, str],
    names: tuple[str, ...] | None,
    size: tuple[int, int] | None,
) -> None:
    tiny: Tiny = DETECTORS["yolov8"][0]()
    tiny.metadata = {**metadata, "license": "AGPL-3.0 License\n(see x)"}
    path = tmp_path / "a.onnx"
    path.write_bytes(write(tiny))
    source = read_source(path)
    assert (source.names, source.size_px) == (names, size)
    assert source.licence == "AGPL-3.0 License (see x)"


@given(st.lists(st.text(max_size=4), min_size=1, max_size=30))
def test_names_become_different_lines(names: list[str]) -> None:
    unique = unique_names(list(names))
    assert len(set(unique)) == len(names)
    assert all(name and "\n" not in name for name in unique)
    assert json.dumps(unique)


def test_names_cannot_command_a_terminal() -> None:
    assert unique_names(["\x1b[31mred\n", "\x07", "x" * 5000]) == ("[31mred", "class 1", "x" * 200)
