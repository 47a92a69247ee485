"""Idle executors wait a moment for crops that are being cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.requests import BatchId, RequestId
from edgebox.scheduling.actions import Infer
from edgebox.scheduling.crop_wait import CUT_WINDOW, WAIT_SHARE_MAX, CropWait
from edgebox.scheduling.events import (
    BatchCompleted,
    CameraConnected,
    CropsPrepared,
    FrameDetected,
    RequestArrived,
    RequestCancelled,
    RequestPrepared,
)
from tests.scheduling.pipelines import CHAIN, READ, camera_with, crops
from tests.scheduling.scene import CPU, MS, Bench, profile, request


@given(st.integers(1, 50 * MS), st.integers(0, 10 * MS), st.integers(0, 60 * MS))
def test_the_wait_is_a_small_part_of_the_batch_before(
    took_ns: int, cutting_ns: int, later_ns: int
) -> None:
    wait = CropWait()
    for at in range(CUT_WINDOW):
        wait.spawned(took_ns, at)
        wait.prepared(cutting_ns)
    wait.spawned(took_ns, 10**9)
    until_ns = wait.until_ns(1, 10**9 + later_ns)
    assert wait.until_ns(0, 10**9) is None
    waits = cutting_ns <= WAIT_SHARE_MAX * took_ns and later_ns < cutting_ns
    assert until_ns == (10**9 + cutting_ns if waits else None)


def busy_box(cutting_ms: float) -> Bench:
    """Return a box whose crops took this long to cut, with a batch that has just found some."""
    bench = Bench([profile(320)])
    bench(CameraConnected(camera_with(CHAIN)), 0)
    first, second = request(1, 300), request(2, 600)
    for number in range(CUT_WINDOW):
        bench.scheduler._dispatch.spawned(0, number)
        bench.scheduler._dispatch.crops_prepared(round(cutting_ms * MS))
    bench(RequestArrived(first), 1)
    (infer,) = [a for a in bench(RequestPrepared(first.id, MS), 2) if isinstance(a, Infer)]
    bench(RequestArrived(second), 3)
    bench(RequestPrepared(second.id, MS), 4)
    assert infer.batch == BatchId(1)
    return bench


def found(bench: Bench) -> list[Infer]:
    spawned = crops(request(1, 300), READ, [10, 11], 30)
    out = bench(BatchCompleted(CPU, BatchId(1), 26 * MS, spawned), 30)
    return [a for a in out if isinstance(a, Infer)]


def test_crops_that_are_soon_cut_go_before_the_next_frame() -> None:
    bench = busy_box(1)
    assert found(bench) == []
    assert bench.scheduler.next_wakeup_ns() == 31 * MS
    out = bench(
        CropsPrepared(tuple(crop.id for crop in crops(request(1, 300), READ, [10, 11], 0))), 30.8
    )
    (infer,) = [a for a in out if isinstance(a, Infer)]
    assert infer.requests[0] in {10, 11}


def test_it_ends_if_cutting_takes_longer_than_usual() -> None:
    bench = busy_box(1)
    assert found(bench) == []
    (infer,) = [a for a in bench(None, 31) if isinstance(a, Infer)]
    assert infer.requests == (request(2, 600).id,)


def test_nobody_waits_for_crops_that_take_long() -> None:
    (infer,) = found(busy_box(10))
    assert infer.requests == (request(2, 600).id,)


def test_only_the_cutting_of_what_a_batch_has_found_is_measured() -> None:
    bench = busy_box(1)
    for number in range(100, 100 + 2 * CUT_WINDOW, 2):
        detected = request(number, 3_000, arrival_ms=5)
        (crop,) = crops(detected, READ, [number + 1], 5)
        bench(FrameDetected(detected, (crop,)), 5)
        bench(CropsPrepared((crop.id,), 40 * MS), 6)
        bench(RequestCancelled(detected.id), 6)
    assert found(bench) == []
    assert bench.scheduler.next_wakeup_ns() == 31 * MS


@pytest.mark.parametrize(("took_ns", "longest_ns"), [(40 * MS, 40 * MS), (None, MS)])
def test_cutting_is_measured_from_its_order_on(took_ns: int | None, longest_ns: int) -> None:
    bench = busy_box(1)
    found(bench)
    bench(CropsPrepared((RequestId(10), RequestId(11)), took_ns), 75)
    assert bench.scheduler._dispatch._crop_wait._cutting_ns.quantile(1) == longest_ns
