"""What `adaptive` runs first when several variants have requests waiting."""

from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.domain.requests import RequestId
from edgebox.scheduling.adaptive import DistributionAware
from edgebox.scheduling.events import (
    BatchCompleted,
    CameraConnected,
    RequestArrived,
    RequestPrepared,
)
from edgebox.scheduling.policy import Batch
from edgebox.scheduling.queueing import Queues
from tests.scheduling.scene import CPU, MEDIAN_MS, MS, Bench, camera, infers, request

SMALL, LARGE = VariantName("street-128"), VariantName("street-608")
FREE_MS = 50.0
"""When the executor falls free and everybody below waits."""


def order(
    waiting: list[tuple[VariantName, float]], policy: DistributionAware | None = None
) -> list[VariantName]:
    """Let requests wait, each with a variant and what it has left; return which variants run."""
    policy = policy or DistributionAware()
    bench = Bench(policy=policy)
    bench(CameraConnected(camera(slo_ms=2000)), 0)
    coming = [(SMALL, 1000.0), *((variant, FREE_MS + left_ms) for variant, left_ms in waiting)]
    started = []
    for at, (variant, deadline_ms) in enumerate(coming):
        bench(RequestArrived(request(at, deadline_ms, variant=variant)), 0)
        started += infers(bench(RequestPrepared(RequestId(at), MS), 0))
    at_ms, took_ms = FREE_MS, FREE_MS
    for _ in range(len(coming)):
        if not (running := bench.scheduler.running.get(CPU)):
            break
        started += infers(bench(BatchCompleted(CPU, running.batch, round(took_ms * MS)), at_ms))
        took_ms = MEDIAN_MS[608 if started[-1].variant == LARGE else 128]
        at_ms += took_ms
    return [infer.variant for infer in started[1:]]


def test_the_earliest_deadline_comes_first_while_there_is_time_for_all() -> None:
    assert order([(LARGE, 300), *[(SMALL, 400)] * 4]) == [LARGE, SMALL]
    assert order([(LARGE, 400), *[(SMALL, 300)] * 4]) == [SMALL, LARGE]


def test_many_quick_ones_do_not_starve_a_slow_one() -> None:
    # Per time the quick ones are worth more by far, but they can wait and the slow one cannot.
    slow_ms = MEDIAN_MS[608]
    assert order([(LARGE, 1.5 * slow_ms), *[(SMALL, 5 * slow_ms)] * 4])[0] == LARGE


def test_who_would_cost_others_more_waits_although_its_deadline_is_earlier() -> None:
    slow_ms = MEDIAN_MS[608]
    in_time_only_if_first = [(SMALL, 1.15 * slow_ms)] * 4
    assert order([(LARGE, 1.125 * slow_ms), *in_time_only_if_first])[0] == SMALL
    assert order([(LARGE, 1.125 * slow_ms), (SMALL, 2 * slow_ms)])[0] == LARGE


def test_who_is_hardly_in_time_alone_waits_for_those_who_are() -> None:
    slow_ms = MEDIAN_MS[608]
    assert order([(LARGE, 0.85 * slow_ms), (SMALL, 5 * slow_ms)])[0] == SMALL


class Deliberate(DistributionAware):
    """Forms every variant's batch before it chooses, and of a single request too."""

    def _delays_no_other(self, *args: object) -> bool:
        return False

    def _only_request(self, executor: ExecutorId, queues: Queues, now_ns: int) -> Batch | None:
        return self._search(executor, queues, now_ns)


WAITING = st.lists(
    st.tuples(
        st.sampled_from([SMALL, VariantName("street-256"), LARGE]),
        st.integers(5, 600).map(float),
    ),
    min_size=1,
    max_size=8,
)


@given(WAITING)
def test_what_spares_a_search_changes_no_choice(
    waiting: list[tuple[VariantName, float]],
) -> None:
    deliberate = Deliberate()
    assert order(waiting) == order(waiting, deliberate)
