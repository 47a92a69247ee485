"""Manifests: each mistake is refused with the file and the key."""

from pathlib import Path

import numpy as np
import pytest

from edgebox.domain.errors import ModelError
from edgebox.domain.model_family import AccuracyReport, VariantName
from edgebox.inference.family import read_manifest

MANIFEST = f"""
name = "street"
task = "detect"
file = "street.onnx"
sha256 = "{"0a" * 32}"
licence = "Apache-2.0"
labels = ["person", "car"]
[input]
layout = "nchw"
dtype = "uint8"
order = "rgb"
fit = "letterbox_centre"
fill = 114
size_multiple_px = 32
[output]
decoder = "boxes_scores_labels"
[[variants]]
name = "street-160"
width_px = 160
height_px = 96
accuracy = 0.4
map50 = 0.5
[[variants]]
name = "street-128"
width_px = 128
height_px = 96
accuracy = 1
"""


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "family.toml"
    file.write_text(text)
    return file


def test_a_manifest_is_read_whole(tmp_path: Path) -> None:
    family = read_manifest(written(tmp_path, MANIFEST))
    assert (family.name, family.labels) == ("street", ("person", "car"))
    assert family.model_files[0].path == tmp_path / "street.onnx"
    assert (family.input.layout, family.input.fit, family.input.fill) == ("nchw", "centre", 114)
    assert family.input.shape(2, 160, 96) == (2, 3, 96, 160)
    assert [(v.name, v.pixels, v.accuracy) for v in family.variants] == [
        ("street-128", 128 * 96, 1.0),
        ("street-160", 160 * 96, 0.4),
    ]
    assert family.variant(VariantName("street-160")).width_px == 160
    with pytest.raises(ModelError, match="no variant 'street-1'"):
        family.variant(VariantName("street-1"))


def test_what_is_left_out_has_a_default(tmp_path: Path) -> None:
    text = MANIFEST.replace('fit = "letterbox_centre"\nfill = 114\n', "")
    spec = read_manifest(written(tmp_path, text)).input
    assert (spec.fit, spec.fill, spec.scale, spec.std) == ("top_left", 114, 1.0, (1.0, 1.0, 1.0))


