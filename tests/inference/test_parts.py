"""Two families that are parts of one network: manifests and graphs that do not fit are errors."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.onnx_file import FLOAT, UINT8, Dims, graph, model, node, tensor, value
from edgebox.domain.errors import InvalidInputError
from edgebox.domain.model_family import VariantName
from edgebox.inference.executor import blank_canvas
from edgebox.inference.family import Family
from edgebox.inference.onnx_executor import OnnxExecutor
from edgebox.inference.zoo import load_zoo
from tests.inference.tiny_onnx import write_family

FEATURES = '[[features]]\nname = "mid"\nchannels = 3\nstride_px = 1\n'


def first_graph(*, answers: bool = True, features: bool = True) -> bytes:
    """Return a network whose answer is its picture, and whose feature is its picture too."""
    nodes, outputs = [], []
    if answers:
        nodes.append(node("Reshape", ["images", "shape"], ["output"]))
        outputs.append(value("output", FLOAT, ["b", 512, 6]))
    if features:
        nodes.append(node("Identity", ["images"], ["mid"]))
        outputs.append(value("mid", FLOAT, ["b", 3, 32, 32]))
    shape = tensor("shape", np.array([-1, 512, 6], np.int64))
    inputs = [value("images", FLOAT, ["b", 3, 32, 32])]
    return model(graph("first", nodes, inputs=inputs, outputs=outputs, tensors=[shape]))


def second_graph(name: str = "mid", kind: int = FLOAT, dims: Dims = ("b", 3, 32, 32)) -> bytes:
    """Return a network whose answer is what it is given."""
    nodes = [
        node("Cast", [name], ["floats"], to=FLOAT),
        node("Reshape", ["floats", "shape"], ["output"]),
    ]
    return model(
        graph(
            "second",
            nodes,
            inputs=[value(name, kind, dims)],
            outputs=[value("output", FLOAT, ["b", "n", 6])],
            tensors=[tensor("shape", np.array([0, -1, 6], np.int64))],
        )
    )


def write(folder: Path, content: bytes, name: str, *, features: str = FEATURES) -> Path:
    """Write a part's folder; `second` is after `first`."""
    write_family(folder / name, content, name=name, variant=f"{name}-32")
    manifest = folder / name / "family.toml"
    after = 'after = "first"\n' if name == "second" else ""
    manifest.write_text(f"{after}{manifest.read_text()}{features}")
    return folder / name


def problems(folder: Path, first: bytes, second: bytes, **of: str) -> str:
    """Return what is wrong with two parts; a mistake in one leaves the other one."""
    folders = [write(folder, first, "first"), write(folder, second, "second", **of)]
    zoo = load_zoo(folders)
    assert len(zoo.problems) == 1
    assert [family.name for family in zoo.families] in (["first"], [])
    return str(zoo.problems[0])


def parts(folder: Path) -> list[Family]:
    zoo = load_zoo([write(folder, first_graph(), "first"), write(folder, second_graph(), "second")])
    assert zoo.problems == ()
    return list(zoo.families)


def test_two_parts_that_fit(tmp_path: Path) -> None:
    first, second = parts(tmp_path)
    assert (first.features_given, first.after) == (1, None)
    assert (second.features_given, second.after) == (0, "first")
    first.insist_on_pictures()
    with pytest.raises(InvalidInputError, match="second is given features of first, not pictures"):
        second.insist_on_pictures()


@pytest.mark.parametrize(
    ("second", "wanted"),
    [
        (second_graph("other"), 'its inputs for [[features]] are "other", not "mid"'),
        (second_graph(kind=UINT8), '"mid" is tensor(uint8); features must be tensor(float)'),
        (second_graph(dims=("b", 6, 32, 32)), "does not fit the shape ['b', 6, 32, 32]"),
        (second_graph(dims=("b", 3072)), "does not fit the shape ['b', 3072]"),
    ],
)
def test_a_second_graph_that_its_manifest_does_not_describe(
    tmp_path: Path, second: bytes, wanted: str
) -> None:
    said = problems(tmp_path, first_graph(), second)
    assert said.startswith(f"{tmp_path / 'second' / 'family.toml'}: features: tiny.onnx does not")
    assert wanted in said


@pytest.mark.parametrize(
    ("features", "wanted"),
    [
        (FEATURES.replace("channels = 3", "channels = 6"), "features: "),
        (FEATURES.replace("stride_px = 1", "stride_px = 2"), "do not fit those of 'first'"),
        (FEATURES.replace("stride_px = 1", "stride_px = 5"), "must divide input.size_multiple_px"),
        (FEATURES * 2, "is used twice: 'mid'"),
        ("", "features is missing"),
    ],
)
def test_features_that_do_not_fit(tmp_path: Path, features: str, wanted: str) -> None:
    said = problems(tmp_path, first_graph(), second_graph(), features=features)
    assert str(tmp_path / "second" / "family.toml") in said
    assert wanted in said


def test_a_first_part_without_its_answer_or_without_features(tmp_path: Path) -> None:
    zoo = load_zoo([write(tmp_path / "a", first_graph(answers=False), "first")])
    assert "output.decoder 'yolox' reads 1 outputs, but tiny.onnx has 0" in str(zoo.problems[0])
    zoo = load_zoo([write(tmp_path / "b", first_graph(features=False), "first")])
    assert 'its last outputs for [[features]] are "output", not "mid"' in str(zoo.problems[0])


def test_an_exit_without_labels(tmp_path: Path) -> None:
    folder = write(tmp_path, first_graph(), "first")
    manifest = folder / "family.toml"
    manifest.write_text(manifest.read_text().replace('labels = ["a"]\n', ""))
    assert "labels is missing: a list of names" in str(load_zoo([folder]).problems[0])


def test_a_second_part_needs_its_first_part(tmp_path: Path) -> None:
    zoo = load_zoo([write(tmp_path, second_graph(), "second")])
    assert "after: 'first': there is no such family, or it was left out" in str(zoo.problems[0])
    assert zoo.families == ()


def test_other_labels_than_the_first_part(tmp_path: Path) -> None:
    folders = [write(tmp_path, first_graph(), "first"), write(tmp_path, second_graph(), "second")]
    manifest = folders[1] / "family.toml"
    manifest.write_text(manifest.read_text().replace('labels = ["a"]', 'labels = ["b"]'))
    assert "labels: must be those of 'first'" in str(load_zoo(folders).problems[0])


def test_an_executor_runs_the_second_part_on_what_the_first_left() -> None:
    models = Path(__file__).parents[2] / "models"
    families = load_zoo([models / name for name in ("street-exit", "street-rest")]).families
    executor = OnnxExecutor(0, families, cpu_threads=1)
    try:
        name = VariantName("street-exit-128")
        canvas = np.random.default_rng(0).integers(0, 256, (96, 128, 3), dtype=np.uint8)
        blank = blank_canvas(families[0].variant(name))
        first = executor.submit(name, [canvas, blank], 4).result()
        assert [of.shape[0] for of in first.features] == [4, 4]
        rest = VariantName("street-rest-128")
        features = [first.features_of(row) for row in range(2)]
        both = executor.submit(rest, features, 2).result()
        alone = executor.submit(rest, features[1:], 1).result()
        np.testing.assert_allclose(both.detections[1].boxes, alone.detections[0].boxes, atol=1e-3)
        assert both.features == ()
        # What measures a second part gives pictures, which stand for features of any.
        assert executor.submit(rest, [blank], 1).result().took_ns > 0
        error = executor.submit(rest, [features[0][:1] * 2], 1).exception()
        assert "takes features 'coarse'" in str(error)
    finally:
        executor.close()
