"""Decides which box of a fleet a camera connects to next. Pure: randomness is an argument.

A camera is told the addresses of the other boxes in its welcome. When it loses its box, it goes to
one of them at random: so the cameras of a box that died spread over all others. That box knows
whether the camera's own one is up after all, and sends it back there.
"""

import random
from collections.abc import Sequence

SILENCE_MAX_S = 3.0
"""Silence after which a connection counts as lost, where there is another box. The box answers the
camera's pings every second."""
BOXES_MAX = 16
"""The most addresses in a welcome. A box that knows more draws them at random for each camera."""


def connect_timeout_s(rtt_ns: int) -> float:
    """Return how long a connection to another box may take, by the round trip to the one before.

    TCP, TLS and the WebSocket take four round trips together.
    """
    return 0.5 + 5 * rtt_ns / 1e9


class BoxAddresses:
    """The boxes that a camera knows, and the one it is to connect to now."""

    def __init__(self, configured: Sequence[str], rng: random.Random) -> None:
        """Begin with the first of the configured addresses, of which there is at least one."""
        self._configured = tuple(configured)
        self._told: tuple[str, ...] = ()
        self._tried: set[str] = set()
        self._rng = rng
        self.current = self._configured[0]
        self.redirects = 0
        """How often it was redirected since it was welcomed last."""

    @property
    def several(self) -> bool:
        """Say whether there is another box to go to."""
        return len(self._all()) > 1

    def welcomed(self) -> None:
        """Note that the current box serves the camera."""
        self.redirects = 0
        self._tried.clear()

    def told(self, others: Sequence[str]) -> None:
        """Take in which other boxes there are."""
        self._told = tuple(others)[:BOXES_MAX]

    def redirected(self, to: str) -> None:
        """Go to the box that the current one named."""
        self.redirects += 1
        self._tried.add(self.current)
        self.current = to

    def lost(self) -> bool:
        """Go to another box, if there is one: the current one is lost, or cannot be reached.

        Returns:
            Whether to wait first: all boxes have been tried. One that has not been is asked at
            once, because cameras that lose their box together choose different ones.
        """
        self._tried.add(self.current)
        left = [address for address in self._all() if address not in self._tried]
        exhausted = not left
        if exhausted:
            self._tried.clear()
            left = [address for address in self._all() if address != self.current]
        if left:
            self.current = self._rng.choice(left)
        return exhausted

    def _all(self) -> list[str]:
        return list(dict.fromkeys((*self._configured, *self._told, self.current)))
