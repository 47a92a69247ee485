"""`edgebox simulate pipelines`: objects answered in time, by policy. Thin: reads, runs, prints."""

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from edgebox.commands.console import clear_errors, out, print_json, table
from edgebox.commands.shared_options import JSON, policy_names
from edgebox.commands.simulate_cameras import CONFIG_OPTION, read_scenario, with_hardware
from edgebox.domain.errors import InvalidInputError

if TYPE_CHECKING:
    from edgebox.simulation.scenario import Scenario


@click.command()
@click.argument("scenario", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--seed", type=click.IntRange(0), help="Seed, instead of the scenario's.")
@click.option(
    "--policy",
    "policies",
    help="Batching policies, with commas, instead of the scenario's; all: every one there is.",
)
@click.option(
    "--frame-admission",
    type=click.Choice(["density", "work", "none"]),
    help="Which frames are refused on arrival, instead of the scenario's rule.",
)
@click.option(
    "--concurrent-batches",
    type=click.IntRange(0, 64),
    default=0,
    help="Batches at once on a device; 0: as its measured interference says.",
)
@CONFIG_OPTION
@JSON
def pipelines(
    *,
    scenario: Path,
    seed: int | None,
    policies: str | None,
    frame_admission: str | None,
    concurrent_batches: int,
    config_file: Path | None,
    as_json: bool,
) -> None:
    """Run the pipelines of SCENARIO (TOML) on a box and print how many objects it answers in time.

    The scenario is that of `edgebox simulate cameras`, with pipelines and objects. The bound is
    what no scheduler can exceed on these executors.
    """
    from edgebox.scheduling.scheduler_parameters import FrameAdmissionRule
    from edgebox.simulation.answer_accuracy import accuracy_figures
    from edgebox.simulation.object_figures import object_figures
    from edgebox.simulation.run import run_scenario

    with clear_errors("simulate pipelines"):
        read = with_hardware(scenario, read_scenario(scenario, seed), config_file)
        if not any(spec.camera.pipeline for spec in read.cameras):
            raise InvalidInputError(
                f"{scenario}: no camera has a pipeline; give [[pipelines]], and pipeline = "
                '"its name" to a camera, or use edgebox simulate cameras'
            )
        if frame_admission is not None:
            rule = FrameAdmissionRule(frame_admission)
            read = replace(read, scheduling=replace(read.scheduling, frame_admission=rule))
        scheduling = replace(read.scheduling, concurrent_batches=concurrent_batches)
        read = replace(read, scheduling=scheduling)
        found = []
        for name in _names(policies, read):
            of = replace(read, policy=replace(read.policy, batching=name))
            report = run_scenario(of, planning_clock_ns=time.thread_time_ns)
            found.append(
                {"policy": name, **object_figures(report, of), **accuracy_figures(report, of)}
            )
    if as_json:
        print_json({"scenario": str(scenario), "seed": read.seed, "policies": found})
    else:
        _print(scenario, found)


def _names(policies: str | None, scenario: "Scenario") -> list[str]:
    from edgebox.scheduling.policies import POLICIES

    if policies is None:
        return [scenario.policy.batching]
    return policy_names(policies, list(POLICIES))


def _print(path: Path, found: list[dict[str, Any]]) -> None:
    headings = ("policy", "objects/s", "of bound", "frames on time", "partial", "wasted time")
    rows = [
        (
            of["policy"],
            f"{of['objects_per_s']:.1f}",
            f"{of['objects_per_s'] / max(of['objects_bound_per_s'], 1e-9):.1%}",
            f"{of['frames']['on_time']} of {of['frames']['at_box']}",
            str(of["frames"]["partial"]),
            f"{of['executor_time']['wasted']:.1%}",
        )
        for of in found
    ]
    first = found[0]
    out.print(table(f"{path.name}: objects answered in time", headings, rows))
    out.print(
        f"shown: {first['objects_shown_per_s']:.1f} objects/s; "
        f"no scheduler exceeds {first['objects_bound_per_s']:.1f}"
    )
    if any(sum(of["cascade"].values()) for of in found):
        _print_cascades(found)
    cameras = (
        "camera", *(f"{of['policy']}, objects/s" for of in found)
    )  # fmt: skip
    by_camera = [
        (name, *(f"{of['cameras'][name]:.1f}" for of in found)) for name in first["cameras"]
    ]
    out.print(table("by camera", cameras, by_camera))


def _print_cascades(found: list[dict[str, Any]]) -> None:
    headings = ("policy", "accuracy x answers/s", "answers/s", "kept", "sent on", "too late")
    rows = [
        (
            of["policy"],
            f"{of['accuracy_per_s']:.2f}",
            f"{of['answers_per_s']:.1f}",
            *(str(of["cascade"][outcome]) for outcome in ("kept", "sent_on", "missed")),
        )
        for of in found
    ]
    out.print(table("cascades", headings, rows))
