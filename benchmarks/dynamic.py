"""Serves models whose time depends on their input, by one policy after the other.

    python -m benchmarks.dynamic [--model loop|exit|cascade] [--quick] [--policy NAME]... [--json]

Everything is real: a box per policy in a process of its own, cameras on WebSockets with stamped
frames, ONNX Runtime on one CPU thread. Applications of different mixes share the models: a
`doorway` whose pictures are mostly quick, a `plaza` whose are mostly slow. The time of a picture
differs because one model loops for longer (dynamic_loop.py), or because a second model looks at it:
the rest of a network with an early exit, or the large model of a cascade (dynamic_cascades.py).
Load 1 is what would keep the executor busy if every frame ran alone; deadlines are multiples of
the P99 alone.

With two models an answer may be on time without the second one that it needed. What counts then is
`whole`: the answers on time, without those.

In each round and cell all policies are offered the same frames, one after the other, so that what
else the machine does hits them alike; figures are medians over the rounds. Every box has served
some light load before, and each turn begins with frames that do not count.
"""

import asyncio
import functools
import itertools
import os
import platform
import random
import statistics
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks import dynamic_cascades, dynamic_loop
from benchmarks.dynamic_boxes import RunningBox, boxes, write_config
from benchmarks.dynamic_cameras import Ends, make_plan, play
from benchmarks.dynamic_cascades import Scenes
from benchmarks.dynamic_model import STEPS_MAX
from benchmarks.dynamic_workload import Workload
from edgebox.commands.console import print_json
from edgebox.inference.machine import processor_name, usable_cores
from edgebox.scheduling.policies import POLICIES

LIGHT_LOAD = 0.3
LOOP = "loop"
MODELS = (LOOP, *dynamic_cascades.KINDS)
_DRAWN = 4000
_SLO_MULTIPLE_LEARNING = 4.0


@dataclass(frozen=True, slots=True)
class Settings:
    """How long and what is measured."""

    model: str = LOOP
    policies: tuple[str, ...] = ("adaptive", "orloj", "edf", "fifo")
    loads: tuple[float, ...] = (0.7, 1.0, 1.4)
    slo_multiples: tuple[float, ...] = (2.0, 3.0)
    rounds: int = 5
    learning_s: float = 8.0
    """Seconds of light load, once for every box."""
    warm_s: float = 0.5
    counted_s: float = 2.0
    profile_s: float = 4.0
    profiled_steps: int = 30
    """How many steps of the loop the profiler's pictures need."""
    scenes: Scenes = field(default_factory=Scenes)


FULL = Settings()
QUICK = Settings(loads=(1.0,), slo_multiples=(2.0,), rounds=3, learning_s=3.0, profile_s=1.5)


@dataclass(frozen=True, slots=True)
class Mix:
    """What the applications' frames take alone."""

    mean_ms: float
    p99_ms: float
    by_app_ms: dict[str, tuple[float, float]]
    """P50 and P99."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One load and deadline."""

    load: float
    slo_multiple: float


@dataclass(frozen=True, slots=True)
class BoxRun:
    """One policy's turn at a cell."""

    policy: str
    cell: Cell
    ends: dict[str, Ends]
    decision_us: dict[str, float]
    batch_size_mean: float

    @property
    def total(self) -> Ends:
        """All applications together."""
        return _sum(self.ends.values())


def mix_of(workload: Workload) -> Mix:
    """Return what the frames of the applications take alone."""
    rng = random.Random(0)
    every: list[float] = []
    by_app = {}
    for of in workload.applications:
        times = [workload.alone_ms(of.draw(rng)) for _ in range(round(_DRAWN * of.share))]
        by_app[of.name] = (round(_quantile(times, 0.5), 1), round(_quantile(times, 0.99), 1))
        every += times
    return Mix(statistics.mean(every), _quantile(every, 0.99), by_app)


def _quantile(values: Sequence[float], q: float) -> float:
    return float(np.quantile(values, q))


