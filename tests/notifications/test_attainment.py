"""Deadlines breached and kept again: hysteresis over a window, judged from all looks at once."""

from hypothesis import given
from hypothesis import strategies as st

from edgebox.notifications.attainment import Attainment, AttainmentRule

RULE = AttainmentRule(window_ns=100, breached_below=0.8, recovered_from=0.9, frames_min=5)

steps = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 12), st.integers(0, 12)), max_size=60)
"""Time since the last look, frames that ended meanwhile, of them at most so many on time."""


def looks(of: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Return (instant, on time so far, ended so far) of each look."""
    at = on_time = ended = 0
    found = []
    for ahead, frames, good in of:
        at, on_time, ended = at + ahead, on_time + min(good, frames), ended + frames
        found.append((at, on_time, ended))
    return found


@given(of=steps)
def test_the_share_is_that_of_the_window(of: list[tuple[int, int, int]]) -> None:
    attainment = Attainment(RULE)
    seen: list[tuple[int, int, int]] = []
    breached = False
    for at, on_time, ended in looks(of):
        changed = attainment.look(on_time, ended, at)
        seen.append((at, on_time, ended))
        before = [look for look in seen if look[0] <= at - RULE.window_ns]
        start = before[-1] if before else seen[0]
        frames = ended - start[2]
        if frames < RULE.frames_min:
            assert attainment.share is None
            assert not changed
            continue
        share = (on_time - start[1]) / frames
        assert attainment.share == share
        was = breached
        breached = share < (RULE.recovered_from if was else RULE.breached_below)
        assert changed == (breached != was)
        assert attainment.breached == breached


@given(shares=st.lists(st.sampled_from((81, 85, 89)), min_size=1, max_size=50))
def test_between_the_thresholds_nothing_changes(shares: list[int]) -> None:
    for start_breached in (False, True):
        attainment = Attainment(RULE)
        attainment.look(0, 0, 0)
        attainment.look(0 if start_breached else 100, 100, 100)
        assert attainment.breached == start_breached
        on_time, ended = (0 if start_breached else 100), 100
        for number, share in enumerate(shares):
            on_time, ended = on_time + share, ended + 100
            assert not attainment.look(on_time, ended, 200 + 100 * number)


def test_counts_that_start_anew_start_the_window_anew() -> None:
    attainment = Attainment(RULE)
    attainment.look(100, 100, 0)
    attainment.look(200, 200, 50)
    assert not attainment.look(3, 3, 60)
    assert attainment.share is None
    attainment.look(3, 13, 70)
    assert attainment.share == 0
    assert attainment.breached
