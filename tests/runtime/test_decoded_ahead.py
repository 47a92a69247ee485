"""How many frames are decoded ahead: enough to fill batches, few enough to be answered in time."""

from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.requests import RequestId
from edgebox.runtime.decoded_ahead import DEADLINE_SHARE, DecodedAhead

MS = 1_000_000


def filled(frames: int, took_ns: int, deadline_ns: int | None) -> DecodedAhead:
    ahead = DecodedAhead()
    ahead.deadline(deadline_ns)
    ahead.ran(1, took_ns)
    for number in range(frames):
        ahead.decoded(RequestId(number))
    return ahead


@given(st.integers(0, 200), st.integers(1, 200), st.integers(1, 2_000), st.integers(1, 4))
def test_it_is_enough_once_it_takes_a_part_of_the_deadline(
    frames: int, took_ms: int, deadline_ms: int, executors: int
) -> None:
    ahead = filled(frames, took_ms * MS, deadline_ms * MS)
    waits_ms = frames * took_ms / executors
    enough = frames >= 2 * executors and waits_ms >= DEADLINE_SHARE * deadline_ms
    assert ahead.is_enough(executors) == enough


def test_nothing_is_held_before_anything_ran() -> None:
    ahead = DecodedAhead()
    for number in range(1_000):
        ahead.decoded(RequestId(number))
    assert not ahead.is_enough(1)


def test_frames_that_are_taken_or_have_ended_count_no_more() -> None:
    ahead = filled(20, 50 * MS, 500 * MS)
    assert ahead.is_enough(1)
    ahead.taken(map(RequestId, range(18)))
    ahead.taken([RequestId(5), RequestId(99)])
    assert not ahead.is_enough(1)
    assert filled(20, 50 * MS, None).is_enough(1)


def test_a_batch_counts_by_its_frames_and_one_that_took_long_says_little() -> None:
    ahead = filled(10, 10 * MS, 500 * MS)
    ahead.ran(8, 40 * MS)
    assert not ahead.is_enough(1)
    ahead.ran(1, 10_000 * MS)
    assert ahead.is_enough(1)
