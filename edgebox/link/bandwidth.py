"""Decides how many bits per second a camera's uplink carries, and what its pictures weigh.

After Jellyfish (section 6): one throughput sample per frame, harmonic mean over the last second.
Ours (`EstimatorKind.CAUTIOUS`) differs: the last sample caps the mean (so a step down is followed
at once), a frame that is overdue caps it further (so a stalled link is seen before its frame
arrives), and time that is not transmission is taken out first. Frames much smaller than
bandwidth x delay would otherwise measure the delay: of a frame that found the link idle, the base
latency is subtracted; the mean weighs samples by their bytes (sum of bits over sum of time, which
*is* the harmonic mean for frames of equal size), so that small frames with noisy times count
little; and the caps forgive `NOISE_NS` of scheduling delay per frame. No sample is shorter than
`BUSY_MIN_NS`. The other rules are there to compare with.

A mean over small frames on a noisy machine still errs low: larger frames, which the planner
tries when the estimate allows them, correct it upwards. On a link much faster than its frames
(loopback) the figure says only "at least this much": a frame shorter than `BUSY_MIN_NS` cannot be
told from one that took just that.

Pure: the instants come in as arguments, and a question changes nothing: whoever asks, and however
often, later answers are the same. O(window) per question, and per frame at most each `LOOK_NS`.
"""

from collections import deque
from collections.abc import Sequence
from copy import copy
from enum import StrEnum
from typing import NamedTuple, Protocol

from edgebox.link.throughput_samples import BUSY_MIN_NS, Sample, Samples

WINDOW_NS = 1_000_000_000
STALE_NS = 10_000_000_000
LOOK_NS = 20_000_000
"""The estimate that frames are compared with is refreshed at most this often, for its cost."""
SAMPLES_MIN = 3
"""At a low rate the window reaches back to this many samples, as long as they are not stale."""
NOISE_NS = 3_000_000
"""How late a thread or a loop wakes up on a busy machine, now and then."""
OVERHEAD_BYTES = 660
"""Of a JPEG's tables, the frame's header and WebSocket framing: what pixels do not explain."""
REFERENCE_PX = 256 * 256
STEADY_SECONDS = 20
"""So many seconds in which frames came say how steady a link is."""
STEADY_MIN = 5
"""Of fewer nothing is said."""
STEADY_RANK = 1
"""So many of these seconds were worse than what is said: one drop tells nothing of the next."""
SIZE_EXPONENT = 0.14


class EstimatorKind(StrEnum):
    """How the samples of the window become one figure."""

    CAUTIOUS = "cautious"
    """The harmonic mean, capped by the last sample and by a frame that is overdue."""
    HARMONIC = "harmonic"
    """The harmonic mean and nothing else, as Jellyfish has it."""
    LAST = "last"
    """The last sample."""
    LEAST = "least"
    """The least sample."""


class CarriedFrame(NamedTuple):
    """A frame that has arrived whole, as `LinkEstimate.add` takes it; sorts by arrival."""

    arrival_ns: int
    camera: str
    size_bytes: int
    sent_ns: int
    base_ns: int


class LinkEstimate(Protocol):
    """What tells how much an uplink carries."""

    def add(
        self, size_bytes: int, sent_ns: int, arrival_ns: int, base_ns: int = 0, camera: str = ""
    ) -> None:
        """Learn from one frame that has arrived whole."""

    def forget(self, camera: str) -> None:
        """Wait no more for frames of a camera that has left."""

    def bps(self, now_ns: int, waiting_bytes: int = 0, waiting_since_ns: int = 0) -> float | None:
        """Return the estimate; None when nothing is known (any more)."""

    def throughput_stability(self) -> float | None:
        """Return the share of the estimate that frames get in bad seconds; None: not known."""

    def newest(self) -> tuple[int, int] | None:
        """Return the bits of the last frame and how long, in ns, they took; None: not known."""

    def frames(self) -> Sequence[CarriedFrame]:
        """Return the frames that the estimate rests on, oldest first."""

    def copy_for(self, camera: str) -> "LinkEstimate":
        """Return a copy that learns apart from this one, from frames of one camera."""


