"""Cameras of two applications, of different length: planned by the profile, and by what is learned.

    python -m benchmarks.applications [--seeds 2] [--duration-s 60]

Prints a table in Markdown: misses and accuracy of each application's cameras. The box is told of
neither; the profile lies between them. Each plan is tried without and with a variant per batch,
which hides what a wrong plan does to deadlines.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import mean

from edgebox.domain.plans import Plan, PlanningSnapshot
from edgebox.planning.planner import Planner, plan
from edgebox.simulation.figures import figures
from edgebox.simulation.run import run_scenario
from edgebox.simulation.scenario import parse_scenario

HARDWARE = """
[[executors]]
name = "gpu/0"
spread = [0.8, 0.85, 0.88, 0.9, 0.92, 0.95, 0.97, 1.0, 1.1]

[[variants]]
name = "s-128"
width_px = 128
accuracy = 0.3
batch_ms = { 1 = 4, 2 = 5, 4 = 7, 8 = 11 }

[[variants]]
name = "s-256"
width_px = 256
accuracy = 0.45
batch_ms = { 1 = 8, 2 = 11, 4 = 17, 8 = 29 }

[[variants]]
name = "s-416"
width_px = 416
accuracy = 0.55
batch_ms = { 1 = 15, 2 = 24, 4 = 42, 8 = 78 }

[[variants]]
name = "s-608"
width_px = 608
accuracy = 0.6
batch_ms = { 1 = 28, 2 = 48, 4 = 88, 8 = 168 }
"""


@dataclass(frozen=True, slots=True)
class Setting:
    """Two groups of cameras."""

    each: int
    """Cameras in a group."""
    slo_ms: int
    short: float
    long: float
    """How much work their pictures are, in units of the profile's."""


SETTINGS = (Setting(4, 200, 0.3, 2), Setting(6, 150, 0.3, 2), Setting(4, 300, 0.3, 4))
GROUPS = ("short", "long")


def by_profile(snapshot: PlanningSnapshot, iterations_max: int) -> Plan:
    """Plan as if nothing were known of applications."""
    return plan(replace(snapshot, applications={}), iterations_max)


PLANNERS: dict[str, Planner | None] = {"profile": by_profile, "learned": None}


def run(
    setting: Setting,
    planner: Planner | None,
    seed: int,
    duration_s: float,
    warmup_s: float,
    *,
    variant_per_batch: bool,
) -> dict[str, tuple[float, float]]:
    """Run a setting once; return the misses and the accuracy of each group, a miss counting 0."""
    lines = [f"duration_s = {duration_s}\nwarmup_s = {warmup_s}\nseed = {seed}", HARDWARE]
    for group in GROUPS:
        lines += [
            f'[[cameras]]\nname = "{group}"\napp = "{group}"\ncount = {setting.each}',
            f"slo_ms = {setting.slo_ms}\nrate_hz = 10\nmbps = 30\nwork = {getattr(setting, group)}",
        ]
    scenario = parse_scenario("\n".join(lines), "applications", lambda name: name)
    scheduling = replace(scenario.scheduling, variant_per_batch=variant_per_batch)
    report = run_scenario(replace(scenario, scheduling=scheduling), planner=planner)
    cameras = figures(report, scenario)["cameras"]
    found = {}
    for group in GROUPS:
        own = [of for name, of in cameras.items() if name.startswith(group)]
        found[group] = mean(of["miss_rate"] for of in own), mean(of["accuracy"] for of in own)
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Run every setting and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--duration-s", type=float, default=60)
    parser.add_argument("--warmup-s", type=float, default=10)
    options = parser.parse_args(arguments)
    print(
        "| each group, deadline, work | planned by | variant per batch "
        "| short: misses / accuracy | long |"
    )
    print("|---|---|---|---|---|")
    for of in SETTINGS:
        for (name, planner), choice in product(PLANNERS.items(), (False, True)):
            times = options.duration_s, options.warmup_s
            runs = [
                run(of, planner, 1 + at, *times, variant_per_batch=choice)
                for at in range(options.seeds)
            ]
            cells = []
            for group in GROUPS:
                missed, accuracy = (mean(each[group][at] for each in runs) for at in (0, 1))
                cells.append(f"{100 * missed:.1f} % / {accuracy:.3f}")
            setting = f"{of.each}, {of.slo_ms} ms, {of.short:g} and {of.long:g}"
            chosen = "yes" if choice else "no"
            print(f"| {setting} | {name} | {chosen} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
