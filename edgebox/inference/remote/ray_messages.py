"""Messages between a box, its Ray process and the workers: a JSON header and raw buffers.

Nothing that a box receives is unpickled, so a worker cannot run code in the box's process; Ray
itself unpickles what workers answer, in the Ray process. A message is framed by the length of its
header (4 bytes, big-endian); the header has the length of each buffer.
"""

import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from edgebox.domain.requests import DropReason
from edgebox.inference.encoded_pictures import Refused
from edgebox.inference.executor_thread import BatchResult
from edgebox.inference.features import Features
from edgebox.inference.tensors import EncodedPicture, ModelInput
from edgebox.vision.decoding import insist_on
from edgebox.vision.detections import Detections

Buffer = bytes | memoryview
_HEADER_LENGTH = struct.Struct("!I")
_SIZES = "buffer_bytes"


@dataclass(frozen=True, slots=True)
class Message:
    """What is sent at once."""

    header: Mapping[str, Any]
    buffers: Sequence[Buffer] = ()


def send(connection: socket.socket, message: Message) -> None:
    """Send a message; blocks.

    Raises:
        OSError: the other side is gone.
    """
    sizes = [len(memoryview(each).cast("B")) for each in message.buffers]
    header = orjson.dumps({**message.header, _SIZES: sizes})
    connection.sendall(b"".join((_HEADER_LENGTH.pack(len(header)), header, *message.buffers)))


def receive(connection: socket.socket) -> Message | None:
    """Receive a message; blocks. None: the other side has ended.

    Raises:
        OSError: the connection broke.
    """
    prefix = _exactly(connection, _HEADER_LENGTH.size)
    if prefix is None:
        return None
    content = _exactly(connection, *_HEADER_LENGTH.unpack(prefix))
    if content is None:
        return None
    header = orjson.loads(content)
    buffers = []
    for size in header.pop(_SIZES):
        buffer = _exactly(connection, size)
        if buffer is None:
            return None
        buffers.append(buffer)
    return Message(header, buffers)


def _exactly(connection: socket.socket, count: int) -> bytes | None:
    content = connection.recv(count, socket.MSG_WAITALL) if count else b""
    while len(content) < count:
        more = connection.recv(count - len(content), socket.MSG_WAITALL)
        if not more:
            return None
        content += more
    return content


# -- batches ----------------------------------------------------------------------------------


def encode_inputs(inputs: Sequence[ModelInput]) -> tuple[list[dict[str, Any]], list[Buffer]]:
    """Return the inputs of a batch as entries of a header, and their buffers."""
    entries: list[dict[str, Any]] = []
    buffers: list[Buffer] = []
    for each in inputs:
        if isinstance(each, EncodedPicture):
            entries.append({"picture": [each.width_px, each.height_px]})
            buffers.append(each.jpeg)
        elif isinstance(each, tuple):
            entries.append({"features": [_described(tensor) for tensor in each]})
            buffers += [_bytes_of(tensor) for tensor in each]
        else:
            entries.append({"canvas": list(each.shape)})
            buffers.append(_bytes_of(each))
    return entries, buffers


def decode_inputs(
    entries: Sequence[Mapping[str, Any]], buffers: Sequence[Buffer]
) -> list[ModelInput]:
    """Return the inputs of a batch."""
    rest = iter(buffers)
    inputs: list[ModelInput] = []
    for entry in entries:
        if "picture" in entry:
            width_px, height_px = entry["picture"]
            inputs.append(EncodedPicture(next(rest), width_px, height_px))
        elif "features" in entry:
            inputs.append(tuple(_tensor(next(rest), of) for of in entry["features"]))
        else:
            inputs.append(np.frombuffer(next(rest), np.uint8).reshape(entry["canvas"]))
    return inputs


def encode_result(result: BatchResult) -> Message:
    """Return the result of a batch as a message; its instants stay behind, its duration goes."""
    found = result.detections
    embeddings = [each.embeddings for each in found if each.embeddings is not None]
    arrays: list[NDArray[Any]] = [
        np.concatenate([each.boxes for each in found]),
        np.concatenate([each.scores for each in found]),
        np.concatenate([each.labels for each in found]),
    ]
    if embeddings:
        arrays.append(np.concatenate(embeddings))
    arrays += result.features
    header = {
        "counts": [len(each) for each in found],
        "embeddings": bool(embeddings),
        "arrays": [_described(array) for array in arrays],
        "refused": [[row, of.reason, of.text] for row, of in result.refused.items()],
        "took_ns": result.took_ns,
    }
    return Message(header, [_bytes_of(array) for array in arrays])


def decode_result(
    message: Message, label_count: int, started_ns: int, ended_ns: int
) -> BatchResult:
    """Return the result of a batch, with instants on the box's clock.

    Raises:
        ValueError, KeyError, TypeError: it is not a result of a family with so many labels.
    """
    header = message.header
    arrays = [
        _tensor(buffer, of).copy()  # what others get may be written to
        for buffer, of in zip(message.buffers, header["arrays"], strict=True)
    ]
    boxes, scores, labels, *rest = arrays
    if [each.dtype for each in arrays[:3]] != [np.float32, np.float32, np.int64]:
        raise ValueError(f"it has detections of {[each.dtype.name for each in arrays[:3]]}")
    embeddings = rest.pop(0) if header["embeddings"] else None
    insist_on(Detections(boxes, scores, labels, embeddings), label_count)
    counts = header["counts"]
    if min(counts, default=0) < 0 or sum(counts) != len(scores):
        raise ValueError(f"it counts {sum(counts)} detections and has {len(scores)}")
    if any(len(each) < len(counts) for each in rest):
        raise ValueError(f"it has not the features of {len(counts)} pictures")
    found, at = [], 0
    for count in counts:
        rows = slice(at, at + count)
        own = None if embeddings is None else embeddings[rows]
        found.append(Detections(boxes[rows], scores[rows], labels[rows], own))
        at += count
    refused = {row: Refused(DropReason(reason), text) for row, reason, text in header["refused"]}
    features: Features = tuple(rest)
    return BatchResult(found, started_ns, ended_ns, features, refused)


def _described(array: NDArray[Any]) -> dict[str, Any]:
    return {"dtype": array.dtype.str, "shape": list(array.shape)}


def _bytes_of(array: NDArray[Any]) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _tensor(buffer: Buffer, described: Mapping[str, Any]) -> NDArray[Any]:
    dtype = np.dtype(described["dtype"])
    if dtype.hasobject:
        raise ValueError(f"{described['dtype']} is not a type of numbers")
    return np.frombuffer(buffer, dtype).reshape(described["shape"])
