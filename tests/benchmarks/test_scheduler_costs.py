"""Every policy can be measured, also one that waits for its time slots."""

import pytest

from benchmarks.scheduler import ONE_PX, measure
from edgebox.domain.plans import Plan, PlanningSnapshot
from edgebox.planning.planner import plan
from edgebox.scheduling.policies import POLICIES


@pytest.mark.parametrize("policy", POLICIES)
def test_each_policy_decides_in_the_benchmark(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plans: dict[int, Plan] = {}

    def planned_once(snapshot: PlanningSnapshot, iterations_max: int) -> Plan:
        """Plan once for so many cameras: what the box can do stays the same."""
        cameras = len(snapshot.cameras)
        if cameras not in plans:
            plans[cameras] = plan(snapshot, iterations_max)
        return plans[cameras]

    monkeypatch.setattr("benchmarks.scheduler.plan", planned_once)
    for pending in (10, 1000):
        found = measure(pending, 75, policy, ONE_PX)
        assert found["BatchCompleted"]["calls"] > 50
        assert found["RequestPrepared"]["calls"] > 50
