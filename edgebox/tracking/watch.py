"""Watches the zones and lines of one camera: who is inside, for how long, and who crosses.

Pure. Time is that of the capture. An object stands where its foot point is, the middle of its
box's lower side. Boxes tremble, so both have a hysteresis:

* A stay begins with the first picture that shows the foot point inside. It ends once the object
  was not seen inside for `hold_ns`; until then it counts as inside. A track that is lost inside
  keeps its stay while the tracker keeps the track, but counts no longer after `hold_ns`.
* A line is crossed when the foot point has come to the other side of it by a tenth of the box's
  height, and its way from where it was on this side leads over the line.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from edgebox.domain.zones import Line, Point, Zone, segments_cross, side_of

HOLD_NS = 500_000_000
_MARGIN = 0.1
"""Distance from a line that counts as being on a side of it, in heights of the box."""

Direction = Literal["in", "out"]


@dataclass(frozen=True, slots=True)
class Sighting:
    """A tracked object in one picture, in shares of the picture."""

    track: int
    label: str
    foot: Point
    height: float
    """Height of its box, in shares of the picture's height."""


@dataclass(frozen=True, slots=True)
class Stay:
    """An object in a zone."""

    zone: str
    track: int
    label: str
    since_ns: int
    dwell_ns: int


@dataclass(frozen=True, slots=True)
class StayBegun(Stay):
    """An object has been in a zone for the zone's minimum; once a stay."""


@dataclass(frozen=True, slots=True)
class StayEnded(Stay):
    """A stay that was reported is over."""


@dataclass(frozen=True, slots=True)
class Crossing:
    """An object has crossed a line."""

    line: str
    track: int
    label: str
    direction: Direction


ZoneEvent = StayBegun | StayEnded | Crossing


@dataclass(slots=True)
class _Inside:
    label: str
    since_ns: int
    seen_ns: int
    """When it was seen inside the last time."""
    reported: bool = False

    def stay(self, kind: type[StayBegun] | type[StayEnded], zone: str, track: int) -> ZoneEvent:
        dwell_ns = self.seen_ns - self.since_ns
        return kind(zone, track, self.label, self.since_ns, dwell_ns)


@dataclass(slots=True)
class _WatchedZone:
    zone: Zone
    inside: dict[int, _Inside] = field(default_factory=dict)

    def end(self) -> list[ZoneEvent]:
        """Empty it; return the stays that end and were reported."""
        inside, self.inside = self.inside, {}
        return [
            stay.stay(StayEnded, self.zone.name, track)
            for track, stay in inside.items()
            if stay.reported
        ]


@dataclass(slots=True)
class _WatchedLine:
    line: Line
    feet: dict[int, Point] = field(default_factory=dict)
    """Where each track stood last, clearly on one side."""
    counts: dict[tuple[Direction, str], int] = field(default_factory=dict)


