"""Decides how long to wait before the next attempt. Pure: the generator of randomness is an
argument."""

import random

FIRST_S = 0.5
MAX_S = 15.0
RANDOM_SHARE = 0.5


class Backoff:
    """Exponential back-off from 0.5 s to a maximum; each wait is reduced by a random part, up to
    half."""

    def __init__(self, rng: random.Random, max_s: float = MAX_S) -> None:
        """Start with the shortest wait; none is longer than `max_s`."""
        self._rng = rng
        self._max_s = max_s
        self._next_s = FIRST_S

    def reset(self) -> None:
        """Start again with the shortest wait after a successful connection."""
        self._next_s = FIRST_S

    def wait_s(self) -> float:
        """Return the next wait."""
        wait_s = self._next_s * (1 - RANDOM_SHARE * self._rng.random())
        self._next_s = min(self._max_s, self._next_s * 2)
        return wait_s
