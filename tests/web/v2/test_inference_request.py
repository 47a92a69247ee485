"""Requests of the Open Inference Protocol from bytes: what is understood, one clear error each."""

import base64
import json
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from edgebox.domain.errors import EdgeboxError, InvalidInputError, TooLargeError
from edgebox.media.jpeg import encode
from edgebox.web.v2.inference_request import JSON_BYTES_MAX, JSON_ITEMS_MAX, read_request
from tests.end_to_end.wire import jpeg_claiming

FRAME_BYTES_MAX = 400_000
JPEG = encode(np.full((36, 64, 3), 90, np.uint8))
BASE64 = base64.b64encode(JPEG).decode()


def element(jpeg: bytes) -> bytes:
    return struct.pack("<I", len(jpeg)) + jpeg


def asking(*inputs: dict[str, Any], **fields: Any) -> bytes:
    return json.dumps({"inputs": inputs, **fields}).encode()


def image(**changed: Any) -> dict[str, Any]:
    made = {"name": "image", "datatype": "BYTES", "shape": [1], "data": [BASE64], **changed}
    return {name: value for name, value in made.items() if value is not None}


def pixels(data: object, *shape: int) -> dict[str, Any]:
    return {"name": "pixels", "datatype": "UINT8", "shape": shape, "data": data}


def behind(size: object = None, **changed: Any) -> bytes:
    """Return a request whose one image lies behind it, of a size that is said."""
    return asking(image(data=None, parameters={"binary_data_size": size}, **changed))


