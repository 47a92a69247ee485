"""Which events happen: one camera's class at a time, by rules, and what looks find."""

import itertools
from collections import defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.model_family import ExecutorId
from edgebox.domain.notifications import Notification, NotificationType
from edgebox.domain.requests import CameraId
from edgebox.notifications.attainment import AttainmentRule
from edgebox.notifications.event_detector import (
    CameraFacts,
    DetectionRule,
    EventDetector,
    ExecutorFacts,
)
from edgebox.vision.detections import Detections

LABELS = ("person", "car", "bus")
SLO = AttainmentRule(window_ns=100, breached_below=0.8, recovered_from=0.9, frames_min=5)
RULE = DetectionRule(score_min=0.5, hold_ns=50, interval_ns=80)
GATE, YARD = CameraId("gate"), CameraId("yard")
UP, DOWN = CameraFacts(True), CameraFacts(False, "said bye")


def detections(*rows: tuple[int, float]) -> Detections:
    """Return detections of (label, score); the n-th box is n px wide."""
    return Detections(
        np.array([(0, 0, n + 1, 9) for n in range(len(rows))], np.float32).reshape(-1, 4),
        np.array([score for _, score in rows], np.float32),
        np.array([label for label, _ in rows], np.int64),
    )


def test_an_appearance_tells_the_best_of_its_frame() -> None:
    watch = EventDetector([RULE], SLO)
    found = detections((0, 0.625), (1, 0.25), (0, 0.875))
    watch.look({GATE: UP}, 0)
    (event,) = watch.answered(GATE, found, LABELS, captured_ns=7, now_ns=10)
    assert (event.kind, event.at_ns, event.camera, event.label) == (
        NotificationType.DETECTION, 7, GATE, "person",
    )  # fmt: skip
    assert event.details == {"count": 2, "score": 0.875, "box": [0, 0, 3, 9]}
    assert watch.answered(GATE, detections((0, 1.0)), LABELS, 17, 20) == []
    assert watch.counts(GATE, 20) == {"person": 2}
    assert watch.counts(GATE, 61) == {"person": 1}
    (event,) = watch.look({GATE: UP}, 90)
    assert (event.kind, event.at_ns, event.label) == (
        NotificationType.DETECTION_ENDED,
        90,
        "person",
    )
    assert event.details == {"count_max": 2, "score_max": 1.0, "seen_ms": 0}
    assert watch.counts(GATE, 90) == {"person": 0}


def test_an_appearance_has_the_attributes_of_the_best_of_its_frame() -> None:
    watch = EventDetector([RULE], SLO)
    found = detections((0, 0.625), (0, 0.875))
    red, blue = ({"colour": {"label": label, "score": 0.5}} for label in ("red", "blue"))
    watch.look({GATE: UP}, 0)
    (event,) = watch.answered(GATE, found, LABELS, 7, 10, attributes={0: red, 1: blue})
    assert event.details["attributes"] == blue
    (event,) = watch.answered(YARD, found, LABELS, 7, 10, attributes={0: red})[1:]
    assert "attributes" not in event.details


def test_the_first_rule_that_fits_a_camera_counts() -> None:
    gates = DetectionRule(("gate*",), ("person", "bus"), 0.75, 50, 80)
    watch = EventDetector([gates, DetectionRule(("yard",))], SLO)
    watch.look({CameraId("gate-2"): UP, YARD: UP, CameraId("roof"): UP}, 0)
    found = detections((0, 0.625), (1, 1.0), (2, 0.75))
    assert [e.label for e in watch.answered(CameraId("gate-2"), found, LABELS, 0, 0)] == ["bus"]
    assert {e.label for e in watch.answered(YARD, found, LABELS, 0, 0)} == set(LABELS)
    assert watch.answered(CameraId("roof"), found, LABELS, 0, 0) == []
    # Classes that are asked for by name are there before they are seen.
    assert watch.counts(CameraId("gate-2"), 0) == {"person": 0, "bus": 1}
    assert watch.counts(CameraId("roof"), 0) == {}


def test_cameras_come_and_go() -> None:
    watch = EventDetector([], SLO)
    kinds = [
        [event.kind for event in watch.look(facts, at)]
        for at, facts in enumerate(({}, {GATE: UP}, {GATE: UP}, {GATE: DOWN}, {GATE: DOWN}))
    ]
    assert kinds == [[], [NotificationType.CAMERA_UP], [], [NotificationType.CAMERA_DOWN], []]
    watch.look({GATE: UP}, 9)
    (event,) = watch.look({GATE: DOWN}, 10)
    assert event.details == {"reason": "said bye"}
    assert watch.look({GATE: DOWN, YARD: DOWN}, 11) == []


def test_a_camera_is_up_before_anything_is_seen() -> None:
    watch = EventDetector([RULE], SLO)
    found = detections((0, 1.0))
    kinds = [event.kind for event in watch.answered(GATE, found, LABELS, 7, 10)]
    assert kinds == [NotificationType.CAMERA_UP, NotificationType.DETECTION]
    assert watch.look({GATE: UP}, 11) == []


def test_deadlines_are_breached_and_kept_again() -> None:
    watch = EventDetector([], SLO)
    watch.look({GATE: CameraFacts(True, on_time=0, due=0, slo_ms=300.0)}, 0)
    (event,) = watch.look({GATE: CameraFacts(True, on_time=3, due=10, slo_ms=300.0)}, 50)
    assert event.kind is NotificationType.SLO_BREACHED
    assert event.details == {"on_time_share": 0.3, "window_s": 1e-7, "slo_ms": 300.0}
    assert watch.breached(GATE)
    (event,) = watch.look({GATE: CameraFacts(True, on_time=103, due=110)}, 150)
    assert event.kind is NotificationType.SLO_RECOVERED
    assert not watch.breached(GATE)


