"""Which frames of pipelines are refused on arrival: by the work at the box, sparse ones first."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.model_family import VariantName
from edgebox.domain.pipelines import StageName
from edgebox.domain.plans import Assignment, Plan
from edgebox.domain.requests import Camera, CameraId, DropReason, Request
from edgebox.scheduling.actions import Drop, Prepare
from edgebox.scheduling.events import (
    CameraChanged,
    CameraConnected,
    CameraDisconnected,
    PlanComputed,
    RequestArrived,
    RequestPrepared,
)
from edgebox.scheduling.fan_out import FAN_OUT_WINDOW
from edgebox.scheduling.frame_admission import PRICE_HALF_LIFE_NS, UNSEEN_NS, FrameAdmission
from edgebox.scheduling.request_stages import Cause
from edgebox.scheduling.scheduler_parameters import FrameAdmissionRule, SchedulerParameters
from tests.scheduling.pipelines import READ, camera_with, pipeline, stage
from tests.scheduling.scene import LARGE, MEDIAN_MS, MS, Bench, name, profile, request
from tests.scheduling.scene import camera as a_camera

TWO = pipeline(stage("find"), stage("read", "find", variant=name(128)))
SPARSE, DENSE = CameraId("gate-1"), CameraId("gate-2")
S = 1_000_000_000
FRAMES_MAX = 80


def box(rule: FrameAdmissionRule = FrameAdmissionRule.DENSITY) -> Bench:
    """Return a box with a dense and a sparse camera; crops cost less than pictures."""
    parameters = SchedulerParameters(
        first_pixels_max=LARGE, frame_admission=rule, camera_pending_max=FRAMES_MAX
    )
    bench = Bench([profile(128), profile(320)], parameters)
    for camera in (SPARSE, DENSE):
        connect(bench, camera)
    return bench


def connect(bench: Bench, camera: CameraId) -> Camera:
    connected = replace(camera_with(TWO), id=camera)
    bench(CameraConnected(connected), bench.scheduler._now_ns / MS)
    crops = {READ: 8 if camera == DENSE else 0}
    for _ in range(FAN_OUT_WINDOW):
        bench.scheduler.admission._fan_out.observe(connected, crops)
    return connected


def admission_of(bench: Bench) -> FrameAdmission:
    return bench.scheduler.admission._frames


def frame(number: int, camera: CameraId, at_ms: float, left_ms: float) -> Request:
    """Return a frame that arrives at an instant with so much time left."""
    at_ns = round(at_ms * MS)
    return replace(
        request(number, 0),
        camera=camera,
        captured_ns=at_ns,
        arrival_ns=at_ns,
        deadline_ns=at_ns + round(left_ms * MS),
    )


def refused(bench: Bench, of: Request) -> bool:
    actions = bench(RequestArrived(of), of.arrival_ns / MS)
    return Drop(of.id, DropReason.OVERLOAD, Cause.REFUSED) in actions


def taken_until_refused(bench: Bench, camera: CameraId, left_ms: float) -> int:
    """Return how many frames of one instant a camera can send until one is refused."""
    return next(
        count for count in range(FRAMES_MAX) if refused(bench, frame(count + 1, camera, 1, left_ms))
    )


def test_a_frame_is_refused_when_its_crops_could_not_be_answered_as_well() -> None:
    few = taken_until_refused(box(), DENSE, 290)
    many = taken_until_refused(box(), SPARSE, 290)
    assert 0 < few < many


def test_without_the_rule_only_the_limit_of_waiting_frames_counts() -> None:
    bench = box(FrameAdmissionRule.NONE)
    for number in range(FRAMES_MAX):
        assert not refused(bench, frame(number + 1, DENSE, 1, 290))


def brute_force_ns(
    work: Mapping[VariantName, float], times_ns: Mapping[VariantName, Sequence[tuple[int, float]]]
) -> float:
    """Return the time of the fewest batches, counted one by one."""
    total_ns = 0.0
    for variant, number in work.items():
        by_size, left = times_ns[variant], number
        while left > by_size[-1][0]:
            total_ns += by_size[-1][1]
            left -= by_size[-1][0]
        if left > 0:
            took_ns = next(took for size, took in by_size if size >= left)
            total_ns += took_ns * min(1.0, left)
    return total_ns


@given(st.dictionaries(st.sampled_from([name(px) for px in MEDIAN_MS]), st.integers(0, 400)))
def test_work_takes_the_time_of_the_fewest_batches(work: dict[VariantName, float]) -> None:
    admission = admission_of(Bench())
    latencies = admission._times.latencies
    times_ns = {}
    for variant in work:
        row = latencies.best(variant)
        assert row is not None
        times_ns[variant] = list(zip(row.sizes, map(float, row.median_ns), strict=True))
    assert admission._takes_ns(work) == pytest.approx(brute_force_ns(work, times_ns))


def test_a_camera_that_has_stopped_sending_keeps_no_other_back() -> None:
    bench = box()
    for number, camera in enumerate((SPARSE, DENSE), start=1):
        assert not refused(bench, frame(number, camera, 1, 290))
    admission = admission_of(bench)
    admission.incomplete(1 * MS)
    silent_ns = 1 * MS + UNSEEN_NS
    # The sparse camera goes on sending, the dense one does not.
    admission._taken_ns[SPARSE] = silent_ns - 1
    assert admission._share(SPARSE, silent_ns - 1) < 1
    assert admission._share(SPARSE, silent_ns) == 1


@given(st.floats(0, 60), st.booleans())
def test_the_share_of_a_frame_falls_with_overload_and_comes_back(
    since_s: float, overloaded: bool
) -> None:
    bench = box()
    for number, camera in enumerate((SPARSE, DENSE)):
        assert not refused(bench, frame(number + 1, camera, 1, 290))
    admission = admission_of(bench)
    now_ns = 100 * S
    for camera in (SPARSE, DENSE):  # both were seen a moment ago
        admission._taken_ns[camera] = now_ns
    if overloaded:
        admission.incomplete(now_ns - round(since_s * S))
    shares = [admission._share(camera, now_ns) for camera in (SPARSE, DENSE)]
    assert shares[1] == 1
    lost = 1 - admission._density[SPARSE] / admission._density[DENSE]
    price = 0.5 ** (since_s * S / PRICE_HALF_LIFE_NS) if overloaded else 0
    assert shares[0] == pytest.approx(1 - price * lost)
    assert 0 < shares[0] <= 1


def test_under_overload_the_sparse_frames_are_refused_first() -> None:
    bench = box()
    assert taken_until_refused(bench, DENSE, 290) > 0  # the last one makes the box overloaded
    assert not refused(bench, frame(90, SPARSE, 1, 400)), "it was never seen before"
    assert refused(bench, frame(91, SPARSE, 2, 290))
    assert not refused(bench, frame(92, DENSE, 2, 700))


def test_an_empty_scene_is_looked_at_once_a_second_even_then() -> None:
    bench = box()
    assert taken_until_refused(bench, DENSE, 290) > 0
    admission = admission_of(bench)
    bench(RequestArrived(frame(90, SPARSE, 1, 400)), 1)
    assert admission._share(SPARSE, MS + UNSEEN_NS - 1) < 1
    assert admission._share(SPARSE, MS + UNSEEN_NS) == 1


def test_a_camera_that_leaves_no_longer_counts() -> None:
    bench = box()
    for number, camera in enumerate((SPARSE, DENSE)):
        assert not refused(bench, frame(number + 1, camera, 1, 290))
    bench(CameraDisconnected(DENSE), 2)
    admission = admission_of(bench)
    admission.incomplete(2 * MS)
    assert admission._share(SPARSE, 2 * MS) == 1
    assert set(admission._density) == {SPARSE}


def test_a_camera_whose_pipeline_was_taken_away_no_longer_counts() -> None:
    bench = box()
    for number, camera in enumerate((SPARSE, DENSE)):
        assert not refused(bench, frame(number + 1, camera, 1, 290))
    bench(CameraChanged(replace(camera_with(None), id=DENSE)), 2)
    admission = admission_of(bench)
    admission.incomplete(2 * MS)
    assert admission._share(SPARSE, 2 * MS) == 1
    assert set(admission._density) == set(admission._crops) == {SPARSE}


def test_a_frame_that_expires_is_a_sign_of_overload() -> None:
    bench = box()
    assert not refused(bench, frame(1, DENSE, 1, 290))  # it waits for its decoding until too late
    admission = admission_of(bench)
    assert admission._overloaded_ns is None
    bench(RequestPrepared(frame(1, DENSE, 1, 290).id, MS), 300)
    assert admission._overloaded_ns == 300 * MS


def test_other_cameras_are_not_concerned() -> None:
    bench = Bench([profile(320)], SchedulerParameters(first_pixels_max=LARGE))
    bench(CameraConnected(camera_with(None)), 0)
    for number in range(bench.scheduler.parameters.camera_pending_max):
        of = frame(number + 1, camera_with(None).id, 1, 290)
        assert not refused(bench, of)
    assert StageName("read") == READ


def promised(bench: Bench, served: CameraId, waiting: CameraId) -> None:
    """Plan half of the executors' time for a camera, and next to nothing for another."""
    for camera in (served, waiting):
        bench(CameraConnected(a_camera(camera, 400)), 0)
    given = {
        served: Assignment(served, name(128), 10.0, 85, served=True, reason=""),
        waiting: Assignment(waiting, name(128), 1e-9, 85, served=False, reason=""),
    }
    bench(PlanComputed(Plan(0, given, 0.5)), 0)


