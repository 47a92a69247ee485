"""`edgebox simulate batching`: policies compared on workloads. Thin: reads, runs, prints.

Imports what a command needs when it runs; plots need the extra `plot`.
"""

import gzip
import random
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from edgebox.commands.console import clear_errors, out, print_json, table
from edgebox.commands.plots import figures_for, save_figure
from edgebox.commands.shared_options import JSON, policy_names
from edgebox.domain.errors import InvalidInputError

if TYPE_CHECKING:
    from edgebox.scheduling.policy import BatchingPolicy
    from edgebox.simulation.batching_simulator import BatchingReport
    from edgebox.simulation.workload import Workload

_REFERENCE = "clairvoyant"
_SEED = click.option("--seed", default=1, show_default=True, help="Seed of all randomness.")


@click.command()
@click.argument("workload", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--policy",
    "policies",
    default="adaptive",
    show_default=True,
    help="One or several, with commas; all: every one there is.",
)
@click.option(
    "--slo-multiple",
    type=click.FloatRange(0, min_open=True),
    help="Scale the deadlines to this multiple of the P99 (the model line must have slo_mult).",
)
@_SEED
@click.option(
    "--timer-early-ms",
    type=click.FloatRange(0, 100),
    default=0.0,
    help="How early the scheduler's timer may fire.",
)
@click.option(
    "--sample-share",
    type=click.FloatRange(0, 1),
    default=0.0,
    help="Share of the workers' time for repeating finished requests, to learn their times.",
)
@click.option(
    "--interference",
    type=click.FloatRange(0, 100),
    help="By how much each other worker that runs slows a batch, instead of the model line's.",
)
@click.option(
    "--concurrent-batches",
    type=click.IntRange(0, 64),
    default=0,
    show_default=True,
    help="How many workers may run at once; 0: by the interference.",
)
@click.option(
    "--charge-decisions",
    is_flag=True,
    help="Delay each batch by the measured time of its decision.",
)
@click.option(
    "--outcomes",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write each request's outcome: a JSON line each.",
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Draw the curves into a .png or .svg file.",
)
@JSON
def batching(
    *,
    workload: Path,
    policies: str,
    slo_multiple: float | None,
    seed: int,
    timer_early_ms: float,
    sample_share: float,
    interference: float | None,
    concurrent_batches: int,
    charge_decisions: bool,
    outcomes: Path | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Run batching policies over WORKLOAD (.jsonl or .jsonl.gz) and print their results."""
    from edgebox.simulation.batching_simulator import (
        MS,
        PARAMETERS,
        BatchingSimulation,
        Environment,
    )

    with clear_errors("simulate batching"):
        draw = None if plot is None else _curves(plot)
        work = read_workload(workload)
        if slo_multiple is not None:
            work = work.with_slo_multiple(slo_multiple)
        if interference is not None:
            work = replace(work, model=replace(work.model, interference=interference))
        environment = Environment(
            timer_early_ns=round(timer_early_ms * MS),
            clock_ns=time.perf_counter_ns,
            charge_decisions=charge_decisions,
        )
        reports = {
            name: BatchingSimulation(
                work,
                _policy(name, work),
                rng=random.Random(seed),
                environment=environment,
                sample_share=sample_share,
                parameters=replace(PARAMETERS, concurrent_batches=concurrent_batches),
            ).run()
            for name in _names(policies)
        }
        if outcomes is not None:
            _write(outcomes, _outcome_lines(reports))
        if draw is not None:
            draw(reports)
    found = [{"policy": name, **figures(report)} for name, report in reports.items()]
    if as_json:
        about = {"workload": str(workload), "requests": len(work.jobs), "seed": seed}
        print_json({**about, "slo_multiple": work.model.slo_mult, "policies": found})
    else:
        _print_figures(workload, found)


@click.command("make-workload")
@click.option("--kind", help="One of the kinds; --kind list names them.", required=True)
@click.option(
    "--load",
    type=click.FloatRange(0.001, 100),
    default=0.7,
    show_default=True,
    help="Share of what the workers can serve; above 1 they are overloaded.",
)
@click.option(
    "--slo-multiple",
    type=click.FloatRange(0, min_open=True),
    default=3.0,
    show_default=True,
    help="Deadlines in multiples of the P99 of the execution times.",
)
@click.option(
    "--later",
    type=(float, float),
    multiple=True,
    metavar="MULTIPLE UTILITY",
    help="One more deadline and the utility of an answer by it: 6 0.3. May be repeated.",
)
@click.option(
    "--requests",
    type=click.IntRange(1, 10_000_000),
    default=4000,
    show_default=True,
    help="Requests to make.",
)
@click.option(
    "--c1",
    type=click.FloatRange(0.001, 1),
    default=0.25,
    show_default=True,
    help="How much of a batch's time grows with its size.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Workers that run batches.",
)
@_SEED
@click.option(
    "--out",
    "target",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to write, .jsonl or .jsonl.gz.  [default: standard output]",
)
def make_workload_command(
    *,
    kind: str,
    load: float,
    slo_multiple: float,
    later: tuple[tuple[float, float], ...],
    requests: int,
    c1: float,
    workers: int,
    seed: int,
    target: Path | None,
) -> None:
    """Generate a workload like those of Orloj's evaluation, at a load, from a seed."""
    from edgebox.simulation.generation import KINDS, make_workload
    from edgebox.simulation.workload import workload_lines

    if kind == "list":
        click.echo("\n".join(KINDS))
        return
    with clear_errors("simulate make-workload"):
        made = make_workload(
            kind,
            load=load,
            slo_multiple=slo_multiple,
            requests=requests,
            rng=random.Random(seed),
            c1=c1,
            workers=workers,
        )
        if later:
            made = made.with_later(later)
        if target is not None:
            _write(target, workload_lines(made))
            return
    sys.stdout.buffer.writelines(workload_lines(made))


def read_workload(path: Path) -> "Workload":
    """Read a workload file, plain or compressed.

    Raises:
        InvalidInputError: the file cannot be read, or a line of it is wrong.
    """
    from edgebox.simulation.workload import parse_workload

    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
            return parse_workload(lines, str(path))
    except FileNotFoundError:
        raise InvalidInputError(f"{path}: there is no such file") from None
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise InvalidInputError(f"{path}: is not a whole gzip file") from None
    except OSError as error:
        raise InvalidInputError(f"{path}: cannot be read: {error.strerror}") from None


def figures(report: "BatchingReport") -> dict[str, Any]:
    """Return a run's figures as a JSON document."""
    import numpy as np

    from edgebox.domain.requests import Outcome

    counts = report.counts()
    members, decisions_ns = report.batch_members, report.decisions_ns
    p50, p99 = np.quantile(decisions_ns, (0.5, 0.99)) / 1e3 if decisions_ns else (0.0, 0.0)
    return {
        "finish_rate": round(report.finish_rate, 6),
        "utility": round(report.utility, 6),
        "on_time": counts[Outcome.ON_TIME],
        "late": counts[Outcome.LATE],
        "dropped": counts[Outcome.DROPPED],
        "batches": len(members),
        "mean_batch": round(sum(members) / len(members), 3) if members else 0.0,
        "samples": len(report.samples_ns),
        "decision_us": {"p50": round(float(p50), 1), "p99": round(float(p99), 1)},
    }


def _names(policies: str) -> list[str]:
    from edgebox.scheduling.policies import POLICIES

    return policy_names(policies, [*POLICIES, _REFERENCE])


def _policy(name: str, workload: "Workload") -> "BatchingPolicy":
    from edgebox.scheduling.policies import make_policy
    from edgebox.simulation.clairvoyant import Clairvoyant

    if name == _REFERENCE:
        return Clairvoyant(workload.model, {job.id: job.exec_ms for job in workload.jobs})
    return make_policy(name)


def _outcome_lines(reports: "dict[str, BatchingReport]") -> Iterator[bytes]:
    import orjson

    for name, report in reports.items():
        for end in report.ends:
            line = {
                "policy": name,
                "id": end.job.id,
                "app": end.job.app,
                "outcome": str(end.outcome),
                "utility": end.utility,
                "at_ms": end.at_ns / 1e6,
                "deadline_ms": end.job.at_ms + end.job.slo_ms,
                "batch": end.batch,
                "batch_size": end.batch_size,
            }
            yield orjson.dumps(line) + b"\n"


def _write(path: Path, lines: Iterator[bytes]) -> None:
    try:
        with gzip.open(path, "wb") if path.suffix == ".gz" else path.open("wb") as file:
            file.writelines(lines)
    except OSError as error:
        raise InvalidInputError(f"{path}: cannot be written: {error.strerror}") from None


def _print_figures(workload: Path, found: list[dict[str, Any]]) -> None:
    headings = (
        "policy", "finish rate", "utility", "on time", "late", "dropped",
        "batches", "mean batch", "decision P50 us", "P99 us",
    )  # fmt: skip
    rows = [
        (
            str(of["policy"]),
            f"{of['finish_rate']:.3f}",
            f"{of['utility']:.3f}",
            str(of["on_time"]),
            str(of["late"]),
            str(of["dropped"]),
            str(of["batches"]),
            f"{of['mean_batch']:.2f}",
            f"{of['decision_us']['p50']:.0f}",
            f"{of['decision_us']['p99']:.0f}",
        )
        for of in found
    ]
    out.print(table(f"{workload.name}: requests that finished by their deadlines", headings, rows))


def _curves(path: Path) -> "Callable[[dict[str, BatchingReport]], None]":
    """Return what draws a run into a file; whether it can is found out before the run.

    Raises:
        EdgeboxError: the extra is missing, or the file is of another kind.
    """
    new_figure = figures_for(path)

    def draw(reports: "dict[str, BatchingReport]") -> None:
        figure = new_figure(10, 4)
        answered, over_time = figure.subplots(1, 2)
        for name, report in reports.items():
            answered.step(*_answered_curve(report), where="post", label=name)
            over_time.plot(*_over_time_curve(report), label=name)
        answered.axvline(1, color="grey", linewidth=0.8)
        answered.set(
            xlim=(0, 2), ylim=(0, 1), xlabel="time since arrival, in deadlines",
            ylabel="share of all requests answered",
        )  # fmt: skip
        over_time.set(ylim=(0, 1.02), xlabel="time of arrival, s", ylabel="finished on time")
        answered.legend(frameon=False)
        save_figure(figure, path)

    return draw


def _answered_curve(report: "BatchingReport") -> tuple[list[float], list[float]]:
    """Return the share of all requests answered within this multiple of their deadlines."""
    shares = sorted(
        (end.at_ns / 1e6 - end.job.at_ms) / max(end.job.slo_ms, 1e-9)
        for end in report.ends
        if end.batch is not None
    )
    total = max(1, len(report.ends))
    return [0.0, *shares], [at / total for at in range(len(shares) + 1)]


def _over_time_curve(report: "BatchingReport") -> tuple[list[float], list[float]]:
    """Return the finish rate of the requests that came in each of some equal parts of the run."""
    from edgebox.domain.requests import Outcome

    points = 60
    came = sorted(report.ends, key=lambda end: end.job.at_ms)
    if not came:
        return [], []
    first_ms = came[0].job.at_ms
    step_ms = max((came[-1].job.at_ms - first_ms) / points, 1e-9)
    parts: dict[int, list[bool]] = {}
    for end in came:
        part = min(points - 1, int((end.job.at_ms - first_ms) / step_ms))
        parts.setdefault(part, []).append(end.outcome is Outcome.ON_TIME)
    at_s = [(first_ms + (part + 0.5) * step_ms) / 1e3 for part in parts]
    return at_s, [sum(of) / len(of) for of in parts.values()]
