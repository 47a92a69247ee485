"""Owns the notation of zones and lines as JSON: in requests, and stored. Pure."""

import re
from collections.abc import Callable, Sequence

from edgebox.domain.field_reader import FieldReader
from edgebox.domain.zones import (
    NAME_PATTERN,
    ZONES_MAX,
    Line,
    Point,
    Zone,
    line_problem,
    polygon_problem,
)
from edgebox.link.protocol import NAME_WANTED

DWELL_MAX_S = 86_400
_NAME = re.compile(NAME_PATTERN)
_ZONE_FIELDS = ("name", "points", "classes", "min_dwell_s")
_LINE_FIELDS = ("name", "points", "classes")


def read_zones(read: FieldReader) -> tuple[Zone, ...]:
    """Read the field `zones`; what is wrong is collected by the reader."""
    zones = []
    for one in read.objects("zones", ZONES_MAX):
        one.refuse_unknown(_ZONE_FIELDS)
        zones.append(
            Zone(
                _name(one),
                _points(one, polygon_problem),
                tuple(one.texts("classes")),
                round(one.number("min_dwell_s", 0, DWELL_MAX_S, 0.0) * 1e9),
            )
        )
    return tuple(zones)


def read_lines(read: FieldReader) -> tuple[Line, ...]:
    """Read the field `lines`; what is wrong is collected by the reader."""
    lines = []
    for one in read.objects("lines", ZONES_MAX):
        one.refuse_unknown(_LINE_FIELDS)
        points = _points(one, line_problem)
        name, classes = _name(one), tuple(one.texts("classes"))
        if len(points) == 2:
            lines.append(Line(name, (points[0], points[1]), classes))
    return tuple(lines)


def refuse_repeated(read: FieldReader, zones: Sequence[Zone], lines: Sequence[Line]) -> None:
    """Refuse zones and lines of one camera that have the same name."""
    names = [zone.name for zone in zones] + [line.name for line in lines]
    for name in sorted({name for name in names if names.count(name) > 1}):
        read.refuse("zones", f'and lines must have names of their own; "{name}" is there twice')


def written_zones(of: Sequence[Zone | Line]) -> list[dict[str, object]]:
    """Return the notation that is read above."""
    return [
        {
            "name": one.name,
            "points": [list(point) for point in one.points],
            "classes": list(one.classes),
            **({"min_dwell_s": one.min_dwell_ns / 1e9} if isinstance(one, Zone) else {}),
        }
        for one in of
    ]


def _name(read: FieldReader) -> str:
    return read.text("name", pattern=_NAME, expected=NAME_WANTED)


def _points(
    read: FieldReader, problem_of: Callable[[Sequence[Point]], str | None]
) -> tuple[Point, ...]:
    points: list[Point] = []
    for at, item in enumerate(read.items("points", 1000)):
        match item:
            case [int() | float() as x, int() | float() as y] if _are_numbers(x, y):
                points.append((float(x), float(y)))
            case _:
                read.refuse(("points", at), "must be [x, y], two numbers from 0 to 1", item)
                return ()
    problem = problem_of(points)
    if problem is not None:
        read.refuse("points", f"do not fit: {problem}")
    return tuple(points)


def _are_numbers(*values: object) -> bool:
    return not any(isinstance(value, bool) for value in values)
