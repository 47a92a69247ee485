"""Cascades and exits against single sizes, live: `python -m benchmarks.cascade_live [--load L]...`

Boxes take turns on this machine, each with one CPU thread for inference, and the same cameras: four
that look at made-up streets and follow the advice of the box. One box has the whole network at 608
px; three have a smaller size of it; one has the cascade of 256 and 608 px, and one the network with
its exit at 608 px, whose shares the plan chooses. The load is what the whole network at 608 px
alone would take of the thread. Printed: the share of the frames on time, and the accuracy-weighted
goodput, the expected accuracies of the answers on time in each second; beside it that of
`benchmarks.cascade` with the times and curves that were measured here.

Limits: the machine must do nothing else. The cameras compute on the same cores, which the
simulation does not know. That an answer of a small model is less accurate where it was unsure is
taken from the cascade's curve.
"""

import asyncio
import json
import os
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import click

from benchmarks.cascade import LARGE, Models, scenario_text
from benchmarks.dynamic_boxes import RunningBox, boxes, measure, write_config
from benchmarks.dynamic_cascades import fit_pair
from benchmarks.one_size import write_one_size
from edgebox.camera.daemon import Camera
from edgebox.camera.records import FrameRecord
from edgebox.config.config_file import load
from edgebox.domain.cascades import CascadeCurve, CascadeOutcome
from edgebox.domain.model_family import LatencyProfile
from edgebox.domain.requests import Outcome
from edgebox.inference.family import Family
from edgebox.inference.zoo import load_family
from edgebox.link.messages import Result
from edgebox.media.sources import PictureSource
from edgebox.scene.street_camera import Scene
from edgebox.simulation.answer_accuracy import accuracy_figures
from edgebox.simulation.run import run_scenario
from edgebox.simulation.scenario import parse_scenario

CAMERAS = 4
SINGLES = (608, 512, 416, 320)
SMALL = 256
SLO_MS = 300.0
SIZE_PX = (608, 342)
FITTED_SCENES = 20
PICTURES = 40
"""Of each camera, half a second apart, again and again."""
PROFILE_S = 25.0
WARM_S = 4.0
"""So long cameras, links and the plan settle in each turn."""


@dataclass(frozen=True)
class Pair:
    """Two models that answer together."""

    small: Family
    large: Family
    curve: CascadeCurve

    def accuracy(self, answers: Counter[str]) -> float:
        """Return the mean accuracy to be expected of some answers, by what the cascade did."""
        of = [self.small.variants[0].accuracy, self.large.variants[0].accuracy]
        share = answers[CascadeOutcome.SENT_ON.value] / max(1, answers.total())
        return self.curve.accuracy_at(share, *of)

    def models(self, ms: Mapping[str, float], *, parts: bool) -> Models:
        """Return it for the simulation; `ms`: what a picture takes, by variant."""
        names = ("street-exit", "street-rest") if parts else ("street", "street")
        small, large = (
            (f"{name}-{v.width_px}", v.width_px, v.accuracy, ms[v.name])
            for name, v in zip(names, (self.small.variants[0], self.large.variants[0]), strict=True)
        )
        points = [(each.threshold, each.share, each.loss) for each in self.curve.points]
        return Models(small, large, points)


@dataclass
class Answers:
    """What a box answered in its turns."""

    counted_s: float = 0.0
    captured: int = 0
    on_time: Counter[str] = field(default_factory=Counter)
    """By what the cascade did, or by variant."""
    lost: Counter[str] = field(default_factory=Counter)
    """Frames that were not on time, by reason."""

    def document(self, accuracies: Mapping[str, float], pair: Pair | None) -> dict[str, Any]:
        """Return the figures."""
        answers = self.on_time.total()
        if pair is None:
            total = sum(accuracies[name] * count for name, count in self.on_time.items())
        else:
            total = answers * pair.accuracy(self.on_time)
        return {
            "captured": self.captured,
            "on_time": round(answers / max(1, self.captured), 4),
            "answers": dict(self.on_time),
            "lost": dict(self.lost),
            "accuracy_per_s": round(total / self.counted_s, 3),
        }


