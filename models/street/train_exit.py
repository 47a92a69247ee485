"""Train exit heads of the street detector in place, export one and judge it.

    python -m models.street.train_exit --steps 4000 --scenes-at /tmp/street

Runs in the repository's root, on one CPU core. The detector's own weights come from its ONNX file
and stay as they are. Heads at both places learn in one run from views of all input sizes: from the
scenes' labels, and from what the whole network says of the same view. Limits: --minutes depends on
the machine; --steps makes a run repeatable.
"""

from __future__ import annotations

import tomllib
from dataclasses import fields
from pathlib import Path

import click
import onnx
import torch
from onnx import numpy_helper
from torch import Tensor, nn
from torch.nn import functional

from models.street.data import TRAINING_SEEDS_FROM, Batches, render_scenes
from models.street.evaluate import held_out, judge
from models.street.exit_network import PLACES, ExitHead, coarse_of
from models.street.export import VariantScore
from models.street.export_exit import export_parts, write_part_manifest
from models.street.network import StreetNet
from models.street.objective import BOX_WEIGHT, box_loss, heat_loss
from models.training.course import Course, course_options, train
from models.training.graph_files import open_session
from models.training.layers import fused, normalise
from models.training.optimisation import AveragedTraining, with_other_light

PEAK_RATE = 3e-3
JUDGE_SCENES = 75
NORMS_FIXED_FROM = 0.6
"""Share of the run after which heads learn with the statistics that they will be used with."""


def trained_network(path: Path) -> StreetNet:
    """Return the network of an exported detector, normalisations folded, without gradients."""
    network = fused(StreetNet().eval()).requires_grad_(requires_grad=False)
    stored = {
        tensor.name.removeprefix("network."): torch.from_numpy(numpy_helper.to_array(tensor).copy())
        for tensor in onnx.load(str(path)).graph.initializer
    }
    network.load_state_dict({name: stored[name] for name in network.state_dict()})
    return network.to(memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]


class ExitHeads(nn.Module):
    """One head for each place."""

    def __init__(self) -> None:
        super().__init__()
        self.at = nn.ModuleDict({place: ExitHead(place) for place in PLACES})


class Trainer(AveragedTraining[ExitHeads]):
    """The heads, their running average and the optimiser; the network itself is fixed."""

    def __init__(self, network: StreetNet, seed: int) -> None:
        torch.manual_seed(seed)
        super().__init__(ExitHeads(), PEAK_RATE)
        self.whole = network

    def step(self, batch: list[Tensor], progress: float) -> list[float]:
        """Learn from one batch; return the losses of the heads."""
        if progress >= NORMS_FIXED_FROM:
            self.fix_norms()
        images, heat, counted, boxes, weights = batch
        x = with_other_light(normalise(images)).contiguous(memory_format=torch.channels_last)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            with torch.no_grad():
                fine = self.whole.stage4(self.whole.stem(x))
                eighth = self.whole.stage8(fine)
                merged = coarse_of(self.whole, "level8", eighth, fine)
                teacher = self.whole.rest(fine, merged)
            answers = [
                head(fine, eighth if place == "stage8" else merged)
                for place, head in self.network.at.items()
            ]
        losses = [
            heat_loss(logits, heat, counted)
            + BOX_WEIGHT * box_loss(sides, boxes, weights)
            + imitation_loss((logits, sides), teacher)
            for logits, sides in answers
        ]
        self.descend(torch.stack(losses).sum(), progress)
        return [loss.item() for loss in losses]


def imitation_loss(answer: tuple[Tensor, Tensor], teacher: tuple[Tensor, Tensor]) -> Tensor:
    """Return how far an answer is from the whole network's, per object that this one sees.

    Heat by the quality focal loss (Li et al. 2020), sides by the difference of their logarithms
    where the whole network sees something.
    """
    (logits, sides), (wanted, wanted_sides) = answer, teacher
    chance = wanted.sigmoid()
    entropy = functional.binary_cross_entropy_with_logits(logits, chance, reduction="none")
    heat = (entropy * (chance - logits.sigmoid()) ** 2).sum()
    seen = chance.amax(1)
    distance = (sides.clamp(min=0.1).log() - wanted_sides.clamp(min=0.1).log()).abs().mean(1)
    weight = seen * (seen > 0.1)
    return heat / seen.sum().clamp(min=1.0) * 4 + (distance * weight).sum() / weight.sum().clamp(
        1.0
    )


def put_in_place(network: StreetNet, head: ExitHead, scenes: Path, models: Path) -> None:
    """Export both parts, judge the exit at every size, and write their manifests."""
    first, second = export_parts(network, head, models)
    manifest = tomllib.loads((models / "street" / "family.toml").read_text())
    wholes = [
        VariantScore(**{each.name: table[each.name] for each in fields(VariantScore)})
        for table in manifest["variants"]
    ]
    pictures, session = held_out(scenes / "held_out", JUDGE_SCENES, 1), open_session(first)
    exits = []
    for whole in wholes:
        exits.append(judge(session, pictures, whole.width_px).score)
        click.echo(
            f"{whole.width_px} px: mAP {exits[-1].accuracy:.4f} at the exit, "
            f"{whole.accuracy:.4f} of the whole"
        )
    write_part_manifest(first, head.place, exits)
    write_part_manifest(second, head.place, wholes)


@click.command(help=(__doc__ or "").splitlines()[0])
@click.option("--models", type=click.Path(path_type=Path), default=Path("models"))
@click.option("--scenes-at", type=click.Path(path_type=Path), required=True)
@click.option("--scenes", default=260, show_default=True)
@click.option("--moments", default=2, show_default=True, help="Pictures of each scene.")
@course_options(minutes=20.0)
@click.option("--place", type=click.Choice(PLACES), default=PLACES[0], show_default=True)
@click.option(
    "--export-only", is_flag=True, help="Export and judge the last checkpoint; train nothing."
)
def main(
    *,
    models: Path,
    scenes_at: Path,
    scenes: int,
    moments: int,
    steps: int,
    minutes: float,
    seed: int,
    begin_at: float,
    place: str,
    export_only: bool,
) -> None:
    torch.set_num_threads(1)
    checkpoint = scenes_at / "exits.pt"
    trainer = Trainer(trained_network(models / "street" / "street.onnx"), seed)
    if not export_only:
        render_scenes(scenes_at, TRAINING_SEEDS_FROM, scenes, moments, 1)
        if begin_at:
            trainer.load(checkpoint)
        batches, course = Batches(scenes_at, seed), Course(steps, minutes, begin_at)
        train(trainer, map(list, batches), course, losses=PLACES, checkpoint=checkpoint)
    trainer.load(checkpoint)
    head = trainer.average.at[place]
    assert isinstance(head, ExitHead)
    put_in_place(trainer.whole, head, scenes_at, models)


if __name__ == "__main__":
    main()
