"""Decides which cameras behind one network address share an uplink, if they do not state it.

Many cameras may have one address: behind a modem they share its uplink, behind a proxy they need
not. The evidence is whether frames of other cameras delay a frame. The transmission time of each
frame is predicted from an earlier one of its camera, in three ways, before its end is known:

- *unshared*: in proportion to its own bits;
- *queued*: in proportion to its bits plus those of other cameras in transit when it was sent, as on
  a link with one queue;
- *fair*: by the time that the camera had the link to itself, plus half, a third, ... of the time in
  which one, two, ... other cameras had frames in transit.

Where the predictions differ by more than timing noise, one of them is closer to the measured time.
On a link of its own the bits of others do not matter, and *unshared* is closer; on a shared link it
is not. To be closer is not to be right: while the box or its machine is busy, frames of all cameras
wait together to be read. They look long and overlap, and then a prediction that depends on others
is often closer, whatever link carried them. So frames that the box read late do not count
(`stalled`), nor does a frame whose time neither prediction explains (`CLEAR`).

A camera shares an uplink when another prediction is closer nearly always (`JOIN`), and stops
sharing it when that no longer holds (`LEAVE`). The cameras whose frames were in transit with most
of its own share it too, unless their own frames say otherwise: in a queue, the first frame waits
for no other.

A link much faster than its frames gives no evidence, nor do cameras whose frames always overlap in
the same way. A camera that does not share is left out when transmission times of others are
predicted. If one address has two shared uplinks, none is found.

Pure: the instants are arguments. O(frames of its address since it was sent) per evaluated frame,
which is the half second of `SETTLED_NS` and its own time.
"""

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from edgebox.domain.requests import CameraId, SiteId
from edgebox.link.bandwidth import NOISE_NS

JUDGED = 80
"""Number of frames with differing predictions by which a camera is classified."""
JOIN = 64
LEAVE = 48
CLEAR = 0.2
"""A frame counts if its time differs from one prediction by at most this share of what separates
the two."""
JUDGE_NS = 50_000_000
"""A frame of a camera is evaluated at most this often, because of its cost."""
JUDGED_TOGETHER = 8
"""With more cameras at an address, their frames together are evaluated no more often than those of
this many: what a frame costs rises with the number of cameras, too."""
STALL_READ_NS = 10_000_000
"""Time after a stall of the receiver in which it reads what has arrived meanwhile."""
STALLS_MAX = 256
"""Number of stalls remembered: those of the time until a frame is evaluated are fewer."""
SETTLED_NS = 500_000_000
"""Time after which all frames in transit together with a frame have arrived."""
REFERENCE_NS = 1_000_000_000
"""Maximum age of the frame from which another is predicted, because links change."""


@dataclass(frozen=True, slots=True)
class _Flight:
    """A frame in transit, from the instant it was the first of its camera's frames."""

    camera: CameraId
    start_ns: int
    end_ns: int
    bits: int

    @property
    def took_ns(self) -> int:
        return self.end_ns - self.start_ns


@dataclass(frozen=True, slots=True)
class _Seen:
    """The evaluation of a frame after all frames in transit with it have arrived."""

    flight: _Flight
    ahead_bits: float
    """Bits of other cameras in transit when it was sent."""
    unshared_ns: float
    """Its share of the link's time, divided at each moment among the cameras with frames in
    transit."""


@dataclass(slots=True)
class _Camera:
    """The state of one camera."""

    pending: deque[_Flight] = field(default_factory=deque)
    seen: deque[_Seen] = field(default_factory=deque)
    queued: deque[bool] = field(default_factory=lambda: deque(maxlen=JUDGED))
    """For the frames that count: whether *queued* was closer than *unshared*."""
    fair: deque[bool] = field(default_factory=lambda: deque(maxlen=JUDGED))
    concurrent: deque[frozenset[CameraId]] = field(default_factory=lambda: deque(maxlen=JUDGED))
    """The cameras with frames in transit together with those."""
    end_ns: int = 0
    judged_at_ns: int = 0
    shares: bool | None = None
    """Whether it shares its uplink; None: no evidence yet."""

    def companions(self) -> set[CameraId]:
        """Return the cameras that had frames in transit with most of its informative frames."""
        counts = Counter(camera for cameras in self.concurrent for camera in cameras)
        return {camera for camera, count in counts.items() if 2 * count > len(self.concurrent)}

    def decide(self) -> None:
        """Classify the camera by its informative frames."""
        full = [len(one) == JUDGED for one in (self.queued, self.fair)]
        wins = max(sum(self.queued) * full[0], sum(self.fair) * full[1])
        if wins >= JOIN:
            self.shares = True
        elif all(full) and wins < LEAVE:
            self.shares = False


