"""Labels in YOLO's format: a data.yaml, a text file per picture.

Limits: of YAML it reads what such files are written in (names, paths, lists, no nesting beyond
names); outlines are taken as the boxes around them.
"""

import ast
import math
import re
from collections.abc import Sequence
from pathlib import Path

from edgebox.domain.errors import InvalidInputError
from edgebox.inference.accuracy.labelled import Dataset, LabelledPicture, make_truth
from edgebox.inference.numbered_names import in_order
from edgebox.media.sources import PICTURE_SUFFIXES

_SPLITS = ("val", "valid", "test", "train")
_KEY = re.compile(r"^(\w+)\s*:\s*(.*)$")
_NAMED = re.compile(r"^\s+(\d+)\s*:\s*(.+)$")
_ITEM = re.compile(r"^\s*-\s*(.+)$")


def find_yaml(place: Path) -> Path | None:
    """Return the data.yaml that a file or folder means; None: there is none."""
    if place.is_file():
        return place if place.suffix.lower() in (".yaml", ".yml") else None
    found = sorted((*place.glob("*.yaml"), *place.glob("*.yml")))
    return next((file for file in found if file.stem == "data"), found[0] if found else None)


def read_yolo(file: Path) -> Dataset:
    """Read a data.yaml and the labels of its validation set (else test, else training).

    Raises:
        InvalidInputError: it is no such file, or there are no pictures or labels.
    """
    names, paths = _parsed(file)
    folder, split = _pictures_folder(file, paths)
    files = sorted(each for each in folder.rglob("*") if each.suffix.lower() in PICTURE_SUFFIXES)
    if not files:
        raise InvalidInputError(f"{folder}: no pictures in this folder")
    pictures = []
    bare = 0
    for path in files:
        labels = _labels_of(path)
        bare += not labels.is_file()
        boxes, classes = _read_labels(labels, len(names))
        pictures.append(LabelledPicture(path, make_truth(boxes, classes), None, shares=True))
    if bare == len(files):
        raise InvalidInputError(f"{_labels_of(files[0])}: is missing, and so are all other labels")
    remarks = (f"{bare} pictures have no labels: nothing is on them",) if bare else ()
    return Dataset(f"{file.resolve().parent.name}/{split}", names, tuple(pictures), remarks)


def _parsed(file: Path) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the names of classes, and the values that are one text each."""
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{file}: cannot be read: {error}") from None
    values: dict[str, str] = {}
    blocks: dict[str, list[str]] = {}
    key = ""
    for raw in lines:
        line = re.sub(r"(^|\s)#.*$", "", raw).rstrip()
        top = _KEY.match(line)
        if top:
            key = top[1]
            values[key] = top[2].strip().strip("'\"")
        elif line:
            blocks.setdefault(key, []).append(line)
    names = _names(values.get("names", ""), blocks.get("names", []))
    if names is None:
        raise InvalidInputError(f"{file}: names must number the classes from 0, each once")
    if not names:
        raise InvalidInputError(f"{file}: names is missing; it must list the classes")
    for name, block in blocks.items():
        item = _ITEM.match(block[0])
        if item and not values.get(name):  # of several folders, the first
            values[name] = item[1].strip().strip("'\"")
    return names, values


def _names(inline: str, block: Sequence[str]) -> tuple[str, ...] | None:
    """Return the names of classes by their numbers; None: the numbers are not 0 to n - 1."""
    text = inline + " ".join(block)
    if text.startswith(("[", "{")):
        try:
            found = ast.literal_eval(text)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            # Names without quotes, or something else.
            if text[0] == "{":
                return ()
            found = [name.strip().strip("'\"") for name in text.strip("[]").split(",")]
        if isinstance(found, dict):
            found = in_order(found)
        return None if found is None else tuple(map(str, found))
    rows = [(int(row[1]), row[2]) for row in map(_NAMED.match, block) if row]
    named = dict(rows)
    items = in_order(named)
    if items is None or len(named) < len(rows):
        return None
    items = items or [row[1] for row in map(_ITEM.match, block) if row]
    return tuple(item.strip().strip("'\"") for item in items)


def _pictures_folder(file: Path, values: dict[str, str]) -> tuple[Path, str]:
    roots = (file.parent / values.get("path", ""), file.parent)
    for split in _SPLITS:
        named = values.get(split)
        # Roboflow writes ../valid/images and means valid/images.
        for root in roots if named else ():
            for name in (named or "", (named or "").removeprefix("../")):
                if (root / name).is_dir():
                    return root / name, split
    tried = ", ".join(f"{split}: {values[split]}" for split in _SPLITS if split in values)
    raise InvalidInputError(f"{file}: names no folder of pictures that exists ({tried or 'none'})")


def _labels_of(picture: Path) -> Path:
    parts = list(picture.parts)
    for at in range(len(parts) - 2, -1, -1):
        if parts[at] == "images":
            parts[at] = "labels"
            break
    return Path(*parts).with_suffix(".txt")


def _read_labels(file: Path, classes: int) -> tuple[list[list[float]], list[int]]:
    """Return boxes as shares of the picture's sides, and their classes; no file: none."""
    boxes: list[list[float]] = []
    labels: list[int] = []
    if not file.is_file():
        return boxes, labels
    for number, line in enumerate(file.read_text("utf-8", "replace").splitlines(), 1):
        fields = line.split()
        if not fields:
            continue
        try:
            label, values = int(float(fields[0])), [float(field) for field in fields[1:]]
        except (ValueError, OverflowError):
            label, values = -1, []
        if len(values) < 4 or not 0 <= label < classes or not all(map(math.isfinite, values)):
            raise InvalidInputError(
                f"{file}: line {number} is no label: a class from 0 to {classes - 1} and four "
                f"numbers are wanted, not {line.strip()[:60]!r}"
            )
        boxes.append(_box(values))
        labels.append(label)
    return boxes, labels


def _box(values: Sequence[float]) -> list[float]:
    """Return the corners of a box, or of what is around an outline."""
    if len(values) < 6:
        x, y, width, height = values[:4]
        return [x - width / 2, y - height / 2, x + width / 2, y + height / 2]
    return [min(values[::2]), min(values[1::2]), max(values[::2]), max(values[1::2])]