def test_coco_is_known_by_name(tmp_path: Path) -> None:
    text = MANIFEST.replace('["person", "car"]', '"coco80"')
    assert read_manifest(written(tmp_path, text)).labels[79] == "toothbrush"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('name = "street"\n', "", "name is missing; it must be a text"),
        ('name = "street"\n', "name = 3\n", "name must be a text that is not empty, not 3"),
        ('task = "detect"', 'task = "dream"', 'task must be one of "detect", "classify", "embed"'),
        ('file = "street.onnx"', 'file = "../x.onnx"', "file must name a file in the same folder"),
        ("sha256 = ", 'sha256 = "abc" # ', "sha256 must be 64 hexadecimal digits"),
        ("labels = ", "labels = [] # ", "labels must be a list of names"),
        ("labels = ", 'labels = ["a", "a"] # ', "labels must not name a label twice"),
        ("labels = ", 'labels = "coco" # ', "one of \"coco80\", not 'coco'"),
        ("[input]\n", "[input]\nsize = 3\n", "input.size is not a known key"),
        ("fill = 114", "fill = 256", "input.fill must be a whole number from 0 to 255, not 256"),
        ("fill = 114", "scale = 0.5", 'input.dtype must be "float32" where scale'),
        ("fill = 114", "fill = true", "input.fill must be a whole number from 0 to 255, not True"),
        ('order = "rgb"', 'order = "grb"', 'input.order must be one of "rgb", "bgr"'),
        ('decoder = "boxes', 'decoder = "fancy', "output.decoder must be one of"),
        ("width_px = 128", "width_px = 130", "variants[1].width_px must be a multiple of"),
        ("width_px = 128", "width_px = -32", "variants[1].width_px must be a whole number from 1"),
        ("accuracy = ", "accuracy = 1.5 # ", "variants[0].accuracy must be a number from 0 to 1"),
        ("street-160", "street-128", "variants[1].name is used twice: 'street-128'"),
        ("map50 = ", "accuracy_assumed = 1 # ", "accuracy_assumed must be true or false, not 1"),
        ("map50 = ", 'file = ".." # ', "variants[0].file must name a file in the same folder"),
        ("map50 = ", 'file = "a.onnx" # ', "variants[0].sha256 is missing"),
        ("[input]\n", "[import]\nlayout = 3\n[input]\n", "import.layout must be a text"),
        ("map50 = ", 'weight = "x" # ', "variants[0].weight is not a known key"),
        ("[input]", "[input", "is not valid TOML"),
        (
            "map50 = ",
            "accuracy_by_side = [] # ",
            "variants[0].accuracy_by_side must be a list of [",
        ),
        ("map50 = ", "accuracy_by_side = [3] # ", "accuracy_by_side must have pairs of a side"),
        ("map50 = ", "accuracy_by_side = [[-1, 0]] # ", "must have pairs of a side from 0 to"),
        ("map50 = ", "accuracy_by_side = [[9, 1.1]] # ", "and an accuracy from 0 to 1"),
        (
            "map50 = ",
            "accuracy_by_side = [[9, 0], [9, 1]] # ",
            "must have rising sides, not [9, 1]",
        ),
    ],
)
def test_a_wrong_manifest_names_the_key(tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert old in MANIFEST
    file = written(tmp_path, MANIFEST.replace(old, new, 1))
    with pytest.raises(ModelError) as caught:
        read_manifest(file)
    assert str(caught.value).startswith(f"{file}: ")
    assert expected in str(caught.value)


def test_accuracy_by_the_side_of_objects(tmp_path: Path) -> None:
    table = "accuracy_by_side = [[12, 0.5], [20, 0.9]]\nmap50 = "
    other, known = read_manifest(written(tmp_path, MANIFEST.replace("map50 = ", table, 1))).variants
    at = [known.accuracy_at(side_px) for side_px in (0, 12, 14, 20, 500)]
    assert at == pytest.approx([0.5, 0.5, 0.6, 0.9, 0.9])
    assert other.accuracy_at(12) == other.accuracy


def test_variants_may_have_files_of_their_own(tmp_path: Path) -> None:
    own = f'accuracy = 1\naccuracy_assumed = true\nfile = "small.onnx"\nsha256 = "{"1b" * 32}"\n'
    text = MANIFEST.replace("accuracy = 1\n", own)
    family = read_manifest(written(tmp_path, text))
    small, large = (family.files[v.name] for v in family.variants)
    assert (small.path.name, large.path.name) == ("small.onnx", "street.onnx")
    assert family.model_files == (small, large)
    assert family.accuracy_assumed == {"street-128"}
    assert len(family.sha256) == 64
    assert family.sha256 not in (small.sha256, large.sha256)


def test_an_import_leaves_its_trace(tmp_path: Path) -> None:
    text = MANIFEST.replace("[input]", '[import]\nlayout = "yolox"\nsources = ["a.onnx"]\n[input]')
    origin = read_manifest(written(tmp_path, text)).origin
    assert origin is not None
    assert (origin.layout, origin.sources, origin.remarks) == ("yolox", ("a.onnx",), ())


def test_a_manifest_without_variants(tmp_path: Path) -> None:
    file = written(tmp_path, MANIFEST.split("[[variants]]", maxsplit=1)[0])
    with pytest.raises(ModelError, match="variants is missing"):
        read_manifest(file)


def test_a_manifest_that_is_no_text(tmp_path: Path) -> None:
    file = tmp_path / "family.toml"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ModelError, match="cannot be read"):
        read_manifest(file)


def test_accuracy_reports_are_taken_for_known_variants_and_end_the_guess(tmp_path: Path) -> None:
    text = MANIFEST.replace("accuracy = 0.4\n", "accuracy = 0.4\naccuracy_assumed = true\n")
    family = read_manifest(written(tmp_path, text))
    small, large = (variant.name for variant in family.variants)
    found = AccuracyReport("F1", 0.7, 0.01, "gate.mp4", 300, 1, "another is as good")
    measured = family.with_reports({large: found, VariantName("gone-32"): found})
    assert [variant.accuracy for variant in measured.variants] == [1.0, 0.7]
    assert family.accuracy_assumed == {large}
    assert not measured.accuracy_assumed
    assert (measured.dominated(small), measured.dominated(large)) == ("", "another is as good")
    assert [variant.name for variant in measured.offered] == [small]
    assert measured.sha256 == family.sha256
    kept = read_manifest(written(tmp_path, "keep_all = true\n" + text)).with_reports({large: found})
    assert kept.offered == kept.variants
    assert kept.dominated(large) == "another is as good"


