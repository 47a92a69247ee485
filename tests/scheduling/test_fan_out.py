"""The time that is kept for later stages, and the variant that a crop runs on."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebox.domain.pipelines import Pipeline, StageName
from edgebox.domain.requests import BatchId, Camera, DropReason, FrameId, RequestId
from edgebox.scheduling.actions import Drop
from edgebox.scheduling.events import (
    BatchCompleted,
    CameraChanged,
    CameraConnected,
    CropsPrepared,
    RequestArrived,
    RequestPrepared,
    VariantsAvailable,
)
from edgebox.scheduling.fan_out import FAN_OUT_WINDOW, FanOut, with_reserve
from edgebox.scheduling.request_stages import Cause
from edgebox.scheduling.scheduler_parameters import FrameAdmissionRule, SchedulerParameters
from tests.scheduling.pipelines import CHAIN, CHECK, FIND, READ, camera_with, crops, pipeline, stage
from tests.scheduling.scene import (
    CPU,
    FAMILY,
    LARGE,
    MEDIAN_MS,
    MS,
    Bench,
    infers,
    name,
    profile,
    request,
)

NAMES = ("find", "b", "c", "d")


def fan_out_of(bench: Bench) -> FanOut:
    return bench.scheduler.admission._fan_out


def learned(bench: Bench, camera: Camera, crops: dict[StageName, int]) -> FanOut:
    """Let a camera's frames have had so many crops."""
    fan_out = fan_out_of(bench)
    for _ in range(FAN_OUT_WINDOW):
        fan_out.observe(camera, crops)
    return fan_out


@st.composite
def pipelines(draw: st.DrawFn) -> Pipeline:
    stages = [stage("find")]
    for at, of in enumerate(NAMES[1:], 1):
        after = draw(st.sets(st.sampled_from(NAMES[:at]), min_size=1))
        stages.append(stage(of, *sorted(after), variant=name(draw(st.sampled_from((128, 320))))))
    return pipeline(*stages)


def brute_force_ns(bench: Bench, of: Pipeline, crops: dict[StageName, int], begin: str) -> int:
    """Return the longest of all paths, each walked from its beginning until a stage is empty."""
    fixed_ns = bench.scheduler.times.calibration.fixed_ns
    latencies = bench.scheduler.times.latencies
    longest_ns = 0
    for length in range(1, len(NAMES)):
        for path in itertools.permutations(NAMES, length):
            took_ns, before = 0, StageName(begin)
            for each in path:
                here = of.stage(StageName(each))
                assert here is not None
                if before not in here.after or not crops.get(here.name):
                    break
                assert here.variant is not None
                row = latencies.best(here.variant)
                assert row is not None
                left = crops[here.name]
                while left > 0:  # full batches, then the smallest that holds the rest
                    size = next((n for n in row.sizes if n >= left), row.sizes[-1])
                    took_ns += row.median_ns[row.sizes.index(size)]
                    left -= size
                took_ns, before = took_ns + fixed_ns, here.name
            longest_ns = max(longest_ns, took_ns)
    return longest_ns


@settings(max_examples=60, deadline=None)
@given(pipelines(), st.tuples(*[st.integers(0, 9)] * 3))
def test_the_rest_takes_what_its_longest_path_takes(
    of: Pipeline, counts: tuple[int, int, int]
) -> None:
    bench, camera = Bench([profile(px, gain=0.7) for px in MEDIAN_MS]), camera_with(of)
    crops = {StageName(n): count for n, count in zip(NAMES[1:], counts, strict=True)}
    fan_out = learned(bench, camera, crops)
    for begin in NAMES:
        expected_ns = brute_force_ns(bench, of, crops, begin)
        assert fan_out.remaining_ns(camera, StageName(begin)) == expected_ns


