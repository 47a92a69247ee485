"""Runs every policy on 500 generated workloads: `python -m benchmarks.batching_grid [--json]`.

All kinds of `edgebox simulate make-workload`, loads of .3 to 1.1, deadlines of 1.5 to 5 times the
P99. Shows the mean share of requests on time by load, and where `adaptive` is behind the best of
the baselines. `clairvoyant` is the rule of `adaptive` with every execution time known. Limits: with
1,500 requests a share is known to about .01, so single cells differ by chance. `--again N` runs
those that seem behind once more with N other seeds and gives the mean and its standard error.
"""

import json
import math
import platform
import random
import statistics
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import click

from edgebox.scheduling.policies import POLICIES, make_policy
from edgebox.scheduling.policy import BatchingPolicy
from edgebox.simulation.batching_simulator import BatchingSimulation
from edgebox.simulation.clairvoyant import Clairvoyant
from edgebox.simulation.generation import KINDS, make_workload
from edgebox.simulation.workload import Workload

LOADS = (0.3, 0.5, 0.7, 0.9, 1.1)
SLO_MULTIPLES = (1.5, 2.0, 3.0, 4.0, 5.0)
CLAIRVOYANT = "clairvoyant"
NAMES = (*sorted(POLICIES), CLAIRVOYANT)
BASELINES = ("fifo", "edf", "clockwork", "nexus", "clipper", "bentoml")
TOLERATED = 0.005
"""Share of the requests by which a cell may be behind."""


@dataclass(frozen=True)
class Cell:
    """One workload."""

    kind: str
    load: float
    slo_multiple: float
    requests: int
    seed: int


def policy_of(name: str, workload: Workload) -> BatchingPolicy:
    """Return a new policy: one of `POLICIES`, or `CLAIRVOYANT`."""
    if name == CLAIRVOYANT:
        return Clairvoyant(workload.model, {job.id: job.exec_ms for job in workload.jobs})
    return make_policy(name)


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


def confirmed(
    entry: Mapping[str, Any], runs: Sequence[tuple[Cell, dict[str, float]]]
) -> dict[str, Any]:
    """Return what more runs of a cell say of the rival's lead in it, on workloads of other seeds.

    Args:
        entry: of `behind`.
        runs: of any cells; those of this one, with both policies, count. At least two.
    """
    where = (entry["kind"], entry["load"], entry["slo_multiple"])
    leads = [
        rates[entry["rival"]] - rates["adaptive"]
        for cell, rates in runs
        if (cell.kind, cell.load, cell.slo_multiple) == where and entry["rival"] in rates
    ]
    return {
        **entry,
        "again": round(statistics.fmean(leads), 4),
        "standard_error": round(statistics.stdev(leads) / math.sqrt(len(leads)), 4),
    }


def cells_again(
    lost: Sequence[Mapping[str, Any]], *, requests: int, seeds: Sequence[int]
) -> list[tuple[Cell, tuple[str, ...]]]:
    """Return what to run to confirm entries of `behind`: `adaptive` and the cell's rivals."""
    rivals: dict[tuple[str, float, float], set[str]] = defaultdict(set)
    for entry in lost:
        rivals[entry["kind"], entry["load"], entry["slo_multiple"]].add(entry["rival"])
    return [
        (Cell(kind, load, multiple, requests, seed), ("adaptive", *sorted(names)))
        for (kind, load, multiple), names in rivals.items()
        for seed in seeds
    ]


@click.command(help=(__doc__ or "").splitlines()[0])
@click.option("--requests", default=1500, show_default=True)
@click.option("--seed", default=21, show_default=True)
@click.option("--policies", default=",".join(NAMES), show_default=True)
@click.option("--kinds", default="all", show_default=True)
@click.option("--again", default=0, show_default=True, help="Other seeds, 0 or at least 2.")
@click.option("--workers", default=2, show_default=True, help="Processes.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.option("--out", type=click.Path(path_type=Path), help="Write the document here as well.")
def main(
    *,
    requests: int,
    seed: int,
    policies: str,
    kinds: str,
    again: int,
    workers: int,
    as_json: bool,
    out: Path | None,
) -> None:
    if again == 1:
        raise click.UsageError("--again 1: one more run has no standard error")
    names = tuple(policies.split(","))
    chosen = list(KINDS) if kinds == "all" else kinds.split(",")
    tasks = [
        (Cell(kind, load, multiple, requests, seed), names)
        for kind in chosen
        for load in LOADS
        for multiple in SLO_MULTIPLES
    ]
    cells = _run(tasks, workers, "workloads")
    cells.sort(key=lambda of: (chosen.index(of[0].kind), of[0].load, of[0].slo_multiple))
    lost = {
        title: [entry for entry in behind(cells, rivals) if entry["by"] > TOLERATED]
        for title, rivals in (("behind_baselines", BASELINES), ("behind_orloj", ("orloj",)))
    }
    if again:
        seeds = range(seed + 1, seed + 1 + again)
        entries = [entry for found in lost.values() for entry in found]
        runs = _run(cells_again(entries, requests=requests, seeds=seeds), workers, "again")
        lost = {title: [confirmed(e, runs) for e in found] for title, found in lost.items()}
    document: dict[str, Any] = {
        "date": date.today().isoformat(),
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "requests": requests,
        "seed": seed,
        "again": again,
        "loads": LOADS,
        "means": means_by_load(cells),
        **lost,
        "cells": [[c.kind, c.load, c.slo_multiple, rates] for c, rates in cells],
    }
    if out is not None:
        out.write_text(json.dumps(document, indent=1) + "\n")
    if as_json:
        click.echo(json.dumps(document))
        return
    _show(document, len(cells))


def _run(
    tasks: Sequence[tuple[Cell, tuple[str, ...]]], workers: int, label: str
) -> list[tuple[Cell, dict[str, float]]]:
    with (
        Pool(workers) as pool,
        click.progressbar(
            pool.imap_unordered(measure, tasks), len(tasks), label=label, file=sys.stderr
        ) as done,
    ):
        return list(done)


def _show(document: Mapping[str, Any], cells: int) -> None:
    click.echo(" " * 17 + "".join(f"{load:8}" for load in LOADS))
    for name, means in sorted(document["means"].items(), key=lambda item: sum(item[1])):
        click.echo(f"{name:17}" + "".join(f"{mean:8.3f}" for mean in means))
    for title in ("behind_baselines", "behind_orloj"):
        lost = document[title]
        click.echo(f"{title.replace('_', ' ')} by more than {TOLERATED} in {len(lost)} of {cells}")
        for entry in lost:
            line = "  {kind} load {load} x{slo_multiple}: {rival} by {by}"
            if document["again"]:
                line += "; again {again} +- {standard_error}"
            click.echo(line.format(**entry))


if __name__ == "__main__":
    main()
