"""Which skips the plan ordered: all beyond its rate, none below it, whatever is lost on the way."""

from hypothesis import given
from hypothesis import strategies as st

from edgebox.runtime.planned_skips import PlannedSkips
from tests.runtime.endings import SECOND


def ordered(captured_hz: int, advised_hz: float, sent: set[int], seconds: int = 60) -> int:
    """Return how many skips were ordered of a camera that sends these of its frames."""
    account = PlannedSkips(captured_hz, 0)
    account.advised(advised_hz, 0)
    total, last = 0, -1
    for frame in range(captured_hz * seconds):
        if frame in sent:
            skipped = frame - last - 1
            total += account.take(1 + skipped, skipped, frame * SECOND // captured_hz)
            last = frame
    return total


def test_a_camera_that_obeys_misses_nothing() -> None:
    sent = {frame for frame in range(300) if frame % 5 in (0, 2)}
    assert abs(ordered(5, 2, sent) - 180) <= 3


def test_without_a_lower_rate_every_skip_is_a_miss() -> None:
    sent = {frame for frame in range(300) if frame % 5 in (0, 2)}
    assert ordered(5, 5, sent) <= 1


@given(st.integers(2, 30), st.floats(0.05, 1), st.sets(st.integers(0, 1800), min_size=1))
def test_never_more_is_ordered_than_is_skipped_or_lies_beyond_the_rate(
    captured_hz: int, share: float, sent: set[int]
) -> None:
    last = max((frame for frame in sent if frame < captured_hz * 60), default=-1)
    found = ordered(captured_hz, captured_hz * share, sent)
    assert 0 <= found <= max(0, last + 1 - len([f for f in sent if f <= last]))
    assert found <= (1 - share) * (last + 1) + 2 + 1


def test_a_report_counts_what_came_after_the_last_frame() -> None:
    account = PlannedSkips(10, 0)
    account.advised(1, 0)
    assert account.take(1, 0, 0) == 0
    # 30 frames in 3 s; 3 were wanted.
    assert 26 <= account.take(30, 30, 3 * SECOND) <= 28


def test_a_source_that_pauses_owes_nothing_afterwards() -> None:
    account = PlannedSkips(10, 0)
    account.advised(5, 0)
    account.take(1, 0, 60 * SECOND)
    # From now on it captures 10 a second: half of them are ordered not to be sent.
    found = sum(account.take(2, 1, (60_000 + 200 * n) * SECOND // 1000) for n in range(1, 101))
    assert found >= 97
