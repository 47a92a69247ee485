"""Counts the results of all frames, and their latencies over the last minute.

One identity holds at every moment: captured = on_time + late + dropped (by reason) + pending.
Frames that the plan ordered not to be sent are dropped for the reason `plan`; they are no misses.
`utility` adds 1 for each answer on time, and for late answers the utility that a later deadline of
the camera gives them.
"""

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from edgebox.domain.latency_histogram import METRIC_BUCKETS, PARTS, Histogram
from edgebox.domain.pipelines import StageName
from edgebox.domain.requests import CameraId, DropReason, Outcome
from edgebox.runtime.frames import Answer, FrameAnalysis, FrameResult, PendingFrame, Refusal, Timing
from edgebox.storage.periods import (
    CLASS_FRAMES,
    Period,
    TrackedCount,
    latency_counts,
    tracked_key,
)
from edgebox.vision.detections import SHOWN_SCORE_MIN, Detections

WINDOW_S = 60
_RING = 4_096
"""Latency samples kept per camera: a minute at 68 frames/s, less time above that."""


@dataclass(slots=True)
class Counts:
    """Frames since the box started."""

    captured: int = 0
    accepted: int = 0
    on_time: int = 0
    late: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    utility_late: float = 0.0
    """Utility of the late answers, apart from the exact counts."""
    mismatches: int = 0
    """Answers from another variant than the one their camera was advised to use."""

    @property
    def utility(self) -> float:
        """Total utility of the answers."""
        return self.on_time + self.utility_late

    @property
    def pending(self) -> int:
        """Frames that have not ended yet."""
        return self.captured - self.on_time - self.late - sum(self.dropped.values())

    @property
    def due(self) -> int:
        """Frames that have ended and that the plan had asked for: an answer was promised."""
        return self.captured - self.pending - self.dropped[DropReason.PLAN.value]

    @property
    def on_time_share(self) -> float | None:
        """Share of the promised answers that were given on time; None: none was promised.

        The one definition of it: for the page, the API, metrics, events and Home Assistant.
        """
        return self.on_time / self.due if self.due else None

    def add(self, other: "Counts") -> None:
        """Add another camera's counts to these."""
        self.captured += other.captured
        self.accepted += other.accepted
        self.on_time += other.on_time
        self.late += other.late
        self.dropped.update(other.dropped)
        self.utility_late += other.utility_late
        self.mismatches += other.mismatches

    def minus(self, earlier: "Counts") -> "Counts":
        """Return the difference to an earlier copy."""
        return Counts(
            self.captured - earlier.captured,
            self.accepted - earlier.accepted,
            self.on_time - earlier.on_time,
            self.late - earlier.late,
            self.dropped - earlier.dropped,
            self.utility_late - earlier.utility_late,
            self.mismatches - earlier.mismatches,
        )

    def copy(self) -> "Counts":
        """Return a copy that does not change."""
        copied = Counts()
        copied.add(self)
        return copied


@dataclass(slots=True)
class CropCounts:
    """Crops for one stage since the box started; each counts when its frame ends."""

    answered: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    """By reason."""
    remembered: int = 0
    """Objects of which the answer has what was said of them before."""

    def copy(self) -> "CropCounts":
        """Return a copy that does not change."""
        return CropCounts(self.answered, self.dropped.copy(), self.remembered)


