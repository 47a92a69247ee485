"""The roads of a street scene, and their traffic over time.

Pure data and pure functions: a position follows from the moment asked for. All vehicles of a
lane have one constant speed and repeat their rounds. Where two roads cross, their platoons take
turns, so that none has to brake. Limits: straight roads; traffic on the right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import cos, floor, pi, sin
from random import Random

import numpy as np

from edgebox.scene.optics import Floats, View

LABELS = ("person", "car", "bus", "truck", "motorbike")
LANE_WIDTH_M = 3.4
PAVEMENT_WIDTH_M = 3.2
_LENGTHS_M = {"car": 4.6, "bus": 12.0, "truck": 10.5, "motorbike": 2.1}


@dataclass(frozen=True)
class Road:
    """A straight road: its middle line runs through (x_m, z_m) along heading_rad."""

    x_m: float
    z_m: float
    heading_rad: float
    lanes_per_side: int
    parking: bool  # a strip for parked cars along both kerbs
    greens: tuple[bool, bool]  # grass instead of buildings on the left, on the right

    @property
    def half_width_m(self) -> float:
        """Return the distance from the middle line to the kerb."""
        return self.lanes_per_side * LANE_WIDTH_M + (2.3 if self.parking else 0.4)

    def at(self, along_m: Floats, right_m: Floats | float) -> Floats:
        """Return (n, 3) ground points, given distances along the road and to its right."""
        sine, cosine = sin(self.heading_rad), cos(self.heading_rad)
        points = np.zeros((len(along_m), 3))
        points[:, 0] = self.x_m + along_m * sine + right_m * cosine
        points[:, 2] = self.z_m + along_m * cosine - right_m * sine
        return points


@dataclass(frozen=True)
class Path:
    """A line beside the middle of a road, followed from start_m to end_m along the road."""

    road: Road
    right_m: float  # to the right of the road's middle
    direction: int  # +1 along the road's heading, -1 against it
    start_m: float
    end_m: float

    @cached_property
    def _beginning(self) -> tuple[float, float, float, float]:
        """Return x and z of the place 0 m along the road, and their change per metre."""
        x, _, z = self.road.at(np.zeros(1), self.right_m)[0].tolist()
        return x, z, sin(self.road.heading_rad), cos(self.road.heading_rad)

    def place(self, along_m: float) -> tuple[float, float]:
        """Return x and z, metres, of a place along the road."""
        x, z, dx, dz = self._beginning
        return x + along_m * dx, z + along_m * dz

    @cached_property
    def heading_rad(self) -> float:
        """Return where things on this path face."""
        return self.road.heading_rad + (0.0 if self.direction > 0 else pi)

    @property
    def length_m(self) -> float:
        """Return the distance from start to end."""
        return abs(self.end_m - self.start_m)

    @property
    def low_m(self) -> float:
        """Return whichever of start and end comes first along the road."""
        return min(self.start_m, self.end_m)

    @property
    def high_m(self) -> float:
        """Return whichever of start and end comes last along the road."""
        return max(self.start_m, self.end_m)


@dataclass(frozen=True)
class Slot:
    """A place in a lane's traffic: what kind of thing passes, and when it enters."""

    label: str
    entry_s: float  # on a lane that stands still: the place along the road, metres
    design: int  # picks among the scene's designs; changes with every round


@dataclass(frozen=True)
class Lane:
    """A path on which things move at one speed, round after round."""

    path: Path
    speed_mps: float  # 0.0: they stand
    round_s: float
    slots: tuple[Slot, ...]

    def occupants(self, at_s: float) -> list[tuple[float, Slot, int]]:
        """Return (place along the road, slot, round) of everything on the lane at a moment."""
        if self.speed_mps == 0.0:
            return [(slot.entry_s, slot, 0) for slot in self.slots]
        found = []
        for slot in self.slots:
            turn = floor((at_s - slot.entry_s) / self.round_s)
            gone_m = self.speed_mps * (at_s - slot.entry_s - turn * self.round_s)
            if gone_m <= self.path.length_m:
                found.append((self.path.start_m + self.path.direction * gone_m, slot, turn))
        return found


@dataclass(frozen=True)
class Green:
    """When a road's platoons may pass the junction, and where along the road it is."""

    from_s: float
    until_s: float
    meets_m: float


def visible_span_m(
    road: Road, right_m: float, view: View, far_m: float, slack_m: float
) -> tuple[float, float] | None:
    """Return where along the road the picture begins and ends; None where it never shows."""
    along = np.arange(-160.0, 330.0, 0.5)
    points = road.at(along, right_m)
    depth = points[:, 2]
    spots = view.project(points)
    reach = slack_m * view.focal_px / np.maximum(depth, 3.0)
    seen = (depth > -slack_m) & (depth < far_m)
    seen &= np.abs(spots[:, 0] - view.middle_px) < view.width_px / 2 + reach
    seen &= (depth < 4.0) | (spots[:, 1] < view.height_px * 1.9)
    inside = along[seen]
    return (float(inside[0]), float(inside[-1])) if len(inside) else None


