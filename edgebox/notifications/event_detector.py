"""Detects events: objects that appear and leave, cameras, deadlines, executors.

Its input is every answered frame and, about twice a second, the box's counts. Its output is
notifications. Pure: no clock, no I/O.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from edgebox.domain.model_family import ExecutorId
from edgebox.domain.notifications import Notification, NotificationType
from edgebox.domain.requests import CameraId
from edgebox.notifications.attainment import Attainment, AttainmentRule
from edgebox.notifications.presence import Episode, Presence
from edgebox.vision.detections import Detections


@dataclass(frozen=True, slots=True)
class DetectionRule:
    """Which detections make events, on which cameras."""

    cameras: tuple[str, ...] = ()
    """Patterns of names; empty: all cameras."""
    classes: tuple[str, ...] = ()
    """Classes; None: all."""
    score_min: float = 0.5
    hold_ns: int = 5_000_000_000
    interval_ns: int = 10_000_000_000


@dataclass(frozen=True, slots=True)
class CameraFacts:
    """State of a camera at one moment."""

    connected: bool
    left_because: str = ""
    on_time: int = 0
    """Frames on time since the box knows the camera."""
    due: int = 0
    """Frames that have ended and that the plan had asked for."""
    slo_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class ExecutorFacts:
    """State of an executor at one moment."""

    losses: int
    """Losses since the start."""
    restarts: int
    reason: str = ""
    """Reason of the last loss."""


@dataclass(slots=True)
class _Best:
    """The best detection of a class on one frame, and their number."""

    count: int
    score: float
    row: int


@dataclass(slots=True)
class _CameraState:
    rule: DetectionRule | None
    attainment: Attainment
    connected: bool = False
    presences: dict[str, Presence] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)
    """Best score of the current episode, by class."""
    best_score: float = 0.0
    """Best score of any class since one appeared."""
    has_best: bool = False
    """Whether the last frame has that score, and nobody has asked yet."""


class EventDetector:
    """All cameras of a box. Time per frame is O(detections), per update O(cameras x classes)."""

    def __init__(self, rules: Sequence[DetectionRule], attainment: AttainmentRule) -> None:
        """Start without cameras; the first of `rules` that matches a camera applies to it."""
        self._rules = rules
        self._attainment = attainment
        self._cameras: dict[CameraId, _CameraState] = {}
        self._executors: dict[ExecutorId, ExecutorFacts] = {}

    def _of(self, camera: CameraId) -> _CameraState:
        watched = self._cameras.get(camera)
        if watched is None:
            watched = _CameraState(self.rule(camera), Attainment(self._attainment))
            self._cameras[camera] = watched
        return watched

    def rule(self, camera: str) -> DetectionRule | None:
        """Return the rule for a camera; None: its detections make no events."""
        return next((rule for rule in self._rules if matches(camera, rule.cameras)), None)

    def counts(self, camera: CameraId, now_ns: int) -> dict[str, int]:
        """Return the count of each class, 0 for absent classes of the rule."""
        watched = self._of(camera)
        counts = dict.fromkeys(watched.rule.classes if watched.rule else (), 0)
        counts |= {label: p.count(now_ns) for label, p in watched.presences.items()}
        return counts

    def breached(self, camera: CameraId) -> bool:
        """Return whether too few of a camera's frames are answered on time."""
        return self._of(camera).attainment.breached

    # -- frames -------------------------------------------------------------------------------

    def answered(
        self,
        camera: CameraId,
        found: Detections,
        labels: Sequence[str],
        captured_ns: int,
        now_ns: int,
        *,
        attributes: Mapping[int, Mapping[str, Mapping[str, object]]] | None = None,
    ) -> list[Notification]:
        """Process a frame's detections; return notifications.

        Args:
            camera: the frame's camera.
            found: in pixels of the camera's own picture.
            labels: labels of its family, by number.
            captured_ns: when the picture was taken.
            now_ns: monotonic, unlike captures.
            attributes: what classifiers say of objects, by the object's row in `found`.
        """
        if not len(found):
            return []
        watched = self._of(camera)
        if watched.rule is None:
            return []
        happened: list[Notification] = []
        if not watched.connected:  # since the last update
            watched.connected = True
            happened.append(Notification(NotificationType.CAMERA_UP, captured_ns, camera))
        by_class = _by_class(found, labels, watched.rule)
        for label, best in by_class.items():
            presence = watched.presences.get(label)
            if presence is None:
                presence = Presence(watched.rule.hold_ns, watched.rule.interval_ns)
                watched.presences[label] = presence
            happened += _end(camera, watched, label, presence, now_ns)
            if presence.seen(best.count, now_ns):
                watched.scores[label] = best.score
                details: dict[str, object] = {
                    "count": best.count,
                    "score": round(best.score, 3),
                    "box": [round(side, 1) for side in found.boxes[best.row].tolist()],
                }
                if attributes and best.row in attributes:
                    details["attributes"] = attributes[best.row]
                happened.append(
                    Notification(NotificationType.DETECTION, captured_ns, camera, label, details)
                )
            elif best.score > watched.scores[label]:
                watched.scores[label] = best.score
        appeared = any(event.kind is NotificationType.DETECTION for event in happened)
        best_score = max((best.score for best in by_class.values()), default=0.0)
        watched.has_best = appeared or best_score > watched.best_score
        if watched.has_best:
            watched.best_score = best_score
        return happened

    def take_best(self, camera: CameraId) -> bool:
        """Return whether the camera's last frame is the best of a sighting so far; once a frame.

        The first on which a class appears is, then each with an object that scores more.
        """
        watched = self._of(camera)
        best, watched.has_best = watched.has_best, False
        return best

    # -- everything else ----------------------------------------------------------------------

    def look(self, cameras: Mapping[CameraId, CameraFacts], now_ns: int) -> list[Notification]:
        """Compare the cameras' states with the previous ones; return notifications.

        Cameras that are missing are forgotten.
        """
        happened: list[Notification] = []
        for gone in [camera for camera in self._cameras if camera not in cameras]:
            happened += self._forget(gone, now_ns)
        for camera, facts in cameras.items():
            watched = self._of(camera)
            if facts.connected and not watched.connected:
                happened.append(Notification(NotificationType.CAMERA_UP, now_ns, camera))
            for label, presence in watched.presences.items():
                happened += _end(camera, watched, label, presence, now_ns)
            happened += self._deadlines(camera, watched.attainment, facts, now_ns)
            if watched.connected and not facts.connected:
                why = {"reason": facts.left_because}
                happened.append(
                    Notification(NotificationType.CAMERA_DOWN, now_ns, camera, details=why)
                )
            watched.connected = facts.connected
        return happened

    def _forget(self, camera: CameraId, now_ns: int) -> Iterator[Notification]:
        watched = self._cameras.pop(camera)
        yield from _cut_off(camera, watched, now_ns)
        if watched.connected:  # at the last look
            why = {"reason": "it was forgotten"}
            yield Notification(NotificationType.CAMERA_DOWN, now_ns, camera, details=why)

    def end(self, now_ns: int) -> list[Notification]:
        """End what is seen now, since nobody looks any more; return notifications."""
        return [
            ended
            for camera, watched in self._cameras.items()
            for ended in _cut_off(camera, watched, now_ns)
        ]

    def detect_executors(
        self, executors: Mapping[ExecutorId, ExecutorFacts], now_ns: int
    ) -> list[Notification]:
        """Compare the executors' states with the previous ones; return notifications.

        An executor that was lost and restarted between two updates counts as lost.
        """
        happened: list[Notification] = []
        for executor, facts in executors.items():
            before = self._executors.get(executor, ExecutorFacts(0, 0))
            if facts.losses > before.losses:
                why = {"executor": executor, "reason": facts.reason}
                happened.append(Notification(NotificationType.EXECUTOR_LOST, now_ns, details=why))
            if facts.restarts > before.restarts:
                back = {"executor": executor, "restarts": facts.restarts}
                happened.append(
                    Notification(NotificationType.EXECUTOR_RECOVERED, now_ns, details=back)
                )
            self._executors[executor] = facts
        return happened

    def _deadlines(
        self, camera: CameraId, attainment: Attainment, facts: CameraFacts, now_ns: int
    ) -> Iterator[Notification]:
        if not attainment.look(facts.on_time, facts.due, now_ns):
            return
        assert attainment.share is not None
        details = {
            "on_time_share": round(attainment.share, 4),
            "window_s": self._attainment.window_ns / 1e9,
            "slo_ms": facts.slo_ms,
        }
        kind = (
            NotificationType.SLO_BREACHED if attainment.breached else NotificationType.SLO_RECOVERED
        )
        yield Notification(kind, now_ns, camera, details=details)


