"""Decides how many bits per second a camera's uplink carries, and how large its pictures are in
bytes.

After Jellyfish (section 6): one throughput sample per frame, harmonic mean over the last second.
edgebox's own estimator (`EstimatorKind.CAUTIOUS`) differs. The last sample caps the mean, so that a
step down is followed at once. An overdue frame caps it further, so that a stalled link is noticed
before its frame arrives. Time that is not transmission is subtracted first, because frames much
smaller than bandwidth x delay would measure the delay. Three rules do that: the base latency is
subtracted from a frame that found the link idle; the mean weighs samples by their bytes (sum of
bits over sum of time, which *is* the harmonic mean for frames of equal size), so that small frames
with noisy times count little; and the caps allow `NOISE_NS` of scheduling delay per frame. No
sample is shorter than `BUSY_MIN_NS`. The other estimators exist for comparison.

A mean over small frames on a noisy machine is still too low. Larger frames, which the planner tries
when the estimate allows them, correct it upwards. On a link much faster than its frames (loopback)
the estimate is only a lower bound: a frame shorter than `BUSY_MIN_NS` cannot be distinguished from
one that took just that.

Pure: the instants are arguments, and reading the estimate changes nothing. A read takes O(log n) of
the samples of a window. On a shared link it also looks at each open sample, and for one that may
lower the estimate at as many cameras as it takes to see whether it does.
"""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Sequence
from copy import copy
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple, Protocol

from edgebox.link.throughput_samples import BUSY_MIN_NS, Sample, Samples, SettledSamples

WINDOW_NS = 1_000_000_000
STALE_NS = 10_000_000_000
REFRESH_NS = 20_000_000
"""The estimate that frames are compared with is refreshed at most this often, for its cost."""
SAMPLES_MIN = 3
"""At a low rate the window extends back to this many samples, as long as they are not stale."""
NOISE_NS = 3_000_000
"""Delay with which a thread or an event loop occasionally wakes up on a busy machine."""
OVERHEAD_BYTES = 660
"""Bytes of a message that do not depend on pixels: JPEG tables, frame header, WebSocket framing."""
REFERENCE_PX = 256 * 256
STEADY_SECONDS = 20
"""Number of seconds with frames over which the stability of a link is measured."""
STEADY_MIN = 5
"""With fewer of these seconds the stability is not known."""
STEADY_RANK = 1
"""This many of the worst seconds are ignored: one drop says nothing of the next."""
SIZE_EXPONENT = 0.14


class EstimatorKind(StrEnum):
    """The method that turns the samples of the window into one estimate."""

    CAUTIOUS = "cautious"
    """The harmonic mean, capped by the last sample and by an overdue frame."""
    HARMONIC = "harmonic"
    """The harmonic mean only, as in Jellyfish."""
    LAST = "last"
    """The last sample."""
    LEAST = "least"
    """The smallest sample."""


class CarriedFrame(NamedTuple):
    """A completely received frame, as `LinkEstimate.add` takes it; sorts by arrival."""

    arrival_ns: int
    camera: str
    size_bytes: int
    sent_ns: int
    base_ns: int


