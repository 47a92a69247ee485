"""Decides which ONNX files are accepted, and reads them whole; no other file is opened.

A model is a program. External data, operators of other domains and extreme sizes are refused
before ONNX Runtime reads the model.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError
from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto

from edgebox.domain.errors import ModelError
from edgebox.inference.importing.operators import OPSET_MIN
from edgebox.inference.numbered_names import in_order

FILE_BYTES_MAX = 512 << 20
NODES_MAX = 50_000
SIDE_MAX_PX = 4096
LABELS_MAX = 100_000
_TEXT_MAX = 200
"""Characters of a label or a licence."""

_DOMAINS = frozenset(("", "ai.onnx", "ai.onnx.ml", "com.microsoft"))
"""Operators that ONNX Runtime brings itself."""
_OPSET_CONVERTED_TO = 13


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A model file that was found acceptable."""

    path: Path
    model: ModelProto
    opset: int
    metadata: Mapping[str, str]
    size_bytes: int

    @property
    def licence(self) -> str:
        """Licence in the file; empty: none."""
        return _one_line(self.metadata.get("license", ""))

    @property
    def names(self) -> tuple[str, ...] | None:
        """Label names as Ultralytics writes them; None: there are none."""
        return _names(self.metadata.get("names", ""))

    @property
    def task(self) -> str:
        """Task in Ultralytics' metadata; empty: none."""
        return self.metadata.get("task", "")

    @property
    def size_px(self) -> tuple[int, int] | None:
        """Height and width of the export, by Ultralytics' metadata; None: not given."""
        sides = _literal(self.metadata.get("imgsz", ""))
        if isinstance(sides, int):
            sides = [sides, sides]
        fits = isinstance(sides, list | tuple) and len(sides) == 2
        if not fits or not all(isinstance(s, int) and 0 < s <= SIDE_MAX_PX for s in sides):
            return None
        return (sides[0], sides[1])


def size_of(path: Path) -> int:
    """Return the bytes that a model file has.

    Raises:
        ModelError: it is missing or too large.
    """
    try:
        size_bytes = path.stat().st_size
    except FileNotFoundError:
        raise ModelError(f"{path}: there is no such file") from None
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}") from None
    if path.is_file() and size_bytes > FILE_BYTES_MAX:
        raise ModelError(
            f"{path}: has {size_bytes >> 20} MiB; at most {FILE_BYTES_MAX >> 20} are taken"
        )
    return size_bytes


def read_source(path: Path) -> SourceFile:
    """Read a model file.

    Raises:
        ModelError: it is missing, too large, no ONNX model, cut short, or reaches outside itself.
    """
    size_bytes = size_of(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}") from None
    model = ModelProto()
    try:
        model.ParseFromString(content)
    except DecodeError:
        raise ModelError(f"{path}: is not an ONNX model, or is cut short") from None
    if not model.graph.node or not model.graph.output or not model.opset_import:
        raise ModelError(f"{path}: is not an ONNX model, or is cut short: it has no graph")
    _check_nodes(path, model)
    for tensor in _tensors(model):
        _check_tensor(path, tensor, len(content))
    model, opset = _with_known_opset(path, model)
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    return SourceFile(path, model, opset, metadata, size_bytes)


def _check_nodes(path: Path, model: ModelProto) -> None:
    own = {(function.domain, function.name) for function in model.functions}
    count = 0
    for node in _nodes(model):
        count += 1
        if node.domain not in _DOMAINS and (node.domain, node.op_type) not in own:
            raise ModelError(
                f"{path}: uses the operator {node.op_type!r} of {node.domain!r}, which ONNX "
                "Runtime does not have; export the model without it (TensorRT's NMS, say)"
            )
    if count > NODES_MAX:
        raise ModelError(f"{path}: has {count} operators; at most {NODES_MAX} are taken")


def _check_tensor(path: Path, tensor: TensorProto, file_bytes: int) -> None:
    if tensor.data_location == TensorProto.EXTERNAL or tensor.external_data:
        raise ModelError(
            f"{path}: keeps the weights {tensor.name!r} in another file; edgebox opens nothing "
            "beside the model: save it as one file (onnx.save without external data)"
        )
    elements = 1
    for length in tensor.dims:
        if length < 0:
            raise ModelError(f"{path}: the weights {tensor.name!r} have a negative length")
        elements *= length
    # The smallest types take half a byte, so honest weights never claim more than this.
    if elements > 2 * file_bytes:
        raise ModelError(
            f"{path}: the weights {tensor.name!r} claim {elements} numbers, more than the file has"
        )


def _with_known_opset(path: Path, model: ModelProto) -> tuple[ModelProto, int]:
    versions = [entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")]
    opset = max(versions, default=OPSET_MIN)
    if opset >= OPSET_MIN:
        return model, opset
    try:
        return onnx.version_converter.convert_version(model, _OPSET_CONVERTED_TO), 13
    except Exception as error:  # its C++ exceptions share no base but Exception
        raise ModelError(
            f"{path}: is written for opset {opset}, which cannot be converted; export it again "
            f"for opset {OPSET_MIN} or later"
        ) from error


def graphs_of(model: ModelProto) -> Iterator[GraphProto | FunctionProto]:
    """Yield the main graph, those within its operators, and functions."""
    waiting: list[GraphProto | FunctionProto] = [model.graph, *model.functions]
    waiting += [info.algorithm for info in model.training_info]
    waiting += [info.initialization for info in model.training_info]
    while waiting:
        graph = waiting.pop()
        yield graph
        for attribute in _attributes(graph):
            if attribute.HasField("g"):
                waiting.append(attribute.g)
            waiting += attribute.graphs


def _attributes(graph: GraphProto | FunctionProto) -> Iterator[AttributeProto]:
    """Yield the attributes of its operators, and a function's defaults of its own."""
    if isinstance(graph, FunctionProto):
        yield from graph.attribute_proto
    for node in graph.node:
        yield from node.attribute


def _nodes(model: ModelProto) -> Iterator[NodeProto]:
    for graph in graphs_of(model):
        yield from graph.node


def _tensors(model: ModelProto) -> Iterator[TensorProto]:
    for graph in graphs_of(model):
        if isinstance(graph, GraphProto):
            yield from graph.initializer
            for sparse in graph.sparse_initializer:
                yield from (sparse.values, sparse.indices)
        for attribute in _attributes(graph):
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            for sparse in (attribute.sparse_tensor, *attribute.sparse_tensors):
                yield from (sparse.values, sparse.indices)


def _one_line(text: str) -> str:
    """Return text of a stranger's file without anything that a terminal would obey."""
    shown = "".join(letter if letter.isprintable() else " " for letter in text[:_TEXT_MAX])
    return " ".join(shown.split())


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def _names(text: str) -> tuple[str, ...] | None:
    """Read "{0: 'person', 1: 'car'}" or a list; numbers must be 0 to n - 1."""
    values = _literal(text)
    if isinstance(values, dict):
        values = in_order(values)
    if not isinstance(values, list | tuple) or not 0 < len(values) <= LABELS_MAX:
        return None
    return unique_names([str(value) for value in values])


def unique_names(names: list[str]) -> tuple[str, ...]:
    """Return names on one line each; what is empty or comes again gets its number."""
    seen: set[str] = set()
    for number, name in enumerate(names):
        plain = _one_line(name) or f"class {number}"
        while plain in seen:
            plain = f"{plain} ({number})"
        seen.add(plain)
        names[number] = plain
    return tuple(names)
