"""Tracks the objects of one camera: which detection is which object of earlier pictures.

Pure: numpy only. The method is ByteTrack (Zhang et al., "ByteTrack: Multi-Object Tracking by
Associating Every Detection Box", ECCV 2022): certain detections are matched first, then
uncertain ones to the tracks that are left; an uncertain detection never starts a track. Ours
differs:

* Time is that of the capture, not a count of frames (`motion`): dropped frames and changing rates
  move and widen what is expected, and lost tracks are kept for seconds.
* A track has one class. Only detections of its class are matched to it.
* A track has an id from its second detection on, so a single false detection takes none. The
  first picture is no exception.
* Uncertain detections are matched to lost tracks, too: with a gap between pictures, most tracks
  that are seen again were lost, and many come back from behind something half hidden.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgebox.tracking.assignment import Floats, Indices, assign
from edgebox.tracking.motion import Motion
from edgebox.vision.overlap import iou_matrix

Ids = NDArray[np.int64]
_APART = 2.0
"""A cost above every limit."""


@dataclass(frozen=True, slots=True)
class TrackerParameters:
    """What tracks are made of; `benchmarks.tracking` compares with another implementation."""

    score_high: float = 0.5
    """Detections that score at least this are certain."""
    score_low: float = 0.1
    """Detections that score less are ignored."""
    cost_certain: float = 0.9
    """Limit of 1 - IoU * score for certain detections."""
    cost_uncertain: float = 0.5
    """Limit of 1 - IoU for uncertain detections."""
    lost_ns: int = 2_000_000_000
    """How long a track that is not seen is kept."""
    tentative_ns: int = 500_000_000
    """How long a track that was seen once is kept, or until the next picture if that comes later
    and within `lost_ns`."""
    tracks_max: int = 200
    """Tracks at once, and detections of a picture that may belong to one: the most certain. It
    bounds the time that a picture takes."""


class Tracker:
    """The tracks of one camera. Boxes may have any unit, always the same."""

    def __init__(self, parameters: TrackerParameters | None = None, last_id: int = 0) -> None:
        """Start without tracks; the first gets the id after `last_id`."""
        self._parameters = parameters or TrackerParameters()
        self._at_ns: int | None = None
        self.last_id = last_id
        self._motion = Motion.of(np.zeros((0, 4)))
        self._ids: Ids = np.zeros(0, np.int64)  # 0: seen once
        self._labels: Ids = np.zeros(0, np.int64)
        self._seen_ns: Ids = np.zeros(0, np.int64)
        self._lost = np.zeros(0, np.bool_)

    @property
    def alive(self) -> frozenset[int]:
        """The ids of all tracks that are seen or may be found again."""
        return frozenset(self._ids[self._ids > 0].tolist())

    def update(self, boxes: Floats, scores: Floats, labels: Ids, captured_ns: int) -> Ids:
        """Track the detections of a picture.

        A picture that was captured before, or with, one that was tracked already is not used: its
        detections have no ids, and tracks stay as they are.

        Args:
            boxes: (n, 4) xyxy.
            scores: (n,) in [0, 1].
            labels: (n,) the number of the class.
            captured_ns: when the picture was taken, on any monotonic clock.

        Returns:
            (n,) the ids of the detections' tracks, from 1; 0: none.
        """
        ids = np.zeros(len(scores), np.int64)
        if self._at_ns is not None:
            if captured_ns <= self._at_ns:
                return ids
            self._forget(captured_ns)
            self._motion.predict((captured_ns - self._at_ns) / 1e9)
        self._at_ns = captured_ns
        # In an order of their own, so that ids do not depend on that of the detections.
        order = np.lexsort((*boxes.T, labels, -scores))
        order = order[scores[order] >= self._parameters.score_low][: self._parameters.tracks_max]
        boxes, scores, labels = boxes[order].astype(np.float64), scores[order], labels[order]
        tracks = self._matched(boxes, scores, labels)
        found = np.nonzero(tracks >= 0)[0]
        self._note(tracks[found], boxes[found], captured_ns)
        ids[order[found]] = self._ids[tracks[found]]
        starts = (tracks < 0) & (scores >= self._parameters.score_high)
        self._start(boxes[starts], labels[starts], captured_ns)
        return ids

    def _matched(self, boxes: Floats, scores: Floats, labels: Ids) -> Indices:
        """Return the row of each detection's track; -1: none."""
        parameters = self._parameters
        tracks = np.full(len(scores), -1, np.intp)
        if not len(scores) or not len(self._ids):
            return tracks
        overlap = iou_matrix(self._motion.boxes(), boxes)
        overlap[self._labels[:, None] != labels[None, :]] = -_APART
        certain = scores >= parameters.score_high
        confirmed = self._ids > 0
        cost = 1.0 - overlap * scores
        _match(cost, confirmed, certain, parameters.cost_certain, tracks)
        free = _free(confirmed, tracks)
        _match(1.0 - overlap, free, ~certain, parameters.cost_uncertain, tracks)
        # Those seen once come last: an object that is known already is the better explanation.
        _match(cost, ~confirmed, certain & (tracks < 0), parameters.cost_certain, tracks)
        return tracks

    def _note(self, rows: Indices, boxes: Floats, captured_ns: int) -> None:
        """Correct tracks with their detections; those found for the second time get an id."""
        self._motion.correct(rows, boxes)
        new = rows[self._ids[rows] == 0]
        self._ids[new] = np.arange(self.last_id + 1, self.last_id + 1 + len(new))
        self.last_id += len(new)
        self._lost[:] = True
        self._lost[rows] = False
        self._seen_ns[rows] = captured_ns
        self._motion.keep_sizes(self._lost)

    def _forget(self, now_ns: int) -> None:
        """Forget the tracks that were not seen for too long.

        What the last picture showed is compared with this one, also where pictures are rare.
        """
        parameters = self._parameters
        is_kept_long = (self._ids > 0) | (self._seen_ns == self._at_ns)
        limit_ns = np.where(is_kept_long, parameters.lost_ns, parameters.tentative_ns)
        kept = now_ns - self._seen_ns <= limit_ns
        if not kept.all():
            self._motion = self._motion.kept(kept)
            self._ids, self._labels = self._ids[kept], self._labels[kept]
            self._seen_ns, self._lost = self._seen_ns[kept], self._lost[kept]

    def _start(self, boxes: Floats, labels: Ids, captured_ns: int) -> None:
        """Start a track of each of these detections, the most certain first, if there is room."""
        room = max(0, self._parameters.tracks_max - len(self._ids))
        boxes, labels = boxes[:room], labels[:room]
        count = len(labels)
        if not count:
            return
        self._motion = self._motion.joined(Motion.of(boxes))
        self._ids = np.concatenate((self._ids, np.zeros(count, np.int64)))
        self._labels = np.concatenate((self._labels, labels))
        self._seen_ns = np.concatenate((self._seen_ns, np.full(count, captured_ns)))
        self._lost = np.concatenate((self._lost, np.zeros(count, np.bool_)))


def _match(
    cost: Floats,
    tracks_wanted: NDArray[np.bool_],
    detections_wanted: NDArray[np.bool_],
    limit: float,
    tracks: Indices,
) -> None:
    """Match some tracks to some detections, and note it in `tracks`."""
    rows, columns = np.nonzero(tracks_wanted)[0], np.nonzero(detections_wanted)[0]
    if not len(rows) or not len(columns):
        return
    found_rows, found_columns = assign(cost[rows[:, None], columns], limit)
    tracks[columns[found_columns]] = rows[found_rows]


def _free(wanted: NDArray[np.bool_], tracks: Indices) -> NDArray[np.bool_]:
    """Return which of the wanted tracks have no detection yet."""
    free = wanted.copy()
    free[tracks[tracks >= 0]] = False
    return free
