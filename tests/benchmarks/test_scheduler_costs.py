"""Every policy can be measured, also one that waits for its time slots."""

import pytest

from benchmarks.scheduler import ONE_PX, measure
from edgebox.scheduling.policies import POLICIES


@pytest.mark.parametrize("policy", POLICIES)
def test_each_policy_decides_in_the_benchmark(policy: str) -> None:
    for pending in (10, 1000):
        found = measure(pending, 75, policy, ONE_PX)
        assert found["BatchCompleted"]["calls"] > 50
        assert found["RequestPrepared"]["calls"] > 50
