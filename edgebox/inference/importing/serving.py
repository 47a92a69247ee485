"""Builds the served graph: uint8 RGB pictures in, a few detections out.

The steps before the model (cast, order of colours, scale, normalisation, axes) and behind it
(decoding, overlap removal) run on the model's device, outside of Python.
"""

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto, helper

from edgebox.domain.errors import ModelError
from edgebox.inference.importing.files import graphs_of
from edgebox.inference.importing.folding import fold
from edgebox.inference.importing.fp16 import halve, single_precision
from edgebox.inference.importing.layouts import Layout
from edgebox.inference.importing.operators import FLOAT, Operators
from edgebox.inference.importing.original import Original
from edgebox.inference.importing.reading import Decoding
from edgebox.inference.importing.writing import Canvas, HeadWriter, Rows

_IR_VERSION_MIN = 8
_ONNX_TYPES = {
    np.dtype(np.float32): TensorProto.FLOAT,
    np.dtype(np.float16): TensorProto.FLOAT16,
    np.dtype(np.uint8): TensorProto.UINT8,
    np.dtype(np.int64): TensorProto.INT64,
    np.dtype(np.int32): TensorProto.INT32,
    np.dtype(np.bool_): TensorProto.BOOL,
}


def served_model(
    original: Original,
    layout: Layout,
    decoding: Decoding,
    outputs: tuple[tuple[str, ...], ...],
    *,
    batch: int | None,
    fixed_px: tuple[int, int] | None,
    rows: Rows,
    half: bool = False,
) -> ModelProto:
    """Return the graph that is served.

    Args:
        original: the imported model.
        layout: how it is fed.
        decoding: meaning of its outputs.
        outputs: their names, in the head's order; several are one for each grid.
        batch: the only batch size it takes; None: any.
        fixed_px: the only width and height it takes; None: any.
        rows: known numbers of rows of its outputs.
        half: whether the model itself computes in half precision.

    Raises:
        ModelError: no part of it can be computed in half precision.
    """
    model = ModelProto()
    model.CopyFrom(original.source.model)
    graph = model.graph
    ops = Operators(original.source.opset, _names_in(model))
    pictures = ops.name("pictures")
    _feed_pictures(ops, model, original, layout, pictures)
    _feed_extras(ops, original, pictures, fixed_px)
    before = len(ops.nodes)
    canvas = Canvas(pictures, fixed_px)
    single = [_joined(ops, original, names) for names in outputs]
    length = decoding.classes if layout.task == "embed" else None
    if length is not None:
        results = [ops.name("embedding")]
        ops.cast(single[0], FLOAT, result=results[0])
    else:
        found = HeadWriter(ops, decoding, single, canvas, rows).write()
        results = [ops.name(name) for name in ("boxes", "scores", "labels")]
        kinds = (FLOAT, FLOAT, TensorProto.INT64)
        for value, name, kind in zip(found, results, kinds, strict=True):
            ops.cast(value, int(kind), result=name)
    own = len(graph.node)
    nodes = [*ops.nodes[:before], *graph.node, *ops.nodes[before:]]
    del graph.node[:], graph.input[:], graph.output[:]
    # What was said about shapes may not hold any more, and some files lie about them.
    del graph.value_info[:]
    graph.node.extend(nodes)
    graph.initializer.extend(ops.constants)
    _describe(graph, pictures, results, batch=batch, fixed_px=fixed_px, length=length)
    model.ir_version = max(model.ir_version, _IR_VERSION_MIN)
    if half and not halve(graph, before, before + own, single_precision(model)):
        raise ModelError(
            f"{original.source.path}: nothing in it could be computed in half precision; it may "
            "have been exported so: leave --precision out"
        )
    return model


def _describe(
    graph: GraphProto,
    pictures: str,
    results: list[str],
    *,
    batch: int | None,
    fixed_px: tuple[int, int] | None,
    length: int | None,
) -> None:
    """Add the graph's input and its outputs: boxes, scores and labels, or embeddings."""
    width, height = fixed_px or ("width", "height")
    first = batch or "batch"
    dims = [first, height, width, 3]
    graph.input.append(helper.make_tensor_value_info(pictures, TensorProto.UINT8, dims))
    if length is not None:
        embedding = helper.make_tensor_value_info(results[0], TensorProto.FLOAT, [first, length])
        graph.output.append(embedding)
        return
    boxes = helper.make_tensor_value_info(results[0], TensorProto.FLOAT, [first, "found", 4])
    scores = helper.make_tensor_value_info(results[1], TensorProto.FLOAT, [first, "found"])
    labels = helper.make_tensor_value_info(results[2], TensorProto.INT64, [first, "found"])
    graph.output.extend((boxes, scores, labels))


