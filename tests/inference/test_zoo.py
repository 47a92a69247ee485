"""The zoo against real ONNX files, good and bad: each error names file and key."""

import hashlib
import random
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from benchmarks.onnx_file import FLOAT, UINT8, graph, model, node, value
from edgebox.domain.errors import ModelError
from edgebox.inference.onnx_runtime import onnx_runtime
from edgebox.inference.zoo import bundled_folders, load_family, load_zoo
from tests.inference.tiny_onnx import YOLOX_32, reshaping_model, write_family


@pytest.fixture
def street(tmp_path: Path) -> Path:
    """A copy of the bundled family that a test may damage."""
    (source,) = [folder for folder in bundled_folders() if folder.name == "street"]
    folder = tmp_path / "street"
    folder.mkdir()
    for name in ("family.toml", "street.onnx"):
        shutil.copyfile(source / name, folder / name)
    return folder


def refused(folder: Path) -> str:
    with pytest.raises(ModelError) as caught:
        load_family(folder)
    return str(caught.value)


def sign(folder: Path) -> None:
    """Make a manifest believe in whatever its model file now holds."""
    manifest = folder / "family.toml"
    (model,) = folder.glob("*.onnx")
    digest = hashlib.sha256(model.read_bytes()).hexdigest()
    manifest.write_text(re.sub(r'sha256 = "\w+"', f'sha256 = "{digest}"', manifest.read_text()))


def test_the_bundled_families_load_without_problems() -> None:
    zoo = load_zoo(bundled_folders())
    assert zoo.problems == ()
    names = ["street", "street-exit", "street-rest", "vehicles"]
    assert [family.name for family in zoo.families] == names
    # A box chooses bundled families by their folders' names.
    assert [folder.name for folder in bundled_folders()] == names
    vehicles = zoo.family("vehicles")
    assert vehicles.task == "classify"
    assert [each.name for each in vehicles.attributes] == ["type", "colour"]
    street = zoo.family("street")
    assert len(street.labels) == 5
    assert [v.pixels for v in street.variants] == sorted(v.pixels for v in street.variants)
    assert street.batch_size_fixed is None
    assert street.batch_sizes(16) == (1, 2, 4, 8, 16)
    assert street.batch_sizes(6) == (1, 2, 4)


def test_an_unknown_family_is_named_with_those_there_are() -> None:
    there = "families: street, street-exit, street-rest, vehicles"
    with pytest.raises(ModelError, match=rf"no model family 'road' \({there}\)"):
        load_zoo(bundled_folders()).family("road")


def test_an_unknown_family_is_named_with_what_was_left_out(street: Path) -> None:
    (street / "street.onnx").write_bytes(b"another one")
    with pytest.raises(ModelError, match=r"left out: .*sha256 does not match street\.onnx"):
        load_zoo([street]).family("street")


