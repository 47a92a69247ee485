"""Measures how samples taken at low load help in a rush: `python -m benchmarks.sampling [--json]`.

The model's applications are unknown beforehand: the profile was measured with all of them
together. For ten minutes every application sends bursts of two requests, which share batches. Then
comes a rush of 2,500 requests at a load of 0.7, with deadlines of three times the P99. Virtual
time.
"""

import json
import random
from dataclasses import replace

import click

from edgebox.scheduling.adaptive import DistributionAware
from edgebox.simulation.batching_simulator import BatchingReport, BatchingSimulation
from edgebox.simulation.generation import make_workload
from edgebox.simulation.workload import Job, Workload

SHARES = (0.0, 0.01, 0.05)
BURST_GAP_IN_SERVICES = 20
"""The time between two bursts is this many times a batch's fixed time, plus two deadlines."""


def quiet_then_rush(
    kind: str, *, quiet_ms: float = 600_000, requests: int = 2500, seed: int = 5
) -> tuple[Workload, int]:
    """Return a workload and the id of the first request of its rush."""
    rush = make_workload(kind, load=0.7, slo_multiple=3, requests=requests, rng=random.Random(seed))
    rng, slo_ms = random.Random(seed), rush.jobs[0].slo_ms
    gap_ms = BURST_GAP_IN_SERVICES * rush.model.c0_ms + 2 * slo_ms
    jobs: list[Job] = []
    at_ms = 0.0
    while at_ms < quiet_ms:
        for app in (*rush.history, *rush.history):
            jobs.append(Job(len(jobs), at_ms, app, rng.choice(rush.history[app]), slo_ms))
        at_ms += gap_ms
    first = len(jobs)
    jobs += [
        replace(job, id=first + at, at_ms=at_ms + gap_ms + job.at_ms)
        for at, job in enumerate(rush.jobs)
    ]
    return Workload(rush.model, rush.history, tuple(jobs)), first


def without_applications(work: Workload) -> Workload:
    """Return the workload with one history that pools those of all applications."""
    pooled = tuple(exec_ms for times in work.history.values() for exec_ms in times)
    return replace(work, history={"all": pooled})


def simulated(work: Workload, share: float) -> BatchingReport:
    """Run a workload with this share of the time for samples."""
    policy = DistributionAware()
    return BatchingSimulation(work, policy, rng=random.Random(1), sample_share=share).run()


def measure(kind: str) -> dict[str, float]:
    """Return the share of the rush that ended on time, by what was known or sampled before."""
    work, first = quiet_then_rush(kind)
    blind = without_applications(work)
    found = {"known beforehand": simulated(work, 0.0).finish_rate_from(first)}
    for share in SHARES:
        found[f"unknown, sample_share {share:g}"] = simulated(blind, share).finish_rate_from(first)
    return {what: round(rate, 4) for what, rate in found.items()}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--kind", "kinds", multiple=True, default=("modal-2", "modal-4", "rare-long"))
def main(as_json: bool, kinds: tuple[str, ...]) -> None:
    """Print the share of the rush that ended on time, by what was known or sampled before."""
    found = {kind: measure(kind) for kind in kinds}
    if as_json:
        click.echo(json.dumps(found, indent=1))
        return
    for kind, rates in found.items():
        click.echo("\n".join([kind, *(f"  {what:28} {rate:.3f}" for what, rate in rates.items())]))


if __name__ == "__main__":
    main()
