"""Networks whose sides are free: real convolutions, compared with the same sums in numpy."""

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper

from edgebox.domain.model_family import ExecutorId
from edgebox.inference.importing.folding import fold
from edgebox.inference.importing.importer import ImportOptions, import_family
from edgebox.inference.importing.layouts import Layout, Preprocessing
from edgebox.inference.onnx_executor import OnnxExecutor
from tests.inference.importing.planted import LABELS
from tests.inference.importing.zoo_of_layouts import layout

STRIDES = (8, 16, 32)
RNG = np.random.default_rng(4)
Array = NDArray[Any]


def weights_of(columns: int, how: Preprocessing) -> dict[int, tuple[Array, Array]]:
    """Return a convolution's weights and bias for each stride."""
    made = {}
    for stride in STRIDES:
        scale = 0.05 if how.divisor > 1.0 else 0.05 / 255.0
        weights = RNG.normal(0.0, scale / stride, (columns, 3, stride, stride))
        made[stride] = (weights.astype(np.float32), RNG.normal(-1.0, 0.5, columns))
    return made


def network(columns: int, made: dict[int, tuple[Array, Array]], sure: slice) -> bytes:
    """Return a model that sees each cell through one convolution; `sure` columns are shares."""
    nodes, constants, grids = [], [], []
    for stride, (weights, bias) in made.items():
        name = f"s{stride}"
        constants += [
            numpy_helper.from_array(weights, f"{name}_w"),
            numpy_helper.from_array(bias.astype(np.float32), f"{name}_b"),
            numpy_helper.from_array(np.array([0, columns, -1], np.int64), f"{name}_d"),
        ]
        conv = helper.make_node(
            "Conv", ["shared", f"{name}_w", f"{name}_b"], [name], strides=[stride] * 2
        )
        flat = helper.make_node("Reshape", [name, f"{name}_d"], [f"{name}_flat"])
        nodes += [conv, flat]
        grids.append(f"{name}_flat")
    nodes.insert(0, helper.make_node("Identity", ["images"], ["shared"]))
    nodes.append(helper.make_node("Concat", grids, ["columns_first"], axis=2))
    nodes.append(helper.make_node("Transpose", ["columns_first"], ["rows"], perm=[0, 2, 1]))
    shares = np.zeros(columns, bool)
    shares[sure] = True
    constants.append(numpy_helper.from_array(shares, "shares"))
    nodes.append(helper.make_node("Sigmoid", ["rows"], ["as_shares"]))
    nodes.append(helper.make_node("Where", ["shares", "as_shares", "rows"], ["output"]))
    images = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["b", 3, "h", "w"])
    output = helper.make_tensor_value_info("output", TensorProto.FLOAT, ["b", "rows", columns])
    graph = helper.make_graph(nodes, "network", [images], [output], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8)
    content: bytes = model.SerializeToString()
    return content


