"""ONNX files in every layout that find what was planted in them, written with the onnx package.

A planted object is encoded by hand into the raw outputs; what an importer finds must be these
objects. Scores also follow the pictures as the model is fed them, colour by colour: what is fed
wrongly, or to the wrong picture of a batch, is found with another score.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import exp, log
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from edgebox.inference.importing.layouts import Preprocessing

WIDTH, HEIGHT = 96, 64
CLASSES = 3
LABELS = ("person", "car", "bus")
COLOUR_WEIGHTS = (0.01, 0.02, 0.04)

Array = NDArray[Any]


@dataclass(frozen=True)
class Planted:
    """One object: box in input px, label, score before the picture has its say."""

    box: tuple[float, float, float, float]
    label: int
    score: float


OBJECTS = (
    Planted((8.0, 8.0, 30.0, 40.0), 0, 0.85),
    Planted((50.0, 20.0, 90.0, 60.0), 2, 0.75),
    Planted((8.0, 9.0, 30.0, 40.0), 1, 0.65),
    Planted((60.0, 4.0, 70.0, 14.0), 1, 0.35),
)
"""The third overlaps the first, but is of another class."""

LESSER = Planted((9.0, 8.0, 31.0, 41.0), 0, 0.55)
"""Overlaps the first, of its class: to be removed wherever overlaps are."""


@dataclass
class Raw:
    """One output: its values for one picture, and where the picture's own number is added."""

    name: str
    values: Array
    follows: Array | None = None
    """Ones where the number is added; None: nowhere."""
    shares_of_sizes: bool = False
    """Multiplied by the width and height the model is told."""
    picture_column: bool = False
    """Rows of all pictures become one list, the first column says whose they are."""


@dataclass
class Tiny:
    """A model to be written."""

    outputs: list[Raw]
    how: Preprocessing = field(default_factory=Preprocessing)
    batch: int | str = "batch"
    opset: int = 13
    sizes: bool = False
    mask: bool = False
    channels_last: bool = False
    half: bool = False
    width: int | str = WIDTH
    height: int | str = HEIGHT
    metadata: dict[str, str] = field(default_factory=dict)
    lies: bool = False
    """Every picture of a batch is answered as the first one."""


def own_number(how: Preprocessing, canvas: NDArray[np.uint8]) -> float:
    """Return what a picture adds to the scores, from its canvas as the model is to be fed it."""
    colours = canvas.reshape(-1, 3).mean(axis=0)
    if how.order == "bgr":
        colours = colours[::-1]
    fed = (colours / how.divisor - np.array(how.mean)) / np.array(how.std)
    return float(fed @ weights_of(how))


def weights_of(how: Preprocessing) -> Array:
    """Return the weight of each colour: numbers to 255 would drown the scores."""
    large = how.divisor == 1.0 and how.std == (1.0, 1.0, 1.0)
    return np.array(COLOUR_WEIGHTS) / (255.0 if large else 1.0)


