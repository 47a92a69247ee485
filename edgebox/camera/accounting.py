"""Accounting of one camera: the result of each captured frame, and the figures.

Every captured frame is open until it ends in exactly one of on_time, late (by the camera's own
clock) or dropped with a reason, so at any moment

    captured = on_time + late + sum(dropped) + open

The first of several deadlines decides what is on time; the utility of late answers is summed
separately. The box's drop reasons are kept; `plan` counts frames that were not sent because the box
asks for fewer than are captured; `sender` counts others that were never sent; `lost` counts frames
that were sent and never answered, because the connection or the run ended.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from edgebox.camera.records import FrameRecord, HandedOver
from edgebox.domain.latency_histogram import PARTS, SUMMARY_BUCKETS, Histogram
from edgebox.domain.model_family import VariantName
from edgebox.domain.requests import DropReason, Outcome, StagePlacement, UtilityStep, utility_at
from edgebox.link.deadlines import LaterDeadlines, to_later
from edgebox.link.messages import DropNotice, Report, Result
from edgebox.link.sender import SkipReason

LOST = "lost"
LATENCIES_KEPT = 10_000
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
RECENT_NS = 10_000_000_000


@dataclass(frozen=True, slots=True)
class Summary:
    """Results of a camera's frames. Latencies in ms, over the last 10,000 answered frames."""

    camera: str
    slo_ms: float
    """The latest deadline; the first of several."""
    later: LaterDeadlines
    """Later deadlines: ms, and the utility of an answer by each."""
    duration_s: float
    captured: int
    sent: int
    accepted: int
    on_time: int
    late: int
    dropped: Mapping[str, int]
    skipped: Mapping[str, int]
    """Why frames were not sent: those dropped for `sender`, and at `rate` those for `plan`."""
    pending: int
    """Frames without a result; 0 once a run is over."""
    on_time_share: float | None
    """Share of the captured frames that the plan asked for."""
    utility: float
    """Total utility of the answers: 1 on time, less by a later deadline."""
    latency_ms: Mapping[str, Mapping[str, float]]
    """Latency by part and quantile; `total` is measured here, from capture to result."""
    latency_histogram: Mapping[str, Mapping[str, int]]
    """Answered frames by part and bucket (`SUMMARY_BUCKETS`); summaries can be added up."""
    width_sent_mean_px: float | None
    bytes_sent: int
    detected: int
    """Frames whose first stage ran here, among those sent."""
    variants: Mapping[str, int]
    detections: Mapping[str, int]
    reconnects: int

    def to_json(self) -> dict[str, object]:
        """Return everything as plain JSON values."""
        return asdict(self)


@dataclass(slots=True)
class _Open:
    captured_ns: int
    slo_ns: int
    steps: Sequence[UtilityStep]
    handed_over: HandedOver | None = None
    advised: VariantName | None = None
    acked_ns: int | None = None


@dataclass(slots=True)
class _Counts:
    captured: int = 0
    sent: int = 0
    on_time: int = 0
    late: int = 0
    utility_late: float = 0.0
    skipped: Counter[str] = field(default_factory=Counter)