CLASSIFIER = (
    MANIFEST.replace('"detect"', '"classify"')
    .replace(
        'labels = ["person", "car"]\n',
        """[[attributes]]
name = "type"
labels = ["car", "bus", "other"]
[[attributes]]
name = "colour"
labels = ["red", "other"]
""",
    )
    .replace("boxes_scores_labels", "class_logits")
)
EMBEDDING = (
    MANIFEST.replace('"detect"', '"embed"')
    .replace('labels = ["person", "car"]', "embedding_length = 4")
    .replace("boxes_scores_labels", "embedding")
)


def test_a_classifier_may_answer_several_attributes(tmp_path: Path) -> None:
    family = read_manifest(written(tmp_path, CLASSIFIER))
    assert family.task == "classify"
    assert [(each.name, each.labels) for each in family.attributes] == [
        ("type", ("car", "bus", "other")),
        ("colour", ("red", "other")),
    ]
    assert family.labels == ("car", "bus", "other", "red", "other")
    assert family.attribute_names == ("type", "type", "type", "colour", "colour")
    (found,) = family.decode([np.array([[0.0, 9, 0, 0, 9]], np.float32)], 32, 48, 0.5)
    assert found.labels.tolist() == [1, 4]
    assert found.boxes.tolist() == [[0, 0, 32, 48]] * 2


def test_a_classifier_without_attributes_has_one_list_of_labels(tmp_path: Path) -> None:
    text = MANIFEST.replace('"detect"', '"classify"').replace("boxes_scores_labels", "class_logits")
    family = read_manifest(written(tmp_path, text))
    assert (family.attributes, family.attribute_names) == ((), ())
    (found,) = family.decode([np.zeros((1, 2), np.float32)], 32, 48, 0.1)
    assert found.scores.tolist() == [0.5, 0.5]


def test_an_embedding_model_says_how_long_its_embeddings_are(tmp_path: Path) -> None:
    family = read_manifest(written(tmp_path, EMBEDDING))
    assert (family.task, family.embedding_length) == ("embed", 4)
    assert family.labels == ("embedding",)
    (found,) = family.decode([np.array([[0, 3.0, 0, 4]], np.float32)], 32, 48, 0.5)
    assert found.embeddings is not None
    assert found.embeddings.tolist() == [pytest.approx([0, 0.6, 0, 0.8])]
    named = read_manifest(
        written(tmp_path, EMBEDDING.replace("embedding_length", 'labels = ["a"]\nembedding_length'))
    )
    assert named.labels == ("a",)


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        (CLASSIFIER, '"classify"', '"detect"', 'attributes are for families with task = "classify'),
        (CLASSIFIER, "[[attributes]]", 'labels = ["a"]\n[[attributes]]', "labels must be left out"),
        (CLASSIFIER, '"colour"', '"type"', "attributes[1].name is used twice: 'type'"),
        (CLASSIFIER, '"colour"', '""', "attributes[1].name must be a text that is not empty"),
        (CLASSIFIER, '["red", "other"]', "[]", "attributes[1].labels must be a list of names"),
        (CLASSIFIER, '["red", "other"]', '"coco80"', "attributes[1].labels must be a list of n"),
        (CLASSIFIER, '["red", "other"]', '["a", "a"]', "attributes[1].labels must not name a l"),
        (CLASSIFIER, '"type"', '"type"\nkind = 1', "attributes[0].kind is not a known key"),
        (EMBEDDING, "embedding_length = 4", "", "embedding_length is missing"),
        (EMBEDDING, "embedding_length = 4", "embedding_length = 0", "embedding_length must be a w"),
        (EMBEDDING, '"embedding"', '"yolox"', 'output.decoder must be "embedding" where task'),
        (EMBEDDING, '"embed"', '"detect"', 'embedding_length is for families with task = "embed"'),
        (MANIFEST, "boxes_scores_labels", "embedding", 'families with task = "embed"'),
        (MANIFEST, "boxes_scores_labels", "class_logits", 'families with task = "classify"'),
    ],
)
def test_what_does_not_fit_the_task_is_refused(
    tmp_path: Path, text: str, old: str, new: str, expected: str
) -> None:
    assert old in text
    if 'task = "detect"' in text.replace(old, new, 1) and "embedding_length" in text:
        text = text.replace("embedding_length", 'labels = ["a"]\nembedding_length')
    file = written(tmp_path, text.replace(old, new, 1))
    with pytest.raises(ModelError) as caught:
        read_manifest(file)
    assert str(caught.value).startswith(f"{file}: ")
    assert expected in str(caught.value)
