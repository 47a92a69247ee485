"""Annotations in COCO's format: finds and reads them, and finds their pictures.

Supports COCO's own folders, flat folders and Roboflow's exports. Limits: boxes only; outlines are
used for areas.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson

from edgebox.domain.errors import InvalidInputError
from edgebox.inference.accuracy.labelled import Dataset, LabelledPicture, make_truth
from edgebox.vision.coco import COCO80, COCO80_IDS

ROBOFLOW = "_annotations.coco.json"
_SPLITS = ("val", "valid", "test", "train")
"""In the order of preference: what a model was not trained on comes first."""


def find_annotations(place: Path) -> Path | None:
    """Return the annotations that a file or folder means; None: there are none.

    Raises:
        InvalidInputError: there are several, and none of them is of a validation or test set.
    """
    if place.is_file():
        return place if place.suffix.lower() == ".json" else None
    found = [
        *place.glob(ROBOFLOW),
        *place.glob(f"*/{ROBOFLOW}"),
        *(
            file
            for folder in (place / "annotations", place)
            for file in sorted(folder.glob("*.json"))
        ),
    ]
    files = [file for file in dict.fromkeys(found) if not file.name.startswith("captions")]
    boxes = [file for file in files if "keypoints" not in file.name]
    for split in _SPLITS:
        for file in boxes:
            if split in (file.parent.name if file.name == ROBOFLOW else file.stem).lower():
                return file
    if len(boxes) > 1:
        names = ", ".join(str(file.relative_to(place)) for file in boxes)
        raise InvalidInputError(f"{place}: has several annotations ({names}): name one of them")
    return boxes[0] if boxes else None


def read_coco(file: Path, place: Path) -> Dataset:
    """Read annotations and find their pictures.

    Args:
        file: the annotations.
        place: the dataset's folder, or the file itself.

    Raises:
        InvalidInputError: it is no such file, or none of its pictures is there.
    """
    document = _document(file)
    categories, index_of, remarks = _categories(file, document)
    rows: defaultdict[Any, list[Mapping[str, Any]]] = defaultdict(list)
    odd = 0
    for row in _rows(file, document, "annotations"):
        if _usable(row) and row.get("category_id") in index_of:
            rows[row.get("image_id")].append(row)
        else:
            odd += 1
    if odd:
        remarks.append(f"{odd} annotations have no box or an unknown category, and are left out")
    find = _Pictures(file, place)
    pictures = []
    for image in _rows(file, document, "images"):
        path = find(str(image.get("file_name", "")))
        if path is not None:
            number = image.get("id")
            found = rows[number] if _is_id(number) else []
            pictures.append(_picture(path, image, found, index_of))
    if not pictures:
        raise InvalidInputError(
            f"{file}: none of its pictures was found"
            + (f" (the first missing: {find.missing[0]})" if find.missing else "")
        )
    if find.missing:
        remarks.append(f"{len(find.missing)} pictures are missing (the first: {find.missing[0]})")
    return Dataset(_name(file, place), categories, tuple(pictures), tuple(remarks))


def _name(file: Path, place: Path) -> str:
    folder = place if place.is_dir() else file.parent
    split = file.parent.name if file.name == ROBOFLOW and file.parent != folder else ""
    return f"{folder.resolve().name}/{split or file.stem}"


def _document(file: Path) -> Mapping[str, Any]:
    try:
        document = orjson.loads(file.read_bytes())
    except OSError as error:
        raise InvalidInputError(f"{file}: cannot be read: {error.strerror}") from None
    except orjson.JSONDecodeError as error:
        raise InvalidInputError(f"{file}: is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise InvalidInputError(f"{file}: is not in COCO's format: no object with images")
    return document


def _rows(file: Path, document: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    rows = document.get(key)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InvalidInputError(f"{file}: is not in COCO's format: {key} must be a list of objects")
    if not rows:
        raise InvalidInputError(f"{file}: {key} is empty: there is nothing to evaluate")
    return rows


def _categories(
    file: Path, document: Mapping[str, Any]
) -> tuple[tuple[str, ...], dict[Any, int], list[str]]:
    """Return the names of categories, the place of each id among them, and remarks."""
    listed = document.get("categories")
    if isinstance(listed, list) and listed:
        rows = _rows(file, document, "categories")
        if all(isinstance(row.get("name"), str) and _is_id(row.get("id")) for row in rows):
            index_of = {row["id"]: index for index, row in enumerate(rows)}
            return tuple(row["name"] for row in rows), index_of, []
    said = [row.get("category_id") for row in _rows(file, document, "annotations")]
    used = set(filter(_is_id, said))
    if used <= set(COCO80_IDS):
        index_of = {number: index for index, number in enumerate(COCO80_IDS)}
        return COCO80, index_of, ["categories have no names; their numbers are taken for COCO's"]
    raise InvalidInputError(f"{file}: categories must give each category an id and a name")


def _is_id(value: Any) -> bool:
    return isinstance(value, int | str)


def _usable(row: Mapping[str, Any]) -> bool:
    box = row.get("bbox")
    return (
        _is_id(row.get("image_id"))
        and _is_id(row.get("category_id"))
        and isinstance(box, list)
        and len(box) == 4
        and all(_is_number(side) for side in box)
        and box[2] > 0
        and box[3] > 0
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _picture(
    path: Path,
    image: Mapping[str, Any],
    rows: Iterable[Mapping[str, Any]],
    index_of: Mapping[Any, int],
) -> LabelledPicture:
    rows = list(rows)
    boxes = [(x, y, x + width, y + height) for x, y, width, height in (r["bbox"] for r in rows)]
    areas = [r["area"] if _is_number(r.get("area")) else r["bbox"][2] * r["bbox"][3] for r in rows]
    truth = make_truth(
        boxes,
        [index_of[row["category_id"]] for row in rows],
        # A region to be ignored is what a crowd is: COCO's tool knows no other kind.
        [bool(row.get("iscrowd") or row.get("ignore")) for row in rows],
        areas,
    )
    sides = (image.get("width"), image.get("height"))
    size = (int(sides[0]), int(sides[1])) if all(map(_is_number, sides)) else None  # type: ignore[arg-type]
    return LabelledPicture(path, truth, size)


class _Pictures:
    """Finds pictures by the names that annotations use."""

    def __init__(self, file: Path, place: Path) -> None:
        home = file.parent.parent if file.parent.name == "annotations" else file.parent
        folders = dict.fromkeys((file.parent, place if place.is_dir() else home, home))
        inner = [folder for each in folders for folder in (each / "images", *_folders(each))]
        deeper = [folder for each in folders for folder in _folders(each / "images")]
        self._folders = list(dict.fromkeys((*folders, *inner, *deeper)))
        self.missing: list[str] = []

    def __call__(self, name: str) -> Path | None:
        short = Path(name.replace("\\", "/"))
        inside = not short.is_absolute() and ".." not in short.parts
        for way in dict.fromkeys((short, Path(short.name)) if inside else (Path(short.name),)):
            for at, folder in enumerate(self._folders):
                path = folder / way
                if short.name and path.is_file():
                    # The others are most likely there, too.
                    self._folders.insert(0, self._folders.pop(at))
                    return path
        self.missing.append(name)
        return None


def _folders(place: Path) -> list[Path]:
    return sorted(each for each in place.glob("*") if each.is_dir())
