"""Owns a model whose time depends on what it sees: as many steps as the busiest picture needs.

The graph reads from each grey picture's mean brightness how many steps it needs; pictures in
colour, which are the profiler's and nobody else's, all need the same. It runs the whole
batch through a `Loop` for the most of them, as models with early exits or iterative refinement
do. A step mixes the pixels with large matrices, which are read once for the whole batch, and
works on each picture by itself: so larger batches pay, but are not for nothing, as on an
accelerator. What it detects means nothing.
"""

from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.detector_family import write_detector
from benchmarks.onnx_file import BOOL, FLOAT, INT64, UINT8, Dims, graph, model, node, tensor, value
from edgebox.media.jpeg import encode

FAMILY = "refining"
STEPS_MAX = 60
SIDE_PX = 32

_STATE = SIDE_PX * SIDE_PX
"""The numbers that are refined: one for each pixel."""
_MIXINGS = 3
_WIDE = 2048
"""What each row of pixels is expanded to and back, in every step."""
_GREY_PER_STEP = 4.0
"""Far more than JPEG changes of a picture's mean."""
_NOISE = 24
"""Grey levels by which pixels differ from their mean, so that pictures are not plain."""
_GREY = 2.0
"""By so many levels red and blue of a grey picture differ in the mean at most."""


def write_family(folder: Path, profiled_steps: int) -> Path:
    """Write the family's folder, and return it.

    Args:
        folder: made if it is not there.
        profiled_steps: how many steps the profiler's pictures need, 1 to `STEPS_MAX`.
    """
    return write_detector(folder, FAMILY, SIDE_PX, _model(profiled_steps))


@lru_cache(maxsize=STEPS_MAX)
def picture(steps: int) -> bytes:
    """Return a JPEG that needs so many steps."""
    grey = _GREY_PER_STEP * (steps - 0.5)
    spread = min(_NOISE, grey, 255 - grey)
    noise = np.random.default_rng(steps).uniform(-spread, spread, (SIDE_PX, SIDE_PX, 1))
    pixels = np.rint(grey + noise - noise.mean()).clip(0, 255).astype(np.uint8)
    return encode(pixels.repeat(3, axis=2))


def _model(profiled_steps: int) -> bytes:
    rng = np.random.default_rng(0)
    step, weights = _step(rng)
    heads = rng.normal(0, 1 / np.sqrt(_STATE), (_STATE, 5)).astype(np.float32)
    nodes = [
        node("Cast", ["images"], ["pixels"], to=FLOAT),
        # How many steps each picture needs, and the most of them.
        node("ReduceMean", ["pixels"], ["bright_each"], axes=[1, 2, 3], keepdims=0),
        node("Div", ["bright_each", "grey_per_step"], ["level"]),
        node("Floor", ["level"], ["whole"]),
        node("Add", ["whole", "one"], ["by_grey"]),
        node("Split", ["pixels"], ["red", "green", "blue"], axis=3),
        node("Sub", ["red", "blue"], ["warmer"]),
        node("Abs", ["warmer"], ["apart"]),
        node("ReduceMean", ["apart"], ["colour"], axes=[1, 2, 3], keepdims=0),
        node("Less", ["colour", "grey"], ["is_grey"]),
        node("Where", ["is_grey", "by_grey", "profiled_steps"], ["steps_each"]),
        node("ReduceMax", ["steps_each"], ["most"], keepdims=0),
        node("Cast", ["most"], ["steps"], to=INT64),
        # What is refined.
        node("ReduceMean", ["pixels"], ["plane"], axes=[3], keepdims=0),
        node("Div", ["plane", "white"], ["bright"]),
        node("Reshape", ["bright", "flat"], ["start"]),
        node("Loop", ["steps", "", "start"], ["end"], body=step),
        # What is made of it: one box inside the picture, one score and one label for each.
        node("MatMul", ["end", "box_head"], ["box_raw"]),
        node("Sigmoid", ["box_raw"], ["box_share"]),
        node("Mul", ["box_share", "half"], ["box_in_half"]),
        node("Add", ["box_in_half", "halves"], ["box"]),
        node("Reshape", ["box", "one_box"], ["boxes"]),
        node("MatMul", ["end", "score_head"], ["score_raw"]),
        node("Sigmoid", ["score_raw"], ["scores"]),
        node("Mul", ["scores", "zero"], ["label"]),
        node("Cast", ["label"], ["labels"], to=INT64),
    ]
    return model(
        graph(
            "refining",
            nodes,
            inputs=[value("images", UINT8, ["b", SIDE_PX, SIDE_PX, 3])],
            outputs=[
                value("boxes", FLOAT, ["b", 1, 4]),
                value("scores", FLOAT, ["b", 1]),
                value("labels", INT64, ["b", 1]),
            ],
            tensors=[*_constants(profiled_steps, heads), *weights],
        )
    )


def _constants(profiled_steps: int, heads: NDArray[np.float32]) -> list[bytes]:
    """Return the constants that the graph reads outside its loop."""
    half = SIDE_PX / 2
    numbers = {
        "grey_per_step": _GREY_PER_STEP,
        "grey": _GREY,
        "profiled_steps": float(profiled_steps),
        "one": 1.0,
        "zero": 0.0,
        "white": 255.0,
        "half": half,
    }
    tensors = [tensor(name, np.array(number, np.float32)) for name, number in numbers.items()]
    return [
        *tensors,
        tensor("halves", np.array([0.0, 0.0, half, half], np.float32)),
        tensor("flat", np.array([-1, _STATE])),
        tensor("one_box", np.array([-1, 1, 4])),
        tensor("box_head", heads[:, :4]),
        tensor("score_head", heads[:, 4:]),
    ]


def _step(rng: np.random.Generator) -> tuple[bytes, list[bytes]]:
    """Return one step as a graph, and the constants that it reads."""

    def drawn(rows: int, columns: int) -> NDArray[np.float32]:
        # Of this size they neither let the state fade (numbers close to 0 are slow) nor saturate.
        return rng.normal(0, 1.5 / np.sqrt(rows), (rows, columns)).astype(np.float32)

    weights = [tensor(f"mixing_{at}", drawn(_STATE, _STATE)) for at in range(_MIXINGS)]
    weights += [
        tensor("expanding", drawn(SIDE_PX, _WIDE)),
        tensor("shrinking", drawn(_WIDE, SIDE_PX)),
        tensor("as_rows", np.array([-1, SIDE_PX, SIDE_PX])),
    ]
    nodes = [node("Identity", ["go"], ["go_on"])]
    before = "state"
    for at in range(_MIXINGS):
        nodes.append(node("MatMul", [before, f"mixing_{at}"], [f"product_{at}"]))
        nodes.append(node("Tanh", [f"product_{at}"], [f"mixed_{at}"]))
        before = f"mixed_{at}"
    nodes += [
        node("Reshape", [before, "as_rows"], ["rows"]),
        node("MatMul", ["rows", "expanding"], ["expanded"]),
        node("Relu", ["expanded"], ["wide"]),
        node("MatMul", ["wide", "shrinking"], ["shrunk"]),
        node("Tanh", ["shrunk"], ["each"]),
        node("Reshape", ["each", "flat"], ["refined"]),
    ]
    state: Dims = ["b", _STATE]
    inputs = [value("at", INT64, []), value("go", BOOL, []), value("state", FLOAT, state)]
    outputs = [value("go_on", BOOL, []), value("refined", FLOAT, state)]
    return graph("step", nodes, inputs=inputs, outputs=outputs), weights