class CameraMetrics:
    """The counts and the last minute of one camera."""

    def __init__(self) -> None:
        """Start with zero."""
        self.counts = Counts()
        self._samples: NDArray[np.int64] = np.zeros((_RING, 1 + len(PARTS)), np.int64)
        #: (ring, 6): instant of the ending, then the parts, all ns
        self._next = 0
        self._seconds: deque[tuple[int, Counts]] = deque()
        self._update = Period()
        """Figures of the current second, without counts and latencies."""
        self._ended_updates: list[tuple[int, Period]] = []
        """Figures of past seconds, for `take_updates`."""
        self.has_updates = False
        """Whether anything was counted since the last `take_updates`."""
        self._counted = False
        """Whether anything was counted in the current second."""
        self._taken: tuple[Counts, int] = Counts(), 0
        """The counts and the number of samples at the end of the last second."""
        self.latencies = {part: Histogram(METRIC_BUCKETS) for part in PARTS}
        """Latencies of all answers since the box started."""
        self.crops: dict[StageName, CropCounts] = {}
        """By stage of its pipeline."""
        self.cascade: Counter[str] = Counter()
        """Answers by what their cascade did (`CascadeOutcome`)."""
        self.partial = 0
        """Answers without some stage for some object."""

    def captured(self, frames: int, skipped: int, now_ns: int, ordered: int = 0) -> None:
        """Count captured frames.

        Args:
            frames: all of them.
            skipped: those that the camera did not send.
            now_ns: the present.
            ordered: those of the skipped ones that the plan did not ask for.
        """
        for counts in (self.counts, self._second(now_ns)):
            counts.captured += frames
            if ordered:
                counts.dropped[DropReason.PLAN.value] += ordered
            if skipped > ordered:
                counts.dropped[DropReason.SENDER.value] += skipped - ordered

    def accepted(self, now_ns: int) -> None:
        """Count a frame that was not dropped on arrival."""
        self.counts.accepted += 1
        self._second(now_ns).accepted += 1

    def received(self, size_bytes: int, carried: tuple[int, int] | None) -> None:
        """Count what arrived over the uplink.

        Args:
            size_bytes: size of a frame's message.
            carried: its bits and their transit time in ns; None: unknown.
        """
        self._update.received_bytes += size_bytes
        if carried is not None:
            bits, busy_ns = carried
            self._update.measured.take(bits, busy_ns // 1_000, round(bits / busy_ns * 1e9))

    def ended(self, ending: FrameResult, now_ns: int, labels: Sequence[str] = ()) -> None:
        """Count how a frame ended, and the objects on it by class.

        Args:
            ending: what became of it.
            now_ns: the present.
            labels: names of the classes of its detections; empty: these are not counted.
        """
        for counts in (self.counts, self._second(now_ns)):
            if not isinstance(ending, Answer):
                counts.dropped[ending.reason.value] += 1
                continue
            counts.mismatches += ending.mismatched
            if ending.outcome is Outcome.ON_TIME:
                counts.on_time += 1
            else:
                counts.late += 1
                counts.utility_late += ending.utility
        if isinstance(ending, Answer):
            self.partial += bool(ending.missing)
            if ending.cascade is not None:
                self.cascade[ending.cascade.value] += 1
            for each in ending.stages:
                if each.remembered:
                    self._crops_of(each.stage).remembered += 1
            self._update.variants[str(ending.variant)] += 1
            if ending.analysis is not None:
                self._track(ending.analysis)
            if labels:
                self._count_classes(ending.detections, labels)
            self._sample(ending.timing, now_ns)

    def _track(self, analysis: FrameAnalysis) -> None:
        tracked = self._update.tracked
        for zone, objects in analysis.zones.items():
            tracked[tracked_key(TrackedCount.ZONE_FRAMES, zone)] += 1
            tracked[tracked_key(TrackedCount.ZONE_OBJECTS, zone)] += sum(objects.values())
        for line in analysis.lines:
            for way in (TrackedCount.CROSSED_IN, TrackedCount.CROSSED_OUT):
                tracked[tracked_key(way, line)] += analysis.crossed.get((line, way.value), 0)

    def _count_classes(self, found: Detections, labels: Sequence[str]) -> None:
        classes = self._update.classes
        classes[CLASS_FRAMES] += 1
        for label in found.labels[found.scores >= SHOWN_SCORE_MIN].tolist():
            classes[labels[label]] += 1

    def crops_ended(self, frame: PendingFrame, ending: FrameResult) -> None:
        """Count the crops of a frame that has ended.

        Those that have not ended yet are too late, or end for the reason of a frame that is dropped
        (their camera left).
        """
        unended = ending.reason if isinstance(ending, Refusal) else DropReason.QUEUE
        for crop in frame.crops:
            counts = self._crops_of(crop.request.stage or StageName(""))
            if crop.collected is not None:
                counts.answered += 1
            else:
                counts.dropped[(crop.refused or unended).value] += 1
            self.crops_ended(crop, ending)

    def _crops_of(self, stage: StageName) -> CropCounts:
        return self.crops.setdefault(stage, CropCounts())

    def _sample(self, timing: Timing, now_ns: int) -> None:
        parts_ns = (
            timing.network_ns,
            timing.queue_ns,
            timing.inference_ns,
            timing.return_ns,
            timing.total_ns,
        )
        self._samples[self._next % _RING] = (now_ns, *parts_ns)
        self._next += 1
        for histogram, part_ns in zip(self.latencies.values(), parts_ns, strict=True):
            histogram.add(part_ns)

    def _second(self, now_ns: int) -> Counts:
        second = now_ns // 1_000_000_000
        if not self._seconds or self._seconds[-1][0] != second:
            self._end_update()
            self._seconds.append((second, Counts()))
            while self._seconds[0][0] <= second - WINDOW_S:
                self._seconds.popleft()
        self.has_updates = self._counted = True
        return self._seconds[-1][1]

    def window(self, now_ns: int) -> Counts:
        """Return the counts of the last minute."""
        total = Counts()
        oldest = now_ns // 1_000_000_000 - WINDOW_S
        for second, counts in self._seconds:
            if second > oldest:
                total.add(counts)
        return total

    def frames_per_s(self, now_ns: int, over_s: int = 5) -> float:
        """Return answered frames per second over the last whole seconds."""
        this = now_ns // 1_000_000_000
        answered = sum(
            counts.on_time + counts.late
            for second, counts in self._seconds
            if this - over_s <= second < this
        )
        return answered / over_s

    def latency_ms(
        self, now_ns: int, quantiles: dict[str, float], window_s: int = WINDOW_S
    ) -> dict[str, dict[str, float]] | None:
        """Return each quantile of each part over the window, in ms; None without answers.

        Args:
            now_ns: the end of the window.
            quantiles: name to q, e.g. {"p50": 0.5}.
            window_s: its length, at most a minute.
        """
        kept = self._samples[: min(self._next, _RING)]
        kept = kept[kept[:, 0] > now_ns - window_s * 1_000_000_000]
        if not len(kept):
            return None
        table = np.quantile(kept[:, 1:], list(quantiles.values()), axis=0) / 1e6
        return {
            name: {part: round(float(ms), 2) for part, ms in zip(PARTS, row, strict=True)}
            for name, row in zip(quantiles, table, strict=True)
        }

    def take_updates(self) -> list[tuple[int, Period]]:
        """Return the figures since the last call, by second of the clock of `now_ns`.

        The caller fills in the covered times. The counts are exact; latencies are those of the
        last 4096 answers.
        """
        self._end_update()
        self.has_updates = False
        ended, self._ended_updates = self._ended_updates, []
        return ended

    def _end_update(self) -> None:
        """End the current second."""
        if not self._counted:
            return
        self._counted = False
        update = self._since_last()
        if len(self._ended_updates) < WINDOW_S:
            self._ended_updates.append((self._seconds[-1][0], update))
        else:  # nobody takes them
            self._ended_updates[-1][1].add(update)

    def _since_last(self) -> Period:
        update, self._update = self._update, Period()
        before, samples = self._taken
        self._taken = self.counts.copy(), self._next
        since = self.counts.minus(before)
        update.captured, update.accepted = since.captured, since.accepted
        update.on_time, update.late, update.mismatches = since.on_time, since.late, since.mismatches
        update.dropped = since.dropped
        fresh = min(self._next - samples, _RING)
        if fresh:
            places = np.arange(self._next - fresh, self._next) % _RING
            update.latencies = latency_counts(self._samples[places, 1:])
        return update


class Metrics:
    """The metrics of all cameras; a camera keeps its metrics when it reconnects."""

    def __init__(self) -> None:
        """Start without cameras."""
        self.cameras: dict[CameraId, CameraMetrics] = {}
        self._forgotten = Counts()
        self._forgotten_updates: dict[int, Period] = {}
        """What forgotten cameras counted since the last `take_forgotten`, by second."""

    def of(self, camera: CameraId) -> CameraMetrics:
        """Return a camera's metrics, new at the first call."""
        metrics = self.cameras.get(camera)
        if metrics is None:
            metrics = self.cameras[camera] = CameraMetrics()
        return metrics

    def forget(self, camera: CameraId) -> None:
        """Forget a camera's metrics, except for its part of the total."""
        gone = self.cameras.pop(camera, None)
        if gone is None:
            return
        self._forgotten.add(gone.counts)
        updates = self._forgotten_updates
        for second, update in gone.take_updates():
            full = second not in updates and len(updates) >= WINDOW_S  # nobody takes them
            at = max(updates) if full else second
            updates.setdefault(at, Period()).add(update, same_camera=False)

    def take_forgotten(self) -> list[tuple[int, Period]]:
        """Return what forgotten cameras counted after it was last taken, as `take_updates`."""
        taken, self._forgotten_updates = self._forgotten_updates, {}
        return sorted(taken.items(), key=lambda each: each[0])

    def total(self) -> Counts:
        """Return the total over all cameras, past and present."""
        total = self._forgotten.copy()
        for camera in self.cameras.values():
            total.add(camera.counts)
        return total
