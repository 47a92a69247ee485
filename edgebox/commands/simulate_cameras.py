"""`edgebox simulate cameras`: a scenario of cameras against a box. Thin: reads, runs, prints.

Imports what the command needs when it runs; plots need the extra `plot`.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from edgebox.commands.console import clear_errors, out, print_json, table
from edgebox.commands.plots import figures_for, save_figure
from edgebox.commands.shared_options import JSON, read_text
from edgebox.domain.errors import InvalidInputError
from edgebox.domain.home_folder import given_path

if TYPE_CHECKING:
    from edgebox.simulation.report import Report
    from edgebox.simulation.scenario import Hardware, Scenario


CONFIG_OPTION = click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path, dir_okay=False),
    envvar="EDGEBOX_CONFIG",
    help='Configuration of the box whose database has the profiles, for profiles = "database".',
)


@click.command()
@click.argument("scenario", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--seed", type=click.IntRange(0), help="Seed, instead of the scenario's.")
@click.option(
    "--bandwidth",
    type=click.Choice(["cautious", "harmonic", "last", "least", "perfect"]),
    help="Bandwidth estimator, instead of the scenario's.",
)
@CONFIG_OPTION
@click.option(
    "--plot",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Draw each camera's sizes over time into a .png or .svg file.",
)
@JSON
def cameras(
    *,
    scenario: Path,
    seed: int | None,
    bandwidth: str | None,
    config_file: Path | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Run the cameras of SCENARIO (TOML) against a box and print how their frames ended.

    The scheduler, planner, link estimates and senders are those of the box and of its cameras.
    """
    from edgebox.simulation.figures import figures
    from edgebox.simulation.run import run_scenario

    with clear_errors("simulate cameras"):
        draw = None if plot is None else _sizes_over_time(plot)
        read = read_scenario(scenario, seed)
        if bandwidth is not None:
            read = replace(read, policy=replace(read.policy, bandwidth=bandwidth))
        read = with_hardware(scenario, read, config_file)
        report = run_scenario(read, planning_clock_ns=time.thread_time_ns)
        if draw is not None:
            draw(report)
    found = {"scenario": str(scenario), **figures(report, read)}
    if as_json:
        print_json(found)
    else:
        _print(scenario, found)


def read_scenario(path: Path, seed: int | None = None) -> "Scenario":
    """Read a scenario and the traces it names, which are relative to its folder.

    Args:
        path: of the scenario.
        seed: instead of its own.

    Raises:
        InvalidInputError: a file cannot be read or is wrong, in one line.
    """
    from edgebox.simulation.scenario import parse_scenario

    return parse_scenario(read_text(path), str(path), lambda name: read_beside(path, name), seed)


def read_beside(path: Path, name: str) -> str:
    """Return the text of a file that a scenario names, relative to its folder.

    Raises:
        InvalidInputError: it cannot be read, in one line.
    """
    return read_text(path.parent / given_path(name))


def with_hardware(path: Path, scenario: "Scenario", config_file: Path | None) -> "Scenario":
    """Return a scenario with variants and executors: its own, or those of the box's database.

    Args:
        path: of the scenario, for messages.
        scenario: any.
        config_file: of the box; None: the default.

    Raises:
        InvalidInputError: the database has none, or a family is missing there.
    """
    if scenario.hardware is not None:
        return scenario
    scenario = replace(scenario, hardware=asyncio.run(_stored(config_file)))
    _check_families(path, scenario)
    return scenario


async def _stored(config_file: Path | None) -> "Hardware":
    from edgebox.commands.stored_profiles import stored_profiles
    from edgebox.config.config_file import load
    from edgebox.simulation.scenario import Hardware

    variants, profiles = await stored_profiles(load(config_file))
    return Hardware(tuple(variants), {executor: tuple(on) for executor, on in profiles.items()})


def _check_families(path: Path, scenario: "Scenario") -> None:
    assert scenario.hardware is not None
    known = {variant.family for variant in scenario.hardware.variants}
    for spec in scenario.cameras:
        pipeline = spec.camera.pipeline
        later = () if pipeline is None else (stage.family for stage in pipeline.stages)
        for family in (spec.camera.family, *later):
            if family not in known:
                raise InvalidInputError(
                    f"{path}: the box has no profiles of the family {family!r} of camera "
                    f"{spec.camera.id} (it has: {', '.join(sorted(known))})"
                )


def _print(path: Path, found: dict[str, Any]) -> None:
    headings = (
        "camera", "captured", "on time", "late", "dropped", "miss %", "accuracy",
        "changes/min", "mean ms", "P99 ms",
    )  # fmt: skip
    rows = [_row(name, of) for name, of in found["cameras"].items()]
    everything = found["all"]
    out.print(table(f"{path.name}: frames by camera", headings, [*rows, _row("all", everything)]))
    reasons = ", ".join(f"{count} {reason}" for reason, count in everything["dropped"].items())
    out.print(f"dropped: {reasons or 'none'}; left before their answer: {everything['departed']}")
    if everything["refused"]:
        waiting = [name for name, of in found["cameras"].items() if of["refused"]]
        out.print(f"refused {everything['refused']} times: {', '.join(waiting)}")
    parts = everything["latency_ms"]
    times = [(part, f"{ms['mean']:.1f}", f"{ms['p99']:.1f}") for part, ms in parts.items()]
    out.print(table("where the time of answered frames went", ("part", "mean ms", "P99 ms"), times))
    busy = ", ".join(f"{name} {share:.0%}" for name, share in found["utilisation"].items())
    out.print(f"busy: {busy}; run on another variant than advised: {everything['mismatches']}")


def _row(name: str, of: dict[str, Any]) -> tuple[str, ...]:
    return (
        name,
        str(of["captured"]),
        str(of["on_time"]),
        str(of["late"]),
        str(sum(of["dropped"].values())),
        f"{100 * of['miss_rate']:.2f}",
        f"{of['accuracy']:.3f}",
        f"{of['changes_per_camera_minute']:.1f}",
        f"{of['latency_ms']['all']['mean']:.0f}",
        f"{of['latency_ms']['all']['p99']:.0f}",
    )


def _sizes_over_time(path: Path) -> "Callable[[Report], None]":
    """Return what draws the width of each camera's frames over time, and what was missed."""
    new_figure = figures_for(path)

    def draw(report: "Report") -> None:
        figure = new_figure(10, 5)
        axes = figure.subplots()
        names = sorted(report.captured)
        for at, camera in enumerate(names):
            ends = [end for end in report.ended if end.request.camera == camera]
            at_s = [end.truly_captured_ns / 1e9 for end in ends]
            widths = [end.request.width_px for end in ends]
            axes.step(at_s, widths, color=f"C{at % 10}", linewidth=0.8, label=camera)
        missed_s = [end.truly_captured_ns / 1e9 for end in report.ended if end.reason]
        missed_s += [lost.captured_ns / 1e9 for lost in report.lost]
        axes.plot(missed_s, [0] * len(missed_s), "r|", label="missed")
        axes.set(xlabel="time of capture, s", ylabel="width sent, px")
        axes.legend(frameon=False)
        save_figure(figure, path)

    return draw
