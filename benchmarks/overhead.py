"""Measures what edgebox adds to a model it imported, and where overlaps are best removed.

    python -m benchmarks.overhead [FILE.onnx ...] [--json]

Each file (none: a made-up network of the YOLOv8 layout, 640 px) is imported, then three things run
in turn on one thread: the original by bare `session.run` on its ready float tensor, the served
graph by bare `session.run` on uint8 pictures, and edgebox's executor, which tells how long a batch
kept it. What is "of" is the executor's throughput over a bare one's. Outside is what the executor
does beside the session: filling the input and reading the outputs. The second table is the decoding
alone, on 8400 rows with a number of objects of 15 overlapping boxes each: overlaps removed in the
graph, or after it in numpy.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from rich.console import Console
from rich.table import Table

from edgebox.domain.model_family import ExecutorId
from edgebox.inference.executor import SCORE_FLOOR
from edgebox.inference.importing.files import read_source
from edgebox.inference.importing.importer import ImportOptions, import_family
from edgebox.inference.importing.layouts import Layout, layout_named
from edgebox.inference.importing.original import Original
from edgebox.inference.importing.reading import Decoding, cells_of
from edgebox.inference.importing.recognition import on_canvas
from edgebox.inference.importing.serving import served_model
from edgebox.inference.importing.writing import Rows
from edgebox.inference.machine import processor_name
from edgebox.inference.onnx_executor import OnnxExecutor
from edgebox.inference.sessions import CPU, session_options
from edgebox.inference.tensors import InputTensors
from edgebox.scene.street_camera import Scene
from edgebox.vision.decoding import DECODERS, decode_boxes_scores_labels
from edgebox.vision.nms import class_aware_nms

SIDE_PX = 640
CLASSES = 80
STRIDES = (8, 16, 32)
WIDTHS = (16, 32, 64, 128, 256)
COPIES = 15
OBJECTS = (0, 5, 20, 60, 200)
WARM_RUNS = 3

Run = Callable[[], object]


def session_of(content: bytes) -> Any:
    """Return a session with one thread."""
    return ort.InferenceSession(content, session_options(1), [CPU])


def medians_ms(runs: Sequence[Run], times: int) -> list[float]:
    """Return the median time of each of several things, run in turn; some tell theirs."""
    samples: list[list[int]] = [[] for _ in runs]
    for number in range(WARM_RUNS + times):
        for which, run in enumerate(runs):
            began_ns = time.perf_counter_ns()
            own_ns = run()
            took_ns = own_ns if isinstance(own_ns, int) else time.perf_counter_ns() - began_ns
            if number >= WARM_RUNS:
                samples[which].append(took_ns)
    return [float(np.median(each)) / 1e6 for each in samples]


class Network:
    """A convolutional network with random weights and, in its scores, objects."""

    def __init__(self, objects: int, backbone: bool) -> None:
        """Make it; without a backbone nothing but its outputs is left."""
        self._rng = np.random.default_rng(0)
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        value = "images"
        grids = []
        before = 3
        if backbone:
            for number, width in enumerate(WIDTHS):
                value = self._conv(value, before, width, 3, stride=2)
                value = self._conv(value, width, width, 3)
                before = width
                if number >= 2:
                    grid = self._conv(value, width, 4 + CLASSES, 1, last=True)
                    flat = self._constant(np.array([0, 4 + CLASSES, -1], np.int64))
                    grids.append(self._add("Reshape", grid, flat))
            value = self._add("Sigmoid", self._add("Concat", *grids, axis=2))
            value = self._add("Mul", value, self._constant(np.array(1e-3, np.float32)))
        else:
            mean = self._add("ReduceMean", value, axes=[1, 2, 3], keepdims=0)
            mean = self._add("Reshape", mean, self._constant(np.array([-1, 1, 1], np.int64)))
            value = self._add("Mul", mean, self._constant(np.array(1e-3, np.float32)))
        rows = self._constant(head_rows(objects)[None])
        self._nodes.append(helper.make_node("Add", [value, rows], ["output0"]))

    def content(self) -> bytes:
        """Return the file's content."""
        dims: list[str | int | None] = ["batch", 3, SIDE_PX, SIDE_PX]
        pictures = helper.make_tensor_value_info("images", TensorProto.FLOAT, dims)
        found = helper.make_tensor_value_info("output0", TensorProto.FLOAT, ["batch", 84, 8400])
        graph = helper.make_graph(self._nodes, "made up", [pictures], [found], self._constants)
        opset = [helper.make_opsetid("", 17)]
        made = helper.make_model(graph, opset_imports=opset, ir_version=8)
        return bytes(made.SerializeToString())

    def _constant(self, values: NDArray[Any]) -> str:
        name = f"c{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(values, name))
        return name

    def _add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def _conv(
        self, value: str, before: int, after: int, side: int, *, stride: int = 1, last: bool = False
    ) -> str:
        scale = (2.0 / (before * side * side)) ** 0.5
        weights = self._rng.normal(0.0, scale, (after, before, side, side)).astype(np.float32)
        pads, strides = [side // 2] * 4, [stride, stride]
        made = self._add("Conv", value, self._constant(weights), pads=pads, strides=strides)
        return made if last else self._add("Relu", made)


def head_rows(objects: int) -> NDArray[np.float32]:
    """Return (84, 8400): objects of several overlapping boxes each, next to nothing elsewhere."""
    rng = np.random.default_rng(objects)
    cells = cells_of(STRIDES, SIDE_PX, SIDE_PX)
    rows = np.full((4 + CLASSES, len(cells)), 1e-4, np.float32)
    rows[:2] = ((cells[:, :2] + 0.5) * cells[:, 2:]).T
    rows[2:4] = cells[:, 2]
    for _ in range(objects):
        centre, sides = rng.uniform(60, 580, 2), rng.uniform(30, 100, 2)
        label = rng.integers(CLASSES)
        away = np.abs(rows[:2] - centre[:, None]).max(axis=0) + 1e9 * (rows[4:].max(axis=0) > 0.1)
        for at in np.argsort(away)[:COPIES]:
            rows[:2, at] = centre + rng.normal(0, 3, 2)
            rows[2:4, at] = sides * rng.uniform(0.9, 1.1, 2)
            rows[4 + label, at] = rng.uniform(0.2, 0.9)
    return rows


def measure_model(path: Path, times: int) -> dict[str, Any]:
    """Import a file, run it in three ways, and compare."""
    with tempfile.TemporaryDirectory() as folder:
        began_s = time.monotonic()
        imported = import_family([path], Path(folder) / "models", ImportOptions())
        import_s = time.monotonic() - began_s
        family, how = imported.family, imported.candidate.match.layout.preprocessing
        variant = family.variants[-1]
        canvas = on_canvas(Scene(3).render(2.0).rgb, how, (variant.width_px, variant.height_px))
        original = Original(read_source(path))
        feed = original.feed([canvas], how)
        bare = session_of(original.source.model.SerializeToString())
        served = session_of(family.model_files[0].path.read_bytes())
        pictures = {served.get_inputs()[0].name: canvas[None]}
        tensors, outputs = InputTensors(), served.run(None, pictures)
        decode = DECODERS[family.decoder]

        def beside() -> None:
            tensors.fill(family.input, variant, [canvas], 1)
            decode(outputs, variant.width_px, variant.height_px, SCORE_FLOOR)

        executor = OnnxExecutor(ExecutorId("cpu/0"), [family], providers="cpu", cpu_threads=1)
        try:
            original_ms, served_ms, executor_ms, outside_ms = medians_ms(
                [
                    lambda: bare.run(None, feed),
                    lambda: served.run(None, pictures),
                    lambda: executor.submit(variant.name, [canvas], 1).result().took_ns,
                    beside,
                ],
                times,
            )
        finally:
            executor.close()
    return {
        "model": path.name,
        "layout": imported.candidate.name,
        "file_mb": round(path.stat().st_size / 1e6, 1),
        "import_s": round(import_s, 1),
        "original_ms": round(original_ms, 2),
        "served_ms": round(served_ms, 2),
        "executor_ms": round(executor_ms, 2),
        "of_original": round(original_ms / executor_ms, 3),
        "of_served": round(served_ms / executor_ms, 3),
        "outside_ms": round(outside_ms, 2),
    }


def decoding_graph(path: Path, layout: Layout) -> bytes:
    """Return a file's served graph, as if it were of a layout."""
    original = Original(read_source(path))
    decoding = Decoding(layout.head, CLASSES, CLASSES)
    made = served_model(
        original,
        layout,
        decoding,
        (("output0",),),
        batch=None,
        fixed_px=(SIDE_PX, SIDE_PX),
        rows=Rows(8400, STRIDES),
    )
    return bytes(made.SerializeToString())


def measure_overlaps(objects: int, times: int) -> dict[str, Any]:
    """Run the decoding alone with overlaps removed inside and outside of the graph."""
    layout = layout_named("yolov8")
    assert layout is not None
    without = replace(layout, head=replace(layout.head, nms_iou=None))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "head.onnx"
        path.write_bytes(Network(objects, backbone=False).content())
        inside = session_of(decoding_graph(path, layout))
        outside = session_of(decoding_graph(path, without))
    feed = {"pictures": np.zeros((1, SIDE_PX, SIDE_PX, 3), np.uint8)}

    def read(session: Any) -> Any:
        outputs = session.run(None, feed)
        return decode_boxes_scores_labels(outputs, SIDE_PX, SIDE_PX, SCORE_FLOOR)[0]

    def in_numpy() -> Any:
        found = read(outside)
        kept = class_aware_nms(found.boxes, found.scores, found.labels, layout.head.nms_iou or 0.0)
        return found.select(kept)

    inside_ms, outside_ms, never_ms = medians_ms(
        [lambda: read(inside), in_numpy, lambda: read(outside)], times
    )
    return {
        "objects": objects,
        "candidates": len(read(outside)),
        "left": len(read(inside)),
        "in_graph_ms": round(inside_ms - never_ms, 2),
        "in_numpy_ms": round(outside_ms - never_ms, 2),
        "decoding_ms": round(never_ms, 2),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = list(arguments.files)
        if not files:
            files = [Path(folder) / "made-up.onnx"]
            files[0].write_bytes(Network(20, backbone=True).content())
        models = [measure_model(path, arguments.runs) for path in files]
    overlaps = [measure_overlaps(objects, arguments.runs) for objects in OBJECTS]
    if arguments.json:
        print(json.dumps({"models": models, "overlaps": overlaps}, indent=2))
        return
    console = Console(width=140)
    console.print(processor_name())
    for title, rows in (("Imported models", models), ("Removal of overlaps", overlaps)):
        table = Table(*rows[0], title=title)
        for row in rows:
            table.add_row(*map(str, row.values()))
        console.print(table)


if __name__ == "__main__":
    main()