def test_crops_are_counted_by_a_high_quantile_of_the_last_frames() -> None:
    bench, camera = Bench(), camera_with(CHAIN)
    fan_out = fan_out_of(bench)
    assert fan_out.crops(camera.id, READ) == 0
    for number in range(FAN_OUT_WINDOW):
        fan_out.observe(camera, {READ: 3} if number % 5 == 0 else {})
    assert fan_out.crops(camera.id, READ) == 3
    assert fan_out.crops(camera.id, CHECK) == 0
    assert 0 < fan_out.mean_crops(camera.id, READ) < 1
    fan_out.forget(camera.id)
    assert fan_out.crops(camera.id, READ) == 0
    fan_out.observe(camera_with(None), {READ: 3})
    assert fan_out.crops(camera.id, READ) == 0


@given(st.integers(-50, 200))
def test_every_deadline_is_earlier_by_the_reserve(reserve_ms: int) -> None:
    frame = request(1, 300, later=[(400, 0.5), (500, 0.2)])
    earlier = with_reserve(frame, reserve_ms * MS)
    by_ms = max(0, reserve_ms)
    assert earlier == request(1, 300 - by_ms, later=[(400 - by_ms, 0.5), (500 - by_ms, 0.2)])


@pytest.mark.parametrize(
    ("deadline_ms", "crops"), [(300, 0), (300, 2), (300, 50), (20, 2), (9, 50)]
)
def test_the_policy_sees_the_deadline_less_what_is_left_of_the_reserve(
    deadline_ms: int, crops: int
) -> None:
    bench, camera = Bench(), camera_with(CHAIN)
    bench(CameraConnected(camera), 0)
    fan_out = learned(bench, camera, {READ: crops})
    frame = request(1, deadline_ms)
    admission, times = bench.scheduler.admission, bench.scheduler.times
    variant = name(128)
    seen = admission.for_policy(frame, variant, 0)
    alone = times.expectations.single_request(variant, frame.app)
    assert alone is not None
    left_ns = frame.deadline_ns - times.calibration.prepare_ns - round(alone.usual_ns)
    reserve_ns = min(fan_out.remaining_ns(camera, FIND), max(0, left_ns))
    assert seen.deadline_ns == frame.deadline_ns - reserve_ns
    assert replace(seen, deadline_ns=frame.deadline_ns) == frame


def test_a_frame_that_waited_until_its_crops_would_be_late_does_not_run() -> None:
    def outcome(crops: int) -> list[object]:
        parameters = SchedulerParameters(
            first_pixels_max=LARGE, frame_admission=FrameAdmissionRule.NONE
        )
        bench, camera = Bench([profile(320)], parameters), camera_with(CHAIN)
        bench(CameraConnected(camera), 0)
        learned(bench, camera, {READ: crops})
        for frame in (request(1, 500), request(2, 100)):  # the first one keeps the executor busy
            bench(RequestArrived(frame), 0)
            bench(RequestPrepared(frame.id, MS), 1)
        return list(bench(None, 80))

    assert not any(isinstance(a, Drop) for a in outcome(0))
    assert outcome(4) == [Drop(request(2, 100).id, DropReason.QUEUE, Cause.EXPIRED)]


def chosen(bench: Bench, own: int | None, deadline_ms: float) -> object:
    """Return what a crop is admitted to whose stage has this largest variant."""
    of = pipeline(stage("find"), stage("read", "find", variant=None if own is None else name(own)))
    bench(CameraConnected(camera_with(of)), 0)
    frame = request(1, deadline_ms)
    bench.scheduler._ledger.joins.open(frame, BatchId(1), of)
    crop = replace(request(2, deadline_ms), frame=FrameId(frame.id), stage=READ)
    bench.scheduler._ledger.joins.spawned([crop])
    return bench.scheduler.admission.choose(crop, 0)


def test_a_crop_runs_on_the_largest_variant_of_its_stage_that_is_in_time() -> None:
    assert chosen(Bench(), None, 300) == name(608)
    assert chosen(Bench(), 320, 300) == name(320)
    assert chosen(Bench(), 320, 14) == name(256)
    assert chosen(Bench(), 320, 7) == name(128)
    assert chosen(Bench(), 320, 1) is DropReason.INFEASIBLE