class TrafficPlanner:
    """Fills a scene's roads, as far as its camera sees them.

    Args:
        far_m: Things farther away than this are not shown.
    """

    def __init__(self, rng: Random, roads: Sequence[Road], view: View, far_m: float) -> None:
        self._rng, self._roads, self._view, self._far_m = rng, roads, view, far_m
        self._round_s = rng.uniform(34, 44)
        self._crowd = rng.uniform(0.35, 1.0)

    def fill(self, people_wait: bool) -> tuple[Lane, ...]:
        """Draw the traffic of all roads, and the people who walk or wait beside it."""
        lanes: list[Lane] = []
        for index, road in enumerate(self._roads):
            green = self._green(index)
            base = self._rng.uniform(6.0, 12.0) if index == 0 else self._rng.uniform(6.0, 9.0)
            if green is None and self._rng.random() < 0.12:
                base = self._rng.uniform(2.5, 4.5)  # slow, dense traffic
            for number in range(road.lanes_per_side):
                for direction in (1, -1):
                    right = direction * (number + 0.5) * LANE_WIDTH_M
                    path = self._path(road, right, direction, self._far_m, 9.0)
                    if path is not None:
                        lanes.append(
                            self._vehicles(path, base * self._rng.uniform(0.92, 1.08), green)
                        )
            lanes += self._beside(road, green, people_wait)
        return tuple(lanes)

    def _green(self, index: int) -> Green | None:
        if len(self._roads) < 2:
            return None
        meets_m = _meeting_m(self._roads[index], self._roads[1 - index])
        half = self._round_s * 0.5
        return Green(0.0, half, meets_m) if index == 0 else Green(half, 2 * half, meets_m)

    def _path(
        self, road: Road, right_m: float, direction: int, far_m: float, slack_m: float
    ) -> Path | None:
        """Return the part of a path that the camera sees; None if the camera does not see it."""
        span = visible_span_m(road, right_m, self._view, far_m, slack_m)
        if span is None:
            return None
        start, end = span if direction > 0 else (span[1], span[0])
        return Path(road, right_m, direction, start, end)

    def _vehicles(self, path: Path, speed: float, green: Green | None) -> Lane:
        rng = self._rng
        if green is None:
            period = max(self._round_s, path.length_m / speed + 1.0)
            first, last, lead_s = 0.0, period, 0.0
        else:
            period = self._round_s
            speed = max(speed, path.length_m / (period - 1.0))
            first, last = green.from_s, green.until_s
            lead_s = abs(green.meets_m - path.start_m) / speed
        at = first + rng.uniform(0.2, 3.0)
        slots = []
        while True:
            label = rng.choices(("car", "bus", "truck", "motorbike"), (0.52, 0.12, 0.15, 0.21))[0]
            half_s = _LENGTHS_M[label] / 2 / speed
            if at + 2 * half_s > last - 1.5:
                break
            slots.append(Slot(label, (at + half_s - lead_s) % period, rng.randrange(1 << 20)))
            gap_m = 5.0 + speed * 0.45 + rng.expovariate(self._crowd / 14.0)
            at += 2 * half_s + gap_m / speed
        return Lane(path, speed, period, tuple(slots))

    def _beside(self, road: Road, green: Green | None, people_wait: bool) -> list[Lane]:
        """Return the pavements' people and the parked cars of both sides."""
        lanes = []
        walk_m = self._far_m * 0.72  # a person is smaller than a car: people stop showing earlier
        for side in (1, -1):
            for offset in (0.9, 2.2):
                direction = self._rng.choice((1, -1))
                path = self._path(road, side * (road.half_width_m + offset), direction, walk_m, 1.0)
                if path is not None:
                    lanes.append(self._walkers(path))
            right = side * (road.half_width_m - 1.15)
            path = self._path(road, right, side, self._far_m * 0.8, 3.0)
            if road.parking and path is not None:
                lanes.append(self._parked(path, green))
            if people_wait and self._rng.random() < 0.5:
                path = self._path(road, side * (road.half_width_m + 1.6), -side, walk_m, 0.0)
                if path is not None:
                    lanes.append(self._waiting(path))
        return lanes

    def _walkers(self, path: Path) -> Lane:
        speed = self._rng.uniform(1.1, 1.5)
        period = path.length_m / speed + 2.0
        slots, at = [], self._rng.uniform(0, 4)
        while at < period - 1.0:
            slots.append(Slot("person", at, self._rng.randrange(1 << 20)))
            at += (1.5 + self._rng.expovariate(self._crowd / 24.0)) / speed
        return Lane(path, speed, period, tuple(slots))

    def _parked(self, path: Path, green: Green | None) -> Lane:
        slots, at = [], path.low_m + self._rng.uniform(0, 5)
        while at < path.high_m:
            clear = green is None or abs(at - green.meets_m) > 14
            if clear and self._rng.random() < 0.5:
                slots.append(Slot("car", at, self._rng.randrange(1 << 20)))
            at += 6.0
        return Lane(path, 0.0, 1.0, tuple(slots))

    def _waiting(self, path: Path) -> Lane:
        """Return a few people who stand at a stop."""
        at = path.low_m + self._rng.uniform(0.0, 0.7) * path.length_m
        slots = []
        for _ in range(self._rng.randrange(2, 6)):
            slots.append(Slot("person", at, self._rng.randrange(1 << 20)))
            at += self._rng.uniform(0.9, 1.8)
        return Lane(path, 0.0, 1.0, tuple(slots))


def _meeting_m(road: Road, other: Road) -> float:
    """Return where along `road` its middle line meets the other's."""
    own = np.array((sin(road.heading_rad), cos(road.heading_rad)))
    theirs = np.array((sin(other.heading_rad), cos(other.heading_rad)))
    gap = np.array((other.x_m - road.x_m, other.z_m - road.z_m))
    return float(np.linalg.solve(np.stack((own, -theirs), axis=1), gap)[0])
