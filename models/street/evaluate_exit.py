"""Print the curves of mAP against exit share and time, for each input size.

    python -m models.street.evaluate_exit --scenes-at /tmp/street [--widths 256,416,608] [--json]

The decider of each size is learned as `edgebox models cascade` does, without labels, from scenes
that neither training nor the test has. Pictures of the test are kept or sent on by it, and judged
by their labels. Times are medians of single pictures on one thread, parts and whole in turn.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from edgebox.vision.average_precision import (
    ImageTruth,
    average_precision,
    too_small_or_hidden,
)
from edgebox.vision.cascade_decider import (
    expected_losses,
    features,
    fit_cascade,
    frame_loss,
)
from edgebox.vision.detections import Detections
from models.street.data import SOURCE_PX, RenderedScenes, Truth, render_scenes
from models.street.evaluate import LEAST_HEIGHT_PX, LEAST_VISIBLE, as_received, held_out
from models.street.export_exit import ANSWER, FIRST, SECOND
from models.street.network import LABELS
from models.training.graph_files import open_session

DECIDER_SEEDS_FROM = 950_000
SCORE_SHOWN = 0.3
SHARES = tuple(part / 20 for part in range(21))
Pictures = Sequence[tuple[NDArray[np.uint8], Truth]]


@dataclass(frozen=True)
class Parts:
    """The sessions of both parts, and of the whole network."""

    first: ort.InferenceSession
    second: ort.InferenceSession
    whole: ort.InferenceSession

    def run(self, canvas: NDArray[np.uint8]) -> tuple[list[Any], list[Any], tuple[float, ...]]:
        """Return what the exit and the whole say, and ms of first part, second part and whole."""
        times = [time.perf_counter()]
        first = self.first.run(None, {"images": canvas[None]})
        times.append(time.perf_counter())
        names = [each.name for each in self.second.get_inputs()]
        second = self.second.run(None, dict(zip(names, first[len(ANSWER) :], strict=True)))
        times.append(time.perf_counter())
        self.whole.run(None, {"images": canvas[None]})
        times.append(time.perf_counter())
        return first[: len(ANSWER)], second, tuple(np.diff(times) * 1e3)


@dataclass(frozen=True)
class Seen:
    """What both parts say of some pictures at one size, in px of the source."""

    exits: list[Detections]
    wholes: list[Detections]
    ms: tuple[float, float, float]
    """Medians of the first part, the second part and the whole network."""

    @property
    def rows(self) -> NDArray[np.float64]:
        """The decider's features of each picture."""
        return np.array([features(each, *SOURCE_PX, SCORE_SHOWN) for each in self.exits])


def see(parts: Parts, pictures: Pictures, width_px: int) -> Seen:
    """Run both parts on pictures as a camera sends them."""
    exits, wholes, times = [], [], []
    for index, (rgb, _) in enumerate(pictures):
        canvas, scale = as_received(rgb, width_px, 80 + index % 11)
        first, second, took = parts.run(canvas)
        times.append(took)
        for answer, out in ((first, exits), (second, wholes)):
            boxes, scores, labels = (each[0] for each in answer)
            out.append(Detections(boxes, scores, labels).scaled(1 / scale, 1 / scale, *SOURCE_PX))
    first_ms, second_ms, whole_ms = np.median(np.array(times), axis=0).tolist()
    return Seen(exits, wholes, (first_ms, second_ms, whole_ms))


def curve(parts: Parts, fitted_to: Pictures, test: Pictures, width_px: int) -> dict[str, Any]:
    """Return mAP and time by share of pictures that end at the exit."""
    known = see(parts, fitted_to, width_px)
    losses = [
        frame_loss(one, other, len(LABELS), SCORE_SHOWN)
        for one, other in zip(known.exits, known.wholes, strict=True)
    ]
    fitted = fit_cascade(known.rows, np.array(losses))
    seen = see(parts, test, width_px)
    hardest = np.argsort(-expected_losses(fitted.decider, seen.rows), kind="stable")
    truths = [image_truth(truth) for _, truth in test]
    first_ms, second_ms, whole_ms = seen.ms
    points = []
    for share in SHARES:
        sent_on = set(hardest[: round((1 - share) * len(test))].tolist())
        answers = [seen.wholes[at] if at in sent_on else seen.exits[at] for at in range(len(test))]
        took_ms = first_ms + second_ms * len(sent_on) / len(test)
        points.append(
            {
                "exit_share": share,
                "map": round(average_precision(truths, answers, len(LABELS)).mean, 4),
                "ms": round(took_ms, 2),
                "saving": round(1 - took_ms / whole_ms, 4),
            }
        )
    return {
        "width_px": width_px,
        "first_ms": round(first_ms, 2),
        "second_ms": round(second_ms, 2),
        "whole_ms": round(whole_ms, 2),
        "points": points,
        "loss_curve": [[each.threshold, each.share, each.loss] for each in fitted.curve.points],
    }


def image_truth(truth: Truth) -> ImageTruth:
    """Return what a picture is judged by, as the whole detector's are."""
    boxes = truth.boxes.astype(np.float64)
    excused = too_small_or_hidden(boxes, truth.visible, LEAST_HEIGHT_PX, LEAST_VISIBLE)
    return ImageTruth(boxes, truth.labels, excused)


def decider_pictures(folder: Path, scenes: int) -> Pictures:
    """Return two pictures of each of some scenes that nothing else sees."""
    render_scenes(folder, DECIDER_SEEDS_FROM, scenes, 2, 1)
    stored = RenderedScenes(folder)
    return [(stored.whole(index), truth) for index, truth in enumerate(stored.truths)]


def open_parts(models: Path, whole: Path) -> Parts:
    """Open both parts in their folders, and the whole network."""
    first, second = (open_session(models / name / f"{name}.onnx") for name in (FIRST, SECOND))
    return Parts(first, second, open_session(whole))


@click.command(help=(__doc__ or "").splitlines()[0])
@click.option("--models", type=click.Path(path_type=Path), default=Path("models"))
@click.option("--whole", type=click.Path(path_type=Path), default=Path("models/street/street.onnx"))
@click.option("--scenes-at", type=click.Path(path_type=Path), required=True)
@click.option("--widths", default="256,416,608", show_default=True)
@click.option("--judge-scenes", default=75, show_default=True, help="Held out; 2 pictures each.")
@click.option("--decider-scenes", default=120, show_default=True, help="2 pictures each.")
@click.option("--json", "as_json", is_flag=True)
def main(
    *,
    models: Path,
    whole: Path,
    scenes_at: Path,
    widths: str,
    judge_scenes: int,
    decider_scenes: int,
    as_json: bool,
) -> None:
    test = held_out(scenes_at / "held_out", judge_scenes, 1)
    fitted_to = decider_pictures(scenes_at / "decider", decider_scenes)
    parts = open_parts(models, whole)
    curves = [curve(parts, fitted_to, test, int(width)) for width in widths.split(",")]
    if as_json:
        click.echo(json.dumps(curves, indent=1))
        return
    for of in curves:
        click.echo(
            f"{of['width_px']} px: first part {of['first_ms']} ms, second {of['second_ms']} ms, "
            f"whole {of['whole_ms']} ms"
        )
        for point in of["points"]:
            click.echo(
                f"  exit {point['exit_share']:4.0%}: mAP {point['map']:.4f}, "
                f"{point['ms']:6.2f} ms, saves {point['saving']:6.1%}"
            )


if __name__ == "__main__":
    main()