def test_a_stage_whose_variant_is_not_loaded_has_the_next_smaller_one() -> None:
    loaded = [profile(px) for px in (256, 608)]
    assert chosen(Bench(loaded), 320, 300) == name(256)
    assert chosen(Bench(loaded), 128, 300) == name(256)
    unknown = Bench(loaded)
    unknown(VariantsAvailable(FAMILY[3:]), 0)
    assert chosen(unknown, 320, 300) == name(608)
    assert fan_out_of(unknown).top_variant(stage("read", "find")) == name(608)


def test_the_first_frame_of_a_camera_fills_the_window() -> None:
    bench, camera = Bench(), camera_with(CHAIN)
    fan_out = fan_out_of(bench)
    fan_out.observe(camera, {READ: 3})
    assert fan_out.crops(camera.id, READ) == fan_out.mean_crops(camera.id, READ) == 3
    fan_out.observe(camera, {READ: 3})
    assert fan_out.mean_crops(camera.id, READ) == 3


def test_crops_are_proven_by_a_window_of_frames() -> None:
    bench, camera = Bench(), camera_with(CHAIN)
    fan_out = fan_out_of(bench)
    assert fan_out.proven_crops(camera.id, READ) == 0
    for seen in range(1, FAN_OUT_WINDOW + 1):
        fan_out.observe(camera, {READ: 4})
        assert fan_out.proven_crops(camera.id, READ) == 4 * seen / FAN_OUT_WINDOW
    fan_out.observe(camera, {READ: 4})
    assert fan_out.proven_crops(camera.id, READ) == 4
    fan_out.forget(camera.id)
    assert fan_out.proven_crops(camera.id, READ) == 0


def test_another_pipeline_of_a_camera_begins_without_what_the_old_one_taught() -> None:
    other = pipeline(stage("find"), stage("read", "find"))
    bench, camera = Bench(), camera_with(CHAIN)
    bench(CameraConnected(camera), 0)
    frame = request(1, 300)
    bench(RequestArrived(frame), 0)
    (infer,) = infers(bench(RequestPrepared(frame.id, MS), 1))
    fan_out = learned(bench, camera, {READ: 5})
    bench(CameraChanged(camera_with(CHAIN, slo_ms=250)), 2)
    assert fan_out.crops(camera.id, READ) == 5
    changed = camera_with(other)
    bench(CameraChanged(changed), 2)
    assert fan_out.crops(camera.id, READ) == 0
    bench(BatchCompleted(CPU, infer.batch, 40 * MS), 50)  # of the old pipeline, and no crops
    admission = bench.scheduler.admission
    learned(bench, changed, {READ: 5})
    of_old = replace(frame, frame=FrameId(9), stage=READ)
    assert admission.for_policy(of_old, name(128), 0) == of_old
    assert admission.for_policy(request(2, 300), name(128), 0).deadline_ns < 300 * MS


def test_a_frame_of_a_pipeline_that_its_camera_has_no_more_teaches_nothing() -> None:
    bench, camera = Bench(), camera_with(CHAIN)
    bench(CameraConnected(camera), 0)
    frame = request(1, 300)
    bench(RequestArrived(frame), 0)
    (infer,) = infers(bench(RequestPrepared(frame.id, MS), 1))
    other = camera_with(pipeline(stage("find"), stage("read", "find")))
    bench(CameraChanged(other), 2)
    bench(BatchCompleted(CPU, infer.batch, 40 * MS, crops(frame, READ, [2, 3], 50)), 50)
    (last,) = infers(bench(CropsPrepared((RequestId(2), RequestId(3))), 52))
    bench(BatchCompleted(CPU, last.batch, 40 * MS), 100)
    assert fan_out_of(bench).crops(camera.id, READ) == 0
