"""Compares tracking with `trackers` of PyPI: `python -m benchmarks.tracking [--trackers] [--json]`.

Sequences of the synthetic street, whose ground truth knows each object. Detections are made of it
with errors of position, with misses and with false ones, the same for every tracker. Pictures come
at 10 a second, or some are dropped at random, or the rate changes. MOTA and id switches follow
Bernardin and Stiefelhagen (2008), IDF1 Ristani et al. (2016); an object counts as found by a box
of IoU 0.5 or more.

`trackers` needs OpenCV, SciPy and `supervision`, so it is no dependency: install it in an
environment of its own, with lapx and pillow, and run this file there.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from edgebox.scene.street_camera import LABELS, Scene
from edgebox.tracking.assignment import assign
from edgebox.tracking.tracker import Tracker
from edgebox.vision.overlap import iou_matrix

WIDTH_PX, HEIGHT_PX = 640, 360
SECONDS = 20.0
SEEDS = (11, 12, 13, 14)
"""None of those (1 to 4) on which the constants were chosen."""
_VISIBLE_MIN = 0.25
_FULL_HZ = 10.0


@dataclass(frozen=True)
class Picture:
    """The ground truth of a picture, and what a detector makes of it."""

    at_s: float
    objects: NDArray[np.int64]  #: (n,) numbers of the objects
    truth: NDArray[np.float64]  #: (n, 4) xyxy, px
    boxes: NDArray[np.float64]  #: (m, 4)
    scores: NDArray[np.float64]  #: (m,)
    labels: NDArray[np.int64]  #: (m,)


@dataclass(frozen=True)
class Score:
    """How well objects were followed."""

    mota: float
    idf1: float
    switches: int

    def __str__(self) -> str:
        """Return it for a table."""
        return f"{self.mota:.3f} | {self.idf1:.3f} | {self.switches}"


@cache
def street(seed: int, seconds: float = SECONDS) -> tuple[Picture, ...]:
    """Return a street at 10 pictures a second."""
    scene, rng = Scene(seed, WIDTH_PX, HEIGHT_PX), np.random.default_rng(seed)
    numbers: dict[tuple[int, int, int], int] = {}
    pictures = []
    for frame in range(int(seconds * _FULL_HZ)):
        at_s = 100.0 + frame / _FULL_HZ
        seen = [o for o in scene.render(at_s).objects if o.visible_fraction >= _VISIBLE_MIN]
        seen = [o for o in seen if o.box[3] - o.box[1] >= 12]
        objects = [numbers.setdefault(o.identity, len(numbers)) for o in seen]
        truth = np.array([o.box for o in seen], np.float64).reshape(-1, 4)
        labels = np.array([LABELS.index(o.label) for o in seen], np.int64)
        visible = np.array([o.visible_fraction for o in seen])
        found = rng.random(len(seen)) < np.where(visible > 0.6, 0.97, 0.8)
        sides = np.tile(truth[:, 2:] - truth[:, :2], 2)
        boxes = truth + rng.normal(0.0, 0.03, truth.shape) * sides
        scores = np.clip(0.35 + 0.55 * visible + rng.normal(0.0, 0.08, len(seen)), 0.12, 0.99)
        false = rng.poisson(0.3)
        corners = rng.uniform(0, 1, (false, 2)) * (WIDTH_PX - 60, HEIGHT_PX - 60)
        sizes = rng.uniform(15, 60, (false, 2))
        pictures.append(
            Picture(
                at_s,
                np.array(objects, np.int64),
                truth,
                np.concatenate((boxes[found], np.concatenate((corners, corners + sizes), axis=1))),
                np.concatenate((scores[found], rng.uniform(0.1, 0.6, false))),
                np.concatenate((labels[found], rng.integers(0, len(LABELS), false))),
            )
        )
    return tuple(pictures)


def dropped(pictures: Sequence[Picture], share: float, seed: int = 0) -> list[Picture]:
    """Return the pictures that are left when a share of them is dropped at random."""
    kept = np.random.default_rng(seed).random(len(pictures)) >= share
    return [picture for picture, keep in zip(pictures, kept, strict=True) if keep]


def changing(pictures: Sequence[Picture]) -> list[Picture]:
    """Return pictures at 10, 3.3 and 5 a second by turns of two seconds."""
    steps = (1, 3, 2)
    return [p for n, p in enumerate(pictures) if n % steps[(n // 20) % 3] == 0]


SEQUENCES: dict[str, Callable[[Sequence[Picture]], list[Picture]]] = {
    "all": list,
    "30 % dropped": lambda pictures: dropped(pictures, 0.3),
    "60 % dropped": lambda pictures: dropped(pictures, 0.6),
    "changing rate": changing,
}
Track = Callable[[Picture], NDArray[np.int64]]


def ours(*, true_times: bool = True) -> Track:
    """Return our tracker; without true times, it is told that pictures are 0.1 s apart."""
    tracker, count = Tracker(), 0

    def track(picture: Picture) -> NDArray[np.int64]:
        nonlocal count
        count += 1
        at_s = picture.at_s if true_times else count / _FULL_HZ
        return tracker.update(picture.boxes, picture.scores, picture.labels, round(at_s * 1e9))

    return track


def theirs(*, timestamps: bool) -> Track:
    """Return ByteTrack of `trackers`, one tracker a class, with the thresholds of ours."""
    import supervision  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415
    import trackers  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415

    each = [
        trackers.ByteTrackTracker(
            lost_track_buffer=60,  # 2 s, counted at 30 a second
            frame_rate=_FULL_HZ,
            track_activation_threshold=0.5,
            high_conf_det_threshold=0.5,
        )
        for _ in LABELS
    ]

    def track(picture: Picture) -> NDArray[np.int64]:
        ids = np.zeros(len(picture.scores), np.int64)
        for label, tracker in enumerate(each):
            rows = np.nonzero(picture.labels == label)[0]
            given = supervision.Detections(
                picture.boxes[rows], confidence=picture.scores[rows], data={"row": rows}
            )
            found = tracker.update(given, timestamp=picture.at_s if timestamps else None)
            for row, number in zip(found.data.get("row", ()), found.tracker_id, strict=True):
                ids[row] = 0 if number < 0 else (number + 1) * len(LABELS) + label
        return ids

    return track


def judged(pictures: Sequence[Picture], track: Track) -> Score:
    """Return how well a tracker follows the objects of a sequence."""
    misses = false = switches = total = reported = 0
    last: dict[int, int] = {}
    together: dict[tuple[int, int], int] = {}
    for picture in pictures:
        ids = track(picture)
        boxes, ids = picture.boxes[ids > 0], ids[ids > 0]
        total, reported = total + len(picture.objects), reported + len(ids)
        overlap = iou_matrix(picture.truth, boxes)
        for row, column in zip(*np.nonzero(overlap >= 0.5), strict=True):
            pair = (int(picture.objects[row]), int(ids[column]))
            together[pair] = together.get(pair, 0) + 1
        # What was matched before stays matched where it can (CLEAR MOT).
        stays = np.array(
            [[last.get(int(o)) == int(t) for t in ids] for o in picture.objects], np.bool_
        )
        cost = 1.0 - overlap - (stays.reshape(overlap.shape) & (overlap >= 0.5))
        rows, columns = assign(cost, 0.5 + 1e-9)
        misses += len(picture.objects) - len(rows)
        false += len(ids) - len(rows)
        for row, column in zip(rows, columns, strict=True):
            of, number = int(picture.objects[row]), int(ids[column])
            switches += last.get(of, number) != number
            last[of] = number
    objects = {pair[0]: n for n, pair in enumerate({p[0]: p for p in together}.values())}
    numbers = {pair[1]: n for n, pair in enumerate({p[1]: p for p in together}.values())}
    shared = np.zeros((len(objects), len(numbers)))
    for (of, number), count in together.items():
        shared[objects[of], numbers[number]] = count
    rows, columns = assign(-shared, 0.0)
    idf1 = 2 * float(shared[rows, columns].sum()) / max(1, total + reported)
    return Score(1.0 - (misses + false + switches) / total, idf1, switches)


def over_streets(sequence: str, make: Callable[[], Track]) -> Score:
    """Return the mean over the streets, and the sum of the switches."""
    scores = [judged(SEQUENCES[sequence](street(seed)), make()) for seed in SEEDS]
    return Score(
        float(np.mean([score.mota for score in scores])),
        float(np.mean([score.idf1 for score in scores])),
        sum(score.switches for score in scores),
    )


def update_us(objects: int) -> float:
    """Return the median time of an update of so many objects, in microseconds."""
    rng, tracker, took = np.random.default_rng(0), Tracker(), []
    corner, speed = rng.uniform(0, 1, (objects, 2)) * (1800, 900), rng.normal(0, 40, (objects, 2))
    size, labels = rng.uniform(25, 90, (objects, 2)), rng.integers(0, 5, objects)
    for frame in range(500):
        low = corner + speed * frame * 0.01 + rng.normal(0, 1, corner.shape)
        boxes, scores = np.concatenate((low, low + size), axis=1), rng.uniform(0.3, 1, objects)
        began = time.perf_counter()
        tracker.update(boxes, scores, labels, frame * 10_000_000)
        took.append(time.perf_counter() - began)
    return float(np.median(took)) * 1e6


def main() -> None:
    """Print the comparison."""
    makes: dict[str, Callable[[], Track]] = {
        "edgebox": ours,
        "edgebox, told that pictures are 0.1 s apart": lambda: ours(true_times=False),
    }
    if "--trackers" in sys.argv:
        makes["trackers"] = lambda: theirs(timestamps=False)
        makes["trackers, with timestamps"] = lambda: theirs(timestamps=True)
    table = {
        sequence: {name: over_streets(sequence, make) for name, make in makes.items()}
        for sequence in SEQUENCES
    }
    times = {objects: update_us(objects) for objects in (5, 20, 50, 100)}
    if "--json" in sys.argv:
        plain = {s: {n: vars(score) for n, score in of.items()} for s, of in table.items()}
        print(json.dumps({"scores": plain, "update_us": times}))
        return
    print("| pictures | tracker | MOTA | IDF1 | id switches |\n|---|---|---|---|---|")
    for sequence, scores in table.items():
        for name, score in scores.items():
            print(f"| {sequence} | {name} | {score} |")
    print(*(f"{objects} objects: {us:.0f} us an update" for objects, us in times.items()), sep="\n")


if __name__ == "__main__":
    main()
