"""Classifying objects once per track: `python -m benchmarks.once_per_track`.

Sequences of the synthetic street that no model was trained on, the bundled detector, tracker and
vehicle classifier. Printed: the share of the objects' crops that are classified, and how often type
and colour are right, over all objects in all pictures. Ways to ask: `always`, every crop; `first`,
once for each track; `better`, whenever the crop is better than all before; `uncertain`, until what
is known is certain; `once_per_track`, the server's rule: both.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from operator import itemgetter

import click
import numpy as np
from numpy.typing import NDArray

from edgebox.domain.model_family import ExecutorId
from edgebox.domain.pipelines import PipelineStage, StageName
from edgebox.inference.executor import come_back
from edgebox.inference.family import Family
from edgebox.inference.onnx_executor import OnnxExecutor
from edgebox.inference.zoo import bundled_folders, load_zoo
from edgebox.media import jpeg
from edgebox.runtime.stage_documents import best_classes
from edgebox.scene.street_camera import Scene, SceneObject
from edgebox.tracking.track_answers import CERTAIN, TrackAnswers
from edgebox.tracking.tracker import Tracker
from edgebox.vision.cropping import crop_of, taken
from edgebox.vision.detections import Detections
from edgebox.vision.letterbox import Placement
from edgebox.vision.overlap import iou_matrix

SEEDS = (11, 12, 13, 14)
WIDTH_PX, HEIGHT_PX = 1280, 720
RATE_HZ = 10.0
VEHICLES = ("car", "van", "truck", "bus")
STAGE = StageName("kind")
WAYS = ("always", "first", "better", "uncertain", "once_per_track")

Said = tuple[tuple[str, float], tuple[str, float]]
"""Type and colour, with their scores."""


@dataclass(frozen=True)
class Crop:
    """An object that the stage takes."""

    track: int
    side_px: float
    score: float
    said: Said
    truth: tuple[str, str] | None
    """Type and colour; None: a detection of nothing."""


@dataclass(frozen=True)
class Result:
    """What a way to ask costs and is worth."""

    way: str
    request_share: float
    type_right: float
    colour_right: float


class Models:
    """The detector and the classifier."""

    def __init__(self, detector: str, classifier: str) -> None:
        zoo = load_zoo(bundled_folders())
        self.families = {name: zoo.family(name) for name in ("street", "vehicles")}
        self.detector, self.classifier = detector, classifier
        families = list(self.families.values())
        self.executor = OnnxExecutor(ExecutorId("cpu/0"), families, providers="cpu", cpu_threads=1)

    def find(self, rgb: NDArray[np.uint8]) -> Detections:
        """Return the objects of a (h, w, 3) picture, in its px."""
        return self._run("street", self.detector, rgb)

    def classify(self, rgb: NDArray[np.uint8]) -> Said:
        """Return type and colour of what a crop shows."""
        best = best_classes(self.families["vehicles"], self._run("vehicles", self.classifier, rgb))
        kind, colour = best["type"], best["colour"]
        return (kind["label"], kind["score"]), (colour["label"], colour["score"])

    def _run(self, name: str, variant_name: str, rgb: NDArray[np.uint8]) -> Detections:
        family: Family = self.families[name]
        variant = next(each for each in family.variants if each.name == variant_name)
        canvas = np.empty((variant.height_px, variant.width_px, 3), np.uint8)
        jpeg.lay_into(np.ascontiguousarray(rgb), canvas, family.input.fill, family.input.fit)
        answer = come_back(self.executor.submit(variant.name, [canvas], 1), self.executor, "a run")
        height_px, width_px = rgb.shape[:2]
        placed = Placement.on_canvas(
            width_px, height_px, variant.width_px, variant.height_px, family.input.fit
        )
        return placed.to_source(answer.detections[0], width_px, height_px)


def crops_of(models: Models, seed: int, seconds: float) -> list[list[Crop]]:
    """Return the crops of each picture of a street, all of them classified."""
    scene, tracker = Scene(seed, WIDTH_PX, HEIGHT_PX), Tracker()
    stage = PipelineStage(STAGE, models.families["vehicles"].name, labels=VEHICLES)
    pictures = []
    for number in range(int(seconds * RATE_HZ)):
        at_s = 100.0 + number / RATE_HZ
        picture = scene.render(at_s)
        found = models.find(picture.rgb)
        boxes = found.boxes.astype(np.float64)
        tracks = tracker.update(
            boxes / HEIGHT_PX, found.scores.astype(np.float64), found.labels, round(at_s * 1e9)
        )
        labels = models.families["street"].labels
        crops = []
        for row in taken(stage, found, found.boxes, labels, picture.rgb.shape).tolist():
            box = found.boxes[row]
            left, top, right, bottom = crop_of(box, stage.margin, WIDTH_PX, HEIGHT_PX)
            crops.append(
                Crop(
                    int(tracks[row]),
                    float((box[2:] - box[:2]).min()),
                    float(found.scores[row]),
                    models.classify(picture.rgb[top:bottom, left:right]),
                    _truth(boxes[row], picture.objects),
                )
            )
        pictures.append(crops)
    return pictures


def _truth(box: NDArray[np.float64], objects: Sequence[SceneObject]) -> tuple[str, str] | None:
    vehicles = [each for each in objects if each.colour is not None]
    if not vehicles:
        return None
    overlap = iou_matrix(box[None], np.array([each.box for each in vehicles]))[0]
    best = int(overlap.argmax())
    of = vehicles[best]
    return (of.label, str(of.colour)) if overlap[best] >= 0.5 else None


class Asking:
    """Which crops of one street are classified, and what is known of each object."""

    def __init__(self, way: str) -> None:
        self.way = way
        self.requests = 0
        self._answers: TrackAnswers[Said] = TrackAnswers()

    def of(self, crop: Crop) -> Said:
        """Return what is said of an object."""
        known = self._answers.known(STAGE, crop.track)
        quality = crop.side_px * crop.score
        again = self.way == "uncertain" and known is not None and not known.certain
        if self.way == "always" or again or self._answers.wants(STAGE, crop.track, quality):
            self.requests += 1
            said = crop.said
            if self.way == "always" or not crop.track:
                return said
            if known is not None:
                pairs = zip(known.said, said, strict=True)
                kind, colour = (max(pair, key=itemgetter(1)) for pair in pairs)
                said = kind, colour
            certain = self.way == "first" or (
                self.way != "better" and min(score for _, score in said) >= CERTAIN
            )
            self._answers.submitted(STAGE, crop.track, quality)
            self._answers.answered(STAGE, crop.track, quality, said, certain=certain)
            return said
        assert known is not None
        return known.said


def judge(way: str, streets: Sequence[Sequence[Sequence[Crop]]]) -> Result:
    """Ask in a way and compare with the truth."""
    requests = total = types = colours = judged = 0
    for pictures in streets:
        asking = Asking(way)
        for crop in chain.from_iterable(pictures):
            total += 1
            (kind, _), (colour, _) = asking.of(crop)
            if crop.truth is not None:
                judged += 1
                types += kind == crop.truth[0]
                colours += colour == crop.truth[1]
        requests += asking.requests
    return Result(
        way,
        round(requests / max(1, total), 3),
        round(types / max(1, judged), 3),
        round(colours / max(1, judged), 3),
    )


@click.command()
@click.option("--seconds", default=20.0, show_default=True, help="Of each street.")
@click.option("--detector", default="street-608", show_default=True)
@click.option("--classifier", default="vehicles-64", show_default=True)
def main(seconds: float, detector: str, classifier: str) -> None:
    """Compare ways to ask and print one JSON document."""
    models = Models(detector, classifier)
    streets = [crops_of(models, seed, seconds) for seed in SEEDS]
    models.executor.close()
    click.echo(json.dumps([asdict(judge(way, streets)) for way in WAYS], indent=1))


if __name__ == "__main__":
    main()
