"""Each contradiction in the scheduler's redundant state is found."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from edgebox.domain.errors import InvariantViolation
from edgebox.domain.model_family import ExecutorId
from edgebox.domain.requests import BatchId, CameraId, FrameId, RequestId
from edgebox.scheduling.invariants import check_invariants
from edgebox.scheduling.ledger import Ledger, LiveRequest
from edgebox.scheduling.request_stages import Stage
from edgebox.scheduling.scheduler import Scheduler
from tests.scheduling.random_events import Drawn, played
from tests.scheduling.scene import name

Defect = Callable[[Scheduler], None]
BUSY: Drawn = [
    ("opened", 1, 63, 0),
    *(("arrived", at % 3, 12, 0) for at in range(8)),
    *(("prepared", 0, 1, 0) for _ in range(5)),
]
"""Both executors run something; some requests are ready, others are being prepared."""


def at_work() -> Scheduler:
    world = played(BUSY, "edf")
    assert world.busy and world.ready and world.preparing
    check_invariants(world.scheduler)
    return world.scheduler


def waiting_one(ledger: Ledger, stage: Stage) -> LiveRequest:
    return next(live for live in ledger.live.values() if live.stage is stage)


def counted_twice(s: Scheduler) -> None:
    s._ledger.waiting += 1


def frame_not_counted(s: Scheduler) -> None:
    s._ledger.frames_waiting -= 1


def not_listed(s: Scheduler) -> None:
    lists = s._ledger.frames_by_camera or s._ledger.crops_by_camera
    next(iter(lists.values())).popitem()


def listed_under_another_camera(s: Scheduler) -> None:
    lists = s._ledger.frames_by_camera or s._ledger.crops_by_camera
    number, _ = next(iter(lists.values())).popitem()
    lists.setdefault(CameraId("nobody"), {})[number] = None


def listed_twice(s: Scheduler) -> None:
    lists = s._ledger.frames_by_camera or s._ledger.crops_by_camera
    lists[CameraId("nobody")] = dict.fromkeys(list(next(iter(lists.values())))[:1])


def empty_list_kept(s: Scheduler) -> None:
    s._ledger.crops_by_camera[CameraId("nobody")] = {}


def crop_among_frames(s: Scheduler) -> None:
    live = waiting_one(s._ledger, Stage.READY)
    frame = None if live.request.frame is not None else FrameId(1)
    live.request = replace(live.request, frame=frame)


def ready_not_counted(s: Scheduler) -> None:
    next(iter(s._ledger.ready.values()))["default"] += 1


def ready_of_another_variant(s: Scheduler) -> None:
    s._ledger.ready[name(999)] = Counter({"default": 1})


def no_variant_is_ready(s: Scheduler) -> None:
    s._ledger.ready.clear()


def waits_for_another_variant(s: Scheduler) -> None:
    s._ledger.deadlines[name(999)] = {"default": [1]}


def crop_being_cut(s: Scheduler) -> None:
    s._ledger.crops_preparing += 1


def spawns(s: Scheduler) -> None:
    s._ledger.to_spawn[CameraId("nobody")] += 1


def unknown_to_the_policy(s: Scheduler) -> None:
    s._policy.removed(next(iter(s._policy.pending())))


def known_to_the_policy_only(s: Scheduler) -> None:
    live = waiting_one(s._ledger, Stage.READY)
    s._policy.admitted(replace(live.request, id=RequestId(10**6)), live.variant, s._now_ns)


def stopping(s: Scheduler) -> None:
    s._stopping = True


def moved(s: Scheduler) -> None:
    waiting_one(s._ledger, Stage.READY).stage = Stage.RUNNING


def ended(s: Scheduler) -> None:
    waiting_one(s._ledger, Stage.READY).stage = Stage.ENDED


def retained(s: Scheduler) -> None:
    s._sampling._count += 1


def another_ladder(s: Scheduler) -> None:
    family = next(iter(s._ladders.offered)).family
    s._ladders.of(family)
    assert s._ladders._by_family
    s._ladders._by_family[family] = ()


def ran_by_nobody(s: Scheduler) -> None:
    s._ledger.running.pop(next(iter(s._ledger.running)))


def runs_another_variant(s: Scheduler) -> None:
    batch = next(iter(s._ledger.running.values()))
    s._ledger.live[batch.infer.requests[0]].variant = name(999)


def runs_another_executors_batch(s: Scheduler) -> None:
    executor, batch = next(iter(s._ledger.running.items()))
    of_another = replace(batch.infer, executor=ExecutorId("cpu/9"))
    s._ledger.running[executor] = replace(batch, infer=of_another)


def runs_a_size_that_was_not_measured(s: Scheduler) -> None:
    executor, batch = next(iter(s._ledger.running.items()))
    s._ledger.running[executor] = replace(batch, infer=replace(batch.infer, batch_size=77))


def runs_what_is_not_limited(s: Scheduler) -> None:
    executor, batch = next(iter(s._ledger.running.items()))
    another = replace(batch.infer, batch=BatchId(10**6))
    s._ledger.running[executor] = replace(batch, infer=another)


def advised_of_what_cannot_run(s: Scheduler) -> None:
    connected = next(iter(s._adaptation.cameras.values()))
    assert connected.assignment is not None
    connected.assignment = replace(connected.assignment, variant=name(999))


DEFECTS: list[Defect] = [
    counted_twice, frame_not_counted, not_listed, listed_under_another_camera, listed_twice,
    empty_list_kept, crop_among_frames, ready_not_counted, ready_of_another_variant,
    no_variant_is_ready, waits_for_another_variant, crop_being_cut, spawns, unknown_to_the_policy,
    known_to_the_policy_only, stopping, moved, ended, retained, another_ladder, ran_by_nobody,
    runs_another_variant, runs_another_executors_batch, runs_a_size_that_was_not_measured,
    runs_what_is_not_limited, advised_of_what_cannot_run,
]  # fmt: skip


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_contradiction_is_found(defect: Defect) -> None:
    scheduler = at_work()
    defect(scheduler)
    with pytest.raises(InvariantViolation):
        check_invariants(scheduler)
