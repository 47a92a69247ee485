"""Owns `Detections`: what was found on one picture, as arrays.

Pure: numpy only. Coordinates are pixels of a picture that the owner of the object knows; `scaled`
and the letterbox map them from one picture to another.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

SHOWN_SCORE_MIN = 0.3
"""Detections below this score are neither shown nor counted, unless something else is asked."""


@dataclass(frozen=True, slots=True, eq=False)
class Detections:
    """Boxes with their scores and labels, one row each, in no particular order.

    A classifier's rows have boxes around the whole picture, one row for each likely label. An
    embedding model's only row has such a box, too, and the picture's embedding.
    """

    boxes: NDArray[np.float32]  #: (n, 4) float32 xyxy, px
    scores: NDArray[np.float32]  #: (n,) float32 in [0, 1]
    labels: NDArray[np.int64]  #: (n,) int64, index into the family's label names
    embeddings: NDArray[np.float32] | None = None
    """(n, d) float32, each row of length 1; None: the model gives none."""
    tracks: NDArray[np.int64] | None = None  #: (n,) ids from 1, 0: none; None: not tracked

    def __post_init__(self) -> None:
        n = len(self.scores)
        if self.boxes.shape != (n, 4) or self.labels.shape != (n,) or self.scores.shape != (n,):
            raise ValueError(
                "detections need boxes (n, 4), scores (n,) and labels (n,), not "
                f"{self.boxes.shape}, {self.scores.shape} and {self.labels.shape}"
            )
        if self.embeddings is not None and (self.embeddings.ndim != 2 or len(self.embeddings) != n):
            raise ValueError(f"embeddings must be ({n}, d), not {self.embeddings.shape}")

    def __len__(self) -> int:
        return len(self.scores)

    @classmethod
    def empty(cls) -> Self:
        """Return the detections of a picture without any."""
        return cls(np.zeros((0, 4), np.float32), np.zeros(0, np.float32), np.zeros(0, np.int64))

    def select(self, which: NDArray[Any]) -> "Detections":
        """Return the rows that a boolean mask or an array of indices names."""
        embeddings = None if self.embeddings is None else self.embeddings[which]
        tracks = None if self.tracks is None else self.tracks[which]
        boxes, scores, labels = self.boxes[which], self.scores[which], self.labels[which]
        return Detections(boxes, scores, labels, embeddings, tracks)

    def above(self, score_min: float) -> "Detections":
        """Return the rows that score at least `score_min`."""
        return self.select(self.scores >= score_min)

    def scaled(self, x: float, y: float, width_px: float, height_px: float) -> "Detections":
        """Multiply coordinates by `x` and `y` and clip them to a picture of the given size.

        Boxes with nothing left inside the picture are removed.
        """
        boxes = self.boxes
        if (x, y) != (1.0, 1.0):
            boxes = boxes * np.array((x, y, x, y), np.float32)
        limits = np.array((width_px, height_px, width_px, height_px), np.float32)
        # Half of the time of numpy's clip on so few boxes.
        boxes = np.maximum(boxes, 0.0)
        np.minimum(boxes, limits, out=boxes)
        clipped = Detections(boxes, self.scores, self.labels, self.embeddings, self.tracks)
        inside = boxes[:, 2:] > boxes[:, :2]
        return clipped if inside.all() else clipped.select(inside[:, 0] & inside[:, 1])

    def moved(self, x_px: float, y_px: float) -> "Detections":
        """Shift coordinates, without clipping."""
        if not (x_px or y_px):
            return self
        boxes = self.boxes + np.array((x_px, y_px, x_px, y_px), np.float32)
        return replace(self, boxes=boxes)

    def xywh(self) -> NDArray[np.float32]:
        """Return the boxes (n, 4) as left, top, width, height (COCO's form)."""
        out = self.boxes.copy()
        out[:, 2:] -= out[:, :2]
        return out
