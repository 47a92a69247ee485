"""Zones and lines: geometry against brute force, stays, crossings, and trembling boxes."""

import math
from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.zones import Line, Point, Zone, line_problem, polygon_problem
from edgebox.tracking.watch import (
    Crossing,
    Sighting,
    StayBegun,
    StayEnded,
    ZoneEvent,
    ZoneWatch,
    contains,
)

_SECOND_NS = 1_000_000_000
_SQUARE = ((0.25, 0.25), (0.75, 0.25), (0.75, 0.75), (0.25, 0.75))
_share = st.integers(0, 16).map(lambda n: n / 16)
_point = st.tuples(_share, _share)


def _angle_sum(polygon: tuple[Point, ...], p: Point) -> float:
    """Return by how much somebody at a point turns who follows the polygon with his eyes."""
    total = 0.0
    for a, b in zip(polygon, (*polygon[1:], polygon[0]), strict=True):
        one = (a[0] - p[0], a[1] - p[1])
        other = (b[0] - p[0], b[1] - p[1])
        total += math.atan2(
            one[0] * other[1] - one[1] * other[0], one[0] * other[0] + one[1] * other[1]
        )
    return total


@given(st.lists(_point, min_size=3, max_size=7, unique=True), st.lists(_point, max_size=10))
def test_a_polygon_contains_what_it_winds_around(points: list[Point], probes: list[Point]) -> None:
    polygon = tuple(points)
    if polygon_problem(polygon) is not None:
        return
    shifted = [(x + 0.013, y + 0.0071) for x, y in probes]  # on no side
    found = contains(polygon, np.array(shifted).reshape(-1, 2)).tolist()
    assert found == [abs(_angle_sum(polygon, p)) > math.pi for p in shifted]


def test_the_border_of_a_polygon_belongs_to_it() -> None:
    border = [(0.25, 0.5), (0.5, 0.25), (0.75, 0.75), (0.5, 0.75)]
    assert contains(_SQUARE, np.array(border)).all()


def test_bad_polygons_and_lines_are_told_apart() -> None:
    assert polygon_problem(_SQUARE) is None
    assert "3 to 64 points" in str(polygon_problem(_SQUARE[:2]))
    assert "outside the picture" in str(polygon_problem((*_SQUARE[:2], (1.2, 0.5))))
    crossed = (_SQUARE[0], _SQUARE[2], _SQUARE[1], _SQUARE[3])
    assert "cross each other" in str(polygon_problem(crossed))
    assert "the same" in str(polygon_problem((*_SQUARE, _SQUARE[1])))
    assert polygon_problem(((0.0, 0.0), (0.5, 0.5), (1.0, 1.0))) is not None
    assert line_problem(((0.1, 0.1), (0.9, 0.1))) is None
    assert "2 points" in str(line_problem(_SQUARE))
    assert "the same" in str(line_problem((_SQUARE[0], _SQUARE[0])))


def _crossed(line: Line, feet: Sequence[Point], aspect: float) -> bool:
    watch = ZoneWatch([], [line])
    found = []
    for at_ns, foot in enumerate(feet, 1):
        found += watch.update([Sighting(1, "car", foot, 0.5)], frozenset((1,)), at_ns, aspect)
    return bool(found)


def test_a_line_is_crossed_a_tenth_of_the_height_beyond_it_in_any_direction() -> None:
    """In a wide picture an upright line was crossed by 1.8 tenths of the object's height only."""
    upright, level = Line("a", ((0.5, 0.0), (0.5, 1.0))), Line("b", ((0.0, 0.5), (1.0, 0.5)))
    for aspect in (16 / 9, 0.5):
        for tenths, crosses in ((0.9, False), (1.1, True)):
            beyond = tenths * 0.1 * 0.5
            x = 0.5 + beyond / aspect
            assert _crossed(upright, [(0.1, 0.5), (x, 0.5)], aspect) == crosses
            assert _crossed(level, [(0.5, 0.1), (0.5, 0.5 + beyond)], aspect) == crosses


def _play(
    watch: ZoneWatch, feet: Sequence[Point | None], label: str = "truck", step_s: float = 0.25
) -> list[ZoneEvent]:
    """Show one object standing at each of these points; None: it is not seen."""
    happened = []
    for number, foot in enumerate(feet):
        seen = [] if foot is None else [Sighting(1, label, foot, 0.1)]
        happened += watch.update(seen, frozenset((1,)), round(number * step_s * _SECOND_NS))
    return happened


def test_a_stay_is_reported_once_after_its_minimum_although_the_box_trembles() -> None:
    watch = ZoneWatch([Zone("gate", _SQUARE, ("truck",), 5 * _SECOND_NS)], [])
    inside, outside = (0.5, 0.74), (0.5, 0.76)
    found = _play(watch, [inside, outside] * 15)
    assert len(found) == 1
    assert isinstance(found[0], StayBegun)
    assert found[0].dwell_ns == 5 * _SECOND_NS
    assert watch.counts() == {"gate": {"truck": 1}}


