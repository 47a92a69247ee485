"""Writes small labelled sets in every form that is read."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

SIZE_PX = (64, 48)


def picture(path: Path, size_px: tuple[int, int] = SIZE_PX) -> None:
    """Write a picture, its folder made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((size_px[1], size_px[0], 3), 90, np.uint8)).save(path)


def coco(names: Sequence[str] = ("a.png", "b.png"), **changes: Any) -> dict[str, Any]:
    """Return annotations: a traffic light and a crowd of cars on the first, a yak on the second."""
    document: dict[str, Any] = {
        "images": [
            {"id": at, "file_name": name, "width": SIZE_PX[0], "height": SIZE_PX[1]}
            for at, name in enumerate(names)
        ],
        "annotations": [
            {"id": 1, "image_id": 0, "category_id": 7, "bbox": [1, 2, 10, 20], "area": 150},
            {"id": 2, "image_id": 0, "category_id": 3, "bbox": [5, 5, 20, 20], "iscrowd": 1},
            {"id": 3, "image_id": 1, "category_id": 4, "bbox": [0, 0, 9, 9], "ignore": 1},
        ],
        "categories": [
            {"id": 7, "name": "Traffic Light"},
            {"id": 3, "name": "car"},
            {"id": 4, "name": "yak"},
        ],
    }
    return document | changes


def written(file: Path, document: object) -> Path:
    """Write JSON, its folder made; return the file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(document))
    return file