class LinkEstimate(Protocol):
    """The interface of an estimator of an uplink's bandwidth."""

    def add(
        self, size_bytes: int, sent_ns: int, arrival_ns: int, base_ns: int = 0, camera: str = ""
    ) -> None:
        """Learn from a completely received frame."""

    def forget(self, camera: str) -> None:
        """Stop waiting for frames of a camera that has left."""

    def bps(self, now_ns: int, waiting_bytes: int = 0, waiting_since_ns: int = 0) -> float | None:
        """Return the estimate; None if nothing is known (any more)."""

    def throughput_stability(self) -> float | None:
        """Return the fraction of the estimate that frames get in bad seconds; None: not known."""

    def newest(self) -> tuple[int, int] | None:
        """Return the bits of the last frame and its transmission time in ns; None: not known."""

    def frames(self) -> Sequence[CarriedFrame]:
        """Return the frames on which the estimate is based, oldest first."""

    def copy_for(self, camera: str) -> "LinkEstimate":
        """Return an independent copy that learns from the frames of one camera."""


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
        self._samples = SettledSamples()
        self._frames: deque[CarriedFrame] = deque()
        """The frames of the window before the newest, and at least `SAMPLES_MIN`."""
        self._newest: tuple[int, int] | None = None
        self._base_ns = 0
        self._believed = 0.0
        """Bits per ns with which the next frames are compared, as of `_believed_ns`."""
        self._believed_ns: int | None = None
        self._worst: deque[list[float]] = deque(maxlen=STEADY_SECONDS)
        """The number of each second, and the least fraction of the estimate that a frame got."""

    def add(
        self, size_bytes: int, sent_ns: int, arrival_ns: int, base_ns: int = 0, camera: str = ""
    ) -> None:
        """Learn from a completely received frame.

        Args:
            size_bytes: of the whole message.
            sent_ns: when it was handed to the link, on the clock of `arrival_ns`.
            arrival_ns: when its last byte was received; frames arrive in order.
            base_ns: the time of an empty message: half the least round trip if `arrival_ns` is the
                arrival at the box, the whole round trip if it is the ack's.
            camera: the camera that sent it, if several share the uplink.
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
            self._samples.append(sample)
        self._samples.drop_until(arrival_ns - STALE_NS)
        if self._believed_ns is None or arrival_ns - self._believed_ns >= REFRESH_NS:
            self._believed = self._bits_per_ns(arrival_ns) or 0.0
            self._believed_ns = arrival_ns

    def forget(self, camera: str) -> None:
        """Stop waiting for frames of a camera that has left."""
        self._sampling.forget(camera)

    def frames(self) -> Sequence[CarriedFrame]:
        """Return the frames on which the estimate is based, oldest first."""
        return tuple(self._frames)

    def copy_for(self, camera: str) -> "BandwidthEstimate":
        """Return an independent copy that learns from the frames of one camera."""
        copied = copy(self)
        copied._sampling = self._sampling.copy_for(camera)
        copied._samples = self._samples.copy()
        copied._frames = self._frames.copy()
        copied._worst = deque((list(second) for second in self._worst), STEADY_SECONDS)
        return copied

    def _compare(self, sample: Sample) -> None:
        """Note which fraction of the previous estimate a frame got."""
        if self._believed <= 0:
            return
        share = sample.bits / self._forgiven(sample.busy_ns) / self._believed
        second = sample.end_ns // 1_000_000_000
        if not self._worst or self._worst[-1][0] != second:
            self._worst.append([second, share])
        self._worst[-1][1] = min(share, self._worst[-1][1])

    def throughput_stability(self) -> float | None:
        """Return the fraction of the estimate that frames get in bad seconds; None: not known.

        It is the worst frame of each of the last `STEADY_SECONDS`, then the worst of these seconds,
        the `STEADY_RANK` worst excluded. At most 1.
        """
        if len(self._worst) < STEADY_MIN:
            return None
        shares = sorted(share for _, share in self._worst)
        rank = STEADY_RANK * len(shares) // STEADY_SECONDS
        return min(1.0, shares[rank])

    def bps(self, now_ns: int, waiting_bytes: int = 0, waiting_since_ns: int = 0) -> float | None:
        """Return the estimate; None if nothing is known (any more).

        Args:
            now_ns: the present.
            waiting_bytes: size of the oldest frame in transit; 0 if there is none or it is
                not known (at the box).
            waiting_since_ns: since when that frame has had the link to itself: when it was sent,
                or when its predecessor's arrival was known, whichever is later.
        """
        bits_per_ns = self._bits_per_ns(now_ns)
        if bits_per_ns is None:
            return None
        if waiting_bytes and self._rule is EstimatorKind.CAUTIOUS:
            waited_ns = now_ns - waiting_since_ns - self._base_ns
            bits_per_ns = min(bits_per_ns, waiting_bytes * 8 / self._forgiven(waited_ns))
        return bits_per_ns * 1e9

    def _bits_per_ns(self, now_ns: int) -> float | None:
        """Return the estimate by the samples that are not stale; None without any."""
        number = self._samples.number_since(now_ns - self._window_ns)
        if self._rule is EstimatorKind.CAUTIOUS and number >= SAMPLES_MIN:
            bits, busy_ns = self._samples.sums(number)
        else:
            recent = self._recent(number, now_ns)
            if not recent:
                return None
            if self._rule is not EstimatorKind.CAUTIOUS:
                return self._plain(recent)
            bits = sum(sample.bits for sample in recent)
            busy_ns = sum(sample.busy_ns for sample in recent)
        bits_per_ns = bits / busy_ns
        for last in self._samples.newest(1):
            bits_per_ns = min(bits_per_ns, last.bits / self._forgiven(last.busy_ns))
        for sample in self._sampling.open():
            busy_ns = self._forgiven(sample.busy_ns)
            less = self._sampling.carried_less(sample, bits_per_ns * busy_ns)
            if less is not None:
                bits_per_ns = less / busy_ns
        return bits_per_ns

    def _recent(self, number: int, now_ns: int) -> Sequence[Sample]:
        """Return the samples of the window, newest first; at a low rate some older ones too.

        Args:
            number: how many of the settled ones are in the window.
            now_ns: the present.
        """
        if number >= SAMPLES_MIN:
            return self._samples.newest(number)
        # Samples that are not settled count only where there is no other.
        few = self._samples.newest(SAMPLES_MIN) or self._open_in_window(now_ns)
        return [sample for sample in few if sample.end_ns > now_ns - STALE_NS]

    def _open_in_window(self, now_ns: int) -> Sequence[Sample]:
        samples = self._sampling.open()[::-1]
        number = sum(sample.end_ns > now_ns - self._window_ns for sample in samples)
        return samples[: max(number, SAMPLES_MIN)]

    def newest(self) -> tuple[int, int] | None:
        """Return the bits of the last frame and its transmission time in ns; None: not known."""
        return self._newest

    def _plain(self, recent: Sequence[Sample]) -> float:
        """Return the estimate of one of the unguarded estimators, in bits per ns."""
        match self._rule:
            case EstimatorKind.LAST:
                return recent[0].bits / recent[0].busy_ns
            case EstimatorKind.LEAST:
                return min(s.bits / s.busy_ns for s in recent)
        return len(recent) / sum(s.busy_ns / s.bits for s in recent)

    def _forgiven(self, busy_ns: int) -> int:
        return max(busy_ns - self._noise_ns, BUSY_MIN_NS)


class BytesPerPixel:
    """A high quantile of the bytes of one camera's JPEG pictures, at any size.

    Small pictures have more bytes per pixel than large ones of the same scene: in proportion to
    pixels to the power of about -0.14 (-0.12 to -0.18 in street videos), in addition to the fixed
    bytes of every message. Without this correction, a camera whose size was reduced would long seem
    unable to increase it again.
    """

    def __init__(self, quantile: float = 0.9, frames_max: int = 60) -> None:
        self._quantile = quantile
        self._frames_max = frames_max
        self._recent: deque[float] = deque()
        self._ordered: list[float] = []

    def add(self, size_bytes: int, pixels: int) -> None:
        """Learn from one frame's whole message."""
        picture_bytes = max(1, size_bytes - OVERHEAD_BYTES)
        if len(self._recent) == self._frames_max:
            del self._ordered[bisect_left(self._ordered, self._recent.popleft())]
        value = picture_bytes / _reference_equivalent(pixels)
        self._recent.append(value)
        insort(self._ordered, value)

    def value(self) -> float | None:
        """Return the bytes per pixel of a picture of `REFERENCE_PX`; None before the first."""
        number = len(self._ordered)
        if not number:
            return None
        return self._ordered[min(int(self._quantile * number), number - 1)]


def message_bytes(bytes_per_pixel: float, pixels: int) -> float:
    """Return the bytes of a message with a picture of this size.

    Args:
        bytes_per_pixel: of a picture of `REFERENCE_PX`, as `BytesPerPixel` gives it.
        pixels: of the picture.
    """
    return OVERHEAD_BYTES + bytes_per_pixel * _reference_equivalent(pixels)


@lru_cache(maxsize=1024)  # a planner asks for the same few sizes, for every camera
def _reference_equivalent(pixels: int) -> float:
    """Return the pixels of a picture of equal bytes at the reference size's bytes per pixel."""
    factor: float = (pixels / REFERENCE_PX) ** -SIZE_EXPONENT
    return pixels * factor
