"""Decides when a link's state is sent to the core: five times a second, and at once after a step.

An estimate costs time in proportion to its window, so it is not evaluated for every frame of a fast
camera, and of a state that is not due only its bandwidth. Pure: the instants are arguments. O(1)
apart from the evaluations.
"""

from collections.abc import Callable

from edgebox.domain.requests import LinkState

PERIOD_NS = 200_000_000
REFRESH_NS = 20_000_000
"""Minimum time between two evaluations of the estimate."""
CHANGE = 0.3
"""A bandwidth that changed by this share is sent at once."""


class LinkUpdateThrottle:
    """The rate limit of one link's updates to the core."""

    def __init__(self) -> None:
        self._last_sent = LinkState()
        self._last_sent_ns = 0
        self._checked_ns = 0

    def due(
        self,
        now_ns: int,
        bandwidth_bps: Callable[[], float | None],
        state: Callable[[], LinkState],
    ) -> LinkState | None:
        """Return the link's state if it is due for the core.

        Args:
            now_ns: the present, not before that of the last call.
            bandwidth_bps: returns the state's present bandwidth; called when that may be a step.
            state: returns the present state; called when it is due.
        """
        if now_ns - self._checked_ns < REFRESH_NS:
            return None
        self._checked_ns = now_ns
        if now_ns - self._last_sent_ns < PERIOD_NS and not self._is_step(bandwidth_bps()):
            return None
        self._last_sent_ns = now_ns
        link = state()
        if link == self._last_sent:
            return None
        self._last_sent = link
        return link

    def _is_step(self, bandwidth_bps: float | None) -> bool:
        last_sent_bps = self._last_sent.bandwidth_bps
        if bandwidth_bps is None or last_sent_bps is None:
            return bandwidth_bps != last_sent_bps
        return abs(bandwidth_bps - last_sent_bps) > CHANGE * last_sent_bps