def test_frames_that_no_plan_promises_anything_take_only_the_time_that_plans_leave() -> None:
    served, waiting, newcomer = map(CameraId, ("served", "waiting", "newcomer"))
    bench = Bench([profile(128)], SchedulerParameters(camera_pending_max=FRAMES_MAX))
    promised(bench, served, waiting)
    assert bench.scheduler._adaptation.promised_share == pytest.approx(0.5)
    bench(CameraConnected(a_camera(newcomer, 400)), 0)
    left_ms = 400.0
    taken = [
        not refused(bench, frame(at, camera, 1, left_ms))
        for at, camera in enumerate([waiting, newcomer] * FRAMES_MAX, start=1)
    ]
    count = sum(taken)
    assert all(taken[:count]), "both share the time that is left, first come first served"
    takes_ms = MEDIAN_MS[128] * count
    assert 0.3 * left_ms < takes_ms < 0.5 * left_ms
    frames = [frame(1000 + at, served, 1, left_ms) for at in range(20)]
    assert not any(refused(bench, each) for each in frames), "what is promised is taken"


def test_one_frame_of_a_camera_without_a_plan_is_always_taken() -> None:
    served, waiting = CameraId("served"), CameraId("waiting")
    bench = Bench([profile(128)])
    promised(bench, served, waiting)
    short_ms = admission_of(bench)._times.calibration.prepare_ns / MS + 2.5 * MEDIAN_MS[128]

    def taken(number: int, at_ms: float) -> bool:
        arrived = RequestArrived(frame(number, waiting, at_ms, short_ms))
        return any(isinstance(action, Prepare) for action in bench(arrived, at_ms))

    assert taken(1, 1), "more than half of its time, but nobody else waits"
    assert not taken(2, 1)
    bench(CameraDisconnected(waiting), 2)
    bench(CameraConnected(a_camera(waiting, 400)), 2)
    assert taken(3, 2), "what has ended counts no more"