def test_a_stay_ends_after_a_while_outside_or_with_its_track() -> None:
    watch = ZoneWatch([Zone("gate", _SQUARE)], [])
    found = _play(watch, [(0.5, 0.5)] * 5 + [(0.9, 0.9)] * 3)
    assert [type(event) for event in found] == [StayBegun, StayEnded]
    assert isinstance(found[1], StayEnded)
    assert found[1].dwell_ns == _SECOND_NS
    assert watch.counts() == {"gate": {}}
    watch = ZoneWatch([Zone("gate", _SQUARE)], [])
    _play(watch, [*[(0.5, 0.5)] * 5, *[None] * 3])
    assert watch.counts() == {"gate": {}}
    gone = watch.update([], frozenset(), 10 * _SECOND_NS)
    assert [type(event) for event in gone] == [StayEnded]


def test_other_classes_are_ignored() -> None:
    line = Line("door", ((0.2, 0.5), (0.8, 0.5)), ("person",))
    watch = ZoneWatch([Zone("gate", _SQUARE, ("person",))], [line])
    assert _play(watch, [(0.5, 0.3), (0.5, 0.5), (0.5, 0.7)]) == []
    assert watch.counts() == {"gate": {}}


def test_a_line_is_crossed_once_in_the_direction_of_its_right_side() -> None:
    line = Line("door", ((0.2, 0.5), (0.8, 0.5)))
    watch = ZoneWatch([], [line])
    downwards: list[Point | None] = [(0.5, y) for y in (0.3, 0.49, 0.505, 0.495, 0.507, 0.6, 0.7)]
    assert _play(watch, downwards) == [Crossing("door", 1, "truck", "in")]
    assert watch.crossings() == {"door": {"in": {"truck": 1}, "out": {}}}
    upwards = list(reversed(downwards))
    assert _play(ZoneWatch([], [line]), upwards) == [Crossing("door", 1, "truck", "out")]


def test_a_way_beside_a_line_does_not_cross_it() -> None:
    watch = ZoneWatch([], [Line("door", ((0.2, 0.5), (0.8, 0.5)))])
    assert _play(watch, [(0.1, 0.3), (0.1, 0.7)]) == []


def test_what_is_as_it_was_goes_on_when_others_change() -> None:
    yard, road = Zone("yard", _SQUARE), Zone("road", _SQUARE)
    first, second = (
        Line("first", ((0.5, 0.0), (0.5, 1.0))),
        Line("second", ((0.6, 1.0), (0.6, 0.0))),
    )
    watch = ZoneWatch((yard, road), (first, second))
    alive = frozenset({7})
    for second_of, x in enumerate((0.3, 0.7, 0.7)):
        seen = [Sighting(7, "car", (x, 0.5), 0.01)]
        watch.update(seen, alive, (1 + second_of) * _SECOND_NS)
    crossed = watch.crossings()
    assert [sum(sum(of.values()) for of in crossed[line].values()) for line in crossed] == [1, 1]
    moved = Zone("road", _SQUARE, ("car",))
    other = Line("second", ((0.6, 0.9), (0.6, 0.0)))
    (ended,) = watch.change((moved, yard), (other, first))
    assert isinstance(ended, StayEnded) and ended.zone == "road"
    assert ended.dwell_ns == 2 * _SECOND_NS
    assert watch.counts() == {"road": {}, "yard": {"car": 1}}
    assert watch.crossings()["first"] == crossed["first"]
    assert watch.crossings()["second"] == {"in": {}, "out": {}}
    assert watch.change((moved, yard), (other, first)) == []


def test_all_stays_end_with_the_camera() -> None:
    short, long = Zone("short", _SQUARE), Zone("long", _SQUARE, (), 60 * _SECOND_NS)
    watch = ZoneWatch((short, long), (Line("line", ((0.5, 0.0), (0.5, 1.0))),))
    for second, x in enumerate((0.3, 0.7)):
        seen = [Sighting(7, "car", (x, 0.5), 0.01)]
        watch.update(seen, frozenset({7}), (1 + second) * _SECOND_NS)
    assert sum(sum(of.values()) for of in watch.crossings()["line"].values()) == 1
    (ended,) = watch.end()
    assert isinstance(ended, StayEnded)
    assert ended.zone == "short", "the other stay was never reported"
    assert watch.counts() == {"short": {}, "long": {}}
    assert watch.crossings() == {"line": {"in": {}, "out": {}}}
    assert watch.end() == []


def test_with_nothing_held_who_is_seen_inside_is_counted() -> None:
    watch = ZoneWatch([Zone("yard", _SQUARE, (), 0)], [], hold_ns=0)
    for number in range(3):
        watch.update([Sighting(1, "car", (0.5, 0.5), 0.1)], frozenset({1}), number * _SECOND_NS)
        assert watch.counts() == {"yard": {"car": 1}}
    watch.update([Sighting(1, "car", (0.9, 0.9), 0.1)], frozenset({1}), 3 * _SECOND_NS)
    assert watch.counts() == {"yard": {}}
