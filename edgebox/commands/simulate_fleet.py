"""`edgebox simulate fleet`: many boxes and cameras under redirect policies. Thin: runs, prints."""

from typing import TYPE_CHECKING, Any

import click

from edgebox.commands.console import clear_errors, out, print_json, progress_bar, table
from edgebox.commands.shared_options import JSON, policy_names

if TYPE_CHECKING:
    from edgebox.simulation.fleet.box_model import BoxModel
    from edgebox.simulation.fleet.fleet_run import FleetSetting


@click.command()
@click.option(
    "--boxes",
    type=click.IntRange(10, 1_000),
    default=100,
    show_default=True,
    help="Boxes at the start.",
)
@click.option(
    "--cameras",
    type=click.IntRange(1, 100_000),
    default=10_000,
    show_default=True,
    help="Cameras that join.",
)
@click.option(
    "--executors",
    type=click.IntRange(1, 16),
    default=4,
    show_default=True,
    help="Executors of a box of middle size.",
)
@click.option(
    "--policy",
    "names",
    default="all",
    show_default=True,
    help="One or several of edgebox, none, random and omniscient, with commas.",
)
@click.option(
    "--stay",
    type=click.FloatRange(0, 1),
    help="By how much of load a camera's own box is preferred.  [default: the box's]",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    help="Seed of all randomness.",
)
@JSON
def fleet(
    *,
    boxes: int,
    cameras: int,
    executors: int,
    names: str,
    stay: float | None,
    seed: int,
    as_json: bool,
) -> None:
    """Run a fleet of boxes with joins, failures and a rolling upgrade, and print what cameras get.

    One box is measured first, by its load, with the simulator of `edgebox simulate cameras`. The
    policy "edgebox" is the code of the box. "none" redirects nobody, "random" sends each hello to
    some box, "omniscient" knows everything at every instant.
    """
    from edgebox.fleet.redirect import STAY
    from edgebox.simulation.fleet.fleet_run import POLICIES, FleetSetting

    with clear_errors("simulate fleet"):
        chosen = policy_names(names, POLICIES)
        setting = FleetSetting(
            boxes, cameras, executors, seed, STAY if stay is None else stay, chosen
        )
        found = _run(setting, quiet=as_json)
    if as_json:
        print_json(found)
    else:
        _print(found)


def _run(setting: "FleetSetting", *, quiet: bool) -> dict[str, Any]:
    from edgebox.simulation.fleet.fleet_run import Progress, measured_box, run_fleet

    model: BoxModel | None = None
    found: dict[str, Any] = {}
    with progress_bar(quiet) as progress:
        for each in measured_box(setting):
            if isinstance(each, Progress):
                progress(each.text, each.share)
            else:
                model = each
        assert model is not None
        for done in run_fleet(setting, model):
            if isinstance(done, Progress):
                progress(done.text, done.share)
            else:
                found = done
    return found


def _print(found: dict[str, Any]) -> None:
    box, policies = found["box"], found["policies"]
    rows = [
        (f"{row['load']:.2f}", f"{row['on_time']:.3f}", f"{row['accuracy']:.3f}")
        for row in box["by_load"]
    ]
    title = f"load 1: {box['frames_per_s']:.0f} frames/s"
    out.print(table(title, ("load", "on time", "accuracy"), rows))
    out.print(
        f"{found['boxes']} boxes, {found['cameras']} cameras: "
        f"together they ask for {found['offered_load']:.2f} of what all boxes can do"
    )
    headings = (
        "policy", "on time", "accuracy", "redirects", "moves", "most/s",
        "crash: all back", "power loss: all back",
    )  # fmt: skip
    rows_of = [(name, *_row(of)) for name, of in policies.items()]
    out.print(table("all frames; redirects and moves per camera", headings, rows_of))
    out.print(
        "most/s: the most cameras that one box took in within a second, after all had come; "
        "back: seconds until all cameras of the boxes that failed were connected again"
    )
    phases = next(iter(policies.values()))["phases"]
    for key, title in (
        ("on_time", "share of frames on time"),
        ("load_deviation", "imbalance: standard deviation of the boxes' loads"),
    ):
        rows_by_phase = [
            (phase, *(f"{of['phases'][phase][key]:.4f}" for of in policies.values()))
            for phase in phases
        ]
        out.print(table(title, ("phase", *policies), rows_by_phase))


def _row(of: dict[str, Any]) -> tuple[str, ...]:
    crash, power = (each["all_s"] for each in of["recovery"])
    return (
        f"{of['on_time']:.4f}",
        f"{of['accuracy']:.4f}",
        f"{of['redirects_per_camera']:.2f}",
        f"{of['moves_per_camera']:.2f}",
        str(of["accepted_per_second_max"]),
        *("never" if took_s is None else f"{took_s:.1f} s" for took_s in (crash, power)),
    )
