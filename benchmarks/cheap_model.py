"""Owns a model that computes next to nothing: what is measured around it is the serving.

Whatever it sees, it finds the same few boxes, so that results have something to carry.
"""

from pathlib import Path

import numpy as np

from benchmarks.detector_family import write_detector
from benchmarks.onnx_file import FLOAT, INT64, UINT8, graph, model, node, tensor, value

FAMILY = "cheap"
FOUND = 5
_SIDE_PX = 320


def write_family(folder: Path) -> Path:
    """Write the family's folder, made if it is not there, and return it."""
    return write_detector(folder, FAMILY, _SIDE_PX, _model())


def _model() -> bytes:
    at_px = np.arange(FOUND, dtype=np.float32)[:, None] * (_SIDE_PX / (2 * FOUND))
    boxes = np.concatenate((at_px, at_px, at_px + 40, at_px + 40), 1)[None]
    constants = {
        "boxes_found": boxes,
        "scores_found": np.linspace(0.5, 0.9, FOUND, dtype=np.float32)[None],
        "labels_found": np.zeros((1, FOUND), np.int64),
        "first": np.array([0]),
        "four": np.array([FOUND, 4]),
        "flat": np.array([FOUND]),
    }
    nodes = [
        node("Shape", ["images"], ["sizes"]),
        node("Gather", ["sizes", "first"], ["batch"]),
        node("Concat", ["batch", "four"], ["boxes_shape"], axis=0),
        node("Concat", ["batch", "flat"], ["each_shape"], axis=0),
        node("Expand", ["boxes_found", "boxes_shape"], ["boxes"]),
        node("Expand", ["scores_found", "each_shape"], ["scores"]),
        node("Expand", ["labels_found", "each_shape"], ["labels"]),
    ]
    return model(
        graph(
            "cheap",
            nodes,
            inputs=[value("images", UINT8, ["b", _SIDE_PX, _SIDE_PX, 3])],
            outputs=[
                value("boxes", FLOAT, ["b", FOUND, 4]),
                value("scores", FLOAT, ["b", FOUND]),
                value("labels", INT64, ["b", FOUND]),
            ],
            tensors=[tensor(name, values) for name, values in constants.items()],
        )
    )