class ZoneWatch:
    """The zones and lines of one camera."""

    def __init__(
        self, zones: Iterable[Zone], lines: Iterable[Line], hold_ns: int = HOLD_NS
    ) -> None:
        """Watch these zones and lines, all with names of their own."""
        self._zones = [_WatchedZone(zone) for zone in zones]
        self._lines = [_WatchedLine(line) for line in lines]
        self._hold_ns = hold_ns
        self._at_ns = 0

    def change(self, zones: Iterable[Zone], lines: Iterable[Line]) -> list[ZoneEvent]:
        """Watch these from now on; return the stays that end with it.

        A zone or line that is as it was goes on: its stays, its counts. Any other begins empty.
        """
        kept = {watched.zone: watched for watched in self._zones}
        self._zones = [kept.pop(zone) if zone in kept else _WatchedZone(zone) for zone in zones]
        counted = {watched.line: watched for watched in self._lines}
        self._lines = [counted.get(line, _WatchedLine(line)) for line in lines]
        return [event for watched in kept.values() for event in watched.end()]

    def end(self) -> list[ZoneEvent]:
        """Empty all zones, because nothing is seen any more; return the stays that end with it.

        Crossings start anew.
        """
        self._lines = [_WatchedLine(watched.line) for watched in self._lines]
        return [event for watched in self._zones for event in watched.end()]

    def update(
        self,
        seen: Sequence[Sighting],
        alive: frozenset[int],
        captured_ns: int,
        aspect: float = 1.0,
    ) -> list[ZoneEvent]:
        """Process the objects of a picture; return what has happened.

        Args:
            seen: each track at most once.
            alive: all tracks that are seen or may be found again.
            captured_ns: later than that of the pictures before.
            aspect: the picture's width divided by its height.
        """
        self._at_ns = captured_ns
        happened: list[ZoneEvent] = []
        for zone in self._zones:
            self._update_zone(zone, seen, alive, captured_ns, happened)
        for line in self._lines:
            _update_line(line, seen, alive, aspect, happened)
        return happened

    def counts(self) -> dict[str, dict[str, int]]:
        """Return how many objects of each class are in each zone, as of the last picture."""
        found: dict[str, dict[str, int]] = {}
        for watched in self._zones:
            of = found[watched.zone.name] = {}
            for stay in watched.inside.values():
                # What the last picture shows inside counts, also if nothing is held.
                if self._at_ns - stay.seen_ns < max(1, self._hold_ns):
                    of[stay.label] = of.get(stay.label, 0) + 1
        return found

    def crossings(self) -> dict[str, dict[str, dict[str, int]]]:
        """Return how many objects of each class have crossed each line in each direction."""
        found: dict[str, dict[str, dict[str, int]]] = {}
        for watched in self._lines:
            of = found[watched.line.name] = {"in": {}, "out": {}}
            for (direction, label), count in watched.counts.items():
                of[direction][label] = count
        return found

    def _update_zone(
        self,
        watched: _WatchedZone,
        seen: Sequence[Sighting],
        alive: frozenset[int],
        now_ns: int,
        happened: list[ZoneEvent],
    ) -> None:
        zone, inside = watched.zone, watched.inside
        candidates = [one for one in seen if not zone.classes or one.label in zone.classes]
        within = contains(zone.points, np.array([one.foot for one in candidates]).reshape(-1, 2))
        for one, is_within in zip(candidates, within.tolist(), strict=True):
            if is_within:
                stay = inside.setdefault(one.track, _Inside(one.label, now_ns, now_ns))
                stay.seen_ns = now_ns
        outside = {one.track for one, is_in in zip(candidates, within, strict=True) if not is_in}
        for track, stay in list(inside.items()):
            gone = track in outside and now_ns - stay.seen_ns >= self._hold_ns
            if gone or track not in alive:
                del inside[track]
                if stay.reported:
                    happened.append(stay.stay(StayEnded, zone.name, track))
            elif not stay.reported and stay.seen_ns - stay.since_ns >= zone.min_dwell_ns:
                stay.reported = True
                happened.append(stay.stay(StayBegun, zone.name, track))


def _update_line(
    watched: _WatchedLine,
    seen: Sequence[Sighting],
    alive: frozenset[int],
    aspect: float,
    happened: list[ZoneEvent],
) -> None:
    line, feet = watched.line, watched.feet
    a, b = line.points
    # Shares of the width and of the height differ: distances are compared in heights.
    length = float(np.hypot((b[0] - a[0]) * aspect, b[1] - a[1]))
    for one in seen:
        if line.classes and one.label not in line.classes:
            continue
        side = side_of(a, b, one.foot)
        if abs(side) * aspect < _MARGIN * one.height * length:
            continue
        before = feet.get(one.track)
        feet[one.track] = one.foot
        if before is None or (side_of(a, b, before) > 0) == (side > 0):
            continue
        if segments_cross(before, one.foot, a, b):
            direction: Direction = "in" if side > 0 else "out"
            key = direction, one.label
            watched.counts[key] = watched.counts.get(key, 0) + 1
            happened.append(Crossing(line.name, one.track, one.label, direction))
    for track in feet.keys() - alive:
        del feet[track]


def contains(polygon: Sequence[Point], points: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which of the points (n, 2) a polygon contains; those on a side belong to it.

    A ray from a point to the right meets the sides of the polygon an odd number of times if the
    point is inside.
    """
    corners = np.array(polygon)
    a, b = corners, np.roll(corners, -1, axis=0)
    x, y = points[:, :1], points[:, 1:]
    side = (b[:, 0] - a[:, 0]) * (y - a[:, 1]) - (b[:, 1] - a[:, 1]) * (x - a[:, 0])
    spans = (a[:, 1] <= y) != (b[:, 1] <= y)
    met = spans & ((side < 0) == (b[:, 1] > a[:, 1]))
    low, high = np.minimum(a, b), np.maximum(a, b)
    on_side = (np.abs(side) < 1e-12) & (x >= low[:, 0]) & (x <= high[:, 0])
    on_side &= (y >= low[:, 1]) & (y <= high[:, 1])
    result: NDArray[np.bool_] = (np.count_nonzero(met, axis=1) % 2 == 1) | on_side.any(axis=1)
    return result
