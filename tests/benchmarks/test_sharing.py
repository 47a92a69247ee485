"""The benchmark of sharing an accelerator: what the documentation says of it, in a small run."""

import random

from benchmarks.sharing import best_number, requests_of, run
from edgebox.scheduling.concurrency import concurrent_batches


def test_where_batches_take_turns_anyway_one_at_a_time_is_best_and_chosen() -> None:
    shares = best_number(1.0, slo_multiple=6, load=0.9)
    assert shares == sorted(shares, reverse=True)
    assert concurrent_batches([n / (1 + 1.0 * (n - 1)) for n in range(1, 5)]) == 1


def test_the_limit_helps_adaptive_and_coral_and_adaptive_is_best() -> None:
    requests = requests_of(8, 3, random.Random(11))
    found = {
        (policy, at_once): run(policy, 1.0, requests, at_once)["on_time"]
        for policy in ("adaptive", "coral")
        for at_once in (0, 4)
    }
    assert found["adaptive", 0] > found["adaptive", 4] + 0.03
    assert found["coral", 0] > found["coral", 4] + 0.05
    assert found["adaptive", 0] > found["coral", 0] + 0.1