def matches(name: str, patterns: Sequence[str]) -> bool:
    """Return whether a pattern matches, or there are none."""
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def _by_class(found: Detections, labels: Sequence[str], rule: DetectionRule) -> dict[str, _Best]:
    best: dict[str, _Best] = {}
    for row, (score, number) in enumerate(
        zip(found.scores.tolist(), found.labels.tolist(), strict=True)
    ):
        if score < rule.score_min:
            continue
        label = labels[number]
        if rule.classes and label not in rule.classes:
            continue
        known = best.get(label)
        if known is None:
            best[label] = _Best(1, score, row)
            continue
        known.count += 1
        if score > known.score:
            known.score, known.row = score, row
    return best


def _end(
    camera: CameraId, watched: _CameraState, label: str, presence: Presence, now_ns: int
) -> list[Notification]:
    """Return the notification of an episode that is over, if it is."""
    return _told(camera, watched, label, presence.ended(now_ns), now_ns)


def _cut_off(camera: CameraId, watched: _CameraState, now_ns: int) -> Iterator[Notification]:
    """Yield a notification for each episode that is in progress, which ends."""
    for label, presence in watched.presences.items():
        yield from _told(camera, watched, label, presence.end(), now_ns)


def _told(
    camera: CameraId, watched: _CameraState, label: str, episode: Episode | None, now_ns: int
) -> list[Notification]:
    if episode is None:
        return []
    details = _details(episode, watched.scores.pop(label))
    return [Notification(NotificationType.DETECTION_ENDED, now_ns, camera, label, details)]


def _details(episode: Episode, score: float) -> dict[str, object]:
    return {
        "count_max": episode.count_max,
        "score_max": round(score, 3),
        "seen_ms": round((episode.seen_ns - episode.since_ns) / 1e6),
    }