class SiteInference:
    """The cameras of all addresses that do not state their site."""

    def __init__(self) -> None:
        self._cameras: dict[str, dict[CameraId, _Camera]] = {}
        self._address_of: dict[CameraId, str] = {}
        self._flights: dict[str, list[_Flight]] = {}
        """By address, ordered by their ends."""
        self._site_of: dict[CameraId, SiteId] = {}
        self._updates: dict[CameraId, SiteId | None] = {}
        self._stalls: deque[tuple[int, int]] = deque(maxlen=STALLS_MAX)
        """(start, end): when the receiver read nothing, in order."""

    def stalled(self, start_ns: int, end_ns: int) -> None:
        """Note that the receiver read nothing meanwhile: what arrived then was read afterwards."""
        if end_ns - start_ns > NOISE_NS:
            self._stalls.append((start_ns, end_ns))

    def opened(self, camera: CameraId, address: str) -> None:
        """Add a camera of an address."""
        self.closed(camera)
        self._address_of[camera] = address
        self._cameras.setdefault(address, {})[camera] = _Camera()
        self._flights.setdefault(address, [])

    def closed(self, camera: CameraId) -> None:
        """Remove a camera."""
        address = self._address_of.pop(camera, None)
        if address is None:
            return
        del self._cameras[address][camera]
        self._site_of.pop(camera, None)
        self._updates.pop(camera, None)
        self._look(address)
        if not self._cameras[address]:
            del self._cameras[address], self._flights[address]

    def add(self, camera: CameraId, size_bytes: int, sent_ns: int, end_ns: int) -> None:
        """Learn from a frame that has arrived; instants are those at the receiver."""
        address = self._address_of.get(camera)
        if address is None or len(self._cameras[address]) < 2:
            return
        of = self._cameras[address][camera]
        flight = _Flight(camera, max(sent_ns, of.end_ns), end_ns, size_bytes * 8)
        of.end_ns = max(of.end_ns, end_ns)
        if flight.took_ns <= 0:
            return
        flights = self._flights[address]
        at = bisect_left(flights, end_ns, key=lambda known: known.end_ns)
        flights.insert(at, flight)
        _forget(flights, end_ns - 2 * SETTLED_NS - REFERENCE_NS)
        crowded = max(1.0, len(self._cameras[address]) / JUDGED_TOGETHER)
        if end_ns - of.judged_at_ns >= JUDGE_NS * crowded:
            of.judged_at_ns = end_ns
            of.pending.append(flight)
        while of.pending and of.pending[0].end_ns <= end_ns - SETTLED_NS:
            self._judge(of, of.pending.popleft(), address)

    def take_updates(self) -> dict[CameraId, SiteId | None]:
        """Return the cameras whose site has changed since the last call."""
        updates, self._updates = self._updates, {}
        return updates

    def _look(self, address: str) -> None:
        """Update which cameras share a site."""
        cameras = self._cameras[address]
        sharing = {camera for camera, of in cameras.items() if of.shares}
        for camera in list(sharing):
            sharing |= cameras[camera].companions()
        if sharing:
            # A member stays until its own frames say otherwise.
            sharing |= self._site_of.keys() & cameras.keys()
        sharing -= {camera for camera in sharing if self._is_alone(address, camera)}
        for camera in cameras:
            # No camera can state this name: valid names have no parentheses.
            together = camera in sharing and len(sharing) > 1
            site = SiteId(f"({address})") if together else None
            if site == self._site_of.get(camera):
                continue
            self._updates[camera] = site
            if site is None:
                del self._site_of[camera]
            else:
                self._site_of[camera] = site

    def _knows(self, cameras: frozenset[CameraId]) -> bool:
        return cameras <= self._site_of.keys()

    def _is_alone(self, address: str, camera: CameraId) -> bool:
        known = self._cameras[address].get(camera)
        return known is None or known.shares is False

    def _was_read_late(self, flight: _Flight) -> bool:
        """Say whether a frame was read during a stall or, with others, after it."""
        at = bisect_left(self._stalls, flight.end_ns, key=lambda stall: stall[1] + STALL_READ_NS)
        return at < len(self._stalls) and self._stalls[at][0] < flight.end_ns

    def _judge(self, of: _Camera, flight: _Flight, address: str) -> None:
        if self._was_read_late(flight):
            return
        others = list(self._others(flight, address))
        seen = _Seen(flight, _ahead_bits(flight, others), _unshared_ns(flight, others))
        while of.seen and of.seen[0].flight.end_ns < flight.end_ns - REFERENCE_NS:
            of.seen.popleft()
        if of.seen:
            # The more the frames in transit differ, the more informative is the comparison.
            before = max(of.seen, key=lambda known: abs(known.ahead_bits - seen.ahead_bits))
            informative = _count(of.queued, flight, before, _queued_ns(before, seen))
            informative |= _count(of.fair, flight, before, _fair_ns(before, seen, others))
            if informative:
                of.concurrent.append(frozenset(other.camera for other in others))
                shared = of.shares
                of.decide()
                if of.shares != shared or (of.shares and not self._knows(of.concurrent[-1])):
                    self._look(address)
        of.seen.append(seen)

    def _others(self, flight: _Flight, address: str) -> Iterator[_Flight]:
        """Yield other cameras' frames in transit at the same time, if they may share the link."""
        flights = self._flights[address]
        first = bisect_left(flights, flight.start_ns, key=lambda known: known.end_ns)
        for other in flights[first:]:
            if other.camera == flight.camera or other.start_ns >= flight.end_ns:
                continue
            if not self._is_alone(address, other.camera):
                yield other


