"""Sets ours beside the tables of Orloj's appendix: `python -m benchmarks.orloj_tables [--json]`.

The paper gives neither its arrival trace nor c0, c1, the load or the modes, so levels do not
compare; who beats whom does. Tables 2 and 3 are our bimodal and k-modal kinds (a standard deviation
of 1 is 2 ms between modes of 10 to 100 ms); table 4 is the static kind; in table 5 a task is
lognormal with the mean and P99 of the paper's table 1, cut at the median into the short and the
long application that its section 5.2 speaks of. benchmarks/orloj_paper.csv holds the paper's
figures (arXiv 2209.00159, tables 2 to 5).
"""

import csv
import json
import math
import platform
import random
import statistics
import sys
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import click

from edgebox.scheduling.policies import make_policy
from edgebox.simulation.batching_simulator import BatchingSimulation
from edgebox.simulation.generation import KINDS, Component, workload_of

PAPER = Path(__file__).with_name("orloj_paper.csv")
THEIRS = ("clipper", "nexus", "clockwork", "orloj")
OURS = (*THEIRS, "bentoml", "edf", "adaptive")
LIKE = {
    "std-0.5": "bimodal-narrow",
    "std-1": "modal-2",
    "std-2": "bimodal-wide",
    "std-2/0.5": "bimodal-wide-narrow",
    "std-0.5/2": "bimodal-narrow-wide",
    **{
        f"{name}-modal": f"modal-{at}"
        for at, name in enumerate(
            ("one", "two", "three", "four", "five", "six", "seven", "eight"), 1
        )
    },
    "inception-imagenet": "static",
    "resnet-imagenet": "static",
}
TASKS_MS = {
    "rdinet-cifar": (683.15, 2667.54),
    "skipnet-imagenet": (3.24, 5.56),
    "blenderbot-convAI": (200.39, 242.27),
    "blenderbot-cornell": (203.22, 247.04),
    "gpt-convAI": (79.47, 143.40),
    "gpt-cornell": (94.84, 161.69),
    "bart-cnn": (774.66, 1101.99),
    "t5-cnn": (552.91, 797.28),
    "fsmt-wmt": (189.30, 319.31),
    "mbart-wmt": (432.38, 729.87),
}
"""Mean and P99 of the execution times, the paper's table 1."""

_Z99 = statistics.NormalDist().inv_cdf(0.99)
_TIE = 0.01


def task(mean_ms: float, p99_ms: float) -> list[Component]:
    """Return a lognormal of this mean and P99 as two applications, the short and the long half."""
    # ln(P99 / mean) = z * sigma - sigma^2 / 2; the smaller solution is the usual one, and where
    # there is none the P99 is as far from the mean as a lognormal's can be.
    sigma = _Z99 - math.sqrt(max(0.0, _Z99**2 - 2 * math.log(p99_ms / mean_ms)))
    normal = statistics.NormalDist(math.log(mean_ms) - sigma**2 / 2, sigma)

    def half(low: float, high: float) -> Callable[[random.Random], float]:
        return lambda rng: math.exp(normal.inv_cdf(rng.uniform(low, high)))

    return [
        Component("short", 0.5, half(0.0001, 0.5)),
        Component("long", 0.5, half(0.5, 0.9999)),
    ]


def components_of(case: str) -> Sequence[Component]:
    """Return the applications of one of the paper's cases."""
    return KINDS[LIKE[case]] if case in LIKE else task(*TASKS_MS[case])


def measure(row: dict[str, str], load: float, requests: int) -> dict[str, Any]:
    """Run our policies on one row of the paper's tables."""
    multiple = float(row["slo_multiple"])
    ours = {}
    for policy in OURS:
        workload = workload_of(
            components_of(row["case"]),
            load=load,
            slo_multiple=multiple,
            requests=requests,
            rng=random.Random(f"{row['case']} {multiple}"),
        )
        simulation = BatchingSimulation(workload, make_policy(policy), rng=random.Random(1))
        ours[policy] = round(simulation.run().finish_rate, 3)
    paper = {policy: float(row[policy]) for policy in THEIRS}
    return {
        "table": int(row["table"]),
        "case": row["case"],
        "slo_multiple": multiple,
        "paper": paper,
        "ours": ours,
        "same_winner": bool(winners(paper) & winners({p: ours[p] for p in THEIRS})),
        "adaptive_wins": "adaptive" in winners(ours),
    }


def winners(rates: dict[str, float]) -> set[str]:
    """Return who is best, or as good as."""
    best = max(rates.values())
    return {policy for policy, rate in rates.items() if rate >= best - _TIE}


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return by table how often the paper's winner wins here, and how often adaptive does."""
    return {
        f"table {table}": {
            "rows": len(of),
            "same_winner": sum(row["same_winner"] for row in of),
            "adaptive_wins": sum(row["adaptive_wins"] for row in of),
        }
        for table in sorted({row["table"] for row in rows})
        for of in [[row for row in rows if row["table"] == table]]
    }


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--load", default=0.5, show_default=True)
@click.option("--requests", default=800, show_default=True, help="Per row and policy.")
def main(as_json: bool, load: float, requests: int) -> None:
    """Print finish rates, the paper's and ours, row by row, and how far the orderings agree."""
    with PAPER.open(encoding="utf-8", newline="") as file:
        rows = [measure(row, load, requests) for row in csv.DictReader(file)]
    about = {
        "date": date.today().isoformat(),
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "load": load,
        "requests": requests,
    }
    if as_json:
        json.dump({**about, "summary": summary(rows), "rows": rows}, sys.stdout, indent=1)
        click.echo()
        return
    click.echo(f"{'case':22} SLO   paper: {'  '.join(f'{p:>9}' for p in THEIRS)}")
    for row in rows:
        theirs = "  ".join(f"{row['paper'][p]:9.2f}" for p in THEIRS)
        ours = "  ".join(f"{p} {row['ours'][p]:.3f}" for p in OURS)
        agrees = " " if row["same_winner"] else "*"
        click.echo(f"{row['case']:22} {row['slo_multiple']:3.1f}{agrees}  {theirs}   ours: {ours}")
    click.echo("* another winner among the paper's four here")
    for table, found in summary(rows).items():
        click.echo(
            f"{table}: the paper's winner wins here in {found['same_winner']} of {found['rows']} "
            f"rows; adaptive is best in {found['adaptive_wins']}"
        )


if __name__ == "__main__":
    main()
