"""What each constant of the planner's search is worth: `python -m benchmarks.planning_ablations`.

Random boxes, new and with a plan in force, are planned with one constant changed at a time. What is
told: accuracy times rate against the constant as it is (least and mean over the boxes), service
lost or gained (in cameras), and the CPU time against it.
"""

import json
import sys
import time
from statistics import fmean
from types import ModuleType
from typing import Any

import click
import numpy as np

from benchmarks.changed_constant import changed
from benchmarks.planning import ITERATIONS, VARIANTS, box, in_force
from edgebox.domain.plans import Plan, PlanningSnapshot
from edgebox.planning import capacity, intervals, partition_search
from edgebox.planning.planner import plan

CASES = ((8, 2, 1.0), (16, 1, 0.4), (24, 1, 0.3), (12, 3, 1.0), (64, 2, 0.2), (110, 1, 0.256))
"""Cameras, executors, and the factor on the batch times of `benchmarks.adaptation`."""
_EIGHT: Any = intervals._PRICES
CHANGES: tuple[tuple[ModuleType, str, tuple[Any, ...]], ...] = (
    (intervals, "RELAXATION", (1.05, 1.1, 1.4)),
    (intervals, "_WAITS_MAX", (8, 16, 24, 64)),
    (intervals, "_CYCLES", (1, 4)),
    (intervals, "_PRICES", (_EIGHT[:1], _EIGHT[::3], _EIGHT[::2])),
    (partition_search, "_CUTS_MAX", (4, 8, 24)),
    (partition_search, "_TESTED_MAX", (1, 5, 200)),
    (partition_search, "_FILL_TESTS_MAX", (0, 240, 2000)),
    (partition_search, "_ROUNDS_MAX", (1, 10, 300)),
    (partition_search, "_SERVICE_VALUE", (1.0, 100.0)),
    (capacity, "_GAIN", (0.5, 0.95)),
)
ACCURACY = {variant.name: variant.accuracy for variant in VARIANTS}


def boxes(seeds: int) -> list[PlanningSnapshot]:
    """Return the boxes, each new and with a plan in force."""
    found = []
    for case in CASES:
        for seed in range(seeds):
            new = box(*case, seed=1000 + seed)
            found += [new, in_force(new, plan(new, ITERATIONS))]
    return found


def measured(of: list[PlanningSnapshot]) -> tuple[list[tuple[float, float]], float]:
    """Return the service and the value of each box, and the CPU time of all in ms."""
    found = []
    started_ns = time.process_time_ns()
    plans: list[Plan] = [plan(each, ITERATIONS) for each in of]
    took_ms = (time.process_time_ns() - started_ns) / 1e6
    for each, answer in zip(of, plans, strict=True):
        given = answer.assignments
        served = sum(
            given[c.camera.id].rate_hz
            / c.camera.rate_hz
            * (1.0 if given[c.camera.id].served else 0.8)
            for c in each.cameras
        )
        found.append((served, sum(ACCURACY[a.variant] * a.rate_hz for a in given.values())))
    return found, took_ms


def text_of(value: object) -> str:
    """Write a value of a constant."""
    return f"{len(value)} prices" if isinstance(value, np.ndarray) else f"{value}"


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--seeds", default=4, show_default=True, help="Boxes of each kind.")
def main(*, as_json: bool, seeds: int) -> None:
    """Print what each constant of the search is worth."""
    of = boxes(seeds)
    measured(of)  # until all is warm
    base, base_ms = measured(of)
    rows = []
    for module, name, values in CHANGES:
        for value in values:
            with changed(module, name, value, (partition_search, intervals)):
                found, took_ms = measured(of)
            ratios = [b[1] / a[1] for a, b in zip(base, found, strict=True)]
            row: dict[str, Any] = {
                "constant": f"{module.__name__.rsplit('.', 1)[1]}.{name}",
                "is": text_of(getattr(module, name)),
                "instead": text_of(value),
                "least": round(min(ratios), 3),
                "mean": round(fmean(ratios), 4),
                "service": round(sum(b[0] - a[0] for a, b in zip(base, found, strict=True)), 2),
                "time": round(took_ms / base_ms, 2),
            }
            rows.append(row)
            if not as_json:
                click.echo(
                    "{constant:36} {is:>9} -> {instead:>9}: value {least:.3f} at least, "
                    "{mean:.4f} on average, service {service:+.2f}, time x {time:.2f}".format(**row)
                )
    if as_json:
        json.dump({"boxes": len(of), "ms": round(base_ms), "rows": rows}, sys.stdout, indent=1)
        click.echo()


if __name__ == "__main__":
    main()
