"""Pipelines under overload: `python -m benchmarks.pipelines --counts FILE [--traces FOLDER]`.

Nine cameras (six of traffic, 200 ms; three of people, 300 ms; 15 frames a second) go through a
detector and two classifiers on three executors of one device. Two interferences and two loads, and
for each: no admission of frames, admission by work, and by density (`scheduling.frame_admission`),
under `adaptive`, `edf` and `coral`. Objects answered in time each second, and what no scheduler can
exceed. `--ablation` leaves out one part of the method at a time.

FILE has the counts of objects of recorded videos, as `edgebox simulate pipelines` takes them, with
the classes car and person; `--videos` names one for each camera, and the second at which it begins:
`yard@900`. Without it, counts are made up. FOLDER has bandwidth traces (CSV); without it, links
carry everything.
"""

import json
import random
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import click

from benchmarks.pipelines_scenario import CAMERAS, scenario_text
from edgebox.scheduling import crop_wait, fan_out, frame_admission
from edgebox.scheduling.fan_out import FanOut
from edgebox.scheduling.scheduler_parameters import FrameAdmissionRule
from edgebox.simulation.object_figures import object_figures
from edgebox.simulation.run import run_scenario
from edgebox.simulation.scenario import Scenario, parse_scenario

POLICIES = ("adaptive", "edf", "coral")
INTERFERENCE = (1.0, 0.6)
LOADS = (1.0, 1.4)
MADE_UP = tuple(f"camera-{at}" for at in range(CAMERAS))


def made_up_counts(seed: int) -> str:
    """Return counts of objects for each camera that rise and fall over minutes."""
    rng = random.Random(seed)
    lines = ["at_s,video,car,person"]
    for camera in range(CAMERAS):
        car, person = rng.uniform(0, 12), rng.uniform(0, 6)
        for at_s in range(0, 600, 2):
            car = min(20.0, max(0.0, car + rng.gauss(0, 1.5)))
            person = min(12.0, max(0.0, person + rng.gauss(0, 1)))
            lines.append(f"{at_s},camera-{camera},{round(car)},{round(person)}")
    return "\n".join(lines)


@dataclass(frozen=True)
class Inputs:
    """What cameras see, and their links."""

    counts: str
    """A CSV text."""
    videos: tuple[str, ...]
    """One for each camera, with the second at which it begins: `yard@900`."""
    traces: tuple[str, ...]
    """The texts of bandwidth traces; none: links carry everything."""
    seed: int
    """Of random numbers; each further one begins a minute later in the videos and traces."""
    concurrent_batches: int = 0
    """How many run at once; 0: as many as the interference makes worthwhile."""


def make_scenario(inputs: Inputs, interference: float, load: float) -> Scenario:
    """Return one scenario.

    Args:
        inputs: what cameras see, and their links.
        interference: by how much each other batch slows one.
        load: the factor of all execution times.
    """
    text = scenario_text(interference, load, inputs.seed, inputs.videos, len(inputs.traces))
    files = {"counts.csv": inputs.counts}
    files |= {f"trace-{at}": of for at, of in enumerate(inputs.traces)}
    read = parse_scenario(text, "pipelines.toml", files.__getitem__)
    scheduling = replace(read.scheduling, concurrent_batches=inputs.concurrent_batches)
    return replace(read, scheduling=scheduling)


def figures(scenario: Scenario, policy: str, rule: FrameAdmissionRule) -> dict[str, Any]:
    """Run a scenario; return its figures."""
    of = replace(
        scenario,
        policy=replace(scenario.policy, batching=policy),
        scheduling=replace(scenario.scheduling, frame_admission=rule),
    )
    return object_figures(run_scenario(of), of)


Change = Callable[[], AbstractContextManager[object]]

