"""Zones and lines in a camera's picture, as a person draws them. Pure data, and what is valid.

Coordinates are shares of the picture: (0, 0) is its top left corner, (1, 1) its bottom right one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Point = tuple[float, float]

ZONES_MAX = 16
"""Zones of a camera at most, and lines: each is a series of figures."""
POINTS_MAX = 64
NAME_PATTERN = r"[A-Za-z0-9._-]{1,64}"
"""Valid names of zones and lines, which are parts of MQTT topics."""


@dataclass(frozen=True, slots=True)
class Zone:
    """A polygon. An object is in it by its foot point, the middle of its box's lower side."""

    name: str
    points: tuple[Point, ...]
    classes: tuple[str, ...] = ()
    """Only objects of these; empty: all."""
    min_dwell_ns: int = 0
    """A stay of at least this is an event."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line from one point to another. It is crossed inwards from its left to its right side.

    Left and right are those of somebody who looks along it, from its first point to its second.
    """

    name: str
    points: tuple[Point, Point]
    classes: tuple[str, ...] = ()


def polygon_problem(points: Sequence[Point]) -> str | None:
    """Return why points are no polygon of a zone; None: they are one."""
    if not 3 <= len(points) <= POINTS_MAX:
        return f"a zone needs 3 to {POINTS_MAX} points, not {len(points)}"
    outside = _outside(points)
    if outside is not None:
        return outside
    if len(set(points)) < len(points):
        return "two of its points are the same; leave one of them out"
    if any(segments_cross(*one, *other) for one, other in _apart(points)):
        return "its sides cross each other; list the points in their order around the zone"
    if abs(_area(points)) < 1e-6:
        return "its points lie on a line, so nothing can be in it"
    return None


def line_problem(points: Sequence[Point]) -> str | None:
    """Return why points are no line; None: they are one."""
    if len(points) != 2:
        return f"a line needs 2 points, not {len(points)}"
    outside = _outside(points)
    if outside is None and points[0] == points[1]:
        return "its two points are the same"
    return outside


def _outside(points: Sequence[Point]) -> str | None:
    for x, y in points:
        if not (0.0 <= x <= 1.0 and 0.0 <= y <= 1.0):
            return f"[{x:g}, {y:g}] is outside the picture, whose sides go from 0 to 1"
    return None


def _apart(points: Sequence[Point]) -> Iterator[tuple[tuple[Point, Point], tuple[Point, Point]]]:
    """Yield every two sides of a polygon that have no corner in common."""
    sides = [(points[i], points[(i + 1) % len(points)]) for i in range(len(points))]
    for i, one in enumerate(sides):
        for j in range(i + 2, len(sides)):
            if (j + 1) % len(sides) != i:
                yield one, sides[j]


def side_of(a: Point, b: Point, p: Point) -> float:
    """Return twice the area of the triangle of a line and a point.

    It is positive where the point is on the right of somebody who looks from `a` to `b`, in a
    picture whose y grows downwards.
    """
    return (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0])


def segments_cross(a: Point, b: Point, c: Point, d: Point) -> bool:
    """Return whether two segments have a point in common."""
    ends = side_of(c, d, a), side_of(c, d, b), side_of(a, b, c), side_of(a, b, d)
    if (ends[0] > 0) != (ends[1] > 0) and (ends[2] > 0) != (ends[3] > 0) and all(ends):
        return True
    pairs = ((a, c, d), (b, c, d), (c, a, b), (d, a, b))
    return any(
        value == 0.0 and _between(p, q, r) for value, (p, q, r) in zip(ends, pairs, strict=True)
    )


def _between(p: Point, a: Point, b: Point) -> bool:
    """Return whether a point on the line through `a` and `b` lies between them."""
    return min(a[0], b[0]) <= p[0] <= max(a[0], b[0]) and min(a[1], b[1]) <= p[1] <= max(a[1], b[1])


def _area(points: Sequence[Point]) -> float:
    around = zip(points, (*points[1:], points[0]), strict=True)
    return sum(a[0] * b[1] - b[0] * a[1] for a, b in around) / 2
