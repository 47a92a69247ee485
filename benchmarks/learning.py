"""Measures unexpected requests and machines: `python -m benchmarks.learning [--json]`.

Served mixes that differ from the profiled one, among applications and inside one; machines that
become slower, also while the mix changes; applications that nobody knows, and two that swap their
execution times. Virtual time. Each row has the share on time as
it is, without drift detection, and where everything had been known beforehand (informed).
"""

import json
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import click

from edgebox.scheduling.actions import ReportDrift
from edgebox.scheduling.adaptive import DistributionAware
from edgebox.scheduling.scheduler_parameters import SchedulerParameters
from edgebox.simulation.batching_simulator import (
    PARAMETERS,
    BatchingReport,
    BatchingSimulation,
    Environment,
)
from edgebox.simulation.workload import Job, Model, Workload

SIZES = (1, 2, 4, 8, 16)
C1 = 0.25
OFF = replace(PARAMETERS, drift_after_ns=1 << 62)
JITTER = 0.03
HISTORY = 500
"""Requests of each application that were measured beforehand."""

Modes = list[tuple[float, float]]
"""Execution times in ms and their shares."""


@dataclass(frozen=True, slots=True)
class Scene:
    """What was known, what is served, and how fast the machine is."""

    name: str
    known: dict[str, Modes]
    """By application, the modes of its measured execution times: ms and share."""
    served: dict[str, tuple[float, Modes]]
    """By application, its share of the requests and the modes of its execution times."""
    load: float
    slo_multiple: float
    arrivals: str = "poisson"
    requests: int = 4000
    slower: float = 1.0
    """How many times as long as profiled everything takes."""
    slower_from: float = 0.0
    """From this share of the run on."""
    first: int = 0
    """Requests before this one do not count."""
    changed_from: float = 0.0
    """Share of the run before which requests are as known."""


def _draw(modes: Modes, rng: random.Random) -> float:
    centre = rng.choices([ms for ms, _ in modes], [share for _, share in modes])[0]
    return centre * max(0.5, rng.gauss(1, JITTER))


def _mean(modes: Modes) -> float:
    return sum(ms * share for ms, share in modes) / sum(share for _, share in modes)


def _arrivals(kind: str, gap_ms: float, count: int, rng: random.Random) -> Iterator[float]:
    """Yield instants: plain, with a rate that swings (diurnal), or with two states (mmpp)."""
    at_ms, state, until_ms = 0.0, 0, 0.0
    for number in range(count):
        rate = 1.0
        if kind == "diurnal":
            rate = 1 + 0.8 * math.sin(2 * math.pi * 3 * number / count)
        elif kind == "mmpp":
            if at_ms >= until_ms:
                state = 1 - state
                until_ms = at_ms + rng.expovariate(1 / (60 * gap_ms))
            rate = (1.8, 0.6)[state]
        at_ms += rng.expovariate(rate / gap_ms)
        yield at_ms


def workload(scene: Scene, seed: int) -> Workload:
    """Draw a scene."""
    rng = random.Random(seed)
    history = {
        app: tuple(_draw(modes, rng) for _ in range(HISTORY)) for app, modes in scene.known.items()
    }
    longest_ms = max(ms for _, modes in scene.served.values() for ms, _ in modes)
    mean_ms = sum(share * _mean(modes) for share, modes in scene.served.values())
    c0_ms = (1 - C1) * mean_ms
    gap_ms = (c0_ms + SIZES[-1] * C1 * mean_ms) / (SIZES[-1] * scene.load)
    apps = list(scene.served)
    shares = [scene.served[app][0] for app in apps]
    jobs = []
    for number, at_ms in enumerate(_arrivals(scene.arrivals, gap_ms, scene.requests, rng)):
        app = rng.choices(apps, shares)[0]
        as_known = number < scene.changed_from * scene.requests and app in scene.known
        exec_ms = _draw(scene.known[app] if as_known else scene.served[app][1], rng)
        jobs.append(Job(number, at_ms, app, exec_ms, scene.slo_multiple * longest_ms))
    return Workload(Model(c0_ms, C1, SIZES), history, tuple(jobs))


def informed(scene: Scene, work: Workload, seed: int) -> Workload:
    """Return the same with what is served known beforehand."""
    rng = random.Random(seed + 1_000_000)
    history = {
        app: tuple(_draw(modes, rng) for _ in range(round(HISTORY * len(scene.served) * share)))
        for app, (share, modes) in scene.served.items()
    }
    return replace(work, history=history)


