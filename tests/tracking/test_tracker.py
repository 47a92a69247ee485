"""The tracker: its properties on made-up pictures, and how well it follows a street's objects."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.tracking import SEQUENCES, Score, judged, ours, street
from edgebox.tracking.tracker import Tracker, TrackerParameters

_SECOND_NS = 1_000_000_000
_coordinate = st.integers(0, 400).map(float)
_detection = st.tuples(
    _coordinate,
    _coordinate,
    st.integers(5, 90).map(float),
    st.integers(5, 90).map(float),
    st.integers(1, 99).map(lambda n: n / 100),
    st.integers(0, 2),
)
_picture = st.tuples(st.integers(1, 2 * _SECOND_NS), st.lists(_detection, max_size=6, unique=True))
Picture = tuple[np.ndarray, np.ndarray, np.ndarray]


def _arrays(found: list[tuple[float, ...]]) -> Picture:
    rows = np.array(found, np.float64).reshape(-1, 6)
    boxes = np.concatenate((rows[:, :2], rows[:, :2] + rows[:, 2:4]), axis=1)
    return boxes, rows[:, 4], rows[:, 5].astype(np.int64)


@settings(max_examples=150)
@given(st.lists(_picture, max_size=12), st.randoms(use_true_random=False))
def test_ids_are_unique_of_one_class_and_independent_of_the_order(pictures, random) -> None:  # type: ignore[no-untyped-def]
    tracker, shuffled = Tracker(), Tracker()
    class_of: dict[int, int] = {}
    now_ns, highest = 0, 0
    for step_ns, found in pictures:
        now_ns += step_ns
        boxes, scores, labels = _arrays(found)
        ids = tracker.update(boxes, scores, labels, now_ns)
        own = ids[ids > 0].tolist()
        assert len(set(own)) == len(own)
        for track, label in zip(ids.tolist(), labels.tolist(), strict=True):
            if track:
                assert class_of.setdefault(track, label) == label
        new = sorted(track for track in own if track > highest)
        assert new == list(range(highest + 1, highest + 1 + len(new)))
        highest = max([highest, *own])
        assert set(own) <= tracker.alive
        order = list(range(len(found)))
        random.shuffle(order)
        again = shuffled.update(boxes[order], scores[order], labels[order], now_ns)
        assert again.tolist() == ids[order].tolist()


def _walk(tracker: Tracker, at_s: float, **changed: float) -> int:
    """Show one object that moves at 40 px/s; return its id."""
    x = 40.0 * at_s
    boxes = np.array([[x, 100.0, x + 30.0, 160.0]])
    score = np.array([changed.get("score", 0.9)])
    return int(tracker.update(boxes, score, np.zeros(1, np.int64), round(at_s * 1e9))[0])


def test_an_id_comes_with_the_second_picture_and_stays_over_gaps_of_any_length() -> None:
    tracker = Tracker()
    times_s = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 2.4, 2.5, 4.2, 4.25)
    assert [_walk(tracker, at_s) for at_s in times_s] == [0, *[1] * 10]


def test_a_track_that_is_lost_for_longer_than_it_is_kept_gets_a_new_id() -> None:
    tracker = Tracker(TrackerParameters(lost_ns=_SECOND_NS))
    assert [_walk(tracker, at_s) for at_s in (0.0, 0.1, 0.2)] == [0, 1, 1]
    assert [_walk(tracker, at_s) for at_s in (1.3, 1.4)] == [0, 2]


def test_a_camera_with_a_picture_every_second_is_tracked() -> None:
    """What was seen once was forgotten after .5 s, before the next picture came."""
    tracker = Tracker()
    assert [_stand(tracker, float(at_s)) for at_s in range(5)] == [0, 1, 1, 1, 1]


def test_what_was_seen_once_is_forgotten_soon_where_other_pictures_do_not_show_it() -> None:
    tracker, nothing = Tracker(), _arrays([])
    _stand(tracker, 0.0)
    tracker.update(*nothing, round(0.3e9))
    assert [_stand(tracker, at_s) for at_s in (0.6, 0.7)] == [0, 1]


def _stand(tracker: Tracker, at_s: float) -> int:
    """Show one object that stands; return its id."""
    return int(tracker.update(*_arrays([(40.0, 100.0, 30.0, 60.0, 0.9, 0)]), round(at_s * 1e9))[0])


def test_a_picture_captured_before_the_newest_is_not_used() -> None:
    tracker = Tracker()
    for at_s in (0.0, 0.1, 0.3):
        _walk(tracker, at_s)
    assert _walk(tracker, 0.2) == 0
    assert _walk(tracker, 0.3) == 0
    assert _walk(tracker, 0.4) == 1


def test_an_uncertain_detection_continues_a_track_and_starts_none() -> None:
    tracker = Tracker()
    assert [_walk(tracker, at_s, score=0.3) for at_s in (0.0, 0.1, 0.2)] == [0, 0, 0]
    assert [_walk(tracker, at_s) for at_s in (0.3, 0.4)] == [0, 1]
    assert _walk(tracker, 0.5, score=0.3) == 1
    assert _walk(tracker, 0.6, score=0.05) == 0


@cache
def _score(sequence: str, true_times: bool = True) -> Score:
    return judged(SEQUENCES[sequence](street(11, 15.0)), ours(true_times=true_times))


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_objects_of_a_street_keep_their_ids(sequence: str) -> None:
    found = _score(sequence)
    assert found.mota > 0.85
    assert found.idf1 > 0.8


def test_true_times_are_worth_it_where_most_pictures_are_dropped() -> None:
    assert _score("60 % dropped").idf1 > _score("60 % dropped", true_times=False).idf1


def test_tracks_are_bounded_and_the_most_certain_have_them() -> None:
    tracker = Tracker(TrackerParameters(tracks_max=20))
    rng = np.random.default_rng(3)
    for picture in range(1, 5):
        corners = rng.uniform(0, 5000, (100, 2))
        boxes = np.concatenate((corners, corners + 10), axis=1)
        tracker.update(boxes, np.full(100, 0.9), np.zeros(100, np.int64), picture * _SECOND_NS // 9)
    still = np.array([[50.0 * at, 0, 50 * at + 10, 10] for at in range(40)])
    scores = np.linspace(0.95, 0.55, 40)
    for picture in range(30, 33):
        ids = tracker.update(still, scores, np.zeros(40, np.int64), picture * _SECOND_NS // 9)
    assert (ids[:20] > 0).all()
    assert not ids[20:].any()
