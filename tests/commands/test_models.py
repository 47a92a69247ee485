"""`edgebox models` and `edgebox detect` as their users meet them."""

import re
import weakref
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner
from PIL import ExifTags, Image

from edgebox.commands.models import parse_sizes
from edgebox.commands.root import main
from edgebox.domain.errors import ModelError
from edgebox.media import sources
from edgebox.media.sources import Frame, read_picture
from edgebox.scene.street_camera import Scene
from tests.end_to_end.program import beside_the_loop, edgebox, within_this_process
from tests.inference.importing.planted import HEIGHT, LABELS, OBJECTS, WIDTH, Tiny, write
from tests.inference.importing.zoo_of_layouts import DETECTORS


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    """A picture of the tiny models' size: boxes are where they were planted."""
    path = tmp_path / "street.png"
    Image.fromarray(Scene(3, WIDTH, HEIGHT).render(2.0).rgb).save(path)
    return path


def model(tmp_path: Path, name: str = "yolov8") -> Path:
    tiny: Tiny = DETECTORS[name][0]()
    tiny.metadata = {"names": str(dict(enumerate(LABELS))), "license": "AGPL-3.0"}
    path = tmp_path / "gate.onnx"
    path.write_bytes(write(tiny))
    return path


@pytest.mark.parametrize("seconds", ["0.5", "-1", "4000"])
def test_a_time_to_measure_is_none_or_a_second_at_least(seconds: str) -> None:
    ended = CliRunner().invoke(main, ["models", "import", "x.onnx", "--profile-s", seconds])
    assert ended.exit_code == 2
    assert "--profile-s" in ended.stderr


async def test_import_list_and_detect(tmp_path: Path, picture: Path) -> None:
    run = partial(beside_the_loop, tmp_path)
    imported = await edgebox(
        tmp_path, "models", "import", str(model(tmp_path)), "--json", "--profile-s", "1"
    )
    document = imported.json()
    assert (document["family"], document["layout"], document["task"]) == (
        "gate", "yolov8", "detect",
    )  # fmt: skip
    assert (document["licence"], document["labels"]) == ("AGPL-3.0", list(LABELS))
    assert document["folder"] == str(tmp_path / "edgebox" / "models" / "gate")
    assert document["compared"] > 0
    (variant,) = document["variants"]
    assert (variant["name"], variant["accuracy"]) == (f"gate-{WIDTH}x{HEIGHT}", None)
    assert variant["p50_ms"]["1"] > 0
    listed = (await run("models", "list", "--json")).json()
    bundled = ["street", "street-exit", "street-rest", "vehicles"]
    assert [family["name"] for family in listed["families"]] == [*bundled, "gate"]
    assert listed["families"][-1]["sources"] == ["gate.onnx"]
    assert listed["problems"] == []
    text = (await run("models", "list")).out
    assert "licence AGPL-3.0, layout yolov8" in text
    assert "not measured" in text
    headings = [line for line in text.splitlines() if "variant" in line and "p50 ms" in line]
    assert headings
    assert not any(re.search(r"┃\s+┃", line) for line in headings), headings
    drawn = tmp_path / "drawn.png"
    found = await edgebox(
        tmp_path, "detect", str(picture), "--family", "gate", "--json", "--draw", str(drawn)
    )
    (shown,) = found.json()["pictures"]
    assert (shown["width_px"], shown["height_px"]) == (WIDTH, HEIGHT)
    rows = sorted((row["label"], row["box"]) for row in shown["detections"])
    assert rows == sorted((LABELS[each.label], list(each.box)) for each in OBJECTS)
    assert Image.open(drawn).size == (WIDTH, HEIGHT)
    plain = await run("detect", str(picture), "--family", "gate")
    assert f"gate-{WIDTH}x{HEIGHT}" in plain.out
    assert "person  at [8.0, 8.0, 30.0, 40.0]" in plain.out


def test_a_refused_file_is_one_message_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "broken.onnx"
    path.write_bytes(b"this is no model")
    ended = within_this_process(tmp_path, "models", "import", str(path))
    assert ended.code == 1
    assert "is not an ONNX model, or is cut short" in " ".join(ended.err.split())
    assert "Traceback" not in ended.err
    assert not (tmp_path / "edgebox" / "models").exists()


