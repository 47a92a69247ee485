"""Applications of very different length share a variant: each is judged by its own times."""

import random
from dataclasses import dataclass, field

import pytest

from edgebox.domain.requests import Outcome
from edgebox.scheduling.policies import make_policy
from edgebox.scheduling.scheduler import Scheduler
from edgebox.scheduling.scheduler_parameters import SchedulerParameters
from edgebox.simulation.batching_simulator import BatchingReport, BatchingSimulation
from edgebox.simulation.workload import Job, Model, Workload

SHORT_MS = 3.0
SLO_MS = {"short": 60.0, "long": 2000.0}
RATE_HZ = {"short": 5.0, "long": 2.0}


@dataclass
class ObservedBatch:
    """What a run told."""

    slowdowns: list[float] = field(default_factory=list)
    report: BatchingReport = field(default_factory=BatchingReport)

    def check(self, scheduler: Scheduler) -> None:
        self.slowdowns += scheduler.slowdown.values()

    def on_time(self, app: str, from_s: float, to_s: float) -> float:
        """Return the share on time of those that came meanwhile and could have been in time."""
        ends = [end for end in self.report.ends if from_s <= end.job.at_ms / 1000 < to_s]
        long_ms = [(end.job.at_ms, end.job.exec_ms) for end in ends if end.job.app == "long"]
        own = [end for end in ends if end.job.app == app]
        if app == "short":
            left_ms = SLO_MS[app] - 3 * SHORT_MS
            own = [
                end
                for end in own
                if not any(at < end.job.at_ms < at + ms - left_ms for at, ms in long_ms)
            ]
        return sum(end.outcome is Outcome.ON_TIME for end in own) / len(own)


def run(policy: str, ratio: float, profile_at: float, seconds: float = 60) -> ObservedBatch:
    """Stream two applications that nobody knows, one `ratio` times as long as the other.

    Args:
        policy: by name.
        ratio: of the long application's times to the short one's.
        profile_at: where the profile lies between them: 0 as the short, 1 as the long one.
        seconds: for so long.
    """
    rng = random.Random(1)
    times_ms = {"short": SHORT_MS, "long": SHORT_MS * ratio}
    profiled_ms = SHORT_MS * ratio**profile_at
    jobs = []
    for app, usual_ms in times_ms.items():
        gap_ms = 1000 / RATE_HZ[app]
        at_ms = rng.random() * gap_ms
        while at_ms < seconds * 1000:
            jobs.append((at_ms, app, usual_ms * rng.uniform(0.8, 1.2), SLO_MS[app]))
            at_ms += gap_ms * rng.uniform(0.95, 1.05)
    history = {"profiled": tuple(profiled_ms * rng.uniform(0.9, 1.1) for _ in range(300))}
    in_order = tuple(Job(at, *job) for at, job in enumerate(sorted(jobs)))
    seen = ObservedBatch()
    seen.report = BatchingSimulation(
        Workload(Model(0.5, 1.0, (1, 2, 4)), history, in_order),
        make_policy(policy),
        rng=random.Random(1),
        parameters=SchedulerParameters(),
        sample_share=0.01,
        check=seen.check,
    ).run()
    return seen


@pytest.mark.parametrize("profile_at", [0, 0.5, 1])
@pytest.mark.parametrize("ratio", [4, 10, 25, 40])
@pytest.mark.parametrize("policy", ["adaptive", "orloj", "edf"])
def test_neither_the_short_nor_the_long_is_starved(
    policy: str, ratio: float, profile_at: float
) -> None:
    seen = run(policy, ratio, profile_at)
    assert max(seen.slowdowns) < 1.5, "nobody's length is the executor's slowdown"
    assert seen.on_time("long", 0, 60) > 0.95
    assert seen.on_time("short", 20, 60) > 0.9