class Accounting:
    """The accounting of one camera over all its connections."""

    def __init__(
        self,
        slo_ns: int,
        steps: Sequence[UtilityStep] = (),
        on_end: Callable[[FrameRecord], None] | None = None,
    ) -> None:
        """Start empty.

        Args:
            slo_ns: the first deadline, until `deadlines` changes it.
            steps: the deadlines after it.
            on_end: called with every frame that has ended.
        """
        self.reconnects = 0
        self.accepted = 0
        self._detected = 0
        self._slo_ns = slo_ns
        self._steps = steps
        self._on_end = on_end
        self._counts = _Counts()
        self._at_hello = _Counts()
        self._open: dict[int, _Open] = {}
        self._dropped: Counter[str] = Counter()
        self._width_sum_px = 0
        self._bytes_sent = 0
        self._variants: Counter[str] = Counter()
        self._detections: Counter[str] = Counter()
        self._latencies_ms = {part: deque[float](maxlen=LATENCIES_KEPT) for part in PARTS}
        self._histograms = {part: Histogram(SUMMARY_BUCKETS) for part in PARTS}
        self._recent: deque[tuple[int, bool, float]] = deque()

    @property
    def open_count(self) -> int:
        """Frames without a result."""
        return len(self._open)

    @property
    def captured_count(self) -> int:
        """All frames so far."""
        return self._counts.captured

    @property
    def sent_count(self) -> int:
        """Frames that were handed to the link."""
        return self._counts.sent

    @property
    def last_slo_ns(self) -> int:
        """The deadline in force after which an answer has no utility."""
        return self._steps[-1].by_ns if self._steps else self._slo_ns

    def deadlines(self, slo_ns: int, steps: Sequence[UtilityStep]) -> None:
        """Apply other deadlines to frames captured from now on."""
        self._slo_ns = slo_ns
        self._steps = steps

    def connected(self) -> None:
        """Record that a hello was answered: reports count from here."""
        self._at_hello = replace(self._counts, skipped=Counter(self._counts.skipped))

    def captured(self, frame: int, captured_ns: int) -> None:
        """Open a frame."""
        self._counts.captured += 1
        self._open[frame] = _Open(captured_ns, self._slo_ns, self._steps)

    def skipped(self, frame: int, reason: SkipReason, now_ns: int) -> None:
        """End a frame that will not be sent."""
        # As the box counts: what the plan did not ask for is no miss.
        ordered = reason is SkipReason.RATE
        drop = DropReason.PLAN if ordered else DropReason.SENDER
        if self._drop(frame, drop.value, now_ns, "" if ordered else f":{reason.value}"):
            self._counts.skipped[reason.value] += 1

    def sent(self, frame: HandedOver, advised: VariantName | None = None) -> None:
        """Note that a frame was handed to the link, while this variant was advised."""
        entry = self._open.get(frame.number)
        if entry is None:
            return
        entry.handed_over = frame
        entry.advised = advised
        self._counts.sent += 1
        if frame.placement is StagePlacement.CAMERA:
            self._detected += 1
        else:
            self._width_sum_px += frame.width_px
        self._bytes_sent += frame.size_bytes

    def acked(self, frame: int, accepted: bool, now_ns: int) -> None:
        """Note an ack."""
        entry = self._open.get(frame)
        if entry is not None and entry.acked_ns is None:
            entry.acked_ns = now_ns
            self.accepted += accepted

    def answered(self, result: Result, now_ns: int) -> int | None:
        """End a frame with its result.

        Returns:
            Time from the ack's arrival to the result's, ns; None if the frame is not open.
        """
        entry = self._open.pop(result.frame, None)
        if entry is None:
            return None
        total_ns = now_ns - entry.captured_ns
        on_time = total_ns <= entry.slo_ns
        if on_time:
            self._counts.on_time += 1
        else:
            self._counts.late += 1
            self._counts.utility_late += utility_at(total_ns, entry.slo_ns, entry.steps)
        timing = result.timing.to_json()
        for part in PARTS[:-1]:
            self._latency(part, timing[part])
        self._latency("total", total_ns / 1e6)
        self._variants[result.variant] += 1
        self._detections.update(detection.label for detection in result.detections)
        self._note(now_ns, on_time, total_ns / 1e6)
        if self._on_end is not None:
            outcome = Outcome.ON_TIME if on_time else Outcome.LATE
            record = _record(result.frame, entry, now_ns, outcome)
            variant = VariantName(result.variant)
            self._on_end(replace(record, variant=variant, timing_ms=timing))
        return now_ns - entry.acked_ns if entry.acked_ns is not None else 0

    def dropped(self, notice: DropNotice, now_ns: int) -> None:
        """End a frame that the box dropped."""
        self._drop(notice.frame, notice.reason.value, now_ns)

    def lost(self, now_ns: int) -> None:
        """End all open frames, because no answers will come."""
        for frame, entry in list(self._open.items()):
            if entry.handed_over is not None:
                self._drop(frame, LOST, now_ns)
            else:
                self.skipped(frame, SkipReason.OFFLINE, now_ns)

    def report(self) -> Report:
        """Return what was counted since the hello."""
        now, then = self._counts, self._at_hello
        return Report(
            captured=now.captured - then.captured,
            sent=now.sent - then.sent,
            skipped=dict(now.skipped - then.skipped),
            on_time=now.on_time - then.on_time,
            late=now.late - then.late,
        )

    def recent(self, now_ns: int) -> tuple[float | None, float | None]:
        """Return (share on time, median latency in ms) of what ended in the last 10 s."""
        recent = [ended for ended in self._recent if ended[0] >= now_ns - RECENT_NS]
        if not recent:
            return None, None
        share = sum(on_time for _, on_time, _ in recent) / len(recent)
        answered = sorted(ms for _, _, ms in recent if ms >= 0)
        return share, answered[len(answered) // 2] if answered else None

    def summary(self, camera: str, duration_s: float) -> Summary:
        """Return the figures as they stand."""
        counts = self._counts
        return Summary(
            camera=camera,
            slo_ms=self._slo_ns / 1e6,
            later=to_later(self._steps),
            duration_s=round(duration_s, 3),
            captured=counts.captured,
            sent=counts.sent,
            accepted=self.accepted,
            on_time=counts.on_time,
            late=counts.late,
            dropped=dict(self._dropped),
            skipped=dict(counts.skipped),
            pending=len(self._open),
            on_time_share=_ratio(
                counts.on_time, counts.captured - self._dropped[DropReason.PLAN.value], 4
            ),
            utility=round(counts.on_time + counts.utility_late, 3),
            latency_ms={p: _quantiles(ms) for p, ms in self._latencies_ms.items() if ms},
            latency_histogram={p: h.to_json() for p, h in self._histograms.items()},
            width_sent_mean_px=_ratio(self._width_sum_px, counts.sent - self._detected, 1),
            bytes_sent=self._bytes_sent,
            detected=self._detected,
            variants=dict(self._variants),
            detections=dict(self._detections),
            reconnects=self.reconnects,
        )

    def _drop(self, frame: int, reason: str, now_ns: int, detail: str = "") -> bool:
        entry = self._open.pop(frame, None)
        if entry is None:
            return False
        self._dropped[reason] += 1
        if reason != DropReason.PLAN.value:
            self._note(now_ns, False, -1.0)
        if self._on_end is not None:
            record = _record(frame, entry, now_ns, Outcome.DROPPED)
            self._on_end(replace(record, reason=reason + detail))
        return True

    def _latency(self, part: str, latency_ms: float) -> None:
        self._latencies_ms[part].append(latency_ms)
        self._histograms[part].add(round(latency_ms * 1e6))

    def _note(self, now_ns: int, on_time: bool, total_ms: float) -> None:
        self._recent.append((now_ns, on_time, total_ms))
        while self._recent[0][0] < now_ns - RECENT_NS:
            self._recent.popleft()


def _record(frame: int, entry: _Open, ended_ns: int, outcome: Outcome) -> FrameRecord:
    return FrameRecord(
        frame,
        entry.captured_ns,
        ended_ns,
        outcome,
        handed_over=entry.handed_over,
        advised=entry.advised,
        acked_ns=entry.acked_ns,
    )


def _ratio(part: float, whole: float, digits: int) -> float | None:
    return round(part / whole, digits) if whole else None


def _quantiles(values: Iterable[float]) -> dict[str, float]:
    """Return the nearest-rank quantiles."""
    ordered = sorted(values)
    last = len(ordered) - 1
    return {name: round(ordered[round(q * last)], 2) for name, q in QUANTILES.items()}
