"""Takes the parts of `adaptive` away one by one: `python -m benchmarks.adaptive_ablation`.

All kinds of workloads of `edgebox simulate make-workload`, at loads of .7 and .9 and deadlines of
1.5 and 3 times the P99. Shows the mean share of requests on time, over the kinds with one
application and with several.
"""

import random
import statistics
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest import mock

import click
import numpy as np

from edgebox.scheduling import adaptive, batch_candidates
from edgebox.scheduling.policies import make_policy
from edgebox.simulation.batching_simulator import BatchingSimulation
from edgebox.simulation.generation import KINDS, make_workload
from edgebox.simulation.workload import Workload

LOADS = (0.7, 0.9)
SLO_MULTIPLES = (1.5, 3.0)

_class_ranks, _members, _scored = (
    batch_candidates._class_ranks,
    batch_candidates._members,
    batch_candidates._scored,
)


def _one_class(rank: Any) -> Any:
    return _class_ranks(rank)[-1:]


def _full_only(slack_ns: Any, rank: Any, class_ranks: Any, need_ns: Any, sizes: Any) -> Any:
    members, present = _members(slack_ns, rank, class_ranks, need_ns, sizes)
    full = np.isin(present.sum(axis=1), sizes)
    return members[full], present[full]


def _by_answers(*arguments: Any) -> Any:
    found = _scored(*arguments)
    found.score[:] = found.score * found.expected_ns
    return found


ABLATIONS: dict[str, tuple[tuple[Any, str, Any], ...]] = {
    "adaptive": (),
    "no grouping by application": ((batch_candidates, "_class_ranks", _one_class),),
    "full batches only": ((batch_candidates, "_members", _full_only),),
    "most answers, whatever the batch takes": ((batch_candidates, "_scored", _by_answers),),
    "no urgency": ((adaptive, "URGENCY", 0.0),),
}


def _rate(workload: Workload, name: str) -> float:
    policy = make_policy("orloj" if name == "orloj" else "adaptive")
    with ExitStack() as stack:
        for place, attribute, value in ABLATIONS.get(name, ()):
            stack.enter_context(mock.patch.object(place, attribute, value))
        return BatchingSimulation(workload, policy, rng=random.Random(1)).run().finish_rate


@click.command()
@click.option("--requests", default=1000, show_default=True)
@click.option("--seed", default=21, show_default=True)
def main(requests: int, seed: int) -> None:
    """Print a table."""
    several = {False: "one application", True: "several"}
    say: Callable[..., None] = click.echo
    say(f"{len(KINDS)} kinds, {requests} requests, seed {seed}\n")
    say("| rule | all | one application | several |\n|---|---|---|---|")
    for name in (*ABLATIONS, "orloj"):
        found: dict[str, list[float]] = defaultdict(list)
        for kind in KINDS:
            for load in LOADS:
                for slo_multiple in SLO_MULTIPLES:
                    workload = make_workload(
                        kind,
                        load=load,
                        slo_multiple=slo_multiple,
                        requests=requests,
                        rng=random.Random(seed),
                    )
                    rate = _rate(workload, name)
                    found["all"].append(rate)
                    found[several[len({job.app for job in workload.jobs}) > 1]].append(rate)
        means = (f"{statistics.fmean(found[of]):.3f}" for of in ("all", *several.values()))
        say(f"| {name} | {' | '.join(means)} |")


if __name__ == "__main__":
    main()
