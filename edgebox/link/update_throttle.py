"""Decides when the core hears of a link's estimate: five times a second, and at once after a step.

An estimate costs time in proportion to its window, so it is not looked at for every frame of a
fast camera either. Pure: the instants come in as arguments. O(1) beside the look.
"""

from collections.abc import Callable

from edgebox.domain.requests import LinkState

PERIOD_NS = 200_000_000
LOOK_NS = 20_000_000
"""At most so often is the estimate looked at."""
CHANGE = 0.3
"""A bandwidth that changed by this share is told at once."""


class LinkUpdateThrottle:
    """What the core was last told of one link."""

    def __init__(self) -> None:
        self._told = LinkState()
        self._told_ns = 0
        self._looked_ns = 0

    def due(self, now_ns: int, look: Callable[[], LinkState]) -> LinkState | None:
        """Return the link's state if the core should hear of it now.

        Args:
            now_ns: the present, not before that of the last call.
            look: what the state is now; called only when it may be due.
        """
        if now_ns - self._looked_ns < LOOK_NS:
            return None
        self._looked_ns = now_ns
        link = look()
        if now_ns - self._told_ns < PERIOD_NS and not self._is_step(link.bandwidth_bps):
            return None
        self._told_ns = now_ns
        if link == self._told:
            return None
        self._told = link
        return link

    def _is_step(self, bandwidth_bps: float | None) -> bool:
        told_bps = self._told.bandwidth_bps
        if bandwidth_bps is None or told_bps is None:
            return bandwidth_bps != told_bps
        return abs(bandwidth_bps - told_bps) > CHANGE * told_bps
