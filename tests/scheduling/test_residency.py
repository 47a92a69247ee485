"""Memory that does not hold everything: what the Scheduler loads, unloads and runs meanwhile."""

import pytest

from edgebox.domain.model_family import VariantName, Weights, WeightsId
from edgebox.domain.plans import Assignment, Plan
from edgebox.domain.requests import BatchId, CameraId, RequestId
from edgebox.scheduling.actions import Action, Advise, ComputePlan, Infer, Load, Prepare, Unload
from edgebox.scheduling.checkpoint import read_state, write_state
from edgebox.scheduling.events import (
    BatchCompleted,
    CameraConnected,
    ExecutorStarted,
    ExecutorStopped,
    LoadFailed,
    MemoryLimited,
    PlanComputed,
    RequestArrived,
    RequestPrepared,
    ShutdownRequested,
    WeightsLoaded,
)
from edgebox.scheduling.residency import RETRY_NS
from tests.scheduling.scene import (
    CPU,
    FAMILY,
    MEDIAN_MS,
    MS,
    STREET,
    Bench,
    camera,
    infers,
    name,
    profile,
    request,
)  # fmt: skip

GATE = CameraId("gate-1")


def weights(px: int) -> WeightsId:
    return WeightsId(f"street-{px}.onnx")


STOCK = tuple(
    Weights(weights(each.width_px), STREET, 10, each.pixels, (each.name,)) for each in FAMILY
)


def limited(files: int, *resident: int) -> Bench:
    """Return a box that holds so many of the family's files, with these in memory, a camera on."""
    bench = Bench()
    bench(MemoryLimited(CPU, 10 * files, STOCK, tuple(map(weights, resident))), 0)
    bench(CameraConnected(camera()), 0)
    return bench


def plan_of(px: int, **more: int) -> PlanComputed:
    given = {"gate-1": px, **more}
    return PlanComputed(
        Plan(
            0,
            {
                CameraId(of): Assignment(CameraId(of), name(on), 10, 85, True, "it fits")
                for of, on in given.items()
            },
        )
    )


def moves(actions: list[Action]) -> list[Action]:
    return [a for a in actions if isinstance(a, Load | Unload)]


def advised(actions: list[Action]) -> list[VariantName]:
    return [a.advice.variant for a in actions if isinstance(a, Advise)]


def prepared_on(actions: list[Action]) -> list[VariantName]:
    return [a.variant for a in actions if isinstance(a, Prepare)]


def test_frames_run_on_the_best_that_is_there_until_the_load_has_ended() -> None:
    bench = limited(3, 128, 320)
    actions = bench(plan_of(608), 100)
    assert moves(actions) == [Load(CPU, weights(608))]
    assert advised(actions) in ([], [name(320)])
    assignment = bench.scheduler.assignments[GATE]
    assert assignment.variant == name(320)
    assert assignment.reason == "320 × 320 px until street-608 is in memory; then it fits"
    arrived = bench(RequestArrived(request(1, 400, arrival_ms=110, size=(608, 342))), 110)
    assert prepared_on(arrived) == [name(320)]
    (infer,) = [a for a in bench(RequestPrepared(RequestId(1), MS), 112) if isinstance(a, Infer)]
    assert infer.variant == name(320)
    # The load ends beside the batch that runs, and plans are made again at once.
    loaded = bench(WeightsLoaded(CPU, weights(608)), 115)
    assert any(isinstance(a, ComputePlan) for a in loaded)
    bench(BatchCompleted(CPU, BatchId(1), 12 * MS), 125)
    assert advised(bench(plan_of(608), 126)) == [name(608)]
    memory = bench.scheduler.memories[CPU]
    assert (memory.hits, memory.misses, memory.switches, memory.loads) == (0, 1, 1, 1)
    assert memory.switch_ns == 15 * MS


def test_the_planner_may_name_what_is_not_in_memory() -> None:
    bench = limited(2, 128)
    bench(plan_of(128), 600)
    # Planning took 600 ms: it may take a fifth of the time.
    (order,) = [a for a in bench(None, 3000) if isinstance(a, ComputePlan)]
    assert set(order.snapshot.profiles[CPU]) == {each.name for each in FAMILY}


def test_neighbours_are_prefetched_one_after_the_other_and_then_a_switch_costs_nothing() -> None:
    bench = limited(4, 128, 416)
    assert moves(bench(plan_of(416), 100)) == [Load(CPU, weights(320))]
    assert moves(bench(WeightsLoaded(CPU, weights(320)), 200)) == [Load(CPU, weights(608))]
    bench(WeightsLoaded(CPU, weights(608)), 300)
    assert advised(bench(plan_of(608), 400)) == [name(608)]
    memory = bench.scheduler.memories[CPU]
    assert (memory.hits, memory.misses, memory.loads) == (2, 0, 2)