def _forget(flights: list[_Flight], before_ns: int) -> None:
    # In bulk, because deleting from the front of a list costs O(n).
    count = bisect_left(flights, before_ns, key=lambda known: known.end_ns)
    if count > len(flights) // 2:
        del flights[:count]


def _count(wins: deque[bool], flight: _Flight, before: _Seen, shared_ns: float) -> bool:
    """Note which prediction was right, if they differ and one was; say whether."""
    unshared_ns = before.flight.took_ns * flight.bits / before.flight.bits
    difference_ns = abs(shared_ns - unshared_ns)
    off_shared_ns = abs(flight.took_ns - shared_ns)
    off_unshared_ns = abs(flight.took_ns - unshared_ns)
    if difference_ns <= NOISE_NS or min(off_shared_ns, off_unshared_ns) > CLEAR * difference_ns:
        return False
    wins.append(off_shared_ns < off_unshared_ns)
    return True


def _ahead_bits(flight: _Flight, others: Sequence[_Flight]) -> float:
    """Return the bits of other cameras in transit when a frame was sent, each sent evenly."""
    return sum(
        other.bits * (other.end_ns - flight.start_ns) / other.took_ns
        for other in others
        if other.start_ns < flight.start_ns < other.end_ns
    )


def _queued_ns(before: _Seen, seen: _Seen) -> float:
    """Predict a transmission time on a link with one queue."""
    bits = seen.flight.bits + seen.ahead_bits
    return before.flight.took_ns * bits / (before.flight.bits + before.ahead_bits)


def _unshared_ns(flight: _Flight, others: Sequence[_Flight]) -> float:
    """Return the transmission time without other cameras, on a fairly shared link."""
    shared_ns = 0.0
    for start_ns, end_ns, sharing in _stretches(flight.start_ns, others):
        if start_ns >= flight.end_ns:
            break
        shared_ns += (min(end_ns, flight.end_ns) - start_ns) / sharing
    return shared_ns


def _fair_ns(before: _Seen, seen: _Seen, others: Sequence[_Flight]) -> float:
    """Predict a transmission time on a link shared fairly with the other frames in transit."""
    left_ns = before.unshared_ns * seen.flight.bits / before.flight.bits
    for start_ns, end_ns, sharing in _stretches(seen.flight.start_ns, others):
        span_ns = (end_ns - start_ns) / sharing
        if span_ns >= left_ns:
            return start_ns + left_ns * sharing - seen.flight.start_ns
        left_ns -= span_ns
    return float("inf")


def _stretches(from_ns: int, others: Sequence[_Flight]) -> Iterator[tuple[int, int, int]]:
    """Yield (start, end, number of cameras on the link) from an instant on; the last is open."""
    turns = sorted(
        [
            *((max(other.start_ns, from_ns), 1) for other in others),
            *((max(other.end_ns, from_ns), -1) for other in others),
        ]
    )
    sharing, start_ns = 1, from_ns
    for at_ns, change in turns:
        if at_ns > start_ns:
            yield start_ns, at_ns, sharing
            start_ns = at_ns
        sharing += change
    yield start_ns, 1 << 62, sharing