def _feed_pictures(
    ops: Operators, model: ModelProto, original: Original, layout: Layout, pictures: str
) -> None:
    """Prepare the pictures for the model, under its input's name."""
    how, wanted = layout.preprocessing, original.pictures
    dtype = np.dtype(wanted.dtype)
    mean, std = np.array(how.mean), np.array(how.std)
    channels = 3 if original.channels_last else 1
    # What rounds its own numbers may answer a last bit with another whole level.
    folded = channels == 1 and dtype == np.float32 and not mean.any() and not _quantises(model)
    gain = 1.0 / (how.divisor * std)
    folded = folded and fold(model, wanted.name, gain, reverse=how.order == "bgr")
    value = pictures
    # Axes and colours first, while a colour is one byte.
    if channels == 1:
        value = ops.add("Transpose", value, perm=[0, 3, 1, 2])
    if how.order == "bgr" and not folded:
        value = ops.add("Gather", value, ops.ints(2, 1, 0), axis=channels)
    if dtype != np.uint8 and not folded:
        value = ops.cast(value, FLOAT)
        dims = (1, 3, 1, 1) if channels == 1 else (1, 1, 1, 3)
        # The operations of `Original`, in its order: equal to the last bit.
        if how.divisor != 1.0:
            value = ops.add("Div", value, ops.floats(how.divisor))
        if mean.any():
            value = ops.add("Sub", value, ops.floats(mean.reshape(dims)))
        if (std != 1.0).any():
            value = ops.add("Div", value, ops.floats(std.reshape(dims)))
    ops.cast(value, int(_ONNX_TYPES[dtype]), result=wanted.name)


def _quantises(model: ModelProto) -> bool:
    """Return whether the graph rounds what it computes to whole levels."""
    return any("Quantize" in node.op_type for graph in graphs_of(model) for node in graph.node)


def _joined(ops: Operators, original: Original, names: tuple[str, ...]) -> str:
    """Return outputs that are one for each grid as one tensor, and maps as their rows."""
    parts = []
    for name in names:
        value = name
        if original.ranks.get(name) == 4:
            value = ops.add("Transpose", ops.reshape(value, 0, 0, -1), perm=[0, 2, 1])
        parts.append(value)
    return parts[0] if len(parts) == 1 else ops.concat(1, *parts)


def _feed_extras(
    ops: Operators, original: Original, pictures: str, fixed_px: tuple[int, int] | None
) -> None:
    """Compute the model's other inputs from the pictures' shape."""
    for extra in original.extras:
        kind = int(_ONNX_TYPES[np.dtype(extra.dtype)])
        shape = ops.add("Shape", pictures)
        batch = ops.slice(shape, 0, 0, 1)
        if extra.role == "sizes":
            if fixed_px is not None:
                sides = ops.ints(*fixed_px)
            else:
                sides = ops.add("Gather", shape, ops.ints(2, 1), axis=0)
            sides = ops.expand(ops.unsqueeze(sides, 0), ops.concat(0, batch, ops.ints(1)))
            ops.cast(sides, kind, result=extra.name)
            continue
        lengths = [
            ops.slice(shape, 0, axis, axis + 1) if length is None else ops.ints(length)
            for axis, length in ((1, extra.axes[1]), (2, extra.axes[2]))
        ]
        ones = ops.filled(ops.concat(0, batch, *lengths), 1, np.int64)
        ops.cast(ones, kind, result=extra.name)


def _names_in(model: ModelProto) -> set[str]:
    graph = model.graph
    taken = {value.name for value in (*graph.input, *graph.output)}
    for each in graphs_of(model):
        for node in each.node:
            taken |= {node.name, *node.input, *node.output}
        if isinstance(each, GraphProto):
            taken |= {tensor.name for tensor in each.initializer}
    return taken


def written(model: ModelProto, path: str) -> bytes:
    """Return a model as a file's content.

    Raises:
        ModelError: it is too large for one file.
    """
    try:
        content: bytes = model.SerializeToString()
    except (ValueError, RuntimeError) as error:
        raise ModelError(f"{path}: the graph to be served does not fit one file: {error}") from None
    return content
