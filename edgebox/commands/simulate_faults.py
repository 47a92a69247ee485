"""`edgebox simulate faults`: everything breaks at random. Thin: runs seeds in processes, prints."""

import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

from edgebox.commands.console import clear_errors, out, print_json, progress_bar, table, tell
from edgebox.commands.shared_options import JSON
from edgebox.domain.errors import InvalidInputError

if TYPE_CHECKING:
    from edgebox.simulation.faults.fault_kinds import FaultKind
    from edgebox.simulation.faults.fault_search import Failure, SeedResult

_SHOWN_MAX = 10


@click.command()
@click.option(
    "--events",
    type=click.IntRange(1, 10**12),
    default=1_000_000,
    show_default=True,
    help="Events to simulate, over all seeds: 20,000 each at most.",
)
@click.option(
    "--seed", type=click.IntRange(0), default=1, show_default=True, help="The first seed."
)
@click.option("--only", help="Kinds of faults, with commas; list names them.  [default: drawn]")
@click.option(
    "--processes", type=click.IntRange(1, 1024), help="Seeds at once.  [default: the CPU cores]"
)
@click.option(
    "--results",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Append a line for every seed; seeds that the file has are not run again.",
)
@JSON
def faults(
    *,
    events: int,
    seed: int,
    only: str | None,
    processes: int | None,
    results: Path | None,
    as_json: bool,
) -> None:
    """Break executors, links, cameras, memory and the planner at random, and check the core.

    Each seed runs the Scheduler under virtual time. Every frame must end exactly once, nothing may
    wait for ever, and the box must recover once nothing breaks. A failure is printed with the
    command that repeats it. The exit status is 1 if there was one. A run with --results can be
    interrupted and goes on where it was.
    """
    from edgebox.commands.fault_results import FaultResults
    from edgebox.simulation.faults.fault_kinds import FaultKind
    from edgebox.simulation.faults.fault_search import seeds

    if only == "list":
        click.echo("\n".join(FaultKind))
        return
    with clear_errors("simulate faults"):
        if not __debug__:
            raise InvalidInputError("python -O leaves the checks out: run it without -O")
        kinds = _kinds(only)
        jobs: dict[int, int] = {}
        file = FaultResults(results, kinds)
        if file.cut_off:
            tell(f"The last line of {escape(str(results))} was cut off; its seed is run again.")
        done: list[SeedResult] = []
        before = 0
        began_s = time.monotonic()
        with progress_bar(as_json) as progress:
            # A box that needs another process ends its seed early: others take its events.
            while (
                not any(result.failure for result in done)
                and (missing := events - sum(result.events for result in done)) > 0
            ):
                more = dict(seeds(seed + len(jobs), missing))
                jobs |= more
                known = file.known(more)
                done += known
                before += sum(result.events for result in known)
                left = sorted(more.items() - {(of.seed, more[of.seed]) for of in known})
                for result in _run(left, kinds, processes or os.cpu_count() or 1):
                    done.append(result)
                    file.add(result, more[result.seed])
                    progress("events", min(1.0, sum(of.events for of in done) / events))
            done.sort(key=lambda result: result.seed)
            took_s = time.monotonic() - began_s
            failures = [_shrunk(result, jobs) for result in done if result.failure]
    document = _document(done, failures, took_s, jobs, before)
    if as_json:
        print_json(document)
    else:
        _print(document)
    if failures:
        raise SystemExit(1)


def _kinds(only: str | None) -> "tuple[FaultKind, ...] | None":
    from edgebox.simulation.faults.fault_kinds import FaultKind

    if only is None:
        return None
    names = [name.strip() for name in only.split(",") if name.strip()]
    for name in names:
        if name not in list(FaultKind):
            raise InvalidInputError(
                f"there is no kind of fault {name!r} (there are: {', '.join(FaultKind)})"
            )
    return tuple(map(FaultKind, names))


def _run(
    jobs: Sequence[tuple[int, int]], kinds: "tuple[FaultKind, ...] | None", processes: int
) -> "Iterator[SeedResult]":
    """Return the results as they come."""
    from edgebox.simulation.faults.fault_search import search_seed

    if len(jobs) == 1 or processes == 1:
        for seed, events in jobs:
            yield search_seed(seed, events, kinds)
        return
    workers = min(processes, len(jobs))
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        running = [pool.submit(search_seed, seed, events, kinds) for seed, events in jobs]
        for done in as_completed(running):
            yield done.result()


def _shrunk(result: "SeedResult", given: dict[int, int]) -> "Failure":
    from edgebox.simulation.faults.fault_search import shrink

    assert result.failure is not None
    return shrink(result.failure, given[result.seed])


def _document(
    results: "Sequence[SeedResult]", failures: "Sequence[Failure]", took_s: float,
    given: dict[int, int], before: int,
) -> dict[str, Any]:  # fmt: skip
    ends, losses = Counter[str](), Counter[str]()
    for result in results:
        ends.update(result.ends)
        losses.update(result.losses)
    events = sum(result.events for result in results)
    digests = "".join(result.digest for result in results)
    return {
        "seeds": len(results),
        "events": events,
        "seconds": round(took_s, 1),
        "events_per_s": round((events - before) / max(took_s, 1e-9)),
        "frames": dict(sorted(ends.items())),
        "losses": dict(sorted(losses.items())),
        "processes_ended": sum(result.exited for result in results),
        "digest": sha256(digests.encode()).hexdigest()[:16],
        "failures": [
            {**asdict(failure), "repeat": repeat(failure, given[failure.seed])}
            for failure in failures
        ],
    }


def repeat(failure: "Failure", given: int) -> str:
    """Return the command that runs into a failure again, and nothing else."""
    kinds = ",".join(failure.kinds)
    events = failure.events or given
    return f"edgebox simulate faults --seed {failure.seed} --events {events} --only {kinds}"


def _print(document: dict[str, Any]) -> None:
    rows = [(name, f"{number:,}") for name, number in document["frames"].items()]
    out.print(table("How the frames of the cameras ended", ("outcome or reason", "frames"), rows))
    out.print(
        f"{document['events']:,} events of {document['seeds']:,} seeds in "
        f"{document['seconds']:,} s: {document['events_per_s']:,} a second. "
        f"{sum(document['losses'].values()):,} executors were lost and opened again, "
        f"{document['processes_ended']:,} boxes needed another process."
    )
    failures = document["failures"]
    if not failures:
        out.print("Every check held.")
        return
    out.print(f"{len(failures)} seeds failed:")
    for failure in failures[:_SHOWN_MAX]:
        out.print(
            f"  {failure['error']} ({failure['phase']}, after {failure['at_s']:.3f} s)\n"
            f"    {failure['where']}\n    {failure['repeat']}",
            markup=False,
            soft_wrap=True,
        )
