"""The large model of a cascade is optional: no frame is dropped, refused or delayed for it."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.plans import Assignment, Plan
from edgebox.domain.requests import BatchId, Camera, DropReason, Outcome, Request, RequestId
from edgebox.scheduling.actions import Advise, Collect, ComputePlan, Drop, Finish
from edgebox.scheduling.events import (
    BatchCompleted,
    CameraConnected,
    CropsPrepared,
    PlanComputed,
    RequestArrived,
    RequestPrepared,
)
from edgebox.scheduling.fan_out import FAN_OUT_WINDOW
from edgebox.scheduling.invariants import check_invariants
from edgebox.scheduling.request_stages import Cause
from edgebox.scheduling.scheduler_parameters import SchedulerParameters
from tests.scheduling.cascades import LARGE_PX, REFINE, SMALL_PX, cascade_pipeline
from tests.scheduling.pipelines import camera_with, crops
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
