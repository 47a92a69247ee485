"""Train the street detector, export it, judge every variant and write its manifest.

    python -m models.street.train --minutes 45 --out models/street --scenes-at /tmp/street

Runs in the repository's root, on CPU cores alone. Limits: with --minutes the number of steps
depends on the machine; --steps makes a run repeatable. The ONNX in place is replaced only by one
that is judged to be better.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader

from models.street.data import TRAINING_SEEDS_FROM, Batches, Truth, render_scenes
from models.street.evaluate import Judged, held_out, judge, worth_offering
from models.street.export import WIDTHS_PX, export_onnx, write_manifest
from models.street.network import StreetNet
from models.street.objective import BOX_WEIGHT, box_loss, heat_loss
from models.training.course import Course, course_options, replaces, train
from models.training.graph_files import open_session
from models.training.layers import normalise
from models.training.optimisation import AveragedTraining, with_other_light

PEAK_RATE = 3e-3
CHECK_WIDTH_PX = 416


class Trainer(AveragedTraining[StreetNet]):
    """The network, its running average and the optimiser."""

    def __init__(self, seed: int) -> None:
        torch.manual_seed(seed)
        super().__init__(StreetNet(), PEAK_RATE)

    def step(self, batch: list[Tensor], progress: float) -> tuple[float, float]:
        """Learn from one batch; return the two losses."""
        images, heat, counted, boxes, weights = batch
        x = with_other_light(normalise(images)).contiguous(memory_format=torch.channels_last)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits, sides = self.network(x)
        in_heat = heat_loss(logits, heat, counted)
        in_boxes = box_loss(sides, boxes, weights)
        self.descend(in_heat + BOX_WEIGHT * in_boxes, progress)
        return in_heat.item(), in_boxes.item()


Pictures = Sequence[tuple[NDArray[np.uint8], Truth]]


def judge_all(path: Path, pictures: Pictures) -> list[Judged]:
    """Judge an exported detector at every width and print the table."""
    session = open_session(path)
    with click.progressbar(WIDTHS_PX, label="judging") as widths:
        judged = [judge(session, pictures, width) for width in widths]
    for item in judged:
        per_class = " ".join(f"{value:.3f}" for value in item.report.per_class.mean(axis=1))
        score = item.score
        click.echo(
            f"{score.width_px}x{score.height_px} mAP {score.accuracy:.4f} @.5 {score.map50:.4f} "
            f"@.75 {score.map75:.4f} {item.latency_ms:.2f} ms per class {per_class}"
        )
    return judged


def put_in_place(candidate: Path, judged: list[Judged], out: Path, pictures: Pictures) -> None:
    """Write the detector and its manifest, unless the detector in place is judged to be better."""
    place = out / "street.onnx"
    new = next(item.score.accuracy for item in judged if item.score.width_px == CHECK_WIDTH_PX)

    def accuracy(path: Path) -> float:
        return judge(open_session(path), pictures, CHECK_WIDTH_PX).score.accuracy

    if not replaces(place, new, accuracy, CHECK_WIDTH_PX):
        return
    place.write_bytes(candidate.read_bytes())
    write_manifest(place, out / "family.toml", worth_offering(judged))
    click.echo(f"wrote {place} and its manifest")


@click.command(help=(__doc__ or "").splitlines()[0])
@click.option("--out", type=click.Path(path_type=Path), default=Path("models/street"))
@click.option(
    "--scenes-at",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder for the rendered scenes (8 GB with the default number).",
)
@click.option("--scenes", default=800, show_default=True)
@click.option("--moments", default=3, show_default=True, help="Pictures of each scene.")
@course_options(minutes=45.0)
@click.option("--threads", default=2, show_default=True, help="1 is faster on busy cores.")
@click.option("--workers", default=2, show_default=True)
@click.option("--judge-scenes", default=75, show_default=True, help="Held out; 2 pictures each.")
@click.option(
    "--judge-only", is_flag=True, help="Export and judge the last checkpoint; train nothing."
)
def main(
    *,
    out: Path,
    scenes_at: Path,
    scenes: int,
    moments: int,
    steps: int,
    minutes: float,
    seed: int,
    threads: int,
    workers: int,
    judge_scenes: int,
    begin_at: float,
    judge_only: bool,
) -> None:
    torch.set_num_threads(threads)
    trainer = Trainer(seed)
    checkpoint = scenes_at / "checkpoint.pt"
    if judge_only or begin_at:
        trainer.load(checkpoint)
    if not judge_only:
        render_scenes(scenes_at, TRAINING_SEEDS_FROM, scenes, moments, max(workers, 1))
        loader = DataLoader(
            Batches(scenes_at, seed),
            batch_size=None,
            num_workers=workers,
            prefetch_factor=6 if workers else None,
        )
        course = Course(steps, minutes, begin_at)
        train(trainer, loader, course, losses=("heat", "boxes"), checkpoint=checkpoint)
    candidate = scenes_at / "street.onnx"
    export_onnx(trainer.average, candidate)
    pictures = held_out(scenes_at / "held_out", judge_scenes, max(workers, 1))
    put_in_place(candidate, judge_all(candidate, pictures), out, pictures)


if __name__ == "__main__":
    main()
