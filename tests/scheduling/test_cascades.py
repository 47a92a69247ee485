"""The large model of a cascade is optional: no frame is dropped, refused or delayed for it."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.plans import Assignment, Plan
from edgebox.domain.requests import (
    BatchId,
    Camera,
    DropReason,
    FrameId,
    Outcome,
    Request,
    RequestId,
)
from edgebox.scheduling.actions import Advise, Collect, ComputePlan, Drop, Finish, SpawnCrops
from edgebox.scheduling.events import (
    BatchCompleted,
    CameraConnected,
    CropsPrepared,
    CropsSpawned,
    PlanComputed,
    RequestArrived,
    RequestPrepared,
)
from edgebox.scheduling.fan_out import FAN_OUT_WINDOW
from edgebox.scheduling.invariants import check_invariants
from edgebox.scheduling.request_stages import Cause
from edgebox.scheduling.scheduler_parameters import SchedulerParameters
from tests.scheduling.cascades import (
    LARGE_PX,
    REFINE,
    SMALL_PX,
    cascade_pipeline,
    read_after_cascade,
)
from tests.scheduling.pipelines import READ, camera_with, crops
from tests.scheduling.scene import CPU, LARGE, MEDIAN_MS, MS, Bench, infers, name, profile, request

CASCADE = camera_with(cascade_pipeline())


def box(camera: Camera = CASCADE) -> Bench:
    parameters = SchedulerParameters(first_pixels_max=LARGE)
    bench = Bench([profile(px) for px in MEDIAN_MS], parameters)
    bench(CameraConnected(camera), 0)
    return bench


def sent_on(frame: Request, number: int, at_ms: float) -> Request:
    """Return the request of a frame's whole picture for the large model."""
    (crop,) = crops(frame, REFINE, [number], at_ms)
    size_px = frame.width_px, frame.height_px
    return replace(crop, optional=True, width_px=size_px[0], height_px=size_px[1])


def answered(bench: Bench, frame: Request, at_ms: float) -> list[object]:
    """Let a frame's first stage end at an instant, sent on; return the actions of that."""
    bench(RequestArrived(frame), 0)
    bench(RequestPrepared(frame.id, MS), 1)
    (running,) = bench.scheduler.running.values()
    assert running.variant == name(SMALL_PX)
    event = BatchCompleted(CPU, running.batch, 2 * MS, (sent_on(frame, 9, at_ms),))
    return [*bench(event, at_ms)]