NESTED = asking(image()).replace(b'["', b"[" * 3000 + b'"')
SHORT = len(behind(10))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the request must be JSON"),
        (b"\xff\xfe", "the request must be JSON"),
        (b"[]", "the request must be a JSON object, not []"),
        (b"{}", "request.inputs is missing"),
        (b'{"inputs": [NaN]}', "the request must be JSON"),
        (b'{"inputs": ' + b"[" * 100_000, "the request must be JSON"),
        (NESTED, "the request must be JSON"),
        (asking(), "there must be one input, image or pixels, not 0"),
        (asking(image(), pixels([0] * 3, 1, 1, 1, 3)), "one input, image or pixels, not 2"),
        (b'{"inputs": [7]}', "inputs[0] must be an object, not 7"),
        (asking(image(name="picture")), "no input \"picture\"; there are image and pixels"),
        (asking(image(name=7)), "inputs[0].name must be a text"),
        (asking(image(datatype="FP32")), "input image must be BYTES, not \"FP32\""),
        (asking(image(datatype=None)), "inputs[0].datatype is missing"),
        (asking(image(shape=[])), "its shape must be [n] or [n, 1], not []"),
        (asking(image(shape=[1, 2])), "its shape must be [n] or [n, 1], not [1, 2]"),
        (asking(image(shape=[-1])), "its shape must be whole numbers from 1"),
        (asking(image(shape=[True])), "its shape must be whole numbers from 1"),
        (asking(image(shape=[1.0])), "its shape must be whole numbers from 1"),
        (asking(image(shape=[2**63])), "its shape must be whole numbers from 1"),
        (asking(image(shape="1")), "inputs[0].shape must be an array of at most 4 items"),
        (asking(image(shape=[33], data=["x"] * 33)), "33 pictures; at most 32 are taken at once"),
        (asking(image(shape=[2])), "it has 1 elements; its shape needs 2"),
        (asking(image(data=None)), "must have either data or binary_data_size"),
        (asking(image(parameters={"binary_data_size": 1})), "either data or binary_data_size"),
        (asking(image(data=["not base64!"])), "element 0 must be a JPEG in base64"),
        (asking(image(data=["\ud83d\ude00"])), "element 0 must be a JPEG in base64"),
        (asking(image(data=[7])), "element 0 must be a JPEG in base64"),
        (asking(image(data=[[[BASE64]]])), "element 0 must be a JPEG in base64"),
        (asking(image(data=[[BASE64], BASE64], shape=[2, 1])), "nested in parts only"),
        (asking(image(data=["aGVsbG8="])), "picture 0: not a JPEG"),
        (
            asking(image(data=[base64.b64encode(jpeg_claiming(30_000, 30_000)).decode()])),
            "picture 0: a JPEG of 30000 × 30000 px",
        ),
        (asking(image(parameters={"shared_memory_region": "x"})), "shared memory is not offered"),
        (asking(pixels([0] * 3, 1, 1, 3)), "its shape must be [n, height, width, 3]"),
        (asking(pixels([0] * 4, 1, 1, 1, 4)), "its shape must be [n, height, width, 3]"),
        (asking(pixels([0] * 5, 1, 1, 2, 3)), "it has 5 values; its shape [1, 1, 2, 3] needs 6"),
        (asking(pixels([0], 1, 8192, 8192, 3)), "pictures of 8192 × 8192 px; at most 16.8 million"),
        (asking(pixels([0, 0, 256], 1, 1, 1, 3)), "whole numbers from 0 to 255"),
        (asking(pixels([0, 0, -1], 1, 1, 1, 3)), "whole numbers from 0 to 255"),
        (asking(pixels([0, 0, 0.5], 1, 1, 1, 3)), "whole numbers from 0 to 255"),
        (asking(pixels([0, 0, True], 1, 1, 1, 3)), "whole numbers from 0 to 255"),
        (asking(pixels(["0", "0", "0"], 1, 1, 1, 3)), "whole numbers from 0 to 255"),
        (asking(pixels([[[[[0]]]]], 1, 1, 1, 3)), "whole numbers from 0 to 255"),
        (asking(pixels("000", 1, 1, 1, 3)), "inputs[0].data must be an array"),
        (asking(image(), outputs=[{"name": "masks"}]), "no output \"masks\"; there are boxes, "),
        (asking(image(), outputs=[{"name": "boxes"}] * 2), "output boxes is asked for twice"),
        (asking(image(), outputs=[{"name": "boxes"}] * 9), "output boxes is asked for twice"),
        (asking(image(), outputs=[{"name": "boxes"}] * 257), "request.outputs must be an array"),
        (asking(image(), outputs=["boxes"]), "outputs[0] must be an object, not \"boxes\""),
        (
            asking(image(), outputs=[{"name": "boxes", "parameters": {"classification": 3}}]),
            "classification is not offered",
        ),
        (asking(image(), parameters=[]), "request.parameters must be an object"),
        (asking(image(), parameters={"deadline": 5}), "there is no parameter \"deadline\""),
        (asking(image(), parameters={"deadline_ms": "soon"}), "deadline_ms must be a number"),
        (asking(image(), parameters={"deadline_ms": 1e9}), "deadline_ms must be a number from 1"),
        (asking(image(), parameters={"timeout": -1}), "timeout must be a number from 0"),
        (asking(image(), parameters={"score_min": 2}), "score_min must be a number from 0 to 1"),
        (asking(image(), parameters={"boxes": "cxcywh"}), "boxes must be xyxy or xywh"),
        (asking(image(), parameters={"app": "a b"}), "app must be 1 to 64 letters, digits"),
        (asking(image(), parameters={"app": 7}), "app must be 1 to 64 letters, digits"),
        (asking(image(), parameters={"binary_data_output": 1}), "must be true or false"),
        (asking(image(), id=7), "request.id must be a text"),
        (asking(image(), id="x" * 300), "request.id must be a text of 0 to 256"),
    ],
)  # fmt: skip
def test_wrong_json_is_told_what_is_wrong(body: bytes, message: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        read_request(body, None, FRAME_BYTES_MAX)
    assert message in str(refused.value)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    ("head", "binary", "length", "status", "message"),
    [
        (behind(10), b"x" * 10, "-1", 400, "must be a number of bytes, not \"-1\""),
        (behind(10), b"x" * 10, "", 400, "must be a number of bytes"),
        (behind(10), b"x" * 10, "1e3", 400, "must be a number of bytes"),
        (behind(10), b"x" * 10, "٣", 400, "must be a number of bytes"),
        (behind(10), b"x" * 10, "9" * 400, 400, "must be a number of bytes"),
        (behind(10), b"x" * 10, "999999999999", 400, "but the body has only"),
        (behind(10), b"x" * 10, "0", 400, "the request must be JSON"),
        (behind(10), b"x" * 10, "5", 400, "the request must be JSON"),
        (behind(10), b"x" * 10, str(SHORT + 1), 400, "the request must be JSON"),
        (behind(-1), b"x" * 10, None, 400, "binary_data_size must be an integer from 0"),
        (behind(2**70), b"x" * 10, None, 400, "binary_data_size must be an integer from 0"),
        (behind(1.5), b"x" * 10, None, 400, "binary_data_size must be an integer from 0"),
        (behind(11), b"x" * 10, None, 400, "said to have 11 bytes of binary data; 10 are left"),
        (behind(9), element(b"12345") + b"x", None, 400, "1 bytes of binary data are left"),
        (behind(0), b"", None, 400, "it has 0 elements; its shape needs 1"),
        (behind(3), b"abc", None, 400, "it ends within the length of element 0"),
        (behind(4), b"\xff" * 4, None, 400, "element 0 is said to have 4294967295 bytes"),
        (behind(9), element(b"12345"), None, 400, "picture 0: not a JPEG"),
        (behind(18), element(b"12345") * 2, None, 400, "more than the 1 elements of its shape"),
        (behind(6), element(JPEG[:2]), None, 400, "picture 0: a truncated JPEG"),
        (
            behind(FRAME_BYTES_MAX + 5), element(bytes(FRAME_BYTES_MAX + 1)), None,
            413, "picture 0 has 400001 bytes; at most 400000 are taken",
        ),
        (b"[" + b"0," * JSON_ITEMS_MAX + b"0]", b"", None, 413, "more than 131072 items"),
        (b" " * (JSON_BYTES_MAX + 1), b"", None, 413, "the JSON part has 1048577 bytes"),
    ],
)  # fmt: skip
def test_wrong_lengths_are_told_what_is_wrong(
    head: bytes, binary: bytes, length: str | None, status: int, message: str
) -> None:
    said = str(len(head)) if length is None else length
    with pytest.raises(EdgeboxError) as refused:
        read_request(head + binary, said, FRAME_BYTES_MAX)
    assert message in str(refused.value)
    assert refused.value.http_status == status


