"""The tensors and rows of the ZeroMQ protocol: what is no picture is refused, boxes are shares."""

import json
import sys
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.errors import EdgeboxError, InvalidInputError
from edgebox.vision.detections import Detections
from edgebox.web.web_context import WebContext
from edgebox.web.zmq_detector import (
    COLUMNS,
    IN_FLIGHT_MAX,
    ROWS,
    SCORE_MIN,
    ZmqDetector,
    picture_of,
    rows_of,
)


@given(st.integers(1, 40), st.integers(1, 40), st.booleans())
def test_both_orders_of_a_tensor_are_the_same_picture(
    height: int, width: int, channels_first: bool
) -> None:
    rgb = np.arange(height * width * 3, dtype=np.int64).astype(np.uint8).reshape(height, width, 3)
    tensor = rgb.transpose(2, 0, 1) if channels_first and width != 3 else rgb
    header = {"shape": [1, *tensor.shape], "dtype": "uint8", "model_type": "ssd"}
    found = picture_of(header, tensor.tobytes(order="C"))
    assert np.array_equal(found, rgb)
    assert found.flags.c_contiguous


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"shape": [1, 4, 4, 3]}, "header.dtype"),
        ({"shape": [1, 4, 4, 3], "dtype": "float32"}, "must be uint8, not 'float32'"),
        ({"dtype": "uint8"}, "header.shape must be"),
        ({"shape": "1443", "dtype": "uint8"}, "header.shape must be"),
        ({"shape": [2, 4, 4, 3], "dtype": "uint8"}, "header.shape must be"),
        ({"shape": [1, 4, 4, 4], "dtype": "uint8"}, "header.shape must be"),
        ({"shape": [1, -4, -4, 3], "dtype": "uint8"}, "header.shape must be"),
        ({"shape": [1, 10**9, 1, 3], "dtype": "uint8"}, "header.shape must be"),
        ({"shape": [1, True, 16, 3], "dtype": "uint8"}, "header.shape must be"),
        ({"shape": [1, 4, 5, 3], "dtype": "uint8"}, "has 48 bytes; header.shape needs 60"),
    ],
)
def test_what_is_no_picture_is_told(header: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        picture_of(header, bytes(48))


async def test_a_refused_picture_is_held_by_nobody() -> None:
    told: list[str] = []
    refusals = SimpleNamespace(add_request=lambda _, error: told.append(str(error)))
    context = SimpleNamespace(
        config=SimpleNamespace(zmq_detector=SimpleNamespace(endpoint="ipc:///frigate")),
        box=SimpleNamespace(refusals=refusals),
    )
    detector = ZmqDetector(cast(WebContext, context))
    detector._in_flight = IN_FLIGHT_MAX
    sent: list[list[bytes]] = []

    async def send_multipart(frames: list[bytes]) -> None:
        sent.append(frames)

    header = json.dumps({"shape": [1, 4, 4, 3], "dtype": "uint8"}).encode()
    tensor = bytes(range(48))
    references = sys.getrefcount(tensor)
    for _ in range(3):
        socket = cast(Any, SimpleNamespace(send_multipart=send_multipart))
        await detector._reply(socket, [b"client", b""], [header, tensor])
    assert len(told) == len(sent) == 3
    assert all(b"error" in frames[2] for frames in sent)
    assert sys.getrefcount(tensor) == references


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=5),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["shape", "dtype", "x"]), json_values), st.binary())
def test_no_header_breaks_the_reader(header: dict[str, Any], tensor: bytes) -> None:
    try:
        picture = picture_of(header, tensor)
    except EdgeboxError:
        return
    assert picture.nbytes == len(tensor)


@given(st.lists(st.floats(0, 1, width=32), max_size=40))
def test_rows_are_the_best_detections_in_parts_of_the_picture(scores: list[float]) -> None:
    count = len(scores)
    boxes = np.tile(np.array([[64.0, 36.0, 320.0, 180.0]], np.float32), (count, 1))
    labels = np.arange(count, dtype=np.int64)
    found = Detections(boxes, np.array(scores, np.float32), labels)
    rows = rows_of(found, (640, 360))
    assert rows.shape == (ROWS, COLUMNS)
    assert rows.dtype == np.float32
    wanted = sorted(
        (s for s in np.array(scores, np.float32).tolist() if s >= SCORE_MIN), reverse=True
    )
    filled = min(ROWS, len(wanted))
    assert rows[:filled, 1].tolist() == wanted[:filled]
    assert not rows[filled:].any()
    for row in rows[:filled]:
        assert np.float32(scores[int(row[0])]) == row[1]
        assert row[2:].tolist() == pytest.approx([0.1, 0.1, 0.5, 0.5])
