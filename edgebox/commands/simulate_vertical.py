"""`edgebox simulate vertical`: CPU cores scaled in place, by policy. Thin: reads, runs, prints."""

from pathlib import Path
from typing import Any

import click

from edgebox.commands.console import clear_errors, out, print_json, table
from edgebox.commands.shared_options import JSON, policy_names, read_text
from edgebox.commands.simulate_cameras import read_beside


@click.command()
@click.argument("scenario", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--seed", type=click.IntRange(0), help="Seed, instead of the scenario's.")
@click.option(
    "--policy",
    "policies",
    default="all",
    show_default=True,
    help="One or several of per-batch, sponge, static and horizontal, with commas.",
)
@JSON
def vertical(*, scenario: Path, seed: int | None, policies: str, as_json: bool) -> None:
    """Scale the CPU cores of one executor for the requests of SCENARIO (TOML).

    Prints violations of deadlines and core-seconds by policy, next to what perfect knowledge of all
    arrivals allows.
    """
    from edgebox.simulation.vertical.comparison import compare
    from edgebox.simulation.vertical.vertical_scenario import parse_vertical_scenario

    with clear_errors("simulate vertical"):
        names = _names(policies)
        read = parse_vertical_scenario(
            read_text(scenario), str(scenario), lambda name: read_beside(scenario, name), seed
        )
        runs = compare(read, names)
    found = {
        "scenario": str(scenario),
        "seed": read.seed,
        "latency_ms": {
            name: round(getattr(read.latency, f"{name}_ns") / 1e6, 3)
            for name in ("gamma", "epsilon", "delta", "eta")
        },
        "runs": runs,
    }
    if as_json:
        print_json(found)
    else:
        _print(scenario, runs)


def _names(policies: str) -> list[str]:
    from edgebox.simulation.vertical.comparison import POLICIES

    return policy_names(policies, list(POLICIES))


def _print(path: Path, runs: list[dict[str, Any]]) -> None:
    headings = ("policy", "violations", "avoidable", "core-seconds", "of perfect", "busy")
    for run in runs:
        bound = run["perfect_knowledge"]
        rows = [
            (
                each["policy"],
                f"{each['violations']} of {run['requests']}",
                str(each["avoidable"]),
                f"{each['core_seconds']:.0f}",
                f"{each['of_perfect_knowledge']:.2f}",
                f"{each['busy_core_seconds']:.0f}",
            )
            for each in run["policies"]
        ]
        unavoidable, least = str(bound["violations"]), f"{bound['core_seconds']:.0f}"
        rows.append(("perfect knowledge", unavoidable, "0", least, "1.00", ""))
        out.print(table(f"{path.name}: pictures of {run['picture_kb']:g} KB", headings, rows))