ABLATIONS: dict[str, Change] = {
    "as it is": nullcontext,
    "no wait for crops": lambda: patch.object(crop_wait, "WAIT_SHARE_MAX", -1.0),
    "the price fades by half in 1 s": lambda: patch.object(
        frame_admission, "PRICE_HALF_LIFE_NS", 10**9
    ),
    "the price fades by half in 100 s": lambda: patch.object(
        frame_admission, "PRICE_HALF_LIFE_NS", 10**11
    ),
    "no time is kept for later stages": lambda: patch.object(
        FanOut, "remaining_ns", lambda self, camera, stage: 0
    ),
    "time is kept for the median of crops": lambda: patch.object(fan_out, "FAN_OUT_QUANTILE", 0.5),
    "crops of the last 16 frames": lambda: patch.object(fan_out, "FAN_OUT_WINDOW", 16),
    "crops of the last 256 frames": lambda: patch.object(fan_out, "FAN_OUT_WINDOW", 256),
    "unseen after 0.2 s": lambda: patch.object(frame_admission, "UNSEEN_NS", 2 * 10**8),
    "unseen after 5 s": lambda: patch.object(frame_admission, "UNSEEN_NS", 5 * 10**9),
}


def compare(inputs: Inputs) -> list[dict[str, Any]]:
    """Return the figures of every policy and rule of admission."""
    found = []
    for interference in INTERFERENCE:
        for load in LOADS:
            scenario = make_scenario(inputs, interference, load)
            for policy in POLICIES:
                for rule in FrameAdmissionRule:
                    of = figures(scenario, policy, rule)
                    found.append(
                        {"k": interference, "load": load, "policy": policy, "admission": rule, **of}
                    )
    return found


def ablate(inputs: Inputs) -> list[dict[str, Any]]:
    """Return the figures with one part of the method left out or changed at a time."""
    found = []
    for name, change in ABLATIONS.items():
        for interference in INTERFERENCE:
            for load in (0.7, *LOADS):
                scenario = make_scenario(inputs, interference, load)
                with change():
                    of = figures(scenario, "adaptive", FrameAdmissionRule.DENSITY)
                found.append(
                    {"k": interference, "load": load, "policy": "adaptive", "admission": name, **of}
                )
    return found


@click.command()
@click.option("--counts", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--videos", help="One for each of the nine cameras, with commas.")
@click.option("--traces", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--seed", default=1, show_default=True)
@click.option("--concurrent-batches", default=0, help="0: by the interference.")
@click.option("--ablation", is_flag=True)
@click.option("--json", "as_json", is_flag=True)
def main(
    *,
    counts: Path | None,
    videos: str | None,
    traces: Path | None,
    seed: int,
    concurrent_batches: int,
    ablation: bool,
    as_json: bool,
) -> None:
    """Print the objects answered in time by interference, load, policy and admission."""
    if (counts is None) != (videos is None):
        raise click.UsageError("give both --counts and --videos, or neither")
    files = [] if traces is None else sorted(traces.glob("*.csv"))[:CAMERAS]
    inputs = Inputs(
        made_up_counts(seed) if counts is None else counts.read_text("utf-8"),
        MADE_UP if videos is None else tuple(videos.split(",")),
        tuple(path.read_text("utf-8") for path in files),
        seed,
        concurrent_batches,
    )
    if len(inputs.videos) != CAMERAS:
        raise click.UsageError(f"--videos must name {CAMERAS}")
    found = (ablate if ablation else compare)(inputs)
    if as_json:
        click.echo(json.dumps(found, indent=1))
        return
    for of in found:
        share = of["objects_per_s"] / of["objects_bound_per_s"]
        spent = of["executor_time"]
        click.echo(
            f"k {of['k']} load {of['load']} {of['policy']:8} {of['admission']}: "
            f"{of['objects_per_s']:.0f} of {of['objects_bound_per_s']:.0f} objects/s, {share:.3f}; "
            f"executor time: partial answers {spent['partial']:.3f}, wasted {spent['wasted']:.3f}"
        )


if __name__ == "__main__":
    main()