def test_a_forgotten_camera_sees_nothing_any_more_and_begins_anew() -> None:
    watch = EventDetector([RULE], SLO)
    watch.look({GATE: UP, YARD: DOWN}, 0)
    watch.answered(GATE, detections((0, 1.0)), LABELS, 1, 1)
    ended, down = watch.look({}, 2)
    assert (ended.kind, ended.camera, ended.label, ended.at_ns) == (
        NotificationType.DETECTION_ENDED, GATE, "person", 2,
    )  # fmt: skip
    assert ended.details == {"count_max": 1, "score_max": 1.0, "seen_ms": 0}
    assert (down.kind, down.camera) == (NotificationType.CAMERA_DOWN, GATE)
    assert down.details == {"reason": "it was forgotten"}
    assert watch.counts(GATE, 2) == {}
    assert [event.kind for event in watch.look({GATE: UP}, 3)] == [NotificationType.CAMERA_UP]


def test_what_is_seen_ends_with_the_watch() -> None:
    watch = EventDetector([RULE], SLO)
    watch.look({GATE: UP, YARD: UP}, 0)
    watch.answered(GATE, detections((0, 1.0), (1, 1.0)), LABELS, 1, 1)
    watch.answered(YARD, detections((0, 1.0)), LABELS, 1, 1)
    watch.look({GATE: UP, YARD: UP}, 90)
    watch.answered(GATE, detections((1, 1.0)), LABELS, 91, 91)
    (ended,) = watch.end(100)
    assert (ended.kind, ended.camera, ended.label) == (
        NotificationType.DETECTION_ENDED, GATE, "car",
    )  # fmt: skip
    assert watch.end(101) == []


frames = st.tuples(
    st.integers(0, 40),
    st.sampled_from((GATE, YARD, None)),
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from((0.25, 0.5, 1.0))), max_size=4),
)


@given(steps=st.lists(frames, max_size=60))
def test_begins_and_ends_alternate_and_agree_with_the_counts(
    steps: list[tuple[int, CameraId | None, list[tuple[int, float]]]],
) -> None:
    """Whatever comes: per camera and class an end follows each begin, at a bounded rate."""
    watch = EventDetector([RULE], SLO)
    history: defaultdict[tuple[str | None, str | None], list[tuple[NotificationType, int]]] = (
        defaultdict(list)
    )
    now_ns = 0
    for ahead_ns, camera, rows in steps:
        now_ns += ahead_ns
        if camera is None:
            happened = watch.look({GATE: UP, YARD: DOWN}, now_ns)
        else:
            happened = watch.answered(camera, detections(*rows), LABELS, now_ns, now_ns)
        for event in happened:
            if event.label is not None:
                history[event.camera, event.label].append((event.kind, event.at_ns))
        for of in (GATE, YARD):
            there = {label for label, count in watch.counts(of, now_ns).items() if count}
            expected = {
                label
                for (name, label), events in history.items()
                if name == of and events[-1][0] is NotificationType.DETECTION
            }
            assert there == expected
    for events in history.values():
        kinds = [kind for kind, _ in events]
        assert kinds == [NotificationType.DETECTION, NotificationType.DETECTION_ENDED] * (
            len(kinds) // 2
        ) + ([NotificationType.DETECTION] * (len(kinds) % 2))
        begun = [at_ns for kind, at_ns in events if kind is NotificationType.DETECTION]
        assert all(b - a >= 80 for a, b in itertools.pairwise(begun))


def test_an_executor_that_was_lost_and_is_back_between_two_looks_was_lost_all_the_same() -> None:
    watch, cpu = EventDetector([], AttainmentRule(1_000_000_000, 0.9, 0.95, 1)), ExecutorId("cpu/0")
    assert watch.detect_executors({cpu: ExecutorFacts(0, 0)}, 1) == []
    happened = watch.detect_executors({cpu: ExecutorFacts(2, 2, "it hung")}, 2)
    assert happened == [
        Notification(
            NotificationType.EXECUTOR_LOST, 2, details={"executor": "cpu/0", "reason": "it hung"}
        ),
        Notification(
            NotificationType.EXECUTOR_RECOVERED, 2, details={"executor": "cpu/0", "restarts": 2}
        ),
    ]
    assert watch.detect_executors({cpu: ExecutorFacts(2, 2, "it hung")}, 3) == []
    (lost,) = watch.detect_executors({cpu: ExecutorFacts(3, 2, "it failed")}, 4)
    assert lost.kind is NotificationType.EXECUTOR_LOST


@given(st.lists(st.lists(st.tuples(st.integers(0, 1), st.floats(0, 1, width=32)), max_size=3)))
def test_the_best_frame_scores_most_since_something_appeared(
    frames: list[list[tuple[int, float]]],
) -> None:
    """One frame every 30 ns; a class is gone after 50 ns without it, 80 ns after it came."""
    watch = EventDetector([RULE], SLO)
    watch.look({GATE: UP}, 0)
    best = 0.0
    for number, rows in enumerate(frames):
        now_ns = 30 * number
        happened = watch.answered(GATE, detections(*rows), LABELS, now_ns, now_ns)
        appeared = any(event.kind is NotificationType.DETECTION for event in happened)
        score = max((score for _, score in rows if score >= RULE.score_min), default=0.0)
        expected = appeared or score > best
        assert watch.take_best(GATE) == expected
        assert not watch.take_best(GATE)
        if expected:
            best = score
        assert not appeared or score > 0