def test_a_box_that_stops_loads_nothing_more() -> None:
    bench = limited(4, 128, 416)
    assert moves(bench(plan_of(416), 100)) == [Load(CPU, weights(320))]
    bench(ShutdownRequested(), 110)
    assert moves(bench(WeightsLoaded(CPU, weights(320)), 120)) == []


def test_nothing_leaves_while_anything_waits_or_runs_on_it() -> None:
    bench = limited(2, 128, 320)
    bench(plan_of(320), 10)
    bench(RequestArrived(request(1, 2400, arrival_ms=20, size=(320, 180))), 20)
    bench(None, 600)
    assert moves(bench(plan_of(608), 610)) == []
    bench(RequestPrepared(RequestId(1), MS), 620)
    bench(None, 1200)
    assert moves(bench(plan_of(608), 1210)) == []
    bench(BatchCompleted(CPU, BatchId(1), 12 * MS), 1220)
    bench(None, 1800)
    assert moves(bench(plan_of(608), 1810)) == [
        Unload(CPU, weights(320)),
        Load(CPU, weights(608)),
    ]
    # Until it is there, only the smallest is.
    arrived = bench(RequestArrived(request(2, 2400, arrival_ms=1900, size=(320, 180))), 1900)
    assert prepared_on(arrived) == [name(128)]


def test_a_load_that_fails_is_not_tried_again_at_once() -> None:
    bench = limited(2, 128)
    assert moves(bench(plan_of(608), 100)) == [Load(CPU, weights(608))]
    # Instead, the memory holds what is nearest.
    assert moves(bench(LoadFailed(CPU, weights(608)), 200)) == []
    assert moves(bench(plan_of(608), 1000)) == []
    assert bench.scheduler.assignments[GATE].variant == name(128)
    later_ms = 200 + RETRY_NS / MS
    assert moves(bench(plan_of(608), later_ms)) == [Load(CPU, weights(608))]


def test_stale_news_of_loads_is_ignored() -> None:
    bench = limited(2, 128)
    bench(WeightsLoaded(CPU, weights(608)), 100)
    assert set(bench.scheduler.memories[CPU].resident) == {weights(128)}


def test_a_scheduler_with_limited_memory_can_be_written_down_and_goes_on_alike() -> None:
    bench = limited(3, 128, 320)
    bench(plan_of(608), 100)
    copy = read_state(write_state(bench.scheduler))
    for event, at_ms in (
        (WeightsLoaded(CPU, weights(608)), 300),
        (RequestArrived(request(1, 900, arrival_ms=310, size=(608, 342))), 310),
        (RequestPrepared(RequestId(1), MS), 320),
        (BatchCompleted(CPU, BatchId(1), 40 * MS), 360),
    ):
        expected = bench(event, at_ms)
        assert copy.handle(event, at_ms * MS) == expected
    assert copy.memories == bench.scheduler.memories


@pytest.mark.parametrize("known_at_once", [True, False])
def test_an_executor_that_comes_back_runs_only_what_is_in_its_memory(known_at_once: bool) -> None:
    """Requests wait when it comes back, and the first batch starts with the same call."""
    bench = limited(5, 128, 256, 320, 416, 608)
    bench(plan_of(416), 1)
    arrived = RequestArrived(request(1, 5000, advised=name(416)))
    (prepare,) = (each for each in bench(arrived, 2) if isinstance(each, Prepare))
    assert prepare.variant == name(416)
    bench(RequestArrived(request(2, 5000, advised=name(416))), 2)
    bench(ExecutorStopped(CPU), 3)
    bench(RequestPrepared(RequestId(1), MS), 4)
    profiles = tuple(profile(px) for px in MEDIAN_MS)
    memory = MemoryLimited(CPU, 20, STOCK, (weights(128), weights(256)))
    if known_at_once:
        actions = bench(ExecutorStarted(CPU, profiles, memory=memory), 5)
        assert {infer.variant for infer in infers(actions)} <= {name(128), name(256)}
        assert bench.scheduler.memories[CPU].variants == [name(128), name(256)]
    else:  # without a limit it runs what was planned
        actions = bench(ExecutorStarted(CPU, profiles), 5)
        assert [infer.variant for infer in infers(actions)] == [name(416)]


def test_what_an_executor_cannot_run_makes_room_even_if_it_is_the_smallest() -> None:
    """A variant that hangs on an executor is run there no more, but its weights may be loaded."""
    bench = Bench()
    runnable = [profile(px) for px in MEDIAN_MS if px != 128]
    memory = MemoryLimited(CPU, 10, STOCK, (weights(128),))
    bench(ExecutorStarted(CPU, tuple(runnable), memory=memory), 0)
    bench(CameraConnected(camera()), 0)
    orders = moves(bench(plan_of(320), 100))
    assert orders[0] == Unload(CPU, weights(128))
    assert isinstance(orders[1], Load)
    assert orders[1].weights != weights(128)
    bench(WeightsLoaded(CPU, orders[1].weights), 120)
    assert bench.scheduler.memories[CPU].variants
    assert name(128) not in bench.scheduler.memories[CPU].variants