async def take_turns(
    running: Sequence[RunningBox],
    settings: Settings,
    workload: Workload,
    mix: Mix,
    tell: Callable[[str], None],
) -> list[BoxRun]:
    """Let every box learn at light load, then serve every cell, round after round."""
    light_hz = LIGHT_LOAD / mix.mean_ms * 1e3
    plan_of = functools.partial(make_plan, workload.applications)
    learning = plan_of(light_hz, settings.learning_s, 0.0, "learning")
    for box in running:
        tell(f"{box.policy} learns for {settings.learning_s:g} s")
        await play(box.stream, learning, _SLO_MULTIPLE_LEARNING * mix.p99_ms / 1e3, workload)
    turns: list[BoxRun] = []
    cells = list(itertools.starmap(Cell, itertools.product(settings.loads, settings.slo_multiples)))
    for number in range(1, settings.rounds + 1):
        for cell in cells:
            rate_hz = cell.load / mix.mean_ms * 1e3
            plan = plan_of(rate_hz, settings.warm_s, settings.counted_s, f"{number} {cell}")
            # Another one begins each time: nobody always comes after the same one.
            first = len(turns) // len(running) % len(running)
            for box in (*running[first:], *running[:first]):
                slo_s = cell.slo_multiple * mix.p99_ms / 1e3
                turn = await _turn(box, cell, await play(box.stream, plan, slo_s, workload))
                turns.append(turn)
                tell(
                    f"round {number} of {settings.rounds}, load {cell.load:g}, deadline "
                    f"{cell.slo_multiple:g} x P99: {box.policy:9} {turn.total.whole_rate:.3f}"
                )
    return turns


async def _turn(box: RunningBox, cell: Cell, ends: dict[str, Ends]) -> BoxRun:
    of_box = (await box.state())["box"]
    batch_size_mean = of_box["executors"][0]["batch_size_mean"] or 0.0
    return BoxRun(box.policy, cell, ends, of_box["decision_us"], batch_size_mean)


def summary(turns: Sequence[BoxRun]) -> list[dict[str, Any]]:
    """Return for each cell what became of each policy's frames: sums, and medians of the rounds."""
    return [
        {
            "load": cell.load,
            "slo_multiple": cell.slo_multiple,
            "policies": {
                policy: _summary_of([t for t in turns if (t.policy, t.cell) == (policy, cell)])
                for policy in dict.fromkeys(turn.policy for turn in turns)
            },
        }
        for cell in dict.fromkeys(turn.cell for turn in turns)
    ]


def _summary_of(turns: Sequence[BoxRun]) -> dict[str, Any]:
    apps = {
        app: _ends_of([turn.ends[app] for turn in turns]) for app in dict.fromkeys(turns[0].ends)
    }
    return {
        **_ends_of([turn.total for turn in turns]),
        "apps": apps,
        "batch_size_mean": _median([turn.batch_size_mean for turn in turns], 2),
        "decision_us": {
            name: _median([turn.decision_us[name] for turn in turns], 1) for name in ("p50", "p99")
        },
    }


def _ends_of(rounds: Sequence[Ends]) -> dict[str, Any]:
    total = _sum(rounds)
    return {
        "finish_rate": _median([ends.finish_rate for ends in rounds], 3),
        "finish_rates": [round(ends.finish_rate, 3) for ends in rounds],
        "whole_rate": _median([ends.whole_rate for ends in rounds], 3),
        "whole_rates": [round(ends.whole_rate, 3) for ends in rounds],
        "sent": total.sent,
        "on_time": total.on_time,
        "late": total.late,
        "dropped": {reason: count for reason, count in total.dropped.items() if count},
        "cascade": dict(total.outcomes),
        "on_time_by_box": total.on_time_by_box,
    }


def _median(values: Sequence[float], digits: int) -> float:
    return round(statistics.median(values), digits)


def _sum(every: Iterable[Ends]) -> Ends:
    total = Ends()
    for ends in every:
        total.add(ends)
    return total


async def compare(settings: Settings, folder: Path, tell: Callable[[str], None]) -> dict[str, Any]:
    """Measure the machine, run the boxes and the cameras; return the whole document.

    Args:
        settings: how long and what.
        folder: empty; models, configurations and databases are written into it.
        tell: called with the present step.
    """
    load_before = [round(of, 2) for of in os.getloadavg()]
    workload = await _prepare(settings, folder, tell)
    mix = mix_of(workload)
    configs = {
        policy: write_config(folder / policy, workload.config, policy)
        for policy in settings.policies
    }
    async with boxes(folder, configs) as running:
        turns = await take_turns(running, settings, workload, mix, tell)
        counts_by_policy = {box.policy: (await box.state())["box"]["counts"] for box in running}
    return {
        "date": date.today().isoformat(),
        "machine": f"{processor_name()}, {usable_cores()} cores, {platform.machine()}, "
        f"Python {platform.python_version()}",
        "load_before": load_before,
        "load_after": [round(of, 2) for of in os.getloadavg()],
        "model": settings.model,
        "rounds": settings.rounds,
        "counted_s": settings.counted_s,
        **_about_times(workload, mix),
        "on_time_of_all": {
            policy: round(_sum(t.total for t in turns if t.policy == policy).finish_rate, 3)
            for policy in settings.policies
        },
        "whole_of_all": {
            policy: round(_sum(t.total for t in turns if t.policy == policy).whole_rate, 3)
            for policy in settings.policies
        },
        "cells": summary(turns),
        # Of every frame, those that only warmed up included.
        "counts_of_boxes": counts_by_policy,
    }


