"""The sections that say which cameras are tracked, and their zones and lines."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from edgebox.config.keys import key
from edgebox.domain.zones import NAME_PATTERN, Line, Point, Zone, line_problem, polygon_problem

_CAMERA_DOC = "Camera that it belongs to, with * and ? as in file names"
_NAME_WANTED = "1 to 64 letters, digits, '.', '_' or '-'"
_CLASSES_DOC = "Classes that count; empty: all classes of the model"


def _name(doc: str) -> Any:
    return key("", doc, pattern=NAME_PATTERN, wanted=_NAME_WANTED)


@dataclass(frozen=True, slots=True)
class TrackingParameters:
    """Which objects of a camera's frames are the same. Off where nothing asks for it."""

    cameras: tuple[str, ...] = key(
        (),
        'Cameras to track, with * and ? as in file names; ["*"]: all; empty: only those with a '
        "zone or a line",
    )
    score_min: float = key(
        0.5,
        "Score from which a detection may begin a track; lower ones, down to 0.1, only continue it",
        low=0.1,
        high=1,
    )
    lost_s: float = key(2.0, "Seconds for which a track that is not seen is kept", low=0.1, high=60)
    hold_s: float = key(
        0.5, "Seconds outside a zone, or not seen, that end a stay in it", low=0.0, high=60
    )


@dataclass(frozen=True, slots=True)
class ZoneParameters:
    """A zone of the picture: who is in it is counted, and who stays makes an event."""

    camera: str = key("*", _CAMERA_DOC)
    name: str = _name("Name of the zone; different for each zone and line of a camera")
    points: tuple[Point, ...] = key(
        (), "Its corners in their order, each [x, y] from 0 (left, top) to 1 (right, bottom)",
        of=tuple,
    )  # fmt: skip
    classes: tuple[str, ...] = key((), _CLASSES_DOC)
    min_dwell_s: float = key(
        0.0, "Seconds in the zone after which a stay makes an event", low=0, high=86_400
    )

    @property
    def zone(self) -> Zone:
        """The zone."""
        return Zone(self.name, self.points, self.classes, round(self.min_dwell_s * 1e9))


@dataclass(frozen=True, slots=True)
class LineParameters:
    """A line in the picture: who crosses it is counted, and makes an event."""

    camera: str = key("*", _CAMERA_DOC)
    name: str = _name("Name of the line; different for each zone and line of a camera")
    points: tuple[Point, ...] = key(
        (), "Its two ends; in is from the left to the right of who looks along it", of=tuple
    )
    classes: tuple[str, ...] = key((), _CLASSES_DOC)

    @property
    def line(self) -> Line:
        """The line."""
        first, second = self.points
        return Line(self.name, (first, second), self.classes)


def tracking_contradictions(
    zones: Sequence[ZoneParameters], lines: Sequence[LineParameters]
) -> Iterator[str]:
    """Yield what is wrong although each key alone is right."""
    taken: list[tuple[str, str, str]] = []
    yield from _of("zones", zones, polygon_problem, taken)
    yield from _of("lines", lines, line_problem, taken)


def _of(
    section: str,
    tables: Sequence[ZoneParameters | LineParameters],
    problem_of: Callable[[Sequence[Point]], str | None],
    taken: list[tuple[str, str, str]],
) -> Iterator[str]:
    for number, table in enumerate(tables):
        path = f"{section}[{number}]"
        problem = problem_of(table.points)
        if problem is not None:
            yield f"{path}.points: {problem}"
        if not table.name:
            yield f"{path}.name: is needed"
            continue
        for camera, name, other in taken:
            if name == table.name and patterns_meet(camera, table.camera):
                whose = "this camera" if camera == table.camera else f'"{camera}"'
                yield f'{path}.name: {other} of {whose} is called "{name}", too'
                break
        taken.append((table.camera, table.name, path))


def patterns_meet(one: str, other: str) -> bool:
    """Say whether some name fits two patterns with * and ? each. O(length x length)."""
    # By the length of the beginning of `other`: whether it meets the beginning of `one` so far.
    meets = [not other[:length].strip("*") for length in range(len(other) + 1)]
    for a in one:
        longer = [meets[0] and a == "*"]
        for at, b in enumerate(other):
            if "*" in (a, b):
                longer.append(meets[at + 1] or longer[at])
            else:
                longer.append(meets[at] and (a == b or "?" in (a, b)))
        meets = longer
    return meets[-1]