def test_what_cannot_be_asked_without_a_terminal_is_said(tmp_path: Path) -> None:
    tiny = DETECTORS["rfdetr"][0]()
    for raw, name in zip(tiny.outputs, ("a", "b"), strict=True):
        raw.name = name
    path = tmp_path / "odd.onnx"
    path.write_bytes(write(tiny))
    ended = within_this_process(tmp_path, "models", "import", str(path))
    message = " ".join(ended.err.split())
    assert ended.code == 1
    assert "its layout is not certain: it could be any of these: " in message
    assert "rfdetr (would find class 0 0.8" in message
    assert "name it with --layout" in message
    named = ("models", "import", str(path), "--layout", "yolo99")
    unknown = within_this_process(tmp_path, *named)
    assert "there is no layout 'yolo99'; there are yolov5," in " ".join(unknown.err.split())


def test_detect_says_what_is_wrong(tmp_path: Path, picture: Path) -> None:
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"\x89PNG no")
    over = ("--draw", str(picture))
    empty = tmp_path / "empty"
    empty.mkdir()
    for arguments, message in (
        ((str(picture), "--family", "none"), "there is no model family 'none'"),
        ((str(picture), "--family", "street", "--variant", "x"), "has no variant 'x'"),
        ((str(broken), "--family", "street"), "not a picture that can be read"),
        ((str(tmp_path / "no.png"), "--family", "street"), "there is no such file"),
        ((str(picture), "--family", "street", *over), "would be drawn over itself"),
        ((str(empty), "--family", "street"), "this folder has no pictures (.bmp, .jpeg, "),
        ((str(picture), "--draw", str(picture / "drawn")), "this folder cannot be made"),
    ):
        ended = within_this_process(tmp_path, "detect", *arguments)
        assert ended.code == 1
        assert message in " ".join(ended.err.split())


def test_detect_turns_photos_of_phones(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = 6
    photo = tmp_path / "photo.jpg"
    lying = Image.fromarray(Scene(0, 320, 240).render(2.0).rgb).transpose(Image.Transpose.ROTATE_90)
    lying.save(photo, exif=exif)
    drawn = tmp_path / "drawn.png"
    ended = within_this_process(
        tmp_path, "detect", str(photo), "--family", "street", "--json", "--draw", str(drawn)
    )
    (seen,) = ended.json()["pictures"]
    assert (seen["width_px"], seen["height_px"]) == (320, 240)
    assert Image.open(drawn).size == (320, 240)


def test_detect_takes_folders_and_makes_the_one_it_draws_into(tmp_path: Path) -> None:
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    for number, ending in enumerate(("png", "jpg", "PNG")):
        picture = Image.fromarray(Scene(number, 320, 240).render(2.0).rgb)
        picture.save(pictures / f"{number}.{ending}")
    (pictures / "notes.txt").write_text("no picture")
    drawn = tmp_path / "new" / "drawn"
    arguments = ("detect", str(pictures), "--json", "--draw", str(drawn))
    ended = within_this_process(tmp_path, *arguments)
    document = ended.json()
    assert document["family"] == "street"
    names = [Path(each["file"]).name for each in document["pictures"]]
    assert names == ["0.png", "1.jpg", "2.PNG"]
    assert sorted(path.name for path in drawn.iterdir()) == ["0.png", "1.png", "2.png"]


def test_detect_holds_one_picture_of_a_folder_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        picture = Image.fromarray(Scene(number, 320, 240).render(2.0).rgb)
        picture.save(tmp_path / f"lane[{'abcdef'[number]}].png")
    read: list[weakref.ref[Frame]] = []
    held: list[int] = []

    def reading(path: Path, *, upright: bool) -> Frame:
        held.append(sum(each() is not None for each in read))
        rgb = read_picture(path, upright=upright)
        read.append(weakref.ref(rgb))
        return rgb

    monkeypatch.setattr(sources, "read_picture", reading)
    ended = within_this_process(tmp_path, "detect", str(tmp_path))
    assert ended.code == 0
    assert [f"lane[{name}].png 320 × 240 px" in ended.out for name in "abcdef"] == [True] * 6
    assert len(held) == 6
    assert max(held) <= 1


def test_sizes_are_squares_or_both_sides() -> None:
    assert parse_sizes("320, 640x384,320") == ((320, 320), (640, 384))
    for text in ("", "x", "12", "320;640", "640x", "5000", "-3", "3²0", "640x384x3"):
        if text == "640x":
            assert parse_sizes(text) == ((640, 640),)
            continue
        with pytest.raises(ModelError, match="is no size"):
            parse_sizes(text)
