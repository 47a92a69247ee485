"""How good the planner is at problem P1, and how fast: `python -m benchmarks.mapping [--json]`.

Made-up instances like Jellyfish's (section 7.6: rates, SLOs, bandwidths; the latencies are fitted
to what the paper says of its figure 10) and instances of any kind. The yardstick is the optimum up
to 16 cameras, else the best of the planner and some runs of Jellyfish's annealing.
"""

import json
import os
import platform
import random
import statistics
import time
from collections.abc import Callable
from datetime import date
from typing import Any

import click

from benchmarks.jellyfish.annealing import annealed_mapping
from benchmarks.jellyfish.exact import exact_mapping
from benchmarks.jellyfish.instances import anything, jellyfish
from edgebox.planning.mapping_plan import planned_mapping
from edgebox.planning.mapping_problem import Mapping, MappingProblem, violations

SIZES = ((1, 8), (2, 12), (2, 16), (4, 16), (4, 24), (4, 32), (16, 160))
"""Workers and cameras."""
MAKERS: dict[str, Callable[[random.Random, int, int], MappingProblem]] = {
    "like the paper's": jellyfish,
    "any kind": anything,
}
RUNS = 8
"""How often annealing is run for the yardstick."""


def timed(solve: Callable[[], Mapping]) -> tuple[Mapping, float]:
    """Return an answer and the milliseconds of the processor that it took."""
    started_ns = time.process_time_ns()
    mapping = solve()
    return mapping, (time.process_time_ns() - started_ns) / 1e6


def annealed(problem: MappingProblem, seed: int) -> Mapping:
    """Return what Jellyfish finds."""
    return annealed_mapping(problem, random.Random(seed), should_stop=lambda: False)


def compare(kind: str, workers: int, cameras: int, count: int) -> dict[str, Any]:
    """Solve some instances of one kind and size."""
    shares: list[float] = []
    paper_shares: list[float] = []
    times, paper_times, fewer, fewer_than_paper = [], [], 0, 0
    for seed in range(count):
        problem = MAKERS[kind](random.Random(7000 + seed), workers, cameras)
        found, took_ms = timed(lambda p=problem: planned_mapping(p))  # type: ignore[misc]
        theirs, theirs_ms = timed(lambda p=problem: annealed(p, 1))  # type: ignore[misc]
        assert not violations(problem, found)
        assert not violations(problem, theirs)
        if cameras <= 16:
            best = exact_mapping(problem)
        else:
            runs = [found, theirs, *(annealed(problem, 2 + run) for run in range(RUNS - 1))]
            best = max(runs, key=lambda m: (m.served, m.objective(problem)))
        times.append(took_ms)
        paper_times.append(theirs_ms)
        fewer += found.served < best.served
        fewer_than_paper += found.served < theirs.served
        for mapping, into in ((found, shares), (theirs, paper_shares)):
            if mapping.served == best.served and best.served:
                into.append(mapping.objective(problem) / best.objective(problem))
    return {
        "kind": kind,
        "workers": workers,
        "cameras": cameras,
        "instances": count,
        "share_of_best": round(statistics.mean(shares), 5) if shares else None,
        "least": round(min(shares), 4) if shares else None,
        "fewer_served": fewer,
        "fewer_than_annealing": fewer_than_paper,
        "ms": round(statistics.median(times), 1),
        "ms_max": round(max(times), 1),
        "annealing_share": round(statistics.mean(paper_shares), 4) if paper_shares else None,
        "annealing_as_many": len(paper_shares),
        "annealing_ms": round(statistics.median(paper_times), 1),
    }


@click.command()
@click.option("--count", default=10, show_default=True, help="Instances of each kind and size.")
@click.option("--json", "as_json", is_flag=True)
def main(count: int, as_json: bool) -> None:
    """Measure."""
    planned_mapping(jellyfish(random.Random(0), 4, 16))  # numpy's first use
    rows = [compare(kind, *size, count) for kind in MAKERS for size in SIZES]
    document = {
        "date": date.today().isoformat(),
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "load": round(os.getloadavg()[0], 1),
        "solvers": rows,
    }
    if as_json:
        print(json.dumps(document, indent=1))
        return
    for row in rows:
        print("  ".join(f"{key} {value}" for key, value in row.items()))


if __name__ == "__main__":
    main()
