"""`edgebox plan`: planning problems solved from files. Thin: reads, solves, prints.

Imports what a command needs when it runs.
"""

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from edgebox.commands.console import clear_errors, out, print_json, table
from edgebox.domain.errors import InvalidInputError

if TYPE_CHECKING:
    from edgebox.planning.mapping_problem import Mapping, MappingProblem


@click.group()
def plan() -> None:
    """Solve planning problems from files."""


@plan.command()
@click.argument("instance", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def adaptation(*, instance: Path, as_json: bool) -> None:
    """Map the cameras of INSTANCE.json to workers: most cameras, then most accuracy times rate.

    Every worker runs one variant, by the search that a box's planner uses for that case.
    """
    from edgebox.planning.mapping_file import mapping_document
    from edgebox.planning.mapping_plan import planned_mapping

    with clear_errors("plan adaptation"):
        problem = read_problem(instance)
        # The first use of numpy in a process is slow; a box plans again and again.
        planned_mapping(replace(problem, cameras=problem.cameras[:1]))
        started_ns = time.perf_counter_ns()
        mapping = planned_mapping(problem)
        solve_ms = (time.perf_counter_ns() - started_ns) / 1e6
    if as_json:
        print_json({**mapping_document(problem, mapping), "solve_ms": round(solve_ms, 3)})
    else:
        _print_mapping(problem, mapping, solve_ms)


def read_problem(path: Path) -> "MappingProblem":
    """Read an instance file.

    Raises:
        InvalidInputError: the file cannot be read, or a field of it is wrong.
    """
    from edgebox.planning.mapping_file import parse_problem

    try:
        text = path.read_bytes()
    except FileNotFoundError:
        raise InvalidInputError(f"{path}: there is no such file") from None
    except OSError as error:
        raise InvalidInputError(f"{path}: cannot be read: {error.strerror}") from None
    return parse_problem(text, str(path))


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