class _Run(BatchingSimulation):
    """A run that keeps its reports of drift."""

    def __init__(self, work: Workload, **scene: Any) -> None:
        self.drift_reports: list[ReportDrift] = []
        super().__init__(work, **scene)

    def _carry_out(self, action: Any, delay_ns: int) -> None:
        if isinstance(action, ReportDrift):
            self.drift_reports.append(action)
        super()._carry_out(action, delay_ns)


def run(
    scene: Scene, work: Workload, parameters: SchedulerParameters = PARAMETERS
) -> tuple[BatchingReport, list[ReportDrift]]:
    """Run a workload on the scene's machine."""
    changes_ns = work.jobs[-1].at_ms * scene.slower_from * 1e6

    def slower(now_ns: int) -> float:
        return scene.slower if now_ns >= changes_ns else 1.0

    policy = DistributionAware()
    simulation = _Run(
        work,
        policy=policy,
        rng=random.Random(1),
        parameters=parameters,
        environment=Environment(slower=slower),
    )
    return simulation.run(), simulation.drift_reports


def _both(short_ms: float, long_ms: float, share: float) -> Modes:
    """Return the modes of one application."""
    return [(short_ms, share), (long_ms, 1 - share)]


def scenes() -> list[Scene]:
    """Return what is measured."""
    two = {"short": [(35.0, 1.0)], "long": [(255.0, 1.0)]}
    one = {"all": _both(35, 255, 0.5)}

    def of_two(share: float, short_ms: float = 35) -> dict[str, tuple[float, Modes]]:
        return {"short": (share, [(short_ms, 1.0)]), "long": (1 - share, [(255.0, 1.0)])}

    def of_one(share: float) -> dict[str, tuple[float, Modes]]:
        return {"all": (1.0, _both(35, 255, share))}

    found = []
    for served, known, many in ((of_two, two, "two"), (of_one, one, "one")):
        found += [
            Scene(f"{many}: 85/15, diurnal", known, served(0.85), 0.5, 2, "diurnal"),
            Scene(f"{many}: 85/15, mmpp", known, served(0.85), 0.8, 3, "mmpp"),
            Scene(f"{many}: 95/5", known, served(0.95), 0.7, 3),
            Scene(f"{many}: 15/85", known, served(0.15), 0.7, 3),
        ]
        for share, load in ((0.5, 0.5), (0.85, 0.5), (0.15, 0.4)):
            name = f"{many}: 1.5 times slower, {share:.0%} short"
            mix = Scene(name, known, served(share), load, 3, changed_from=0.3)
            found.append(replace(mix, slower=1.5, slower_from=0.3))
    longer = Scene("one of two twice as long", two, of_two(0.5, 70), 0.5, 3, changed_from=0.3)
    unknown = Scene(
        "an unknown long application",
        {"usual": [(28.0, 1.0)]},
        {"usual": (0.89, [(28.0, 1.0)]), "new": (0.11, [(150.0, 1.0)])},
        *(0.6, 3),
        requests=2000,
        first=400,
    )
    swapped = Scene(
        "two applications swap their times",
        {"a": [(28.0, 1.0)], "b": [(150.0, 1.0)]},
        {"a": (0.5, [(150.0, 1.0)]), "b": (0.5, [(28.0, 1.0)])},
        *(0.6, 3),
        requests=2000,
        first=300,
    )
    return [*found, longer, unknown, swapped]


def measure(scene: Scene, seed: int) -> dict[str, Any]:
    """Return the share on time and the factors of the reported drifts."""
    work = workload(scene, seed)
    report, drifts = run(scene, work)
    without, _ = run(scene, work, OFF)
    knowing, _ = run(scene, informed(scene, work, seed))
    return {
        "on time": round(report.finish_rate_from(scene.first), 3),
        "without drift detection": round(without.finish_rate_from(scene.first), 3),
        "informed": round(knowing.finish_rate_from(scene.first), 3),
        "drifts": [round(drift.factor, 2) for drift in drifts],
    }


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--seed", "seeds", multiple=True, type=int, default=(11, 12, 13, 14))
@click.option("--scene", "wanted", default="", help="Only those whose names contain this.")
def main(as_json: bool, seeds: tuple[int, ...], wanted: str) -> None:
    """Print the share on time and the reported drifts, by scene and seed."""
    found = {
        scene.name: {seed: measure(scene, seed) for seed in seeds}
        for scene in scenes()
        if wanted in scene.name
    }
    if as_json:
        click.echo(json.dumps(found, indent=1))
        return
    for name, by_seed in found.items():
        click.echo(name)
        for seed, figures in by_seed.items():
            click.echo(f"  seed {seed}: " + ", ".join(f"{k} {v}" for k, v in figures.items()))


if __name__ == "__main__":
    main()
