"""Decides which cameras behind one network address share an uplink, without being told.

Many cameras may come from one address: behind a modem they share its uplink, behind a proxy they
need not. What tells is whether frames of others make a frame take longer. Each frame's flight is
predicted from an earlier one of its camera, in three ways, before anything is known of its end:

- *alone*: in proportion to its own bits;
- *queued*: in proportion to its bits and those that others had on their way when it was sent, as
  on a link whose frames wait in one queue;
- *fair*: by the time that the camera had the link to itself, and half, a third, ... of the time in
  which one, two, ... others had frames on their way.

Where the predictions differ by more than timing noise, one of them is nearer to the truth. On a
link of its own the bits of others have nothing to do with a flight, and *alone* wins; on a shared
one it loses. A camera shares an uplink when another prediction wins nearly always (`JOIN`), and
does no more when that is no longer so (`LEAVE`). So do those whose frames were on their way with
most of its own, unless their own frames say otherwise: in a queue, the first waits for nobody.

A link much faster than its frames decides nothing, nor do cameras whose frames always lie alike. A
camera that is found to be alone is left out when flights of others are predicted. Of two uplinks
behind one address, each shared, none is found.

Pure: the instants come in as arguments. O(frames on their way meanwhile) per frame judged.
"""

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from edgebox.domain.requests import CameraId, SiteId
from edgebox.link.bandwidth import NOISE_NS

JUDGED = 80
"""Frames by which a camera is judged: of those of which the predictions differ."""
JOIN = 64
LEAVE = 48
JUDGE_NS = 100_000_000
"""At most so often is a frame of a camera judged, for its cost."""
SETTLED_NS = 500_000_000
"""So long after a frame all that was on its way with it has arrived."""
REFERENCE_NS = 1_000_000_000
"""How much older the frame is, at most, from which one is predicted: links change."""


@dataclass(frozen=True, slots=True)
class _Flight:
    """A frame on its way: from when it was at the head of its camera's frames."""

    camera: CameraId
    start_ns: int
    end_ns: int
    bits: int

    @property
    def took_ns(self) -> int:
        return self.end_ns - self.start_ns


@dataclass(frozen=True, slots=True)
class _Seen:
    """What can be said of a frame once all that was on its way with it has arrived."""

    flight: _Flight
    ahead_bits: float
    """Of others, on their way when it was sent."""
    alone_ns: float
    """Its time on the link, each moment divided among those that had frames on their way."""


@dataclass(slots=True)
class _Camera:
    """What is known of one camera."""

    pending: deque[_Flight] = field(default_factory=deque)
    seen: deque[_Seen] = field(default_factory=deque)
    queued: deque[bool] = field(default_factory=lambda: deque(maxlen=JUDGED))
    """Whether *queued* was nearer than *alone*, of the frames of which they differed."""
    fair: deque[bool] = field(default_factory=lambda: deque(maxlen=JUDGED))
    concurrent: deque[frozenset[CameraId]] = field(default_factory=lambda: deque(maxlen=JUDGED))
    """Who had frames on their way with those."""
    end_ns: int = 0
    judged_ns: int = 0
    shares: bool | None = None
    """Whether it shares its uplink; None: nothing has told yet."""

    def companions(self) -> set[CameraId]:
        """Return who had frames on their way with most of those that told something."""
        counts = Counter(camera for cameras in self.concurrent for camera in cameras)
        return {camera for camera, count in counts.items() if 2 * count > len(self.concurrent)}

    def decide(self) -> None:
        """Judge by the frames that said something."""
        full = [len(one) == JUDGED for one in (self.queued, self.fair)]
        wins = max(sum(self.queued) * full[0], sum(self.fair) * full[1])
        if wins >= JOIN:
            self.shares = True
        elif all(full) and wins < LEAVE:
            self.shares = False


