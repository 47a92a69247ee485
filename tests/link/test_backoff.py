"""The waits between attempts: doubling, capped, each a random part less."""

import random

from hypothesis import given
from hypothesis import strategies as st

from edgebox.link.backoff import Backoff


@given(seed=st.integers(0, 10**6))
def test_waits_double_up_to_a_cap_and_start_over(seed: int) -> None:
    backoff = Backoff(random.Random(seed))
    for full_s in (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 15.0):
        assert full_s / 2 <= backoff.wait_s() <= full_s
    backoff.reset()
    assert backoff.wait_s() <= 0.5


def test_cameras_do_not_come_back_in_step() -> None:
    waits = {Backoff(random.Random(seed)).wait_s() for seed in range(20)}
    assert len(waits) == 20