def rows_by_hand(
    made: dict[int, tuple[Array, Array]], how: Preprocessing, canvas: Array, sure: slice
) -> list[tuple[int, int, int, Array]]:
    """Return column, row, stride and outputs of every cell of a canvas."""
    colours = canvas[..., ::-1] if how.order == "bgr" else canvas
    fed = (colours.astype(np.float64) / how.divisor - how.mean) / how.std
    rows = []
    for stride, (weights, bias) in made.items():
        for y in range(canvas.shape[0] // stride):
            for x in range(canvas.shape[1] // stride):
                seen = fed[y * stride : (y + 1) * stride, x * stride : (x + 1) * stride]
                values = np.einsum("ochw,hwc->o", weights.astype(np.float64), seen) + bias
                values[sure] = 1.0 / (1.0 + np.exp(-values[sure]))
                rows.append((x, y, stride, values))
    return rows


def yolox_boxes(rows: list[tuple[int, int, int, Array]]) -> list[tuple[float, int, list[float]]]:
    """Return score, label and box of every row of YOLOX's head."""
    out = []
    for x, y, stride, v in rows:
        cx, cy = (v[0] + x) * stride, (v[1] + y) * stride
        w, h = np.exp(v[2]) * stride, np.exp(v[3]) * stride
        label = int(v[5:].argmax())
        box = [cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2]
        out.append((float(v[4] * v[5 + label]), label, box))
    return out


def nanodet_boxes(rows: list[tuple[int, int, int, Array]]) -> list[tuple[float, int, list[float]]]:
    """Return score, label and box of every row of NanoDet's first head."""
    out = []
    for x, y, stride, v in rows:
        shares = np.exp(v[3:].reshape(4, 8))
        sides = (shares / shares.sum(axis=1, keepdims=True)) @ np.arange(8) * stride
        cx, cy = (x + 0.5) * stride, (y + 0.5) * stride
        label = int(v[:3].argmax())
        box = [cx - sides[0], cy - sides[1], cx + sides[2], cy + sides[3]]
        out.append((float(v[label]), label, box))
    return out


def overlap(a: list[float], b: list[float]) -> float:
    w, h = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    shared = max(w, 0.0) * max(h, 0.0)
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    return shared / (sum(areas) - shared)


def without_overlaps(
    found: list[tuple[float, int, list[float]]], iou: float
) -> list[tuple[float, int, list[float]]]:
    """Keep the best of each class, by the definition."""
    kept: list[tuple[float, int, list[float]]] = []
    for each in sorted(found, reverse=True):
        if all(each[1] != k[1] or overlap(each[2], k[2]) <= iou for k in kept):
            kept.append(each)
    return kept


def shows(box: list[float], size_px: tuple[int, int]) -> bool:
    """Say whether something of a box lies in the picture."""
    return min(box[2:]) > 0.0 and box[0] < size_px[0] and box[1] < size_px[1]


CASES = [
    (layout("yolox"), 8, slice(4, None), yolox_boxes),
    (layout("nanodet"), 35, slice(0, 3), nanodet_boxes),
]


@pytest.mark.parametrize(("of", "columns", "sure", "by_hand"), CASES, ids=["yolox", "nanodet"])
def test_one_file_serves_every_size(
    tmp_path: Path, of: Layout, columns: int, sure: slice, by_hand: Any
) -> None:
    how = of.preprocessing
    made = weights_of(columns, how)
    path = tmp_path / "net.onnx"
    path.write_bytes(network(columns, made, sure))
    sizes = ((128, 128), (160, 128), (192, 192))
    import_options = ImportOptions(labels=LABELS, sizes_px=sizes)
    family = import_family([path], tmp_path / "models", import_options).family
    assert len(family.model_files) == 1
    assert [(v.width_px, v.height_px) for v in family.variants] == list(sizes)
    executor = OnnxExecutor(ExecutorId("cpu/0"), [family], providers="cpu", cpu_threads=1)
    try:
        for variant in family.variants:
            size = (variant.width_px, variant.height_px)
            # Noise: no two cells look alike, so no two scores are.
            shape = (2, variant.height_px, variant.width_px, 3)
            canvases = list(RNG.integers(0, 256, shape, dtype=np.uint8))
            answers = executor.submit(variant.name, canvases, 2).result().detections
            for canvas, found in zip(canvases, answers, strict=True):
                rows = rows_by_hand(made, how, canvas, sure)
                kept = without_overlaps(by_hand(rows), of.head.nms_iou or 0.0)
                expected = [e for e in kept if shows(e[2], size)][:10]
                order = np.argsort(-found.scores)[:10]
                assert found.scores[order] == pytest.approx([e[0] for e in expected], abs=1e-4)
                assert found.labels[order].tolist() == [e[1] for e in expected]
                clipped = np.clip([e[2] for e in expected], 0, [*size, *size])
                assert found.boxes[order] == pytest.approx(clipped, abs=0.05)
    finally:
        executor.close()


def convolution(groups: int = 1) -> ModelProto:
    """Return a model that begins with a convolution over a border."""
    weights = RNG.normal(size=(6, 3 // groups, 3, 3)).astype(np.float32)
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1], group=groups)
    dims: list[str | int | None] = ["b", 3, "h", "w"]
    graph = helper.make_graph(
        [node],
        "first",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["b", 6, "h", "w"])],
        [numpy_helper.from_array(weights, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def run(model: ModelProto, values: Array) -> Array:
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    result: Array = session.run(None, {"x": values.astype(np.float32)})[0]
    return result


@pytest.mark.parametrize("reverse", [False, True])
def test_scale_and_colours_move_into_the_first_convolution(reverse: bool) -> None:
    gain = np.array([0.5, 0.25, 0.125])
    pictures = RNG.integers(0, 256, (2, 3, 9, 7)).astype(np.float64)
    model = convolution()
    ordered = pictures[:, ::-1] if reverse else pictures
    expected = run(model, ordered * gain[:, None, None])
    assert fold(model, "x", gain, reverse=reverse)
    assert run(model, pictures) == pytest.approx(expected, rel=1e-4, abs=1e-2)


def test_what_cannot_move_stays() -> None:
    plain = convolution()
    twice = convolution()
    twice.graph.node.append(helper.make_node("Identity", ["x"], ["z"]))
    shared = convolution()
    shared.graph.node.append(helper.make_node("Identity", ["w"], ["z"]))
    for model in (convolution(groups=3), twice, shared):
        before = model.SerializeToString()
        assert not fold(model, "x", np.ones(3), reverse=True)
        assert model.SerializeToString() == before
    assert fold(plain, "x", np.ones(3), reverse=True)
