"""Counts, windows and quantiles, judged by lists of all that happened."""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.requests import CameraId, DropReason, Outcome
from edgebox.runtime.frame_metrics import WINDOW_S, CameraMetrics, Counts, Metrics
from edgebox.runtime.frames import Answer, FrameResult, PendingFrame, note_refusal
from edgebox.storage.periods import CLASS_FRAMES
from edgebox.vision.detections import Detections
from tests.runtime.endings import MS, SECOND, answer, refusal
from tests.scheduling.pipelines import CHECK, READ, crops
from tests.scheduling.scene import request

ENDINGS: list[FrameResult] = [
    answer(Outcome.ON_TIME),
    answer(Outcome.ON_TIME, "street-608", ms=40, mismatched=True),
    answer(Outcome.LATE, ms=90, mismatched=True),
    answer(Outcome.LATE, ms=50, utility=0.25),
    refusal(DropReason.QUEUE),
    refusal(DropReason.INVALID),
    refusal(DropReason.DEPARTED),
]


@dataclass(frozen=True)
class Step:
    """After a while a frame is captured, others before it were skipped, others end."""

    wait_ns: int
    skipped: int
    accepted: bool
    ending: FrameResult | None
    """How the oldest pending frame ends; None: none ends."""


STEPS = st.lists(
    st.builds(
        Step,
        st.integers(0, 9 * SECOND),
        st.integers(0, 3),
        st.booleans(),
        st.none() | st.sampled_from(ENDINGS),
    ),
    max_size=60,
)


