"""Labelled pictures: `Dataset`, and the mapping of its categories to a family's labels.

Limits: coco_files.py and yolo_files.py read files; pictures are read when they are evaluated.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from edgebox.domain.errors import InvalidInputError
from edgebox.vision.average_precision import ImageTruth, as_boxes

_NAMED_MAX = 8


@dataclass(frozen=True, slots=True)
class LabelledPicture:
    """One picture and its labels, which are indices into its dataset's categories."""

    path: Path
    truth: ImageTruth
    size_px: tuple[int, int] | None
    """Size in the annotations; None: they have none."""
    shares: bool = False
    """Boxes are shares of the picture's sides, not px."""

    def truth_at(self, width_px: int, height_px: int) -> ImageTruth:
        """Return the truth in px of the picture as it was read.

        Raises:
            InvalidInputError: it is not the picture that was annotated.
        """
        said = self.size_px
        if said is not None and said != (width_px, height_px):
            raise InvalidInputError(
                f"{self.path}: is {width_px} × {height_px} px, but annotated as "
                f"{said[0]} × {said[1]}"
            )
        if not self.shares:
            return self.truth
        sides = np.array((width_px, height_px, width_px, height_px), np.float64)
        return replace(self.truth, boxes=self.truth.boxes * sides)


@dataclass(frozen=True, slots=True)
class Dataset:
    """Labelled pictures, and what is to be said about them."""

    name: str
    categories: tuple[str, ...]
    pictures: tuple[LabelledPicture, ...]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fitted:
    """A dataset in a family's labels."""

    dataset: Dataset
    """Labels are the family's."""
    labels: frozenset[int]
    """Labels of the family in the dataset; others are not evaluated."""


def make_truth(
    boxes: Sequence[Sequence[float]],
    labels: Sequence[int],
    crowd: Sequence[bool] = (),
    areas: Sequence[float] | None = None,
) -> ImageTruth:
    """Return truth from plain lists; an empty `crowd` marks no object as one."""
    return ImageTruth(
        as_boxes(boxes),
        np.array(labels, np.int64),
        np.array(crowd or [False] * len(labels), bool),
        None if areas is None else np.array(areas, np.float64),
    )


def fitted(dataset: Dataset, labels: Sequence[str]) -> Fitted:
    """Convert a dataset to a family's labels, matched by name.

    Case, spaces, hyphens and underscores make no difference. Objects without a label in the
    family are left out. So are detections whose label the dataset does not have.

    Raises:
        InvalidInputError: they have no name in common, or nothing that both know is annotated.
    """
    by_name = {_plain(label): index for index, label in enumerate(labels)}
    index_of = [by_name.get(_plain(category)) for category in dataset.categories]
    known = frozenset(index for index in index_of if index is not None)
    if not known:
        raise InvalidInputError(
            f"{dataset.name} and the family have no label in common: the dataset has "
            f"{_listed(dataset.categories)}; the family has {_listed(labels)}"
        )
    left_out: Counter[str] = Counter()
    pictures = []
    for picture in dataset.pictures:
        new = [index_of[label] for label in picture.truth.labels]
        keep = [at for at, index in enumerate(new) if index is not None]
        left_out.update(
            dataset.categories[label]
            for label, index in zip(picture.truth.labels, new, strict=True)
            if index is None
        )
        truth = _selected(picture.truth, keep, [index for index in new if index is not None])
        pictures.append(replace(picture, truth=truth))
    if all(picture.truth.crowd.all() for picture in pictures):
        raise InvalidInputError(f"{dataset.name}: nothing that the family knows is annotated")
    remarks = list(dataset.remarks)
    if left_out:
        named = [f"{name} ({count})" for name, count in left_out.most_common()]
        remarks.append(f"objects the family has no label for, left out: {_listed(named)}")
    unknown = [label for index, label in enumerate(labels) if index not in known]
    if unknown:
        remarks.append(f"labels the dataset does not have, not evaluated: {_listed(unknown)}")
    return Fitted(
        replace(
            dataset, categories=tuple(labels), pictures=tuple(pictures), remarks=tuple(remarks)
        ),
        known,
    )


def _selected(truth: ImageTruth, keep: list[int], labels: list[int]) -> ImageTruth:
    at = np.array(keep, np.int64)
    areas = None if truth.areas is None else truth.areas[at]
    return ImageTruth(truth.boxes[at], np.array(labels, np.int64), truth.crowd[at], areas)


def _plain(name: str) -> str:
    return "".join(name.casefold().replace("_", " ").replace("-", " ").split())


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMED_MAX])
    more = len(names) - _NAMED_MAX
    return f"{shown} and {more} more" if more > 0 else shown or "none"