def test_pictures_are_sent_at_the_size_of_the_large_model() -> None:
    bench = Bench([profile(px) for px in MEDIAN_MS], SchedulerParameters(first_pixels_max=LARGE))
    (advise,) = (a for a in bench(CameraConnected(CASCADE), 0) if isinstance(a, Advise))
    assert advise.advice.variant == name(SMALL_PX)
    assert (advise.advice.width_px, advise.advice.height_px) == (LARGE_PX, LARGE_PX * 9 // 16)


def test_a_frame_that_is_sent_on_ends_with_the_large_model() -> None:
    bench, frame = box(), request(1, 300)
    out = answered(bench, frame, 10)
    assert Collect(frame.id, BatchId(1)) in out
    (infer,) = infers(bench(CropsPrepared((RequestId(9),)), 12))
    assert infer.variant == name(LARGE_PX)
    out = [*bench(BatchCompleted(CPU, infer.batch, 20 * MS), 32)]
    assert Finish(frame.id, BatchId(1), Outcome.ON_TIME) in out
    check_invariants(bench.scheduler)


@given(st.integers(3, 20))
def test_without_time_for_it_the_small_answer_stands_at_once(left_ms: int) -> None:
    bench, frame = box(), request(1, 10 + left_ms)
    out = answered(bench, frame, 10)
    wanted = [Drop(RequestId(9), DropReason.INFEASIBLE, Cause.REFUSED)]
    assert [a for a in out if isinstance(a, Drop)] == wanted
    (finish,) = (a for a in out if isinstance(a, Finish))
    assert (finish.request, finish.outcome) == (frame.id, Outcome.ON_TIME)
    assert bench.scheduler.admission._frames._overloaded_ns is None
    check_invariants(bench.scheduler)


def test_nothing_is_reserved_for_it() -> None:
    bench = box()
    fan_out = bench.scheduler.admission._fan_out
    for _ in range(FAN_OUT_WINDOW):
        fan_out.observe(CASCADE, {REFINE: 1})
    assert fan_out.mean_crops(CASCADE.id, REFINE) == 1
    assert fan_out.after_first_ns(CASCADE) == 0
    assert CASCADE.pipeline is not None
    large = CASCADE.pipeline.stages[1]
    assert fan_out.present_s(CASCADE, large) > 0, "but planning counts what it takes"
    frames = bench.scheduler.admission._frames
    assert frames._crops_of_frame(CASCADE, CASCADE.pipeline) == {}


def test_the_next_plan_leaves_time_for_what_is_reserved_alone() -> None:
    camera = camera_with(cascade_pipeline(None))
    given_ = Assignment(
        camera.id,
        name(SMALL_PX),
        10,
        85,
        True,
        "because",
        cascade_share=0.7,
        cascade_reserved=0.5,
    )
    bench = box(camera)
    bench(PlanComputed(Plan(0, {camera.id: given_})), 1)
    assert bench.scheduler.cascade_share(camera.id) == 0.7
    [compute] = (each for each in bench(None, 600) if isinstance(each, ComputePlan))
    [of] = compute.snapshot.cameras
    assert of.cascade is not None
    assert of.cascade.reserved == 0.5


def test_an_expired_one_makes_no_overload() -> None:
    bench, frame = box(), request(1, 60)
    answered(bench, frame, 10)
    out = [*bench(None, 59)]
    (finish,) = (a for a in out if isinstance(a, Finish))
    assert (finish.request, finish.outcome) == (frame.id, Outcome.ON_TIME)
    assert bench.scheduler.admission._frames._overloaded_ns is None
    check_invariants(bench.scheduler)


READS = camera_with(read_after_cascade())


def kept(actions: Sequence[object]) -> list[object]:
    return [a for a in actions if isinstance(a, Drop | Finish | SpawnCrops)]


def test_without_the_large_model_later_stages_look_at_what_the_small_one_found() -> None:
    bench, frame = box(READS), request(1, 60)
    out = answered(bench, frame, 50)
    refused = Drop(RequestId(9), DropReason.INFEASIBLE, Cause.REFUSED)
    assert kept(out) == [refused, SpawnCrops(frame.id)]
    check_invariants(bench.scheduler)
    assert kept([*bench(None, 50)]) == [], "it is ordered once"
    spawned = crops(frame, READ, (10,), 50)
    assert kept([*bench(CropsSpawned(FrameId(frame.id), spawned), 50)]) == []
    (infer,) = infers(bench(CropsPrepared((RequestId(10),)), 51))
    assert infer.requests == (10,)
    out = [*bench(BatchCompleted(CPU, infer.batch, 5 * MS), 56)]
    assert kept(out) == [Finish(frame.id, BatchId(1), Outcome.ON_TIME, (REFINE,))]
    fan_out = bench.scheduler.admission._fan_out
    assert fan_out.mean_crops(READS.id, READ) == 1
    check_invariants(bench.scheduler)


def test_a_small_answer_without_objects_ends_when_that_is_known() -> None:
    bench, frame = box(READS), request(1, 60)
    answered(bench, frame, 50)
    out = [*bench(CropsSpawned(FrameId(frame.id), ()), 50)]
    assert kept(out) == [Finish(frame.id, BatchId(1), Outcome.ON_TIME, (REFINE,))]
    out = [*bench(CropsSpawned(FrameId(frame.id), crops(frame, READ, (12,), 51)), 51)]
    assert kept(out) == [Drop(RequestId(12), DropReason.QUEUE, Cause.FRAME_ENDED)]
    assert bench.scheduler.stale_events["CropsSpawned"] == 1
    check_invariants(bench.scheduler)


def test_a_frame_that_is_cut_too_late_lacks_what_was_not_cut() -> None:
    """And nothing is learned of how many objects it had."""
    bench, frame = box(READS), request(1, 300)
    answered(bench, frame, 10)
    (infer,) = infers(bench(CropsPrepared((RequestId(9),)), 12))
    out = [*bench(None, 300)]
    assert kept(out) == [Finish(frame.id, BatchId(1), Outcome.ON_TIME, (REFINE, READ))]
    fan_out = bench.scheduler.admission._fan_out
    assert READ not in fan_out._crops[READS.id]
    assert fan_out.mean_crops(READS.id, REFINE) == 1
    bench(BatchCompleted(CPU, infer.batch, 300 * MS), 312)
    check_invariants(bench.scheduler)


def test_what_the_large_model_found_is_cut_and_nothing_else() -> None:
    bench, frame = box(READS), request(1, 300)
    answered(bench, frame, 10)
    (infer,) = infers(bench(CropsPrepared((RequestId(9),)), 12))
    out = [*bench(BatchCompleted(CPU, infer.batch, 20 * MS), 32)]
    assert kept(out) == [Finish(frame.id, BatchId(1), Outcome.ON_TIME)]
    check_invariants(bench.scheduler)
