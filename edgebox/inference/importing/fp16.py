"""Decides which part of a graph computes in half precision, and rewrites it so.

Heavy operators (convolutions, matrix products) and those before them are rounded. Operators
behind the last heavy one are not, so that boxes and scores are decoded in single precision.
Inputs and outputs keep their types. Weights of rounded operators are stored in half precision.

onnxconverter-common does the same for whole graphs by a list of operators to leave out, and needs
every tensor's type to be inferred. Here an operator is rounded only if it is known to be safe;
an unknown operator keeps its precision, with casts where the two meet.

Limits: operators inside of subgraphs (If, Loop) are left alone. Weights beyond half precision's
range become its largest number; those that would vanish become 0. The importer compares
detections, to find whether the result is still right.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import numpy as np
from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    helper,
    numpy_helper,
    shape_inference,
)

_HEAVY = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
_ROUNDED = _HEAVY | {
    "Add", "AveragePool", "BatchNormalization", "Clip", "Concat", "Div", "Elu", "Erf", "Gelu",
    "GlobalAveragePool", "GlobalMaxPool", "HardSigmoid", "HardSwish", "LayerNormalization",
    "LeakyRelu", "MaxPool", "Mish", "Mul", "PRelu", "Pad", "Relu", "Reshape", "Resize", "Sigmoid",
    "Slice", "Softmax", "Softplus", "Split", "Squeeze", "Sub", "Tanh", "Transpose", "Unsqueeze",
    "Upsample",
}  # fmt: skip
_FLOAT_INPUTS = {
    "Clip": (0, 1, 2), "Pad": (0, 2), "Reshape": (0,), "Resize": (0,), "Slice": (0,), "Split": (0,),
    "Squeeze": (0,), "Unsqueeze": (0,), "Upsample": (0,),
}  # fmt: skip
"""Which inputs may be rounded; all where not named."""

_LARGEST = float(np.finfo(np.float16).max)


def halve(graph: GraphProto, first: int, end: int, floats: AbstractSet[str]) -> int:
    """Rewrite some nodes of a graph to half precision, in place.

    Args:
        graph: in topological order.
        first, end: the nodes that may be rounded are those from `first` to before `end`.
        floats: names of the tensors that are known to be in single precision.

    Returns:
        How many nodes were rounded; 0: the graph is as it was.
    """
    chosen = {first + at for at in _chosen(graph.node[first:end], floats)}
    if not chosen:
        return 0
    rewriting = _Rewriting(graph)
    rewritten = []
    for at, node in enumerate(graph.node):
        rewritten += rewriting.rounded(node) if at in chosen else rewriting.kept(node)
    del graph.node[:]
    graph.node.extend(rewritten)
    rewriting.tidy()
    return len(chosen)


def single_precision(model: ModelProto) -> set[str]:
    """Return the names of the tensors that are known to be in single precision."""
    graph = shape_inference.infer_shapes(model).graph
    values = (*graph.input, *graph.value_info)
    names = {v.name for v in values if v.type.tensor_type.elem_type == TensorProto.FLOAT}
    return names | {t.name for t in graph.initializer if t.data_type == TensorProto.FLOAT}


def _chosen(nodes: Sequence[NodeProto], floats: AbstractSet[str]) -> list[int]:
    """Return the places of the nodes to be rounded: known, of floats, heavy or before it."""
    leads: set[str] = set()
    chosen = []
    for at in reversed(range(len(nodes))):
        node = nodes[at]
        if node.op_type not in _HEAVY and leads.isdisjoint(node.output):
            continue
        leads.update(node.input, _captured(node))
        used = [node.input[place] for place in _rounded_inputs(node)]
        known = all(name in floats for name in (*used, *filter(None, node.output)))
        if node.domain in ("", "ai.onnx") and node.op_type in _ROUNDED and used and known:
            chosen.append(at)
    return chosen


def _rounded_inputs(node: NodeProto) -> list[int]:
    """Return the places of the inputs that are rounded with a node."""
    places = _FLOAT_INPUTS.get(node.op_type, range(len(node.input)))
    return [at for at in places if at < len(node.input) and node.input[at]]


class _Rewriting:
    """One pass over a graph: each tensor exists in single, in half, or in both precisions."""

    def __init__(self, graph: GraphProto) -> None:
        self._graph = graph
        self._outputs = {value.name for value in graph.output}
        self._weights = {tensor.name: tensor for tensor in graph.initializer}
        self._taken = {name for node in graph.node for name in (*node.input, *node.output)}
        self._half: dict[str, str] = {}
        """Names of tensors in half precision, by their own."""
        self._single = {*self._weights, *(value.name for value in graph.input)}

    def kept(self, node: NodeProto) -> list[NodeProto]:
        """Return a node that stays as it is, behind the casts that it needs."""
        out = [cast for name in (*node.input, *_captured(node)) for cast in self._in_single(name)]
        self._single.update(node.output)
        return [*out, node]

    def rounded(self, node: NodeProto) -> list[NodeProto]:
        """Return the nodes that replace a rounded one."""
        new = NodeProto()
        new.CopyFrom(node)
        out: list[NodeProto] = []
        for at in _rounded_inputs(node):
            out += self._in_half(node.input[at])
            new.input[at] = self._half[node.input[at]]
        for at, name in enumerate(node.output):
            if name:
                new.output[at] = self._half[name] = self._name(name)
        # What is no float must be there as it was.
        others = [name for name in node.input if name not in self._half]
        out += [cast for name in others for cast in self._in_single(name)]
        out.append(new)
        for name in self._outputs.intersection(node.output):
            out += self._in_single(name)
        return out

    def _in_single(self, name: str) -> list[NodeProto]:
        if not name or name in self._single or name not in self._half:
            return []
        self._single.add(name)
        return [_cast(self._half[name], name, TensorProto.FLOAT)]

    def _in_half(self, name: str) -> list[NodeProto]:
        if name in self._half:
            return []
        self._half[name] = self._name(name)
        if name not in self._weights:
            return [_cast(name, self._half[name], TensorProto.FLOAT16)]
        values = numpy_helper.to_array(self._weights[name])
        rounded = np.clip(values, -_LARGEST, _LARGEST).astype(np.float16)
        self._graph.initializer.append(numpy_helper.from_array(rounded, self._half[name]))
        return []

    def _name(self, name: str) -> str:
        half = f"{name}_half"
        while half in self._taken:
            half += "_"
        self._taken.add(half)
        return half

    def tidy(self) -> None:
        """Remove weights that no node reads any more."""
        used = {name for node in self._graph.node for name in (*node.input, *_captured(node))}
        used |= {value.name for value in self._graph.output}
        kept = [tensor for tensor in self._graph.initializer if tensor.name in used]
        del self._graph.initializer[:]
        self._graph.initializer.extend(kept)


def _cast(name: str, result: str, kind: int) -> NodeProto:
    return helper.make_node("Cast", [name], [result], to=kind)


def _captured(node: NodeProto) -> set[str]:
    """Return the names that a node's subgraphs may read from outside."""
    names: set[str] = set()
    for attribute in node.attribute:
        graphs = list(attribute.graphs)
        if attribute.type == AttributeProto.GRAPH:
            graphs.append(attribute.g)
        for graph in graphs:
            names |= {value.name for value in graph.output}
            for inner in graph.node:
                names |= {*inner.input, *_captured(inner)}
    return names
