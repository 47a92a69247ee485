"""Waits until a frame is due; a late reader learns how many frames it missed."""

import threading
import time


class Pacer:
    """Waits for instants counted from its first wait."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._origin_s: float | None = None

    def wait(self, at_s: float) -> bool:
        """Wait until `at_s` after the first call's; False: stopped."""
        now_s = time.monotonic()
        if self._origin_s is None:
            self._origin_s = now_s - at_s
        return not self._stopped.wait(max(0.0, self._origin_s + at_s - now_s))

    def behind_s(self, at_s: float) -> float:
        """Return how late a frame that is due at `at_s` would be."""
        return 0.0 if self._origin_s is None else time.monotonic() - self._origin_s - at_s

    @property
    def stopped(self) -> bool:
        """Return whether `stop` was called."""
        return self._stopped.is_set()

    def stop(self) -> None:
        """End all waiting, from any thread."""
        self._stopped.set()
