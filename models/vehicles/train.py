"""Train the vehicle classifier, export it, judge every variant and write its manifest.

    python -m models.vehicles.train --minutes 30 --out models/vehicles --work-at /tmp/vehicles

Runs in the repository's root, on one CPU core. Limits: with --minutes the number of steps depends
on the machine; --steps makes a run repeatable. The ONNX in place is replaced only by one that is
judged to be better.
"""

from __future__ import annotations

from pathlib import Path

import click
import torch
from torch import Tensor
from torch.nn import functional

from models.training.course import Course, course_options, train
from models.training.layers import normalise
from models.training.optimisation import AveragedTraining, with_other_light
from models.vehicles.data import TRAINING_SEEDS_FROM, Batches, cut_crops, load_crops
from models.vehicles.evaluate import held_out, judge_all, put_in_place
from models.vehicles.export import SIDES_PX, export_onnx
from models.vehicles.network import VehicleNet, of_attributes

PEAK_RATE = 3e-3
SMOOTHING = 0.05
NORMS_FIXED_FROM = 0.8  # share of the run
LIGHT_STRENGTH = 0.5  # colours are what is asked for: they may not change too much
BATCH_PIXELS = 64 * 64 * 64
TRAINED_SIDES_PX = (*SIDES_PX, 80, 112)  # sizes between and beyond the variants', too


class Trainer(AveragedTraining[VehicleNet]):
    """The network, its running average and the optimiser."""

    def __init__(self, seed: int) -> None:
        torch.manual_seed(seed)
        super().__init__(VehicleNet(), PEAK_RATE)

    def step(self, batch: tuple[Tensor, Tensor], progress: float) -> tuple[float]:
        """Learn from one batch; return the loss."""
        if progress >= NORMS_FIXED_FROM:
            self.fix_norms()
        images, answers = batch
        x = with_other_light(normalise(images), LIGHT_STRENGTH)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = self.network(x.contiguous(memory_format=torch.channels_last))
        loss = torch.stack(
            [
                functional.cross_entropy(part, answers[:, at], label_smoothing=SMOOTHING)
                for at, part in enumerate(of_attributes(logits))
            ]
        ).sum()
        self.descend(loss, progress)
        return (loss.item(),)


@click.command(help=(__doc__ or "").splitlines()[0])
@click.option("--out", type=click.Path(path_type=Path), default=Path("models/vehicles"))
@click.option(
    "--work-at",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder for the crops (0.5 GB with the default number) and the checkpoint.",
)
@click.option("--scenes", default=420, show_default=True)
@click.option("--moments", default=4, show_default=True, help="Pictures of each scene.")
@course_options(minutes=30.0)
@click.option("--workers", default=1, show_default=True, help="Processes that render.")
@click.option("--judge-scenes", default=60, show_default=True, help="Held out; 4 pictures each.")
@click.option(
    "--judge-only", is_flag=True, help="Export and judge the last checkpoint; train nothing."
)
def main(
    *,
    out: Path,
    work_at: Path,
    scenes: int,
    moments: int,
    steps: int,
    minutes: float,
    seed: int,
    workers: int,
    judge_scenes: int,
    begin_at: float,
    judge_only: bool,
) -> None:
    torch.set_num_threads(1)
    work_at.mkdir(parents=True, exist_ok=True)
    trainer = Trainer(seed)
    crops, checkpoint = work_at / "training.npz", work_at / "checkpoint.pt"
    if judge_only or begin_at:
        trainer.load(checkpoint)
    if not judge_only:
        seeds = range(TRAINING_SEEDS_FROM, TRAINING_SEEDS_FROM + scenes)
        cut_crops(crops, seeds, moments, workers)
        batches = Batches(load_crops(crops), TRAINED_SIDES_PX, BATCH_PIXELS, seed)
        course = Course(steps, minutes, begin_at)
        train(trainer, batches, course, losses=("loss",), checkpoint=checkpoint)
    candidate = work_at / "vehicles.onnx"
    export_onnx(trainer.average, candidate)
    judged = held_out(work_at / "held_out.npz", judge_scenes, workers)
    put_in_place(candidate, judge_all(candidate, judged), out, judged)


if __name__ == "__main__":
    main()
