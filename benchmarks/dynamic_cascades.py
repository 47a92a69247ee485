"""Owns the workloads of `benchmarks.dynamic` with two models: an early exit, and a cascade.

Both are of the bundled street detector. Which pictures need the second model is decided by what the
first one finds on them, with a decider that was fitted to other scenes. Three applications send
pictures of the same made-up streets, in different mixes of those that end at the first model and
those that go on. A frame takes the time of one model or that of both.
"""

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.dynamic_boxes import measure, write_config
from benchmarks.dynamic_workload import Application, Workload
from benchmarks.one_size import write_one_size
from edgebox.app.cascade_fitting import CascadePictures, CascadeSide, fit
from edgebox.config.config_file import Config, load
from edgebox.inference.cascade_file import StoredCascade
from edgebox.inference.family import Family
from edgebox.inference.onnx_executor import OnnxExecutor
from edgebox.inference.zoo import load_family
from edgebox.media.jpeg import decode, encode, lay_into
from edgebox.scene.street_camera import Scene
from edgebox.vision.cascade_decider import expected_loss
from edgebox.vision.letterbox import Placement

NAME = "both"
MOMENTS = 12
"""Pictures of each scene, some seconds apart."""
_APART_S = 3.0
_QUALITY = 90


@dataclass(frozen=True, slots=True)
class Two:
    """Two models of one size each, by family that comes with edgebox and width."""

    small: tuple[str, int]
    large: tuple[str, int]
    continues: bool
    """Whether the large one goes on from the small one's features."""


KINDS = {
    "exit": Two(("street-exit", 256), ("street-rest", 256), continues=True),
    "cascade": Two(("street", 160), ("street", 320), continues=False),
}


@dataclass(frozen=True, slots=True)
class Scenes:
    """The scenes to fit to, and those that the cameras see."""

    fitted: int = 20
    seen: int = 10


async def prepare(
    kind: str,
    folder: Path,
    scenes: Scenes,
    profile_s: float,
    tell: Callable[[str], None],
) -> Workload:
    """Write the models, measure the machine, fit the decider, and return the workload.

    Args:
        kind: one of `KINDS`.
        folder: is there; models and database are written into it.
        scenes: how many.
        profile_s: how long the machine is measured.
        tell: called with the present step.
    """
    two = KINDS[kind]
    small = write_one_size(folder / "small", *two.small, "small")
    large = write_one_size(
        folder / "large", *two.large, "large", after="small" if two.continues else None
    )
    models = folder / "models"
    lines = (
        f'[inference]\nbundled = []\nfamilies = ["{small.as_posix()}", "{large.as_posix()}"]\n'
        f'family = "small"\nprofile_s = {profile_s}\nmodels = "{models.as_posix()}"\n'
    )
    config = load(write_config(folder, lines, "edf"))
    tell("measuring the machine")
    profiles = await measure(config)
    families = load_family(small), load_family(large)
    tell(f"fitting to {scenes.fitted * MOMENTS} pictures")
    size_px = two.large[1], two.large[1] * 9 // 16
    stored = await asyncio.to_thread(fit_pair, config, families, scenes.fitted, size_px, NAME)
    jpegs = list(pictures(range(600, 600 + scenes.seen), size_px))
    losses = await asyncio.to_thread(_expected, families[0], jpegs, stored)
    order = np.argsort(losses, kind="stable").tolist()
    third = len(order) // 3
    easy, hard = order[:third], order[-third:]
    threshold = (losses[easy[-1]] + losses[hard[0]]) / 2
    alone = [profiles[f.variants[0].name].quantile_ns(1, 0.5) / 1e6 for f in families]
    goes_on = frozenset(hard)
    return Workload(
        applications=mixes(easy, hard),
        picture=jpegs.__getitem__,
        alone_ms=lambda number: alone[0] + alone[1] * (number in goes_on),
        size_px=size_px,
        hello={"pipeline": NAME},
        config=f"{lines}{_pipeline(threshold)}",
        profiles=profiles,
        about={
            "threshold": round(threshold, 4),
            "first_ms": round(alone[0], 2),
            "second_ms": round(alone[1], 2),
            "expected_losses": [round(losses[at], 3) for at in order],
        },
    )


def fit_pair(
    config: Config,
    families: tuple[Family, Family],
    scenes: int,
    size_px: tuple[int, int],
    name: str,
) -> StoredCascade:
    """Fit a cascade to some scenes and store it; the models are the families' only ones. Blocks."""
    one, other = (CascadeSide(family, family.variants[0]) for family in families)
    to_fit = CascadePictures(
        "scenes",
        (partial(decode, jpeg) for jpeg in pictures(range(500, 500 + scenes), size_px)),
        scenes * MOMENTS,
    )
    stored, _ = fit(config, (one, other), to_fit, name, lambda *_: None)
    return stored


def mixes(easy: Sequence[int], hard: Sequence[int]) -> tuple[Application, ...]:
    """Return applications by how many of their pictures go on: a tenth, half, and most."""

    def drawing(goes_on: float) -> Callable[[random.Random], int]:
        return lambda rng: rng.choice(hard if rng.random() < goes_on else easy)

    return (
        Application("doorway", 0.4, drawing(0.1)),
        Application("street", 0.3, drawing(0.5)),
        Application("plaza", 0.3, drawing(0.85)),
    )


def _pipeline(threshold: float) -> str:
    return (
        f'[[pipelines]]\nname = "{NAME}"\n'
        '[[pipelines.stages]]\nname = "first"\nfamily = "small"\n'
        '[[pipelines.stages]]\nname = "second"\nfamily = "large"\nafter = ["first"]\n'
        f'cascade = "{NAME}"\nthreshold = {threshold}\n'
    )


def pictures(seeds: Sequence[int], size_px: tuple[int, int]) -> Iterator[bytes]:
    """Yield pictures of scenes, `MOMENTS` of each."""
    for seed in seeds:
        scene = Scene(seed, *size_px)
        for moment in range(MOMENTS):
            yield encode(scene.render(moment * _APART_S).rgb, _QUALITY)


def _expected(family: Family, jpegs: Sequence[bytes], stored: StoredCascade) -> list[float]:
    """Return the loss that is expected of the small model's answer to each picture. Blocks."""
    variant, spec = family.variants[0], family.input
    losses = []
    with closing(OnnxExecutor(0, [family], providers="cpu", cpu_threads=1)) as executor:
        for jpeg in jpegs:
            rgb = decode(jpeg)
            height_px, width_px = rgb.shape[:2]
            canvas = np.empty((variant.height_px, variant.width_px, 3), np.uint8)
            laid = lay_into(rgb, canvas, spec.fill, spec.fit)
            placement = Placement.on_canvas(
                laid.width_px, laid.height_px, variant.width_px, variant.height_px, spec.fit
            )
            found = executor.submit(variant.name, [canvas], 1).result().detections[0]
            at_source = placement.to_source(found, width_px, height_px)
            losses.append(
                expected_loss(stored.decider, at_source, width_px, height_px, stored.score_shown)
            )
    return losses
