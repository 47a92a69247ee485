"""Messages between a box and its Ray workers: what arrives is what was sent."""

import math
import socket
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from edgebox.domain.requests import DropReason
from edgebox.inference.encoded_pictures import Refused
from edgebox.inference.executor_thread import BatchResult
from edgebox.inference.remote.ray_messages import (
    Message,
    decode_inputs,
    decode_result,
    encode_inputs,
    encode_result,
    receive,
    send,
)
from edgebox.inference.tensors import EncodedPicture, ModelInput
from edgebox.vision.detections import Detections

SIDES = st.integers(1, 6)
FLOATS = st.floats(-1e6, 1e6, width=32)


def floats(*shape: int) -> st.SearchStrategy[NDArray[np.float32]]:
    return arrays.arrays(np.float32, shape, elements=FLOATS)


CANVASES = st.tuples(SIDES, SIDES).flatmap(lambda side: arrays.arrays(np.uint8, (*side, 3)))


def features(pictures: int) -> st.SearchStrategy[list[NDArray[np.float32]]]:
    return st.lists(st.tuples(SIDES, SIDES).flatmap(lambda of: floats(pictures, *of)), min_size=1)


FEATURES = SIDES.flatmap(features)
PICTURES = st.builds(EncodedPicture, st.binary(max_size=200), SIDES, SIDES)
INPUTS: st.SearchStrategy[list[ModelInput]] = st.lists(
    st.one_of(CANVASES, FEATURES.map(tuple), PICTURES), max_size=5
)


@st.composite
def found(draw: st.DrawFn, embedding_length: int) -> Detections:
    n = draw(st.integers(0, 4))
    labels = draw(arrays.arrays(np.int64, (n,), elements=st.integers(0, 90)))
    embeddings = draw(floats(n, embedding_length)) if embedding_length else None
    scores = draw(arrays.arrays(np.float32, (n,), elements=st.floats(0, 1, width=32)))
    return Detections(draw(floats(n, 4)), scores, labels, embeddings)


@st.composite
def results(draw: st.DrawFn) -> BatchResult:
    length = draw(st.sampled_from([0, 3]))
    detections = draw(st.lists(found(length), min_size=1, max_size=5))
    given_features = draw(st.one_of(st.just([]), features(len(detections))))
    refused = {0: Refused(DropReason.INVALID, "no JPEG")} if draw(st.booleans()) else {}
    return BatchResult(detections, 5, 12, tuple(given_features), refused)


def through_a_socket(message: Message) -> Message | None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        thread = threading.Thread(target=send, args=(ours, message))
        thread.start()
        received = receive(theirs)
        thread.join()
    return received


def same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


@given(INPUTS)
def test_inputs_arrive_as_they_were_sent(inputs: list[ModelInput]) -> None:
    entries, buffers = encode_inputs(inputs)
    message = through_a_socket(Message({"inputs": entries}, buffers))
    assert message is not None
    got = decode_inputs(message.header["inputs"], message.buffers)
    assert len(got) == len(inputs)
    assert all(map(same, inputs, got))


@given(results())
def test_results_arrive_as_they_were_sent_with_the_instants_of_the_box(result: BatchResult) -> None:
    message = through_a_socket(encode_result(result))
    assert message is not None
    got = decode_result(message, 91, 100, 250)
    assert (got.started_ns, got.ended_ns) == (100, 250)
    assert got.refused == result.refused
    assert same(got.features, result.features)
    assert len(got.detections) == len(result.detections)
    for one, other in zip(result.detections, got.detections, strict=True):
        assert same(one.boxes, other.boxes)
        assert same(one.scores, other.scores)
        assert same(one.labels, other.labels)
        assert (one.embeddings is None) == (other.embeddings is None)
        if one.embeddings is not None:
            assert same(one.embeddings, other.embeddings)


@given(results(), st.data())
def test_a_message_that_is_cut_off_is_none(result: BatchResult, data: st.DataObject) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        send(ours, encode_result(result))
        content = theirs.recv(1 << 20)
        ours.sendall(content[: data.draw(st.integers(0, len(content) - 1))])
        ours.shutdown(socket.SHUT_WR)
        assert receive(theirs) is None


def test_a_worker_cannot_send_objects() -> None:
    """What would be unpickled could run code on the box."""
    array = {"dtype": "|O", "shape": [1]}
    header = {"counts": [], "embeddings": False, "arrays": [array] * 3, "refused": []}
    with pytest.raises(ValueError, match="not a type of numbers"):
        decode_result(Message(header, [bytes(8)] * 3), 1, 0, 1)


@pytest.mark.parametrize(
    ("arrays_given", "changes", "why"),
    [
        ({0: [[1, 2, math.nan, 4]]}, {}, "boxes that are no finite numbers"),
        ({1: [1.5]}, {}, "scores from 1.5 to 1.5"),
        ({2: [3]}, {}, "label 3, but there are 3 labels"),
        ({3: [[math.inf]]}, {}, "embeddings that are no finite numbers"),
        ({2: np.array([1.0])}, {}, "detections of"),
        ({}, {"counts": [2]}, "it counts 2 detections and has 1"),
        ({}, {"counts": [0]}, "it counts 0 detections and has 1"),
        ({}, {"counts": [-1, 2]}, "it counts"),
        ({}, {"counts": [1, 0]}, "it has not the features of 2 pictures"),
    ],
)
def test_what_no_worker_can_have_found_is_refused(
    arrays_given: dict[int, Any], changes: dict[str, Any], why: str
) -> None:
    box, score, embedding = (np.ones(of, np.float32) for of in ((1, 4), 1, (1, 1)))
    one = Detections(box, score, np.ones(1, np.int64), embedding)
    message = encode_result(BatchResult([one], 0, 1, (np.zeros((1, 1, 1), np.float32),)))
    decode_result(message, 3, 0, 1)
    header, buffers = {**message.header, **changes}, list(message.buffers)
    header["arrays"] = list(header["arrays"])
    for at, values in arrays_given.items():
        dtype = np.dtype(header["arrays"][at]["dtype"])
        array = np.asarray(values, None if isinstance(values, np.ndarray) else dtype)
        header["arrays"][at] = {"dtype": array.dtype.str, "shape": list(array.shape)}
        buffers[at] = array.tobytes()
    with pytest.raises(ValueError, match=why):
        decode_result(Message(header, buffers), 3, 0, 1)