@given(
    st.lists(st.sampled_from([JPEG, jpeg_claiming(8, 9)]), min_size=1, max_size=32), st.booleans()
)
def test_jpegs_come_out_as_they_went_in(jpegs: list[bytes], column: bool) -> None:
    shape = [len(jpegs), 1] if column else [len(jpegs)]
    packed = b"".join(map(element, jpegs))
    head = behind(len(packed), shape=shape)
    texts: list[Any] = [base64.b64encode(jpeg).decode() for jpeg in jpegs]
    in_json = asking(image(shape=shape, data=[[text] for text in texts] if column else texts))
    for body in (
        read_request(head + packed, str(len(head)), FRAME_BYTES_MAX),
        read_request(in_json, None, FRAME_BYTES_MAX),
    ):
        assert [bytes(picture) for picture in body.pictures] == jpegs
        assert body.sizes_px == tuple((64, 36) if jpeg == JPEG else (8, 9) for jpeg in jpegs)


@given(
    arrays.arrays(
        np.uint8, st.tuples(st.integers(1, 4), st.integers(1, 9), st.integers(1, 9), st.just(3))
    ),
    st.booleans(),
)
def test_pixels_come_out_as_they_went_in(rgb: NDArray[np.uint8], nested: bool) -> None:
    data = rgb.tolist() if nested else rgb.reshape(-1).tolist()
    made = pixels(data, *rgb.shape)
    behind_it = {**made, "parameters": {"binary_data_size": rgb.nbytes}}
    del behind_it["data"]
    head = asking(behind_it)
    for body in (
        read_request(asking(made), None, FRAME_BYTES_MAX),
        read_request(head + rgb.tobytes(), str(len(head)), FRAME_BYTES_MAX),
    ):
        assert (np.stack([np.asarray(picture) for picture in body.pictures]) == rgb).all()
        assert set(body.sizes_px) == {(rgb.shape[2], rgb.shape[1])}


@given(st.binary(max_size=80), st.one_of(st.none(), st.text(max_size=6), st.integers(-5, 90)))
def test_any_bytes_are_refused_and_nothing_else(noise: bytes, length: object) -> None:
    head = behind(len(noise))
    for body in (noise, head + noise, head[:-3] + noise):
        with pytest.raises((InvalidInputError, TooLargeError)):
            read_request(body, None if length is None else str(length), FRAME_BYTES_MAX)


def test_of_requests_with_one_json_part_each_has_its_own_picture() -> None:
    part = asking({**pixels(None, 1, 2, 2, 3), "parameters": {"binary_data_size": 12}}, id="7")
    part = part.replace(b'"data": null, ', b"")
    for value in (3, 200):
        read = read_request(part + bytes([value] * 12), str(len(part)), FRAME_BYTES_MAX)
        [picture] = read.pictures
        assert isinstance(picture, np.ndarray)
        assert picture.shape == (2, 2, 3)
        assert set(picture.flat) == {value}
        assert read.id == "7"
    with pytest.raises(InvalidInputError, match="12 bytes of binary data; 11 are left"):
        read_request(part + bytes(11), str(len(part)), FRAME_BYTES_MAX)


def test_parameters_have_defaults_and_a_timeout_is_a_deadline() -> None:
    plain = read_request(asking(image()), None, FRAME_BYTES_MAX)
    assert (plain.id, plain.deadline_ms, plain.score_min, plain.boxes) == (None, 1000, 0.3, "xyxy")
    assert plain.app == "http"
    named = read_request(asking(image(), parameters={"app": "night"}), None, FRAME_BYTES_MAX)
    assert named.app == "night"
    assert not any(wanted.binary for wanted in plain.outputs)

    def deadline_ms(**parameters: object) -> float:
        body = read_request(asking(image(), parameters=parameters), None, FRAME_BYTES_MAX)
        return body.deadline_ms

    assert deadline_ms(timeout=250_000) == 250
    assert deadline_ms(timeout=0) == 1000
    assert deadline_ms(timeout=250_000, deadline_ms=40) == 40
    assert deadline_ms(priority=3, sequence_id=7, triton_enable_empty_final_response=True) == 1000
