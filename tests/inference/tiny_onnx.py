"""Builds tiny ONNX files and family folders for tests."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.onnx_file import FLOAT, Dims, graph, model, node, tensor, value


def reshaping_model(
    input_dims: Dims, output_dims: Dims, shape: Sequence[int], kind: int = FLOAT
) -> bytes:
    """Return a model that only reshapes its input `images` to `shape`, as output `output`."""
    return model(
        graph(
            "tiny",
            [node("Reshape", ["images", "shape"], ["output"])],
            inputs=[value("images", kind, input_dims)],
            outputs=[value("output", kind, output_dims)],
            tensors=[tensor("shape", np.array(shape, np.int64))],
        )
    )


def write_family(
    folder: Path,
    content: bytes,
    *,
    name: str = "tiny",
    variant: str = "tiny-32",
    labels: str = '["a"]',
    dtype: str = "float32",
    layout: str = "nchw",
    decoder: str = "yolox",
    sha256: str | None = None,
    size_px: int = 32,
    task: str = "detect",
    what: str | None = None,
) -> Path:
    """Write a family folder around a model; return the folder.

    `what` stands in place of the labels, where a family has something else.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tiny.onnx").write_bytes(content)
    (folder / "family.toml").write_text(
        f"""
name = "{name}"
task = "{task}"
file = "tiny.onnx"
sha256 = "{sha256 or hashlib.sha256(content).hexdigest()}"
licence = "Apache-2.0"
{what or f"labels = {labels}"}
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
"""Keeps the pictures of a batch apart, but has not the 21 anchors of 32 × 32 px."""

MERGING_32 = reshaping_model(["b", 3, 32, 32], [1, "n", 6], [1, -1, 6])
"""Says it takes any batch, and runs its pictures into one."""

ROOTS_32 = model(
    graph(
        "roots",
        [
            node("ReduceMax", ["images"], ["brightest"], axes=[1, 2, 3], keepdims=0),
            node("Sub", ["brightest", "dark"], ["above"]),
            node("Sqrt", ["above"], ["root"]),
            node("Reshape", ["root", "each"], ["of_each"]),
            node("Mul", ["of_each", "anchors"], ["output"]),
        ],
        inputs=[value("images", FLOAT, ["b", 3, 32, 32])],
        outputs=[value("output", FLOAT, ["b", 21, 6])],
        tensors=[
            tensor("dark", np.array([89], np.float32)),
            tensor("each", np.array([-1, 1, 1], np.int64)),
            tensor("anchors", np.array([[[0, 0, 0, 0, 0.1, 0.1]] * 21], np.float32)),
        ],
    )
)
"""Sees something everywhere; of a picture that is nowhere brighter than 89 it gives NaN."""

FAILING_32 = reshaping_model(["b", 3, 32, 32], ["b", "n", 6], [7, 11, 6])
"""Opens, and fails on every batch."""
