"""The uplink of a camera whose pictures the box fetches itself: none that advice could relieve.

The camera sends its stream whatever the box advises, so what the stream's network carries is no
reason for smaller pictures. Pictures are handed over in memory once they are decoded.

Pure.
"""

from collections.abc import Sequence

from edgebox.link.bandwidth import CarriedFrame, LinkEstimate

IN_MEMORY_BPS = 1e11
"""So much that no picture's time on it matters."""


class NoUplink:
    """An estimator of an uplink that is as fast as memory; it learns nothing."""

    def add(
        self, size_bytes: int, sent_ns: int, arrival_ns: int, base_ns: int = 0, camera: str = ""
    ) -> None:
        """Do nothing."""

    def forget(self, camera: str) -> None:
        """Do nothing."""

    def bps(self, now_ns: int, waiting_bytes: int = 0, waiting_since_ns: int = 0) -> float | None:
        """Return the constant."""
        return IN_MEMORY_BPS

    def throughput_stability(self) -> float | None:
        """Return that it is always the same."""
        return 1.0

    def newest(self) -> tuple[int, int] | None:
        """Return that no frame was timed."""
        return None

    def frames(self) -> Sequence[CarriedFrame]:
        """Return no frames."""
        return ()

    def copy_for(self, camera: str) -> LinkEstimate:
        """Return this."""
        return self
