"""Measures what learning costs the event loop: `python -m benchmarks.learning_cost [--json]`.

All of it runs between two decisions: the attribution of a variant's last 128 batches
(`scheduling.attribution`), the inference of work from 256 mixed batches (`scheduling.censored`),
the profiles of every application for a plan (`Expectations.learned`), the work table and the
reference of a variant. CPU time in ms, the best of some runs, by the number of applications.
"""

import json
import random
import time
from collections.abc import Callable

import click

from edgebox.domain.model_family import ExecutorId, FamilyName, LatencyProfile, Variant, VariantName
from edgebox.scheduling.attribution import VariantBatches, attribute
from edgebox.scheduling.censored import AppEvidence, MultiRequestBatch, infer
from edgebox.scheduling.drift import WINDOW
from edgebox.scheduling.execution_times import ExecutionTimes
from edgebox.scheduling.scheduler_parameters import SchedulerParameters

MS = 1_000_000
EXECUTOR = ExecutorId("cpu/0")
SIZES = (1, 2, 4, 8, 16)
SPREAD = (0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2, 1.5, 2.0)
VARIANTS = 8
SAMPLES = 200
MIXED = 256


def _variant(at: int) -> VariantName:
    return VariantName(f"street-{100 * (at + 1)}")


def _profile(at: int) -> LatencyProfile:
    rows = {n: tuple(round((5 + 3 * at) * (0.5 + 0.5 * n) * k * MS) for k in SPREAD) for n in SIZES}
    return LatencyProfile(_variant(at), EXECUTOR, rows)


class Box:
    """An executor with a family of variants, and applications that are known on the first."""

    def __init__(self, apps: int) -> None:
        self._rng = random.Random(1)
        self.apps = [f"app-{at}" for at in range(apps)]
        self.times = ExecutionTimes(SchedulerParameters())
        self.times.executor_started(EXECUTOR, [_profile(at) for at in range(VARIANTS)], 0)
        self.times.expectations.offer(
            Variant(_variant(at), FamilyName("street"), 100 * (at + 1), 100, 0.5)
            for at in range(VARIANTS)
        )
        for at, app in enumerate(self.apps):
            for _ in range(SAMPLES):
                took_ns = 5 * MS * (1 + at % 4) * self._rng.uniform(0.8, 1.5)
                self.times.learning.sampled(EXECUTOR, _variant(0), app, took_ns, 1)

    def _members(self) -> tuple[int, ...]:
        return tuple(
            self._rng.randrange(len(self.apps)) for _ in range(self._rng.choice(SIZES[1:]))
        )

    def attribution(self) -> Callable[[], object]:
        """Return what asks for the speed that explains the last batches."""
        learning = self.times.learning
        times = learning.times(EXECUTOR, _variant(0))
        assert times is not None
        reference = learning.reference(_variant(0))
        seen = []
        for _ in range(WINDOW):
            members = self._members()
            took_ns = times.profiled_ns(len(members), 3 * self._rng.uniform(0.8, 1.4))
            seen.append(reference.seen(members, times.sizes.index(len(members)), took_ns))
        return lambda: attribute(
            VariantBatches(seen, times.profile_fixed_ns, times.profile_slope_ns)
        )

    def inference(self) -> Callable[[], object]:
        """Return what infers the work of applications of which few samples are known."""
        batches = [
            MultiRequestBatch(self._members(), 3 * self._rng.uniform(0.5, 2), 1, EXECUTOR)
            for _ in range(MIXED)
        ]
        known = self.times.learning.distributions(_variant(0))
        evidence_by_app = {
            app: AppEvidence([1.0] * 64, known[app].sampled_values[:20], 20, fixed=False)
            for app in range(len(self.apps))
        }
        return lambda: infer(batches, evidence_by_app)

    def learned(self) -> object:
        """Build every application's profiles of every variant."""
        self.times.latencies.version += 1
        return self.times.expectations.learned(self.apps, [EXECUTOR])

    def table(self) -> object:
        """Build the table of a variant's applications, as 64 new samples do."""
        for number in range(64):
            app = self.apps[number % len(self.apps)]
            self.times.learning.sampled(EXECUTOR, _variant(0), app, 5.0 * MS, 1)
        return self.times.learning.table(_variant(0))


def cpu_ms(call: Callable[[], object], runs: int) -> float:
    """Return the least CPU time of some runs."""
    took = []
    for _ in range(runs):
        begun_ns = time.process_time_ns()
        call()
        took.append(time.process_time_ns() - begun_ns)
    return round(min(took) / MS, 2)


def measure(apps: int, runs: int) -> dict[str, float]:
    """Return CPU ms by what is done."""
    box = Box(apps)
    return {
        "attribution of 128 batches": cpu_ms(box.attribution(), runs),
        "inference from 256 mixed batches": cpu_ms(box.inference(), runs),
        f"learned profiles of {VARIANTS} variants": cpu_ms(box.learned, runs),
        "reference": cpu_ms(lambda: box.times.learning.reference(_variant(0)), runs),
        "64 samples and a work table": cpu_ms(box.table, runs),
    }


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--apps", "numbers", multiple=True, type=int, default=(1, 4, 16, 64))
@click.option("--runs", default=20, show_default=True, help="Of each; the best counts.")
def main(as_json: bool, numbers: tuple[int, ...], runs: int) -> None:
    """Print CPU milliseconds by the number of applications."""
    found = {apps: measure(apps, runs) for apps in numbers}
    if as_json:
        click.echo(json.dumps(found, indent=1))
        return
    click.echo(f"{'CPU ms, by applications':36}" + "".join(f"{apps:8}" for apps in found))
    for what in next(iter(found.values())):
        click.echo(f"{what:36}" + "".join(f"{of[what]:8.2f}" for of in found.values()))


if __name__ == "__main__":
    main()