def test_a_folder_that_is_given_twice_is_one(street: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(street)
    zoo = load_zoo([street, street.parent / "link", street])
    assert [family.name for family in zoo.families] == ["street"]
    assert not zoo.problems


def test_a_missing_folder(tmp_path: Path) -> None:
    message = refused(tmp_path / "nowhere")
    assert "no such file" in message
    assert "nowhere/family.toml" in message


def test_a_missing_model_file(street: Path) -> None:
    (street / "street.onnx").unlink()
    assert "file names 'street.onnx', which is missing" in refused(street)


def test_a_damaged_model_file(street: Path) -> None:
    content = bytearray((street / "street.onnx").read_bytes())
    content[len(content) // 2] ^= 1
    (street / "street.onnx").write_bytes(content)
    assert "sha256 does not match street.onnx" in refused(street)


@pytest.mark.parametrize("kept", [0, 1, 1000, 100_000])
def test_a_truncated_model_that_the_manifest_was_made_for(street: Path, kept: int) -> None:
    model = street / "street.onnx"
    model.write_bytes(model.read_bytes()[:kept])
    sign(street)
    message = refused(street)
    assert "street.onnx" in message
    assert "ONNX Runtime" in message or "inputs" in message


@pytest.mark.parametrize("seed", range(5))
def test_random_bytes_for_a_model(street: Path, seed: int) -> None:
    (street / "street.onnx").write_bytes(random.Random(seed).randbytes(5000))
    sign(street)
    assert "is not a model ONNX Runtime can open" in refused(street)


def test_a_model_is_opened_again_when_it_has_changed(
    street: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = 0

    def counted() -> Any:
        nonlocal opened
        opened += 1
        return onnx_runtime()

    monkeypatch.setattr("edgebox.inference.zoo.onnx_runtime", counted)
    assert load_family(street) == load_family(street)
    assert opened == 1
    model = street / "street.onnx"
    model.write_bytes(model.read_bytes()[:1000])
    sign(street)
    assert "is not a model ONNX Runtime can open" in refused(street)
    assert opened == 2


def test_labels_that_the_model_does_not_score(tmp_path: Path) -> None:
    folder = write_family(tmp_path, YOLOX_32, labels='["a", "b"]')
    assert "labels has 2 names, but tiny.onnx scores 1 classes" in refused(folder)


def test_attributes_with_other_labels_than_the_model_scores(tmp_path: Path) -> None:
    model = reshaping_model(["b", 3, 32, 32], ["b", 5], [-1, 5])
    what = "\n".join(
        f'[[attributes]]\nname = "{name}"\nlabels = ["a", "b"]' for name in ("type", "colour")
    )
    folder = write_family(tmp_path, model, task="classify", decoder="class_logits", what=what)
    assert "labels has 4 names, but tiny.onnx scores 5 classes" in refused(folder)


def test_embeddings_of_another_length_than_the_manifest_says(tmp_path: Path) -> None:
    model = reshaping_model(["b", 3, 32, 32], ["b", 3072], [-1, 3072])

    def folder(length: int) -> Path:
        what = f"embedding_length = {length}"
        return write_family(tmp_path, model, task="embed", decoder="embedding", what=what)

    message = refused(folder(256))
    assert "embedding_length is 256, but tiny.onnx gives embeddings of length 3072" in message
    assert load_family(folder(3072)).embedding_length == 3072


def test_another_dtype_than_the_models(tmp_path: Path) -> None:
    folder = write_family(tmp_path, YOLOX_32, dtype="uint8")
    assert "input.dtype is 'uint8'" in refused(folder)


def test_another_layout_than_the_models(tmp_path: Path) -> None:
    folder = write_family(tmp_path, YOLOX_32, layout="nhwc")
    assert "variant 'tiny-32' (32 × 32 px, nhwc) does not fit" in refused(folder)


def test_a_size_the_model_is_not_fixed_to(tmp_path: Path) -> None:
    folder = write_family(tmp_path, YOLOX_32, size_px=64)
    assert "does not fit the input ['b', 3, 32, 32]" in refused(folder)


def test_a_decoder_that_wants_other_outputs(tmp_path: Path) -> None:
    folder = write_family(tmp_path, YOLOX_32, decoder="boxes_scores_labels")
    assert "reads 3 outputs, but tiny.onnx has 1 (output)" in refused(folder)


def test_outputs_that_are_no_numbers(tmp_path: Path) -> None:
    text = 8
    words = model(
        graph(
            "tiny",
            [node("Cast", ["images"], ["output"], to=text)],
            inputs=[value("images", FLOAT, ["b", 3, 32, 32])],
            outputs=[value("output", text, ["b", 3, 32, 32])],
        )
    )
    told = refused(write_family(tmp_path, words))
    assert (
        "output.decoder 'yolox' reads numbers, but 'output' of tiny.onnx is tensor(string)" in told
    )


def test_a_model_whose_input_is_no_picture(tmp_path: Path) -> None:
    model = reshaping_model(["n", 6], ["m", 6], [-1, 6], UINT8)
    folder = write_family(tmp_path, model, dtype="uint8")
    assert "not 4 axes" in refused(folder)


def test_a_fixed_batch_is_the_only_one_offered(tmp_path: Path) -> None:
    model = reshaping_model([1, 3, 32, 32], [1, 512, 6], [1, 512, 6])
    family = load_family(write_family(tmp_path, model))
    assert family.batch_size_fixed == 1
    assert family.batch_sizes(16) == (1,)


def test_a_broken_family_does_not_stop_the_others(tmp_path: Path, street: Path) -> None:
    good = write_family(tmp_path / "good", YOLOX_32)
    bad = write_family(tmp_path / "bad", YOLOX_32, name="bad", sha256="0" * 64)
    zoo = load_zoo([bad, good, tmp_path / "nowhere", street])
    assert [family.name for family in zoo.families] == ["tiny", "street"]
    assert len(zoo.problems) == 2
    assert "bad/family.toml: sha256" in str(zoo.problems[0])


def test_names_are_given_once(tmp_path: Path) -> None:
    first = write_family(tmp_path / "1", YOLOX_32)
    same = write_family(tmp_path / "2", YOLOX_32, variant="other")
    overlapping = write_family(tmp_path / "3", YOLOX_32, name="other")
    zoo = load_zoo([first, same, overlapping])
    assert [family.model_files[0].path.parent for family in zoo.families] == [first]
    by_family, by_variant = (str(problem) for problem in zoo.problems)
    assert "name 'tiny' is already taken by" in by_family
    assert "the name 'tiny-32' is already taken by" in by_variant
    assert str(first) in by_family
    assert str(first) in by_variant


def test_files_of_one_family_share_a_batch_size(tmp_path: Path) -> None:
    any_batch = reshaping_model(["b", 3, 64, 64], ["b", 2048, 6], [-1, 2048, 6])
    only = {n: reshaping_model([n, 3, 64, 64], [n, 2048, 6], [n, 2048, 6]) for n in (1, 4)}
    folder = write_family(tmp_path, reshaping_model([1, 3, 32, 32], [1, 512, 6], [1, 512, 6]))
    for name, content in (("any", any_batch), ("one", only[1]), ("four", only[4])):
        (folder / f"{name}.onnx").write_bytes(content)
    manifest = folder / "family.toml"
    text = manifest.read_text()
    own = """[[variants]]
name = "tiny-64"
width_px = 64
height_px = 64
accuracy = 0.6
file = "{name}.onnx"
sha256 = "{digest}"
"""

    def beside(name: str, content: bytes) -> None:
        digest = hashlib.sha256(content).hexdigest()
        manifest.write_text(text + own.format(name=name, digest=digest))

    for name, content in (("any", any_batch), ("one", only[1])):
        beside(name, content)
        family = load_family(folder)
        assert [file.path.name for file in family.model_files] == ["tiny.onnx", f"{name}.onnx"]
        assert family.batch_sizes(8) == (1,)
    beside("four", only[4])
    assert "four.onnx only takes batches of 4, another file of 1" in refused(folder)
