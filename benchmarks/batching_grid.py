"""Runs every policy on 500 generated workloads: `python -m benchmarks.batching_grid [--json]`.

All kinds of `edgebox simulate make-workload`, loads of .3 to 1.1, deadlines of 1.5 to 5 times the
P99. Shows the mean share of requests on time by load, and where `adaptive` is behind the best of
the baselines. `adaptive-greedy` is `adaptive` without looking ahead; `clairvoyant` is its greedy
rule with every execution time known. Limits: looking ahead makes most of the run's length; with
1,500 requests a share is known to about .01, so single cells differ by chance.
"""

import json
import platform
import random
import statistics
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import click

from edgebox.scheduling.adaptive import DistributionAware
from edgebox.scheduling.policies import POLICIES, make_policy
from edgebox.scheduling.policy import BatchingPolicy
from edgebox.simulation.batching import BatchingSimulation
from edgebox.simulation.clairvoyant import Clairvoyant
from edgebox.simulation.generation import KINDS, make_workload
from edgebox.simulation.workload import Workload

LOADS = (0.3, 0.5, 0.7, 0.9, 1.1)
SLO_MULTIPLES = (1.5, 2.0, 3.0, 4.0, 5.0)
GREEDY, CLAIRVOYANT = "adaptive-greedy", "clairvoyant"
NAMES = (*sorted(POLICIES), GREEDY, CLAIRVOYANT)
BASELINES = ("fifo", "edf", "clockwork", "nexus", "clipper", "bentoml")


@dataclass(frozen=True)
class Cell:
    """One workload."""

    kind: str
    load: float
    slo_multiple: float
    requests: int
    seed: int


def policy_of(name: str, workload: Workload) -> BatchingPolicy:
    """Return a fresh policy, or one of the two that only exist here."""
    rng = random.Random(1)
    if name == CLAIRVOYANT:
        return Clairvoyant(workload.model, {job.id: job.exec_ms for job in workload.jobs})
    return DistributionAware(rng, look_ahead=False) if name == GREEDY else make_policy(name, rng)


def measure(task: tuple[Cell, tuple[str, ...]]) -> tuple[Cell, dict[str, float]]:
    """Run the policies on one workload; return each one's share of requests on time."""
    cell, names = task
    workload = make_workload(
        cell.kind,
        load=cell.load,
        slo_multiple=cell.slo_multiple,
        requests=cell.requests,
        rng=random.Random(cell.seed),
    )
    rates = {}
    for name in names:
        simulation = BatchingSimulation(workload, policy_of(name, workload), rng=random.Random(1))
        rates[name] = round(simulation.run().finish_rate, 4)
    return cell, rates


def means_by_load(cells: Sequence[tuple[Cell, dict[str, float]]]) -> dict[str, list[float]]:
    """Return the mean of each policy at each of the loads."""
    found: dict[str, dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    for cell, rates in cells:
        for name, rate in rates.items():
            found[name][cell.load].append(rate)
    return {
        name: [round(statistics.fmean(of[load]), 4) for load in LOADS if of[load]]
        for name, of in found.items()
    }


def behind(
    cells: Sequence[tuple[Cell, dict[str, float]]], rivals: Sequence[str]
) -> list[dict[str, Any]]:
    """Return by how much the best rival is ahead of `adaptive` in each cell, the worst first."""
    lost: list[dict[str, Any]] = []
    for cell, rates in cells:
        present = [name for name in rivals if name in rates]
        if present and "adaptive" in rates:
            best = max(present, key=rates.__getitem__)
            lost.append(
                {
                    "kind": cell.kind,
                    "load": cell.load,
                    "slo_multiple": cell.slo_multiple,
                    "rival": best,
                    "by": round(rates[best] - rates["adaptive"], 4),
                }
            )

    return sorted(lost, key=lambda entry: -float(entry["by"]))


@click.command(help=(__doc__ or "").splitlines()[0])
@click.option("--requests", default=1500, show_default=True)
@click.option("--seed", default=21, show_default=True)
@click.option("--policies", default=",".join(NAMES), show_default=True)
@click.option("--kinds", default="all", show_default=True)
@click.option("--workers", default=2, show_default=True, help="Processes.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.option("--out", type=click.Path(path_type=Path), help="Write the document here as well.")
def main(
    *,
    requests: int,
    seed: int,
    policies: str,
    kinds: str,
    workers: int,
    as_json: bool,
    out: Path | None,
) -> None:
    names = tuple(policies.split(","))
    chosen = list(KINDS) if kinds == "all" else kinds.split(",")
    tasks = [
        (Cell(kind, load, multiple, requests, seed), names)
        for kind in chosen
        for load in LOADS
        for multiple in SLO_MULTIPLES
    ]
    with (
        Pool(workers) as pool,
        click.progressbar(
            pool.imap_unordered(measure, tasks), len(tasks), label="workloads", file=sys.stderr
        ) as done,
    ):
        cells = sorted(done, key=lambda of: (chosen.index(of[0].kind), of[0].load))
    document: dict[str, Any] = {
        "date": date.today().isoformat(),
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "requests": requests,
        "seed": seed,
        "loads": LOADS,
        "means": means_by_load(cells),
        "behind_baselines": [e for e in behind(cells, BASELINES) if e["by"] > 0.005],
        "behind_orloj": [e for e in behind(cells, ("orloj",)) if e["by"] > 0.005],
        "cells": [[c.kind, c.load, c.slo_multiple, rates] for c, rates in cells],
    }
    if out is not None:
        out.write_text(json.dumps(document, indent=1) + "\n")
    if as_json:
        click.echo(json.dumps(document))
        return
    click.echo(" " * 17 + "".join(f"{load:8}" for load in LOADS))
    for name, means in sorted(document["means"].items(), key=lambda item: sum(item[1])):
        click.echo(f"{name:17}" + "".join(f"{mean:8.3f}" for mean in means))
    for title in ("behind_baselines", "behind_orloj"):
        lost = document[title]
        click.echo(f"{title.replace('_', ' ')} by more than .005 in {len(lost)} of {len(cells)}")
        for entry in lost[:8]:
            click.echo("  {kind} load {load} x{slo_multiple}: {rival} by {by}".format(**entry))


if __name__ == "__main__":
    main()