class _Writer:
    """A graph that grows."""

    def __init__(self, tiny: Tiny) -> None:
        self.tiny = tiny
        self.kind = int(TensorProto.FLOAT16 if tiny.half else TensorProto.FLOAT)
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []
        self.inputs: list[ValueInfoProto] = []
        self.results: list[ValueInfoProto] = []

    def constant(self, values: Any, dtype: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(values, dtype), name))
        return name

    def node(self, kind: str, *inputs: str, result: str = "", **attributes: Any) -> str:
        name = result or f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def as_float(self, value: str) -> str:
        return self.node("Cast", value, to=TensorProto.FLOAT)

    def reshape(self, value: str, *dims: int) -> str:
        return self.node("Reshape", value, self.constant(dims, np.int64))

    def own(self) -> str:
        """Feed pictures, and return each one's own number (b, 1)."""
        tiny = self.tiny
        axes, shape, dims = [2, 3], (1, 3, 1, 1), [tiny.batch, 3, tiny.height, tiny.width]
        if tiny.channels_last:
            axes, shape, dims = [1, 2], (1, 1, 1, 3), [tiny.batch, tiny.height, tiny.width, 3]
        self.inputs.append(helper.make_tensor_value_info("images", self.kind, dims))
        colours = self.node("ReduceMean", self.as_float("images"), axes=axes, keepdims=1)
        weights = self.constant(weights_of(tiny.how).reshape(shape), np.float32)
        by_colour = self.reshape(self.node("Mul", colours, weights), -1, 3)
        own = self.node("MatMul", by_colour, self.constant([[1.0]] * 3, np.float32))
        if tiny.mask:
            mask = helper.make_tensor_value_info("pixel_mask", TensorProto.INT64, ["b", 64, 64])
            self.inputs.append(mask)
            seen = self.node("ReduceMean", self.as_float("pixel_mask"), axes=[1, 2], keepdims=0)
            own = self.node("Mul", own, self.reshape(seen, -1, 1))
        if tiny.lies:
            first = self.node("Gather", own, self.constant([0], np.int64))
            own = self.node("Expand", first, self.node("Shape", own))
        return own

    def sides(self) -> str:
        """Return width, height, width, height as the model is told them (b, 1, 4)."""
        sizes = helper.make_tensor_value_info("orig_target_sizes", TensorProto.INT64, ["b", 2])
        self.inputs.append(sizes)
        value = self.as_float("orig_target_sizes")
        return self.reshape(self.node("Concat", value, value, axis=1), -1, 1, 4)

    def output(self, raw: Raw, own: str, batch: str, sides: str) -> None:
        """Add one output."""
        rest = self.constant(raw.values.shape, np.int64)
        dims = self.node("Concat", batch, rest, axis=0)
        value = self.node("Expand", self.constant(raw.values[None], raw.values.dtype), dims)
        if raw.follows is not None:
            mine = self.reshape(own, -1, *([1] * raw.values.ndim))
            where = self.constant(raw.follows[None], np.float32)
            value = self.node("Add", value, self.node("Mul", mine, where))
        if raw.shares_of_sizes:
            value = self.node("Mul", value, sides)
        if raw.picture_column:
            value = self._one_list(value, raw, batch)
        if self.tiny.half and raw.values.dtype == np.float32:
            value = self.node("Cast", value, to=TensorProto.FLOAT16)
        self.node("Identity", value, result=raw.name)
        whole = raw.values.dtype == np.int64
        kind = int(TensorProto.INT64) if whole else self.kind
        shape: list[str | int | None] = (
            ["rows", 7] if raw.picture_column else [self.tiny.batch, *raw.values.shape]
        )
        self.results.append(helper.make_tensor_value_info(raw.name, kind, shape))

    def _one_list(self, value: str, raw: Raw, batch: str) -> str:
        zero, one = self.constant(0, np.int64), self.constant(1, np.int64)
        numbers = self.node("Range", zero, self.reshape(batch), one)
        column = np.zeros((1, *raw.values.shape), np.float32)
        column[..., 0] = 1.0
        numbers = self.reshape(self.as_float(numbers), -1, 1, 1)
        numbers = self.node("Mul", numbers, self.constant(column, np.float32))
        return self.reshape(self.node("Add", value, numbers), -1, 7)


def write(tiny: Tiny) -> bytes:
    """Return a model as a file's content."""
    to = _Writer(tiny)
    own = to.own()
    ends = (to.constant([0], np.int64), to.constant([1], np.int64))
    batch = to.node("Slice", to.node("Shape", own), *ends)
    sides = to.sides() if tiny.sizes else ""
    for raw in tiny.outputs:
        to.output(raw, own, batch, sides)
    graph = helper.make_graph(to.nodes, "tiny", to.inputs, to.results, to.constants)
    opsets = [helper.make_opsetid("", tiny.opset)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    helper.set_model_props(model, tiny.metadata)
    content: bytes = model.SerializeToString()
    return content


# -- how objects are encoded ----------------------------------------------------------------------


def cells(
    strides: Sequence[int], anchors: int = 1, width: int = WIDTH, height: int = HEIGHT
) -> list[tuple[int, int, int]]:
    """Return column, row and stride of every row of a dense head."""
    return [
        (x, y, stride)
        for stride in strides
        for _ in range(anchors)
        for y in range(-(-height // stride))
        for x in range(-(-width // stride))
    ]


def places(found: Sequence[Planted], rows: Sequence[tuple[int, int, int]]) -> list[int]:
    """Return a row of a dense head for every object: the nearest that is free."""
    taken: list[int] = []
    for each in found:
        x, y = (each.box[0] + each.box[2]) / 2, (each.box[1] + each.box[3]) / 2
        away = [
            (abs((cx + 0.5) * s - x) + abs((cy + 0.5) * s - y) if at not in taken else 1e9, at)
            for at, (cx, cy, s) in enumerate(rows)
        ]
        taken.append(min(away)[1])
    return taken


def centre_form(box: Sequence[float]) -> list[float]:
    """Return centre and sides of a box."""
    return [(box[0] + box[2]) / 2, (box[1] + box[3]) / 2, box[2] - box[0], box[3] - box[1]]


def relative(box: Sequence[float]) -> list[float]:
    """Return px as shares of the input's sides."""
    return [box[0] / WIDTH, box[1] / HEIGHT, box[2] / WIDTH, box[3] / HEIGHT]


def logit(share: float) -> float:
    """Return what a sigmoid makes a share of."""
    return log(share / (1.0 - share))


def sigmoid(value: float) -> float:
    """Return a share."""
    return 1.0 / (1.0 + exp(-value))


def dense_rows(
    found: Sequence[Planted], strides: Sequence[int], anchors: int, columns: int
) -> tuple[Array, list[tuple[int, int, int]], list[int]]:
    """Return rows (a, columns) whose scores are next to nothing, the cells, the objects' rows."""
    rows = cells(strides, anchors)
    noise = np.random.default_rng(0).uniform(0.0, 0.02, (len(rows), columns))
    return noise.astype(np.float32), rows, places(found, rows)
