"""A class that comes and goes: judged by the definition, from all sightings at once."""

import itertools
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from edgebox.notifications.presence import Episode, Presence

HOLD, INTERVAL = 50, 80


@dataclass
class Moment:
    """A frame that shows `count`, or a look without a frame: None."""

    at: int
    count: int | None


def moments() -> st.SearchStrategy[list[Moment]]:
    step = st.tuples(st.integers(0, 70), st.none() | st.integers(1, 4))
    return st.lists(step, max_size=60).map(_placed)


def _placed(steps: list[tuple[int, int | None]]) -> list[Moment]:
    at, found = 0, []
    for ahead, count in steps:
        at += ahead
        found.append(Moment(at, count))
    return found


def stays(frames: list[Moment], hold: int, interval: int) -> list[list[Moment]]:
    """Group frames: each belongs to the stay before it unless that was over by then."""
    found: list[list[Moment]] = []
    for frame in frames:
        if found and frame.at < max(found[-1][-1].at + hold, found[-1][0].at + interval):
            found[-1].append(frame)
        else:
            found.append([frame])
    return found


@given(moments=moments(), hold=st.sampled_from((1, 50)), interval=st.sampled_from((0, 30, 80)))
def test_stays_are_what_the_definition_says(
    moments: list[Moment], hold: int, interval: int
) -> None:
    presence = Presence(hold, interval)
    begun: list[int] = []
    over: list[Episode] = []
    for moment in moments:
        ended = presence.ended(moment.at)
        if ended is not None:
            over.append(ended)
        if moment.count is not None and presence.seen(moment.count, moment.at):
            begun.append(moment.at)
    last = moments[-1].at + hold + interval if moments else 0
    if (ended := presence.ended(last)) is not None:
        over.append(ended)
    expected = stays([m for m in moments if m.count is not None], hold, interval)
    assert begun == [stay[0].at for stay in expected]
    assert over == [
        Episode(stay[0].at, stay[-1].at, max(frame.count or 0 for frame in stay))
        for stay in expected
    ]
    assert not presence.there
    assert presence.count(last) == 0


@given(moments=moments())
def test_the_count_is_the_most_of_the_hold_time(moments: list[Moment]) -> None:
    presence = Presence(HOLD, INTERVAL)
    of_stay: list[Moment] = []
    for moment in moments:
        if presence.ended(moment.at) is not None:
            of_stay.clear()
        if moment.count is not None:
            presence.seen(moment.count, moment.at)
            of_stay.append(moment)
        presence.count(moment.at + HOLD)  # a question about later changes nothing
        fresh = [frame for frame in of_stay if frame.at > moment.at - HOLD] or of_stay[-1:]
        expected = max((frame.count or 0 for frame in fresh), default=0)
        assert presence.count(moment.at) == expected
        assert (expected > 0) == presence.there


@given(moments=moments())
def test_appearances_are_an_interval_apart(moments: list[Moment]) -> None:
    presence = Presence(HOLD, INTERVAL)
    begun = []
    for moment in moments:
        presence.ended(moment.at)
        if moment.count is not None and presence.seen(moment.count, moment.at):
            begun.append(moment.at)
    assert all(b - a >= INTERVAL for a, b in itertools.pairwise(begun))


def test_one_who_stands_still_makes_one_event() -> None:
    presence = Presence(5_000_000_000, 10_000_000_000)
    frames_ns = range(0, 60_000_000_000, 100_000_000)
    appeared = [at for at in frames_ns if presence.ended(at) or presence.seen(1, at)]
    assert appeared == [0]