@dataclass(frozen=True)
class Bench:
    """What was measured, and the boxes that run."""

    running: Sequence[RunningBox]
    profiles: Mapping[str, LatencyProfile]
    singles: Mapping[str, Family]
    pairs: Mapping[str, Pair]
    pictures: Sequence[Sequence[Any]]
    """Of each camera: (height, width, 3) uint8."""

    def ms(self) -> dict[str, float]:
        """Return what a single picture takes by variant, its median."""
        return {name: of.quantile_ns(1, 0.5) / 1e6 for name, of in self.profiles.items()}


def write_families(folder: Path) -> dict[str, Path]:
    """Write a family for each single size and each part; return their folders."""
    found = {}
    for px in sorted({*SINGLES, SMALL}):
        found[f"size{px}"] = write_one_size(folder / f"size{px}", "street", px, f"size{px}")
    found["exit"] = write_one_size(folder / "exit", "street-exit", LARGE, "exit")
    found["rest"] = write_one_size(folder / "rest", "street-rest", LARGE, "rest", after="exit")
    return found


def config_lines(folder: Path, families: Mapping[str, Path], names: Sequence[str]) -> str:
    """Return the lines of a box with some families; two are the models of a cascade."""
    listed = ", ".join(f'"{families[name].as_posix()}"' for name in names)
    lines = (
        f'[inference]\nbundled = []\nfamilies = [{listed}]\nfamily = "{names[0]}"\n'
        f'profile_s = {PROFILE_S}\nmodels = "{(folder / "models").as_posix()}"\n'
    )
    if len(names) != 2:
        return lines
    small, large = names
    return (
        f'{lines}[[pipelines]]\nname = "both"\n[[pipelines.stages]]\nname = "first"\n'
        f'family = "{small}"\n[[pipelines.stages]]\nname = "second"\nfamily = "{large}"\n'
        f'after = ["first"]\ncascade = "{small}-{large}"\n'
    )


async def prepared(folder: Path, stack: AsyncExitStack, wanted: Sequence[str]) -> Bench:
    """Measure the machine, fit both cascades, and start the boxes that are wanted; none: all."""
    paths = write_families(folder)
    everything = config_lines(folder, paths, list(paths))
    config = load(write_config(folder, everything, "adaptive"))
    profiles = await measure(config)
    families = {name: load_family(path) for name, path in paths.items()}
    pairs = {}
    arms = {f"size {px}": [f"size{px}"] for px in SINGLES}
    for arm, names in (
        (f"cascade {SMALL}", [f"size{SMALL}", f"size{LARGE}"]),
        (f"exit {LARGE}", ["exit", "rest"]),
    ):
        both = families[names[0]], families[names[1]]
        fitting = partial(fit_pair, config, both, FITTED_SCENES, SIZE_PX, "-".join(names))
        stored = await asyncio.to_thread(fitting)
        pairs[arm], arms[arm] = Pair(*both, stored.curve), names
    configs = {
        arm: write_config(folder / arm, config_lines(folder, paths, names), "adaptive")
        for arm, names in arms.items()
        if not wanted or arm in wanted
    }
    running = await stack.enter_async_context(boxes(folder, configs))
    scenes = [Scene(700 + number, *SIZE_PX) for number in range(CAMERAS)]
    pictures = [[scene.render(at / 2).rgb for at in range(PICTURES)] for scene in scenes]
    singles = {arm: families[names[0]] for arm, names in arms.items()}
    return Bench(running, profiles, singles, pairs, pictures)


