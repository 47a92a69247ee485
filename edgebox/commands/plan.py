"""`edgebox plan`: planning problems solved from files. Thin: reads, solves, prints.

Imports what a command needs when it runs.
"""

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from edgebox.commands.console import clear_errors, out, print_json, table
from edgebox.commands.lazy_group import Group
from edgebox.commands.shared_options import JSON
from edgebox.domain.errors import InvalidInputError

if TYPE_CHECKING:
    from edgebox.planning.mapping_problem import Mapping, MappingProblem
    from edgebox.planning.pipelines.cost_plan import CostPlan
    from edgebox.planning.pipelines.cost_problem import CostProblem


@click.group(cls=Group)
def plan() -> None:
    """Solve planning problems from files."""


@plan.command()
@click.argument("instance", type=click.Path(path_type=Path, dir_okay=False))
@JSON
def adaptation(*, instance: Path, as_json: bool) -> None:
    """Map the cameras of INSTANCE.json to workers: most cameras, then most accuracy times rate.

    Every worker runs one variant, by the search that a box's planner uses for that case.
    """
    from edgebox.planning.mapping_file import mapping_document, parse_problem
    from edgebox.planning.mapping_plan import planned_mapping

    with clear_errors("plan adaptation"):
        problem = parse_problem(_read(instance), str(instance))
        # The first use of numpy in a process is slow; a box plans again and again.
        planned_mapping(replace(problem, cameras=problem.cameras[:1]))
        started_ns = time.perf_counter_ns()
        mapping = planned_mapping(problem)
        solve_ms = (time.perf_counter_ns() - started_ns) / 1e6
    if as_json:
        print_json({**mapping_document(problem, mapping), "solve_ms": round(solve_ms, 3)})
    else:
        _print_mapping(problem, mapping, solve_ms)


@plan.command()
@click.argument("instance", type=click.Path(path_type=Path, dir_okay=False))
@JSON
def cost(*, instance: Path, as_json: bool) -> None:
    """Serve the pipeline of INSTANCE.json within its deadline at the least cost.

    Chooses machines and batch sizes for each module, and splits the deadline over the modules.
    """
    from edgebox.planning.pipelines.cost_file import cost_document, parse_cost_problem
    from edgebox.planning.pipelines.cost_plan import planned_cost

    with clear_errors("plan cost"):
        problem = parse_cost_problem(_read(instance), str(instance))
        planned_cost(replace(problem, modules=problem.modules[:1], edges=()))  # loads numpy's parts
        started_ns = time.perf_counter_ns()
        found = planned_cost(problem)
        solve_ms = (time.perf_counter_ns() - started_ns) / 1e6
        if found is None:
            raise InvalidInputError(
                f"{instance}: no machines meet slo_ms: {problem.slo_ns / 1e6:g}; the fastest need "
                f"more than {problem.least_latency_ns / 1e6:g} ms. Raise slo_ms, or add faster "
                "configs"
            )
    if as_json:
        print_json({**cost_document(problem, found), "solve_ms": round(solve_ms, 3)})
    else:
        _print_cost(problem, found, solve_ms)


def _read(path: Path) -> bytes:
    """Return a file's bytes.

    Raises:
        InvalidInputError: it cannot be read.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise InvalidInputError(f"{path}: there is no such file") from None
    except OSError as error:
        raise InvalidInputError(f"{path}: cannot be read: {error.strerror}") from None


def _print_cost(problem: "CostProblem", plan: "CostPlan", solve_ms: float) -> None:
    rows = [
        (
            of.name if not at else "",
            group.configuration.hardware,
            str(group.configuration.batch),
            f"{group.machines:.2f}",
            f"{group.rate_hz:.1f}",
            f"{group.latency_ns / 1e6:.1f}",
            f"{group.cost:.3f}",
        )
        for of, own in zip(problem.modules, plan.modules, strict=True)
        for at, group in enumerate(own.groups)
    ]
    headings = ("module", "hardware", "batch", "machines", "Hz", "worst case ms", "cost")
    out.print(table("who runs what", headings, rows))
    longest_ns = max(problem.longest_ns([own.latency_ns for own in plan.modules]))
    out.print(
        f"cost {plan.cost:.3f}; the longest path takes {longest_ns / 1e6:.1f} of "
        f"{problem.slo_ns / 1e6:g} ms; solved in {solve_ms:.1f} ms"
    )
    if dummy := [
        (m.name, p.dummy_hz)
        for m, p in zip(problem.modules, plan.modules, strict=True)
        if p.dummy_hz
    ]:
        rates = ", ".join(f"{name} {hz:.1f} Hz" for name, hz in dummy)
        out.print(f"requests that only fill batches in time: {rates}", markup=False)


def _print_mapping(problem: "MappingProblem", mapping: "Mapping", solve_ms: float) -> None:
    rows = []
    for at, worker in enumerate(mapping.workers, 1):
        variant = problem.variants[worker.variant]
        if not worker.cameras:
            rows.append((str(at), "idle", "", "", "", ""))
            continue
        load_hz = sum(problem.cameras[camera].rate_hz for camera in worker.cameras)
        capacity_hz = 1000 * worker.batch / variant.latency_ms[worker.batch - 1]
        rows.append(
            (
                str(at),
                variant.name,
                str(worker.batch),
                f"{load_hz:.1f}",
                f"{capacity_hz:.1f}",
                ", ".join(problem.cameras[camera].id for camera in worker.cameras),
            )
        )
    headings = ("worker", "variant", "batch", "load Hz", "of Hz", "cameras")
    out.print(table("who runs what", headings, rows))
    out.print(
        f"{mapping.served} of {len(problem.cameras)} cameras served, "
        f"accuracy x rate {mapping.objective(problem):.3f}, solved in {solve_ms:.1f} ms"
    )
    served = mapping.worker_of()
    left_out = [c.id for at, c in enumerate(problem.cameras) if at not in served]
    if left_out:
        out.print(f"left out: {', '.join(left_out)}", markup=False)
