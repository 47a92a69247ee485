"""Writes ONNX files by hand, so that models can be built where the onnx package is not installed.

The format is protobuf: every function returns the bytes of one message, to be put into the next.
Field numbers are those of onnx.proto (ModelProto, GraphProto, NodeProto, AttributeProto,
TensorProto). Limits: only what the models here need; ONNX Runtime is who checks them.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

FLOAT, UINT8, INT64, BOOL = 1, 2, 7, 9
"""Types of tensors, as TensorProto numbers them."""

_TYPES = {"float32": FLOAT, "uint8": UINT8, "int64": INT64, "bool": BOOL}
_AS_INT, _AS_GRAPH, _AS_INTS = 2, 5, 7
"""Types of attributes, as AttributeProto numbers them."""

Dims = Sequence[int | str]
"""Axes of a tensor: a fixed length, or a name where any will do. None at all: a scalar."""

Attribute = int | Sequence[int] | bytes
"""A number, numbers, or a graph's bytes."""


def tensor(name: str, values: NDArray[np.generic]) -> bytes:
    """Return a constant, which nodes read by its name."""
    little = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
    dims = b"".join(_number(1, length) for length in values.shape)
    kind = _number(2, _TYPES[values.dtype.name])
    return dims + kind + _bytes(8, name) + _bytes(9, little.tobytes())


def value(name: str, kind: int, dims: Dims) -> bytes:
    """Return what is known of an input or output."""
    axes = b"".join(
        _bytes(1, _number(1, dim) if isinstance(dim, int) else _bytes(2, dim)) for dim in dims
    )
    return _bytes(1, name) + _bytes(2, _bytes(1, _number(1, kind) + _bytes(2, axes)))


def node(
    kind: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Attribute
) -> bytes:
    """Return one operator."""
    return (
        b"".join(_bytes(1, name) for name in inputs)
        + b"".join(_bytes(2, name) for name in outputs)
        + _bytes(4, kind)
        + b"".join(_bytes(5, _attribute(name, of)) for name, of in attributes.items())
    )


def graph(
    name: str,
    nodes: Sequence[bytes],
    *,
    inputs: Sequence[bytes],
    outputs: Sequence[bytes],
    tensors: Sequence[bytes] = (),
) -> bytes:
    """Return a graph, of a model or of a node's attribute; nodes in an order they can run in."""
    return (
        b"".join(_bytes(1, each) for each in nodes)
        + _bytes(2, name)
        + b"".join(_bytes(5, each) for each in tensors)
        + b"".join(_bytes(11, each) for each in inputs)
        + b"".join(_bytes(12, each) for each in outputs)
    )


def model(of: bytes, *, ir_version: int = 8, opset: int = 13) -> bytes:
    """Return a file's content."""
    return _number(1, ir_version) + _bytes(7, of) + _bytes(8, _number(2, opset))


def _attribute(name: str, of: Attribute) -> bytes:
    if isinstance(of, int):
        kind, content = _AS_INT, _number(3, of)
    elif isinstance(of, bytes):
        kind, content = _AS_GRAPH, _bytes(6, of)
    else:
        kind, content = _AS_INTS, b"".join(_number(8, number) for number in of)
    return _bytes(1, name) + content + _number(20, kind)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def _number(field: int, number: int) -> bytes:
    return _varint(field << 3) + _varint(number)


def _bytes(field: int, content: bytes | str) -> bytes:
    raw = content.encode() if isinstance(content, str) else content
    return _varint(field << 3 | 2) + _varint(len(raw)) + raw