async def turn(
    bench: Bench, box: RunningBox, rate_hz: float, turn_s: float, answers: Answers
) -> None:
    """Let the cameras stream to a box for a while, and note what it answered."""
    paired = box.policy in bench.pairs

    def source(number: int) -> PictureSource:
        of = bench.pictures[number]
        count = max(1, round((WARM_S + turn_s) * rate_hz / CAMERAS))
        return PictureSource(SIZE_PX, rate_hz / CAMERAS, lambda at: of[at % len(of)], count)

    outcomes: list[dict[int, Result]] = [{} for _ in range(CAMERAS)]
    ended: list[tuple[int, FrameRecord]] = []

    def heard(number: int, result: Result) -> None:
        outcomes[number][result.frame] = result

    def end(number: int, record: FrameRecord) -> None:
        ended.append((number, record))

    cameras = [
        Camera(
            source(number),
            box.url.replace("http", "ws", 1),
            name=f"gate-{number}",
            slo_ms=SLO_MS,
            rate_hz=rate_hz / CAMERAS,
            min_rate_hz=rate_hz / CAMERAS,
            pipeline="both" if paired else None,
            on_result=partial(heard, number),
            on_frame_end=partial(end, number),
        )
        for number in range(CAMERAS)
    ]
    await asyncio.gather(*(camera.run() for camera in cameras))
    began_ns = min((record.captured_ns for _, record in ended), default=0)
    answers.counted_s += turn_s
    for number, record in ended:
        if record.captured_ns < began_ns + WARM_S * 1e9 or record.reason == "departed":
            continue
        answers.captured += 1
        if record.outcome is Outcome.ON_TIME:
            result = outcomes[number][record.frame]
            what = result.cascade.value if result.cascade is not None else result.variant
            answers.on_time[what] += 1
        else:
            answers.lost[record.reason or record.outcome.value] += 1


def simulated(bench: Bench, load_share: float, seeds: int) -> dict[str, float]:
    """Return the goodput of each box by simulation, with the times that were measured."""
    ms = bench.ms()
    table = {
        v.width_px: (v.accuracy, ms[v.name])
        for v in (family.variants[0] for family in bench.singles.values())
        if v.name in ms and v.name.startswith("size")
    }
    found = {}
    for arm in (box.policy for box in bench.running):
        family, pair = bench.singles[arm], bench.pairs.get(arm)
        cascade = None if pair is None else pair.models(ms, parts=arm.startswith("exit"))
        sizes = () if pair is not None else (family.variants[0].width_px,)
        total = 0.0
        for seed in range(1, seeds + 1):
            text = scenario_text(
                load_share,
                seed,
                sizes,
                cascade,
                None,
                plans=pair is not None,
                table=table,
                cameras=CAMERAS,
            )
            scenario = parse_scenario(text, "cascade.toml", str)
            total += accuracy_figures(run_scenario(scenario), scenario)["accuracy_per_s"]
        found[arm] = round(total / seeds, 3)
    return found


async def compare(
    loads: Sequence[float], turn_s: float, turns: int, wanted: Sequence[str]
) -> dict[str, Any]:
    """Return the figures of all boxes at all loads."""
    with tempfile.TemporaryDirectory() as name:
        async with AsyncExitStack() as stack:
            bench = await prepared(Path(name), stack, wanted)
            ms = bench.ms()
            accuracies = {
                str(v.name): v.accuracy for f in bench.singles.values() for v in f.variants
            }
            rows = []
            for load_share in loads:
                rate_hz = load_share * 1e3 / ms[f"size{LARGE}-{LARGE}"]
                answers = {box.policy: Answers() for box in bench.running}
                for number in range(turns):
                    for box in bench.running if number % 2 == 0 else bench.running[::-1]:
                        await turn(bench, box, rate_hz, turn_s, answers[box.policy])
                row: dict[str, Any] = {"load": load_share, "rate_hz": round(rate_hz, 2)}
                row["live"] = {
                    arm: of.document(accuracies, bench.pairs.get(arm))
                    for arm, of in answers.items()
                }
                row["simulated"] = await asyncio.to_thread(simulated, bench, load_share, 1)
                rows.append(row)
                click.echo(json.dumps(row), err=True)
    return {
        "load_average": [round(each, 2) for each in os.getloadavg()],
        "ms": {name: round(each, 2) for name, each in ms.items()},
        "loads": rows,
    }


@click.command()
@click.option("--load", "loads", multiple=True, type=float, default=(0.7, 1.0, 1.4))
@click.option("--turn-s", default=8.0, show_default=True, help="That count, of each turn.")
@click.option("--turns", default=2, show_default=True, help="Turns of each box at each load.")
@click.option("--box", "wanted", multiple=True, help='Only these, as "exit 608" or "size 416".')
def main(*, loads: tuple[float, ...], turn_s: float, turns: int, wanted: tuple[str, ...]) -> None:
    """Print one JSON document."""
    click.echo(json.dumps(asyncio.run(compare(loads, turn_s, turns, wanted)), indent=1))


if __name__ == "__main__":
    main()