class BandwidthEstimate:
    """The throughput of one uplink, from the frames it carried, of one camera or of several."""

    def __init__(
        self,
        window_ns: int = WINDOW_NS,
        noise_ns: int = NOISE_NS,
        rule: EstimatorKind = EstimatorKind.CAUTIOUS,
    ) -> None:
        self._rule = rule
        self._window_ns = window_ns
        self._noise_ns = noise_ns
        self._sampling = Samples(window_ns)
        self._samples: deque[Sample] = deque()
        self._frames: deque[CarriedFrame] = deque()
        """Of the window before the newest, and at least `SAMPLES_MIN`."""
        self._newest: tuple[int, int] | None = None
        self._base_ns = 0
        self._believed = 0.0
        """Bits per ns that the next frames are compared with, as of `_believed_ns`."""
        self._believed_ns: int | None = None
        self._worst: deque[list[float]] = deque(maxlen=STEADY_SECONDS)
        """Of each second: its number, and the least share of what was believed that a frame got."""

    def add(
        self, size_bytes: int, sent_ns: int, arrival_ns: int, base_ns: int = 0, camera: str = ""
    ) -> None:
        """Learn from one frame that has arrived whole.

        Args:
            size_bytes: of the whole message.
            sent_ns: when it was handed to the link, on the clock of `arrival_ns`.
            arrival_ns: when its last byte was there; frames arrive in order.
            base_ns: what even an empty message takes: half the least round trip if
                `arrival_ns` is the arrival at the box, all of it if it is the ack's.
            camera: whose frame it is, where several share the uplink.
        """
        self._base_ns = base_ns
        settled, busy_ns = self._sampling.add(camera, size_bytes, sent_ns, arrival_ns, base_ns)
        self._newest = size_bytes * 8, busy_ns
        self._frames.append(CarriedFrame(arrival_ns, camera, size_bytes, sent_ns, base_ns))
        while (
            len(self._frames) > SAMPLES_MIN
            and self._frames[0].arrival_ns <= arrival_ns - self._window_ns
        ):
            self._frames.popleft()
        for sample in settled:
            self._compare(sample)
        self._samples += settled
        while self._samples and self._samples[0].end_ns <= arrival_ns - STALE_NS:
            self._samples.popleft()
        if self._believed_ns is None or arrival_ns - self._believed_ns >= LOOK_NS:
            self._believed = self._bits_per_ns(arrival_ns) or 0.0
            self._believed_ns = arrival_ns

    def forget(self, camera: str) -> None:
        """Wait no more for frames of a camera that has left."""
        self._sampling.forget(camera)

    def frames(self) -> Sequence[CarriedFrame]:
        """Return the frames that the estimate rests on, oldest first."""
        return tuple(self._frames)

    def copy_for(self, camera: str) -> "BandwidthEstimate":
        """Return a copy that learns apart from this one, from frames of one camera."""
        copied = copy(self)
        copied._sampling = self._sampling.copy_for(camera)
        copied._samples = self._samples.copy()
        copied._frames = self._frames.copy()
        copied._worst = deque((list(second) for second in self._worst), STEADY_SECONDS)
        return copied

    def _compare(self, sample: Sample) -> None:
        """Note what share of the estimate before it a frame got."""
        if self._believed <= 0:
            return
        share = sample.bits / self._forgiven(sample.busy_ns) / self._believed
        second = sample.end_ns // 1_000_000_000
        if not self._worst or self._worst[-1][0] != second:
            self._worst.append([second, share])
        self._worst[-1][1] = min(share, self._worst[-1][1])

    def throughput_stability(self) -> float | None:
        """Return the share of the estimate that frames get in bad seconds; None: not known.

        Of the last `STEADY_SECONDS` the worst frame each, and of these, but for the `STEADY_RANK`
        worst of all, the worst. At most 1.
        """
        if len(self._worst) < STEADY_MIN:
            return None
        shares = sorted(share for _, share in self._worst)
        rank = STEADY_RANK * len(shares) // STEADY_SECONDS
        return min(1.0, shares[rank])

    def bps(self, now_ns: int, waiting_bytes: int = 0, waiting_since_ns: int = 0) -> float | None:
        """Return the estimate; None when nothing is known (any more).

        Args:
            now_ns: the present.
            waiting_bytes: size of the oldest frame that is on its way, 0 if there is none or
                it is not known (at the box).
            waiting_since_ns: when that frame had the link to itself: when it was sent, or
                when its predecessor's arrival was known, whichever is later.
        """
        bits_per_ns = self._bits_per_ns(now_ns)
        if bits_per_ns is None:
            return None
        if waiting_bytes and self._rule is EstimatorKind.CAUTIOUS:
            waited_ns = now_ns - waiting_since_ns - self._base_ns
            bits_per_ns = min(bits_per_ns, waiting_bytes * 8 / self._forgiven(waited_ns))
        return bits_per_ns * 1e9

    def _bits_per_ns(self, now_ns: int) -> float | None:
        """Return what the samples say that are not stale; None without any."""
        recent = self._recent(now_ns)
        if not recent:
            return None
        if self._rule is not EstimatorKind.CAUTIOUS:
            return self._plain(recent)
        bits = busy_ns = 0
        for sample in recent:
            bits += sample.bits
            busy_ns += sample.busy_ns
        bits_per_ns = bits / busy_ns
        if self._samples:
            last = self._samples[-1]
            bits_per_ns = min(bits_per_ns, last.bits / self._forgiven(last.busy_ns))
        for sample in self._sampling.open():
            at_most = self._sampling.at_most_bits(sample) / self._forgiven(sample.busy_ns)
            bits_per_ns = min(bits_per_ns, at_most)
        return bits_per_ns

    def _recent(self, now_ns: int) -> list[Sample]:
        """Return the samples of the window, newest first; at a low rate some that are older."""
        # What is older than the window is kept for links that fall silent, and may be ten times
        # as much.
        samples = self._samples or self._sampling.open()
        horizon_ns = now_ns - self._window_ns
        recent = []
        for sample in reversed(samples):
            if sample.end_ns <= horizon_ns:
                break
            recent.append(sample)
        if len(recent) >= SAMPLES_MIN:
            return recent
        few = list(samples)[: -SAMPLES_MIN - 1 : -1]
        return [s for s in few if s.end_ns > now_ns - STALE_NS]

    def newest(self) -> tuple[int, int] | None:
        """Return the bits of the last frame and how long, in ns, they took; None: not known."""
        return self._newest

    def _plain(self, recent: Sequence[Sample]) -> float:
        """Apply a rule without guards to the samples of the window, in bits per ns."""
        match self._rule:
            case EstimatorKind.LAST:
                return recent[0].bits / recent[0].busy_ns
            case EstimatorKind.LEAST:
                return min(s.bits / s.busy_ns for s in recent)
        return len(recent) / sum(s.busy_ns / s.bits for s in recent)

    def _forgiven(self, busy_ns: int) -> int:
        return max(busy_ns - self._noise_ns, BUSY_MIN_NS)