class Metered:
    """Metrics under test beside a list of all that they count."""

    def __init__(self, steps: list[Step]) -> None:
        self.metrics = CameraMetrics()
        self.now_ns = 1_000 * SECOND
        self.captures: list[tuple[int, int, int]] = []
        self.accepts: list[int] = []
        self.endings: list[tuple[int, FrameResult]] = []
        for step in steps:
            self._take(step)

    def _take(self, step: Step) -> None:
        self.now_ns += step.wait_ns
        self.metrics.captured(1 + step.skipped, step.skipped, self.now_ns)
        self.captures.append((self.now_ns, 1 + step.skipped, step.skipped))
        if step.accepted:
            self.metrics.accepted(self.now_ns)
            self.accepts.append(self.now_ns)
        if step.ending is not None:
            self.metrics.ended(step.ending, self.now_ns)
            self.endings.append((self.now_ns, step.ending))

    def counts(self, since_s: int = 0) -> Counts:
        """Count by hand what happened in this second of the clock or later."""
        counts = Counts()
        for at_ns, frames, skipped in self.captures:
            if at_ns // SECOND >= since_s:
                counts.captured += frames
                counts.dropped["sender"] += skipped
        counts.accepted = sum(at_ns // SECOND >= since_s for at_ns in self.accepts)
        for at_ns, ending in self.endings:
            if at_ns // SECOND < since_s:
                continue
            if not isinstance(ending, Answer):
                counts.dropped[ending.reason.value] += 1
                continue
            counts.mismatches += ending.mismatched
            if ending.outcome is Outcome.ON_TIME:
                counts.on_time += 1
            else:
                counts.late += 1
                counts.utility_late += ending.utility
        counts.dropped = +counts.dropped
        return counts


@given(STEPS)
def test_every_captured_frame_has_ended_or_is_pending(steps: list[Step]) -> None:
    calls = Metered(steps)
    counts = calls.metrics.counts
    assert counts == calls.counts()
    assert counts.pending == len(steps) - len(calls.endings)
    ended = counts.on_time + counts.late + sum(counts.dropped.values())
    assert counts.captured == ended + counts.pending
    answers = [ending for _, ending in calls.endings if isinstance(ending, Answer)]
    assert counts.utility == sum(ending.utility for ending in answers)


@given(STEPS, st.integers(0, 100 * SECOND))
def test_the_window_is_the_last_minute(steps: list[Step], later_ns: int) -> None:
    calls = Metered(steps)
    now_ns = calls.now_ns + later_ns
    assert calls.metrics.window(now_ns) == calls.counts(since_s=now_ns // SECOND - WINDOW_S + 1)


@given(STEPS)
def test_seconds_that_are_over_are_forgotten(steps: list[Step]) -> None:
    assert len(Metered(steps).metrics._seconds) <= WINDOW_S


@given(STEPS, st.integers(0, 3 * SECOND))
def test_the_rate_counts_whole_seconds_only(steps: list[Step], later_ns: int) -> None:
    calls = Metered(steps)
    now_ns = calls.now_ns + later_ns
    this = now_ns // SECOND
    answered = [
        at_ns
        for at_ns, ending in calls.endings
        if isinstance(ending, Answer) and this - 5 <= at_ns // SECOND < this
    ]
    assert calls.metrics.frames_per_s(now_ns) == len(answered) / 5


@given(STEPS, st.integers(1, WINDOW_S))
def test_latencies_are_those_of_the_window(steps: list[Step], window_s: int) -> None:
    calls = Metered(steps)
    kept = [
        ending.timing
        for at_ns, ending in calls.endings
        if isinstance(ending, Answer) and at_ns > calls.now_ns - window_s * SECOND
    ]
    found = calls.metrics.latency_ms(calls.now_ns, {"p50": 0.5, "p99": 0.99}, window_s)
    if not kept:
        assert found is None
        return
    assert found is not None
    for name, q in (("p50", 0.5), ("p99", 0.99)):
        totals = [timing.total_ns / MS for timing in kept]
        assert found[name]["total"] == pytest.approx(float(np.quantile(totals, q)), abs=0.01)
        network = [timing.network_ns / MS for timing in kept]
        assert found[name]["network"] == pytest.approx(float(np.quantile(network, q)), abs=0.01)


def test_a_fast_camera_keeps_its_newest_samples() -> None:
    metrics = CameraMetrics()
    for number in range(5_000):
        metrics.ended(answer(ms=1 if number < 904 else 2), SECOND)
    found = metrics.latency_ms(SECOND, {"p0": 0.0, "p100": 1.0})
    assert found is not None
    assert found["p0"]["total"] == found["p100"]["total"] == 20


def test_news_are_taken_once() -> None:
    metrics = CameraMetrics()
    for ending in (answer(), answer(), answer(variant="street-608"), refusal()):
        metrics.ended(ending, 0)
    assert metrics.has_updates
    ((second, news),) = metrics.take_updates()
    assert second == 0
    assert news.variants == {"street-256": 2, "street-608": 1}
    assert (news.on_time, news.dropped) == (3, {"queue": 1})
    assert news.latencies.sum() == 5 * 3
    assert not metrics.has_updates
    assert metrics.take_updates() == []


def test_objects_are_counted_by_class_over_the_frames_that_were_answered() -> None:
    def found(*seen: tuple[int, float]) -> FrameResult:
        boxes = np.zeros((len(seen), 4), np.float32)
        scores = np.array([score for _, score in seen], np.float32)
        labels = np.array([label for label, _ in seen], np.int64)
        return replace(answer(), detections=Detections(boxes, scores, labels))

    metrics = CameraMetrics()
    for ending in (found((0, 0.9), (0, 0.3), (1, 0.29)), found((1, 0.8)), found(), refusal()):
        metrics.ended(ending, 0, ("person", "car"))
    ((_, news),) = metrics.take_updates()
    assert news.classes == {CLASS_FRAMES: 3, "person": 2, "car": 1}


def test_news_are_told_by_the_second_in_which_they_were_counted() -> None:
    metrics = CameraMetrics()
    for second in (3, 3, 5):
        metrics.captured(1, 0, second * SECOND)
        metrics.received(1_000, None)
        metrics.ended(answer(), second * SECOND + 1)
    news = dict(metrics.take_updates())
    assert {at: period.captured for at, period in news.items()} == {3: 2, 5: 1}
    assert {at: period.on_time for at, period in news.items()} == {3: 2, 5: 1}
    assert {at: period.received_bytes for at, period in news.items()} == {3: 2_000, 5: 1_000}
    assert {at: period.latencies.sum() for at, period in news.items()} == {3: 10, 5: 5}


def test_news_that_nobody_takes_stay_few_and_whole() -> None:
    metrics = CameraMetrics()
    for second in range(500):
        metrics.captured(1, 0, second * SECOND)
    news = metrics.take_updates()
    assert len(news) <= 60
    assert sum(period.captured for _, period in news) == 500


@given(st.lists(STEPS, max_size=4))
def test_the_total_is_the_sum_of_the_cameras(cameras: list[list[Step]]) -> None:
    metrics = Metrics()
    sums: Counter[str] = Counter()
    for number, steps in enumerate(cameras):
        calls = Metered(steps)
        metrics.cameras[CameraId(str(number))] = calls.metrics
        sums.update(captured=calls.counts().captured, pending=calls.counts().pending)
    total = metrics.total()
    assert (total.captured, total.pending) == (sums["captured"], sums["pending"])


def test_a_forgotten_camera_stays_in_the_total() -> None:
    metrics = Metrics()
    metrics.of(CameraId("gate")).captured(3, 3, 0)
    metrics.forget(CameraId("gate"))
    metrics.forget(CameraId("never seen"))
    assert CameraId("gate") not in metrics.cameras
    metrics.of(CameraId("gate")).captured(1, 1, 0)
    for _ in range(2):
        assert metrics.total().captured == 4
    assert metrics.of(CameraId("gate")).counts.captured == 1


def test_what_a_forgotten_camera_counted_last_is_taken_once() -> None:
    metrics = Metrics()
    for second in range(3 * WINDOW_S):
        metrics.of(CameraId("gate")).captured(1, 1, second * SECOND)
        metrics.forget(CameraId("gate"))
    taken = metrics.take_forgotten()
    assert len(taken) == WINDOW_S, "as for a camera whose figures nobody takes"
    assert sum(period.captured for _, period in taken) == 3 * WINDOW_S
    assert metrics.take_forgotten() == []


def test_a_camera_keeps_its_numbers() -> None:
    metrics = Metrics()
    metrics.of(CameraId("gate")).captured(1, 0, 0)
    assert metrics.of(CameraId("gate")).counts.captured == 1
    assert metrics.of(CameraId("door")).counts.captured == 0


@given(STEPS, st.integers(0, 60))
def test_minus_is_what_came_since(steps: list[Step], at: int) -> None:
    earlier = Metered(steps[:at]).metrics.counts
    frozen = earlier.copy()
    later = Metered(steps).metrics.counts
    since = later.minus(frozen)
    since.add(frozen)
    assert since == later
    assert frozen == earlier


@pytest.mark.parametrize(
    ("ending", "reason"),
    [
        (refusal(DropReason.DEPARTED), "departed"),
        (answer(Outcome.ON_TIME), "queue"),
    ],
)
def test_a_crop_that_outlives_its_frame_counts_with_the_frames_reason(
    ending: FrameResult, reason: str
) -> None:
    """Its camera left, or its frame was answered without it."""
    of = request(1, 300)
    frame, refused, runs, nested = (
        PendingFrame(each, b"", 64, 64, 0, note_refusal)
        for each in (of, *crops(of, READ, [2, 3], 50), *crops(of, CHECK, [4], 60))
    )
    frame.crops += [refused, runs]
    runs.crops.append(nested)
    note_refusal(refused, refusal(DropReason.INFEASIBLE))
    metrics = CameraMetrics()
    metrics.crops_ended(frame, ending)
    assert metrics.crops[READ].dropped == {"infeasible": 1, reason: 1}
    assert metrics.crops[CHECK].dropped == {reason: 1}
