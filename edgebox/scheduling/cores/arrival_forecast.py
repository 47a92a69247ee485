"""Foresees the next frames of cameras. Pure.

A camera captures at a steady rate, and the next frame has as much time left on arrival as the last.
"""

from dataclasses import dataclass

from edgebox.domain.model_family import VariantName
from edgebox.domain.requests import CameraId, Request

CAMERAS_MAX = 1024
"""One-shot requests bring names without end; the ones seen longest ago are forgotten."""
_GAP_WEIGHT = 0.25
"""Weight of the newest gap in the mean."""
_PAUSED_GAPS = 2.0
"""A camera that is late by more than this many of its gaps has paused or left."""


@dataclass(slots=True)
class _Camera:
    arrival_ns: int
    left_ns: int
    variant: VariantName
    gap_ns: float = 0.0
    """Mean time between two frames; 0: only one was seen."""


@dataclass(frozen=True, slots=True)
class ForeseenFrame:
    """A frame that is on its way."""

    arrival_ns: int
    deadline_ns: int
    variant: VariantName


class ArrivalForecast:
    """The last frame of each camera and the usual time between two."""

    def __init__(self) -> None:
        self._cameras: dict[CameraId, _Camera] = {}

    def arrived(self, request: Request, variant: VariantName, now_ns: int) -> None:
        """Note a frame that was admitted; `request` has the deadline of its own stage."""
        before = self._cameras.pop(request.camera, None)
        now = _Camera(now_ns, request.deadline_ns - now_ns, variant)
        if before is not None:
            gap_ns = now_ns - before.arrival_ns
            mean_ns = before.gap_ns or gap_ns
            # A pause is no gap.
            gap_ns = gap_ns if gap_ns <= (1 + _PAUSED_GAPS) * mean_ns else round(mean_ns)
            now.gap_ns = mean_ns + _GAP_WEIGHT * (gap_ns - mean_ns)
        self._cameras[request.camera] = now  # last: the order is that of the last arrivals
        if len(self._cameras) > CAMERAS_MAX:
            del self._cameras[next(iter(self._cameras))]

    def until(self, now_ns: int, end_ns: int, limit: int) -> list[ForeseenFrame]:
        """Return the frames that should arrive before an instant, at most so many.

        Those that should be there already come now.
        """
        found: list[ForeseenFrame] = []
        for of in reversed(self._cameras.values()):
            if not of.gap_ns or now_ns - of.arrival_ns > (1 + _PAUSED_GAPS) * of.gap_ns:
                continue
            arrival_ns = of.arrival_ns + of.gap_ns
            while arrival_ns < end_ns:
                if len(found) >= limit:
                    return found
                at_ns = round(arrival_ns)
                found.append(ForeseenFrame(max(now_ns, at_ns), at_ns + of.left_ns, of.variant))
                arrival_ns += of.gap_ns
        return found