class SiteInference:
    """The cameras of all addresses that do not say what uplink they have."""

    def __init__(self) -> None:
        self._cameras: dict[str, dict[CameraId, _Camera]] = {}
        self._address_of: dict[CameraId, str] = {}
        self._flights: dict[str, list[_Flight]] = {}
        """Of each address, by their ends."""
        self._site_of: dict[CameraId, SiteId] = {}
        self._updates: dict[CameraId, SiteId | None] = {}

    def opened(self, camera: CameraId, address: str) -> None:
        """Take on a camera of an address."""
        self.closed(camera)
        self._address_of[camera] = address
        self._cameras.setdefault(address, {})[camera] = _Camera()
        self._flights.setdefault(address, [])

    def closed(self, camera: CameraId) -> None:
        """Forget a camera."""
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
        """Learn from a frame that has arrived; instants as at the receiver."""
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
        if end_ns - of.judged_ns >= JUDGE_NS:
            of.judged_ns = end_ns
            of.pending.append(flight)
        while of.pending and of.pending[0].end_ns <= end_ns - SETTLED_NS:
            self._judge(of, of.pending.popleft(), address)

    def take_updates(self) -> dict[CameraId, SiteId | None]:
        """Return whose site is another than when this was last asked."""
        updates, self._updates = self._updates, {}
        return updates

    def _look(self, address: str) -> None:
        """See who is of a site now."""
        cameras = self._cameras[address]
        sharing = {camera for camera, of in cameras.items() if of.shares}
        for camera in list(sharing):
            sharing |= cameras[camera].companions()
        if sharing:
            # Who belongs to it stays until its own frames say otherwise.
            sharing |= self._site_of.keys() & cameras.keys()
        sharing -= {camera for camera in sharing if self._is_alone(address, camera)}
        for camera in cameras:
            # No camera can call its site so: names have no parentheses.
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

    def _judge(self, of: _Camera, flight: _Flight, address: str) -> None:
        others = list(self._others(flight, address))
        seen = _Seen(flight, _ahead_bits(flight, others), _alone_ns(flight, others))
        while of.seen and of.seen[0].flight.end_ns < flight.end_ns - REFERENCE_NS:
            of.seen.popleft()
        if of.seen:
            # The more different what was on its way, the more it tells.
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
        """Yield what others that may share the link had on their way at the same time."""
        flights = self._flights[address]
        first = bisect_left(flights, flight.start_ns, key=lambda known: known.end_ns)
        for other in flights[first:]:
            if other.camera == flight.camera or other.start_ns >= flight.end_ns:
                continue
            if not self._is_alone(address, other.camera):
                yield other


def _forget(flights: list[_Flight], before_ns: int) -> None:
    # A list, for bisection; so not one by one.
    count = bisect_left(flights, before_ns, key=lambda known: known.end_ns)
    if count > len(flights) // 2:
        del flights[:count]


def _count(wins: deque[bool], flight: _Flight, before: _Seen, shared_ns: float) -> bool:
    """Note which prediction was nearer, if they differ; say whether they do."""
    alone_ns = before.flight.took_ns * flight.bits / before.flight.bits
    if abs(shared_ns - alone_ns) <= NOISE_NS:
        return False
    wins.append(abs(flight.took_ns - shared_ns) < abs(flight.took_ns - alone_ns))
    return True


def _ahead_bits(flight: _Flight, others: Sequence[_Flight]) -> float:
    """Return what others had on their way when a frame was sent, each carried evenly."""
    return sum(
        other.bits * (other.end_ns - flight.start_ns) / other.took_ns
        for other in others
        if other.start_ns < flight.start_ns < other.end_ns
    )


def _queued_ns(before: _Seen, seen: _Seen) -> float:
    """Predict a flight on a link with one queue."""
    bits = seen.flight.bits + seen.ahead_bits
    return before.flight.took_ns * bits / (before.flight.bits + before.ahead_bits)


def _alone_ns(flight: _Flight, others: Sequence[_Flight]) -> float:
    """Return what a flight would have taken without others, on a link shared fairly."""
    shared_ns = 0.0
    for start_ns, end_ns, sharing in _stretches(flight.start_ns, others):
        if start_ns >= flight.end_ns:
            break
        shared_ns += (min(end_ns, flight.end_ns) - start_ns) / sharing
    return shared_ns


def _fair_ns(before: _Seen, seen: _Seen, others: Sequence[_Flight]) -> float:
    """Predict a flight on a link that is shared fairly with others on their way meanwhile."""
    left_ns = before.alone_ns * seen.flight.bits / before.flight.bits
    for start_ns, end_ns, sharing in _stretches(seen.flight.start_ns, others):
        span_ns = (end_ns - start_ns) / sharing
        if span_ns >= left_ns:
            return start_ns + left_ns * sharing - seen.flight.start_ns
        left_ns -= span_ns
    return float("inf")


def _stretches(from_ns: int, others: Sequence[_Flight]) -> Iterator[tuple[int, int, int]]:
    """Yield (start, end, how many share the link) from an instant on, the last without end."""
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
