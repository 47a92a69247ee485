"""After a slow moment a box serves again: what was slow is not given up for ever unseen."""

import pytest

from edgebox.domain.model_family import VariantName
from edgebox.scheduling.actions import Finish
from edgebox.scheduling.events import BatchCompleted, RequestArrived, RequestPrepared
from edgebox.scheduling.policies import make_policy
from tests.scheduling.scene import CPU, MEDIAN_MS, MS, Bench, infers, request

LARGE = VariantName("street-608")
SLOWER = 40


@pytest.mark.parametrize("policy", ["adaptive", "edf", "nexus", "clipper", "fifo"])
def test_a_slow_moment_is_forgotten_even_if_nothing_runs_meanwhile(policy: str) -> None:
    bench = Bench(policy=make_policy(policy))
    usual_ms = MEDIAN_MS[608]
    answered: list[float] = []

    def ask(number: int, at_ms: float, left_ms: float, took_ms: float) -> float:
        sent = request(
            number, at_ms + left_ms, of="program", arrival_ms=at_ms, variant=LARGE, app="slowed"
        )
        arrived = bench(RequestArrived(sent), at_ms)
        started = infers([*arrived, *bench(RequestPrepared(sent.id, 0), at_ms)])
        if started:
            at_ms += took_ms
            ended = bench(BatchCompleted(CPU, started[0].batch, round(took_ms * MS)), at_ms)
            answered.extend(at_ms for action in ended if isinstance(action, Finish))
        return at_ms

    at_ms = 0.0
    for number in range(40):
        at_ms = ask(number, at_ms, 4 * usual_ms, usual_ms) + 125
    for number in range(40, 48):
        at_ms = ask(number, at_ms, 1e6, usual_ms * SLOWER) + 1
    slow, slow_until_ms = len(answered), at_ms
    for number in range(48, 440):
        at_ms = ask(number, at_ms, 4 * usual_ms, usual_ms) + 125
        if at_ms > slow_until_ms + 30_000:
            break
    assert len(answered) > slow, "nothing was tried again"
    assert sum(at < slow_until_ms + 5_000 for at in answered[slow:]) > 15
    assert answered[-1] > at_ms - 500, "it is served for good"
