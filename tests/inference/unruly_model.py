"""A model that hangs or raises on certain pictures, really: in ONNX Runtime, while it runs.

It looks at the mean colour of the batch's pictures. Pure red has it loop for years, which ONNX
Runtime can be asked to stop between two operators; pure green has one operator compare as
many boxes as `write_family` is told, which nothing stops; pure blue has it look behind the end of a
table, which raises. White has it answer a label that its family has not.
"""

import math
import time
from pathlib import Path

import numpy as np
import onnxruntime as ort

from benchmarks.detector_family import write_detector
from benchmarks.onnx_file import BOOL, FLOAT, INT64, UINT8, graph, model, node, tensor, value
from edgebox.inference.sessions import CPU
from edgebox.media.jpeg import encode

FAMILY = "unruly"
SIDE_PX = 32
VARIANT = f"{FAMILY}-{SIDE_PX}"


def picture(red: int, green: int, blue: int) -> bytes:
    """Return a JPEG of one colour."""
    return encode(np.full((SIDE_PX, SIDE_PX, 3), (red, green, blue), np.uint8))


ORDINARY = picture(127, 127, 127)
LOOPING = picture(255, 0, 0)
STUCK = picture(0, 255, 0)
RAISING = picture(0, 0, 255)
MISLABELLED = picture(255, 255, 255)


def write_family(folder: Path, compared: int = 250_000) -> Path:
    """Write the family's folder, and return it.

    Green has it compare so many boxes, which takes time that grows with the square of the number.
    """
    return write_detector(folder, FAMILY, SIDE_PX, _model(compared))


def compared_within(computing_s: float) -> int:
    """Return how many boxes this machine compares with each other in so much time of a core."""
    few = 20_000
    session = ort.InferenceSession(_model(few), providers=[CPU])
    green = np.full((1, SIDE_PX, SIDE_PX, 3), (0, 255, 0), np.uint8)
    before_s = time.thread_time()
    session.run(None, {"images": green})
    return round(few * math.sqrt(computing_s / (time.thread_time() - before_s)))


def _model(compared: int) -> bytes:
    return model(
        graph(
            FAMILY,
            [
                *_colour_nodes(),
                *_loop_nodes(),
                *_comparison_nodes(),
                *_lookup_nodes(),
                *_output_nodes(),
            ],
            inputs=[value("images", UINT8, ["b", SIDE_PX, SIDE_PX, 3])],
            outputs=[
                value("boxes", FLOAT, ["b", 1, 4]),
                value("scores", FLOAT, ["b", 1]),
                value("labels", INT64, ["b", 1]),
            ],
            tensors=_constants(compared),
        )
    )


def _colour_nodes() -> list[bytes]:
    """Return nodes that flag, for each colour, whether a picture has only this colour."""
    return [
        node("Cast", ["images"], ["pixels"], to=FLOAT),
        node("ReduceMean", ["pixels"], ["colours"], axes=[1, 2], keepdims=0),
        node("MatMul", ["colours", "against_others"], ["how_pure"]),
        node("Greater", ["how_pure", "pure"], ["is_pure"]),
        node("Cast", ["is_pure"], ["each"], to=FLOAT),
        node("ReduceMax", ["each"], ["any"], axes=[0], keepdims=0),
        node("Cast", ["any"], ["flags"], to=INT64),
    ]


def _loop_nodes() -> list[bytes]:
    """Return nodes that loop for years if the red flag is set."""
    step = graph(
        "step",
        [
            node("Identity", ["goes_on"], ["goes_on_next"]),
            node("Mul", ["sum", "one"], ["sum_next"]),
        ],
        inputs=[value("turn", INT64, []), value("goes_on", BOOL, []), value("sum", FLOAT, [1])],
        outputs=[value("goes_on_next", BOOL, []), value("sum_next", FLOAT, [1])],
    )
    return [
        node("Gather", ["flags", "first"], ["red"]),
        node("Mul", ["red", "for_years"], ["turns"]),
        node("Loop", ["turns", "", "one"], ["looped"], body=step),
    ]


def _comparison_nodes() -> list[bytes]:
    """Return nodes that compare very many boxes with each other if the green flag is set."""
    return [
        node("Gather", ["flags", "second"], ["green"]),
        node("Mul", ["green", "many_more"], ["more"]),
        node("Add", ["more", "few"], ["count"]),
        node("Range", ["zero_int", "count", "one_int"], ["numbers"]),
        node("Cast", ["numbers"], ["places"], to=FLOAT),
        node("Add", ["places", "near"], ["ends"]),
        node("Reshape", ["places", "column"], ["low"]),
        node("Reshape", ["ends", "column"], ["high"]),
        node("Concat", ["low", "low", "high", "high"], ["many"], axis=2),
        node("Reshape", ["places", "row"], ["rising"]),
        node("NonMaxSuppression", ["many", "rising", "all", "overlap"], ["chosen"]),
        node("Shape", ["chosen"], ["how_many"]),
        node("Cast", ["how_many"], ["kept"], to=FLOAT),
        node("ReduceMax", ["kept"], ["compared"], keepdims=0),
    ]


def _lookup_nodes() -> list[bytes]:
    """Return nodes that read behind the end of a table if the blue flag is set."""
    return [
        node("Gather", ["flags", "third"], ["blue"]),
        node("Mul", ["blue", "many_more"], ["behind"]),
        node("Gather", ["one", "behind"], ["looked_up"]),
    ]


def _output_nodes() -> list[bytes]:
    """Return nodes whose outputs depend on all the others, with values that do not."""
    return [
        node("Add", ["looped", "compared"], ["two"]),
        node("Add", ["two", "looked_up"], ["three"]),
        node("Mul", ["three", "zero"], ["nothing"]),
        node("ReduceMean", ["pixels"], ["bright"], axes=[1, 2, 3], keepdims=0),
        node("Add", ["bright", "nothing"], ["same"]),
        node("Reshape", ["same", "one_score"], ["raw"]),
        node("Sigmoid", ["raw"], ["scores"]),
        node("Div", ["raw", "white"], ["label"]),  # a cast to whole numbers cuts off: 0 or 1
        node("Cast", ["label"], ["labels"], to=INT64),
        node("MatMul", ["scores", "corners"], ["flat"]),
        node("Reshape", ["flat", "one_box"], ["boxes"]),
    ]


def _constants(compared: int) -> list[bytes]:
    """Return the constants that the nodes read."""
    floats = {"zero": 0.0, "pure": 200.0, "near": 0.5, "white": 250.0}
    ints = {
        "first": 0, "second": 1, "third": 2, "zero_int": 0, "one_int": 1, "few": 4,
        "many_more": compared, "for_years": 1 << 60,
    }  # fmt: skip
    tensors = [tensor(name, np.array(number, np.float32)) for name, number in floats.items()]
    tensors += [tensor(name, np.array(number, np.int64)) for name, number in ints.items()]
    return [
        *tensors,
        tensor("against_others", (2 * np.eye(3) - 1).astype(np.float32)),
        tensor("one", np.ones(1, np.float32)),
        tensor("all", np.array([1 << 60])),
        tensor("overlap", np.array([0.5], np.float32)),
        tensor("column", np.array([1, -1, 1])),
        tensor("row", np.array([1, 1, -1])),
        tensor("one_score", np.array([-1, 1])),
        tensor("one_box", np.array([-1, 1, 4])),
        tensor("corners", np.array([[2, 2, 20, 20]], np.float32)),
    ]
