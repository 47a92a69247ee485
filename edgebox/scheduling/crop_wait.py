"""Decides whether idle executors wait for crops that are being cut. Pure.

Cutting and scaling crops takes about a millisecond after the batch that found them. An executor
that starts the next frames at once makes the crops wait for a whole batch of a first stage, so that
every frame spends three batches at the box instead of two. It waits for them if they usually take a
small part of the time of that batch.
"""

from edgebox.scheduling.calibration import RecentValues

CUT_WINDOW = 64
"""Frames over which the time of cutting is measured."""
CUT_QUANTILE = 0.9
WAIT_SHARE_MAX = 0.2
"""The longest wait, as a share of the time of the batch that found the objects."""


class CropWait:
    """The time that cutting takes, and until when executors wait for crops now."""

    def __init__(self) -> None:
        self._cutting_ns = RecentValues(CUT_WINDOW, 0.0)
        self._until_ns = 0

    def spawned(self, took_ns: int, now_ns: int) -> None:
        """Note that a batch which took this long has spawned crops."""
        usual_ns = self._cutting_ns.quantile(CUT_QUANTILE)
        if usual_ns <= WAIT_SHARE_MAX * took_ns:
            self._until_ns = now_ns + round(usual_ns)

    def prepared(self, took_ns: int) -> None:
        """Note how long it took to cut the crops of a frame, from the order on."""
        self._cutting_ns.add(took_ns)

    def until_ns(self, crops_preparing: int, now_ns: int) -> int | None:
        """Return until when idle executors wait; None: they do not.

        Args:
            crops_preparing: the number of crops that are being cut.
            now_ns: the present instant.
        """
        return self._until_ns if crops_preparing and now_ns < self._until_ns else None