class BytesPerPixel:
    """A high quantile of what one camera's JPEG pictures weigh, at any size.

    Small pictures weigh more per pixel than large ones of the same scene: in proportion to pixels
    to the power of about -0.14 (-0.12 to -0.18 in street videos), beside what every message
    weighs. Without that, a camera that was sent down is long believed unable to come back.
    """

    def __init__(self, quantile: float = 0.9, frames_max: int = 60) -> None:
        self._quantile = quantile
        self._recent: deque[float] = deque(maxlen=frames_max)

    def add(self, size_bytes: int, pixels: int) -> None:
        """Learn from one frame's whole message."""
        picture_bytes = max(1, size_bytes - OVERHEAD_BYTES)
        self._recent.append(picture_bytes / _reference_equivalent(pixels))

    def value(self) -> float | None:
        """Return the bytes per pixel of a picture of `REFERENCE_PX`; None before the first."""
        if not self._recent:
            return None
        ordered = sorted(self._recent)
        return ordered[min(int(self._quantile * len(ordered)), len(ordered) - 1)]


def message_bytes(bytes_per_pixel: float, pixels: int) -> float:
    """Return what the message with a picture of a size weighs.

    Args:
        bytes_per_pixel: of a picture of `REFERENCE_PX`, as `BytesPerPixel` gives it.
        pixels: of the picture.
    """
    return OVERHEAD_BYTES + bytes_per_pixel * _reference_equivalent(pixels)


def _reference_equivalent(pixels: int) -> float:
    """Return the pixels that would weigh as much if each weighed as at the reference size."""
    factor: float = (pixels / REFERENCE_PX) ** -SIZE_EXPONENT
    return pixels * factor
