"""Decides when the core hears of a link's estimate: five times a second, and at once after a step.

An estimate costs time in proportion to its window, so it is not looked at for every frame of a
fast camera either. Pure: the instants come in as arguments. O(1) beside the look.
"""

from collections.abc import Callable

from edgebox.domain.requests import LinkState

PERIOD_NS = 200_000_000
REFRESH_NS = 20_000_000
"""At most so often is the estimate looked at."""
CHANGE = 0.3
"""A bandwidth that changed by this share is told at once."""


class LinkUpdateThrottle:
    """What the core was last told of one link."""

    def __init__(self) -> None:
        self._last_sent = LinkState()
        self._last_sent_ns = 0
        self._checked_ns = 0

    def due(self, now_ns: int, measure: Callable[[], LinkState]) -> LinkState | None:
        """Return the link's state if the core should hear of it now.

        Args:
            now_ns: the present, not before that of the last call.
            look: what the state is now; called only when it may be due.
        """
        if now_ns - self._checked_ns < REFRESH_NS:
            return None
        self._checked_ns = now_ns
        link = measure()
        if now_ns - self._last_sent_ns < PERIOD_NS and not self._is_step(link.bandwidth_bps):
            return None
        self._last_sent_ns = now_ns
        if link == self._last_sent:
            return None
        self._last_sent = link
        return link

    def _is_step(self, bandwidth_bps: float | None) -> bool:
        last_sent_bps = self._last_sent.bandwidth_bps
        if bandwidth_bps is None or last_sent_bps is None:
            return bandwidth_bps != last_sent_bps
        return abs(bandwidth_bps - last_sent_bps) > CHANGE * last_sent_bps
