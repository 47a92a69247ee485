"""Builds tiny ONNX files and family folders for tests, by hand: the format is protobuf.

Field numbers are those of onnx.proto (ModelProto, GraphProto, NodeProto, TensorProto).
"""

import hashlib
import struct
from collections.abc import Sequence
from pathlib import Path

FLOAT, UINT8, INT64 = 1, 2, 7

Dims = Sequence[int | str]
"""Axes of a tensor: a fixed length, or a name where any will do."""


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes | str) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return _varint(field << 3 | 2) + _varint(len(raw)) + raw


def _value_info(name: str, kind: int, dims: Dims) -> bytes:
    axes = b"".join(
        _bytes(1, _number(1, dim) if isinstance(dim, int) else _bytes(2, dim)) for dim in dims
    )
    tensor = _number(1, kind) + _bytes(2, axes)
    return _bytes(1, name) + _bytes(2, _bytes(1, tensor))


def _int64_tensor(name: str, values: Sequence[int]) -> bytes:
    return (
        _number(1, len(values))
        + _number(2, INT64)
        + _bytes(8, name)
        + _bytes(9, struct.pack(f"<{len(values)}q", *values))
    )


def reshaping_model(
    input_dims: Dims, output_dims: Dims, shape: Sequence[int], kind: int = FLOAT
) -> bytes:
    """Return a model that only reshapes its input `images` to `shape`, as output `output`."""
    node = _bytes(1, "images") + _bytes(1, "shape") + _bytes(2, "output") + _bytes(4, "Reshape")
    graph = (
        _bytes(1, node)
        + _bytes(2, "tiny")
        + _bytes(5, _int64_tensor("shape", shape))
        + _bytes(11, _value_info("images", kind, input_dims))
        + _bytes(12, _value_info("output", kind, output_dims))
    )
    return _number(1, 8) + _bytes(7, graph) + _bytes(8, _number(2, 13))


def write_family(
    folder: Path,
    model: bytes,
    *,
    name: str = "tiny",
    variant: str = "tiny-32",
    labels: str = '["a"]',
    dtype: str = "float32",
    layout: str = "nchw",
    decoder: str = "yolox",
    sha256: str | None = None,
    size_px: int = 32,
) -> Path:
    """Write a family folder around a model; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tiny.onnx").write_bytes(model)
    (folder / "family.toml").write_text(
        f"""
name = "{name}"
task = "detect"
file = "tiny.onnx"
sha256 = "{sha256 or hashlib.sha256(model).hexdigest()}"
licence = "Apache-2.0"
labels = {labels}
[input]
layout = "{layout}"
dtype = "{dtype}"
order = "rgb"
size_multiple_px = 32
[output]
decoder = "{decoder}"
[[variants]]
name = "{variant}"
width_px = {size_px}
height_px = {size_px}
accuracy = 0.5
"""
    )
    return folder


YOLOX_32 = reshaping_model(["b", 3, 32, 32], ["b", 512, 6], [-1, 512, 6])
"""Keeps the pictures of a batch apart, but has not the 21 anchors of 32 x 32 px."""

MERGING_32 = reshaping_model(["b", 3, 32, 32], [1, "n", 6], [1, -1, 6])
"""Says it takes any batch, and runs its pictures into one."""

FAILING_32 = reshaping_model(["b", 3, 32, 32], ["b", "n", 6], [7, 11, 6])
"""Opens, and fails on every batch."""
