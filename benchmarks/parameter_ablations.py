"""What the planner's parameters are worth: `python -m benchmarks.parameter_ablations [--json]`.

Scenarios are played in closed loop with one parameter changed at a time. *Batches pay*: settings of
`benchmarks.adaptation`, whose batches gain as on a GPU. *Batches do not pay*: cameras on two
executors whose batches take as long as their frames one by one, as on a CPU: 4 and 8, and 20 that
get less than they ask for. Links change in steps or as LTE does. Told are misses, accuracy (a miss
counts 0) and changes of variant per camera and minute, as means over the scenarios of a kind.
"""

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from statistics import fmean
from types import ModuleType
from typing import Any

import click

from benchmarks.adaptation import FOLDER, MADE_UP, SIZES_PX, accuracy, behind
from benchmarks.changed_constant import changed
from edgebox.commands.simulate_cameras import read_scenario
from edgebox.planning import allocation, minimum, options, partition_search, uplinks
from edgebox.simulation.figures import figures
from edgebox.simulation.run import run_scenario
from edgebox.simulation.scenario import Scenario, parse_scenario

IMPORTERS = (allocation, minimum, options, partition_search, uplinks)
"""Modules that import constants of others."""

PAYS, DOES_NOT = "batches pay", "batches do not pay"
PLAYED = (
    ("2-cameras-75-ms-15-hz", "lte"),
    ("4-cameras-100-ms-25-hz", "steps"),
    ("4-cameras-100-ms-25-hz", "lte"),
)
"""Settings of `benchmarks.adaptation`, and their links."""
PLAYED_ON_CPU = ((4, "lte"), (8, "steps"), (20, "lte"))
"""Cameras, and their links."""
DURATION_NS = 35_000_000_000
PARAMETERS: tuple[tuple[str, float], ...] = (
    ("quantile", 0.9),
    ("utilisation_max", 0.75),
    ("utilisation_upgrade", 0.9),
    ("utilisation_slow", 0.75),
    ("cycle_utilisation_max", 1.0),
    ("uplink_utilisation_max", 0.95),
    ("uplink_utilisation_max_stable", 0.8),
    ("link_upgrade", 1.0),
    ("upgrade_hold_ns", 0),
    ("hysteresis_ratio", 1.0),
    ("rate_min_hz", 0.2),
    ("bytes_per_pixel", 0.6),
    ("unmeasured_slo_share", 0.9),
    ("unmeasured_frame_bytes", 60_000),
)
"""Each with a value that takes away what it is for."""


def finely(rate_hz: float) -> float:
    """Round a rate as the planner does, but to a thousandth."""
    return int(rate_hz * 1000) / 1000


CONSTANTS: tuple[tuple[ModuleType, str, Any], ...] = (
    (allocation, "BEST_EFFORT_SERVICE", 1.0),
    (options, "round_rate", finely),
)


def cpu_scenario(cameras: int, seed: int) -> Scenario:
    """Return cameras on two executors whose batches gain nothing."""
    lines = [
        "duration_s = 65\nwarmup_s = 5",
        f'[[cameras]]\nname = "camera"\ncount = {cameras}\nslo_ms = 200\nrate_hz = 10',
        "width_px = 608\nheight_px = 608\nbytes_per_pixel = 0.478\nbytes_exponent = 0.176",
        'joins_apart_s = 0.5\ntrace = "traces/steps.txt"\nstep_s = 20\ntrace_start_s = "random"',
        *(f'[[executors]]\nname = "cpu/{at}"' for at in range(2)),
    ]
    for side_px in SIZES_PX[::3]:
        once_ms = 5 + 6 * (side_px / 128) ** 2
        times = ", ".join(f"{size} = {size * once_ms:.2f}" for size in (1, 2, 4, 8))
        lines.append(
            f'[[variants]]\nname = "square-{side_px}"\nwidth_px = {side_px}\n'
            f"accuracy = {accuracy(side_px):.4f}\nbatch_ms = {{ {times} }}"
        )
    return parse_scenario("\n".join(lines), "cpu", lambda name: (FOLDER / name).read_text(), seed)


def scenarios(seeds: int, played: Iterable[tuple[str, str]]) -> Iterator[tuple[str, Scenario]]:
    """Yield the scenarios, each with its kind; `played`: settings and links in place of all."""
    for seed in range(1, 1 + seeds):
        for setting, link in played or PLAYED:
            yield PAYS, behind(read_scenario(FOLDER / f"{setting}.toml", seed), MADE_UP[link])
        for cameras, link in () if played else PLAYED_ON_CPU:
            yield DOES_NOT, behind(cpu_scenario(cameras, seed), MADE_UP[link])


def measured(of: list[tuple[str, Scenario]], **parameters: Any) -> dict[str, list[float]]:
    """Return misses, accuracy and changes by kind."""
    rows: dict[str, list[tuple[float, float, float]]] = {PAYS: [], DOES_NOT: []}
    for kind, scenario in of:
        planning = replace(scenario.planning, **parameters)
        played = replace(scenario, planning=planning, duration_ns=DURATION_NS)
        found = figures(run_scenario(played), played)["all"]
        keys = "miss_rate", "accuracy", "changes_per_camera_minute"
        rows[kind].append((found[keys[0]], found[keys[1]], found[keys[2]]))
    return {
        kind: [fmean(column) for column in zip(*each, strict=True)]
        for kind, each in rows.items()
        if each
    }


def text_of(found: dict[str, list[float]]) -> str:
    """Write what was measured."""
    return "; ".join(
        f"{kind}: {misses:.2%} / {right:.4f} / {changes:.1f}"
        for kind, (misses, right, changes) in found.items()
    )


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--only", default="", help="Names of parameters, with commas; empty: all.")
@click.option("--seeds", default=1, show_default=True)
@click.option("--played", default="", help="SETTING:LINK in place of all scenarios, with commas.")
def main(*, as_json: bool, only: str, seeds: int, played: str) -> None:
    """Print what each parameter of the planner is worth in closed loop."""
    instead = [
        (setting, link)
        for setting, _, link in (x.partition(":") for x in played.split(","))
        if link
    ]
    of, chosen = list(scenarios(seeds, instead)), set(filter(None, only.split(",")))
    rows = []

    def note(name: str, value: object, found: dict[str, list[float]]) -> None:
        rows.append({"name": name, "value": value, "found": found})
        if not as_json:
            click.echo(f"{name:30} {value!s:>14}  {text_of(found)}")
            sys.stdout.flush()

    note("as they are", "", measured(of))
    for name, value in PARAMETERS:
        if not chosen or name in chosen:
            note(name, value, measured(of, **{name: value}))
    for module, name, value in CONSTANTS:
        if not chosen or name in chosen:
            with changed(
                module, name, value, (allocation, minimum, options, partition_search, uplinks)
            ):
                note(name, getattr(value, "__name__", value), measured(of))
    if as_json:
        json.dump({"scenarios": len(of), "rows": rows}, sys.stdout, indent=1)
        click.echo()


if __name__ == "__main__":
    main()