async def _prepare(settings: Settings, folder: Path, tell: Callable[[str], None]) -> Workload:
    if settings.model == LOOP:
        return await dynamic_loop.prepare(folder, settings.profiled_steps, settings.profile_s, tell)
    return await dynamic_cascades.prepare(
        settings.model, folder, settings.scenes, settings.profile_s, tell
    )


def _about_times(workload: Workload, mix: Mix) -> dict[str, Any]:
    return {
        **workload.about,
        "profile_p50_ms": {
            name: {
                str(size): round(profile.quantile_ns(size, 0.5) / 1e6, 2)
                for size in profile.batch_sizes
            }
            for name, profile in workload.profiles.items()
        },
        "alone_ms": {
            "mean": round(mix.mean_ms, 2),
            "p99": round(mix.p99_ms, 2),
            "apps": {app: {"p50": p50, "p99": p99} for app, (p50, p99) in mix.by_app_ms.items()},
        },
        "load_1_hz": round(1e3 / mix.mean_ms, 1),
    }


def show(document: dict[str, Any]) -> None:
    """Print the figures as tables."""
    alone = document["alone_ms"]
    click.echo(
        f"alone: mean {alone['mean']} ms, P99 {alone['p99']} ms; load 1 is "
        f"{document['load_1_hz']} frames/s"
    )
    for name, times in document["profile_p50_ms"].items():
        listed = ", ".join(f"{size}: {ms}" for size, ms in times.items())
        click.echo(f"profile of batches of {name} (P50, ms): {listed}")
    apps = "  ".join(f"{app:>7}" for app in alone["apps"])
    click.echo(
        f"load deadline policy    on time    whole  {apps}   late dropped  batch  decision us"
    )
    for cell in document["cells"]:
        for policy, of in cell["policies"].items():
            by_app = "  ".join(f"{app['whole_rate']:7.3f}" for app in of["apps"].values())
            decision = of["decision_us"]
            click.echo(
                f"{cell['load']:4.1f} {cell['slo_multiple']:8.1f} {policy:9} "
                f"{of['finish_rate']:7.3f}  {of['whole_rate']:7.3f}  {by_app}  {of['late']:5} "
                f"{sum(of['dropped'].values()):7}  {of['batch_size_mean']:5.2f}  "
                f"{decision['p50']:.0f}, P99 {decision['p99']:.0f}"
            )
    for what, name in (("on time", "on_time_of_all"), ("whole", "whole_of_all")):
        shares = ", ".join(f"{policy} {of}" for policy, of in document[name].items())
        click.echo(f"{what} of all frames of all cells: {shares}")


@click.command()
@click.option("--model", type=click.Choice(MODELS), default=LOOP, show_default=True)
@click.option("--rounds", type=click.IntRange(1), help="Turns of each policy in each cell.")
@click.option("--load", "loads", type=float, multiple=True, help="Of these only.")
@click.option("--slo-multiple", "slo_multiples", type=float, multiple=True, help="Of these only.")
@click.option("--quick", is_flag=True, help="One cell and three rounds: a minute.")
@click.option("--policy", "policies", multiple=True, type=click.Choice(list(POLICIES)))
@click.option(
    "--profiled",
    "profiled_steps",
    type=click.IntRange(1, STEPS_MAX),
    default=FULL.profiled_steps,
    show_default=True,
    help="Steps of the loop that the profiler's picture needs.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def main(
    *,
    model: str,
    rounds: int | None,
    loads: tuple[float, ...],
    slo_multiples: tuple[float, ...],
    quick: bool,
    policies: tuple[str, ...],
    profiled_steps: int,
    as_json: bool,
) -> None:
    """Compare policies on served models whose time depends on their input."""
    settings = replace(QUICK if quick else FULL, model=model, profiled_steps=profiled_steps)
    settings = replace(
        settings,
        policies=policies or settings.policies,
        loads=loads or settings.loads,
        slo_multiples=slo_multiples or settings.slo_multiples,
        rounds=rounds or settings.rounds,
    )
    with tempfile.TemporaryDirectory() as folder:
        document = asyncio.run(
            compare(settings, Path(folder), functools.partial(click.echo, err=True))
        )
    if as_json:
        print_json(document)
    else:
        show(document)


if __name__ == "__main__":
    main()
