"""Tensors of the Open Inference Protocol, as a client writes and reads them."""

from contextlib import suppress
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as some
from numpy.typing import NDArray

from edgebox.inference.remote.binary_tensors import (
    InputTensor,
    ProtocolError,
    infer_request,
    infer_response,
    unpack_elements,
)

KINDS = {
    "BOOL": "?", "UINT8": "u1", "INT64": "<i8", "FP16": "<f2", "FP32": "<f4", "FP64": "<f8",
}  # fmt: skip
arrays = st.sampled_from(sorted(KINDS)).flatmap(
    lambda kind: st.tuples(
        st.just(kind), some.arrays(KINDS[kind], some.array_shapes(min_dims=1, max_dims=4))
    )
)


def response(*tensors: tuple[str, NDArray[Any]], in_json: bool = False) -> tuple[bytes, str | None]:
    """Return a response as the protocol describes it, and its header."""
    described, behind = [], b""
    for at, (kind, array) in enumerate(tensors):
        entry: dict[str, Any] = {"name": f"t{at}", "datatype": kind, "shape": array.shape}
        if in_json:
            entry["data"] = array.reshape(-1).tolist()
        else:
            entry["parameters"] = {"binary_data_size": array.nbytes}
            behind += array.tobytes()
        described.append(entry)
    head = orjson.dumps({"model_name": "m", "outputs": described})
    return head + behind, None if in_json else str(len(head))


@given(st.lists(arrays, min_size=1, max_size=3))
def test_outputs_are_read_as_they_were_written(tensors: list[tuple[str, NDArray[Any]]]) -> None:
    found = infer_response(*response(*tensors)).outputs
    assert list(found) == [f"t{at}" for at in range(len(tensors))]
    for (_, array), got in zip(tensors, found.values(), strict=True):
        assert isinstance(got, np.ndarray)
        assert got.dtype == array.dtype
        np.testing.assert_array_equal(got, array)


@given(st.lists(st.integers(-(2**53), 2**53), max_size=6), st.lists(st.text(), max_size=3))
def test_outputs_may_be_json(numbers: list[int], texts: list[str]) -> None:
    body, header = response(("INT64", np.array(numbers, np.int64)), in_json=True)
    found = infer_response(body, header).outputs["t0"]
    assert isinstance(found, np.ndarray)
    assert found.tolist() == numbers
    described = {"name": "x", "datatype": "BYTES", "shape": [len(texts)], "data": texts}
    body = orjson.dumps({"outputs": [described]})
    assert infer_response(body, None).outputs["x"] == [text.encode() for text in texts]


def test_parameters_of_an_output_may_be_null() -> None:
    described = {"name": "x", "datatype": "FP32", "shape": [2], "parameters": None, "data": [1, 2]}
    found = infer_response(orjson.dumps({"outputs": [described]}), None).outputs["x"]
    assert isinstance(found, np.ndarray)
    assert found.tolist() == [1, 2]


@given(arrays, st.lists(st.binary(max_size=9), max_size=4))
def test_a_request_says_where_each_input_is(
    numbers: tuple[str, NDArray[Any]], elements: list[bytes]
) -> None:
    kind, array = numbers
    inputs = [InputTensor.of_array("a", kind, array), InputTensor.of_elements("b", elements)]
    head, binary = infer_request(inputs, ["out"], {"timeout": 5})
    document = orjson.loads(head)
    first, second = document["inputs"]
    assert first["shape"] == list(array.shape)
    assert document["parameters"] == {"binary_data_output": True, "timeout": 5}
    assert document["outputs"] == [{"name": "out", "parameters": {"binary_data": True}}]
    behind = b"".join(binary)
    size = first["parameters"]["binary_data_size"]
    assert size + second["parameters"]["binary_data_size"] == len(behind)
    got = np.frombuffer(behind[:size], KINDS[kind]).reshape(array.shape)
    np.testing.assert_array_equal(got, array)
    assert unpack_elements(memoryview(behind)[size:], len(elements)) == elements


@given(arrays, st.data())
def test_whatever_is_damaged_is_one_error(
    numbers: tuple[str, NDArray[Any]], data: st.DataObject
) -> None:
    body, header = response(numbers)
    cut = data.draw(st.integers(0, len(body) - 1))
    with pytest.raises(ProtocolError):
        infer_response(body[:cut], header)
    at, byte = data.draw(st.integers(0, int(header or 0) - 1)), data.draw(st.integers(0, 255))
    with suppress(ProtocolError):  # what is readable nevertheless may be read
        infer_response(body[:at] + bytes([byte]) + body[at + 1 :], header)


@pytest.mark.parametrize(
    "document",
    [
        [],
        {},
        {"outputs": 1},
        {"outputs": [{"name": "x", "datatype": "FP99", "shape": [1], "data": [1]}]},
        {"outputs": [{"name": "x", "datatype": "FP32", "shape": [2], "data": [1]}]},
        {"outputs": [{"name": "x", "datatype": "FP32", "shape": ["n"], "data": [1]}]},
        {"outputs": [{"name": "x", "datatype": "FP32", "shape": [1]}]},
    ],
)
def test_what_is_no_answer_is_one_error(document: object) -> None:
    with pytest.raises(ProtocolError):
        infer_response(orjson.dumps(document), None)


@pytest.mark.parametrize("header", ["x", "-1", "100"])
def test_a_wrong_length_of_the_json_is_one_error(header: str) -> None:
    with pytest.raises(ProtocolError):
        infer_response(b"{}", header)


@pytest.mark.parametrize(
    ("size", "behind", "why"),
    [
        (8, 12, "4 bytes beyond its outputs"),
        (8, 4, "output x is said to have 8 bytes"),
        (-4, 8, "output x is said to have -4 bytes"),
        ("8", 8, "cannot be read"),
    ],
)
def test_outputs_are_all_that_is_behind_the_json(size: object, behind: int, why: str) -> None:
    parameters = {"binary_data_size": size}
    output = {"name": "x", "datatype": "FP32", "shape": [2], "parameters": parameters}
    head = orjson.dumps({"outputs": [output]})
    with pytest.raises(ProtocolError, match=why):
        infer_response(head + bytes(behind), str(len(head)))
