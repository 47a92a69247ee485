"""Owns the step from a network to an ONNX file, and opening such a file to judge it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx
import onnxruntime as ort
import torch
from torch import Tensor, nn


def write_graph(
    module: nn.Module,
    inputs: Mapping[str, tuple[Tensor, Mapping[int, Any]]],
    outputs: Sequence[str],
    path: Path,
) -> None:
    """Write a network in inference mode as one ONNX file.

    Args:
        module: takes the inputs in order.
        inputs: by name, an example and the axes of it that are free, as torch.export has them.
        outputs: the outputs' names.
        path: the file, replaced when the new one is whole.
    """
    program = torch.onnx.export(
        module,
        tuple(example for example, _ in inputs.values()),
        input_names=list(inputs),
        output_names=list(outputs),
        dynamic_shapes={name: dict(axes) for name, (_, axes) in inputs.items()},
        dynamo=True,
        external_data=False,
        verbose=False,
    )
    assert program is not None
    partial = path.with_suffix(".partial")
    program.save(str(partial), external_data=False)
    onnx.save(without_traces(onnx.load(str(partial))), str(partial))
    partial.replace(path)


def without_traces(model: onnx.ModelProto) -> onnx.ModelProto:
    """Drop what the exporter notes about the machine it ran on: paths and stack traces."""
    graph = model.graph
    for part in (*graph.node, *graph.value_info, *graph.input, *graph.output, graph, model):
        part.doc_string = ""
        del part.metadata_props[:]
    return model


def open_session(path: Path, threads: int = 1) -> ort.InferenceSession:
    """Open a model on the CPU."""
    ort.set_default_logger_severity(4)
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
