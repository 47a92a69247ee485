"""Waits until a frame is due; a late reader learns how many frames it missed."""

import threading
import time
from collections.abc import Callable

BEHIND_MAX_S = 0.5
"""A frame that would be later than this is left out,"""
LEFT_OUT_MAX_S = 1.0
"""but none for longer than this: who never catches up would have no frame at all."""


class Pacer:
    """Waits for instants counted from its first wait."""

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self._stopped = threading.Event()
        self._origin_s: float | None = None
        self._given_s = clock_s()
        """When a frame was not left out the last time."""

    def wait(self, at_s: float) -> bool:
        """Wait until `at_s` after the first call's; False: stopped."""
        now_s = self._clock_s()
        if self._origin_s is None:
            self._origin_s = now_s - at_s
        return not self._stopped.wait(max(0.0, self._origin_s + at_s - now_s))

    def behind_s(self, at_s: float) -> float:
        """Return how late a frame that is due at `at_s` would be."""
        return 0.0 if self._origin_s is None else self._clock_s() - self._origin_s - at_s

    def misses(self, at_s: float) -> bool:
        """Return whether a frame that is due at `at_s` is left out, so that later ones are in time.

        Of a file that cannot be decoded as fast as it is to be played, some frames come all the
        same.
        """
        now_s = self._clock_s()
        if self.behind_s(at_s) > BEHIND_MAX_S and now_s - self._given_s < LEFT_OUT_MAX_S:
            return True
        self._given_s = now_s
        return False

    @property
    def stopped(self) -> bool:
        """Return whether `stop` was called."""
        return self._stopped.is_set()

    def stop(self) -> None:
        """End all waiting, from any thread."""
        self._stopped.set()
