"""Owns why a camera can be turned away, how often it was, and which of it people are told.

Lives on the event loop.
"""

from collections import Counter
from collections.abc import Callable

from edgebox.domain.errors import EdgeboxError
from edgebox.domain.requests import CameraId

RETRY_S = 15
"""When a camera that was refused may try again; the longest wait of `edgebox camera`."""
_QUIET_NS = 60_000_000_000
"""A camera that keeps asking is spoken of again only after so long a pause."""


class CameraInUseError(EdgeboxError):
    """Another camera with this name is connected."""

    http_status = 409
    code = "camera_in_use"


class BoxFullError(EdgeboxError):
    """As many cameras are connected as the box is configured for."""

    http_status = 503
    code = "box_full"


class NoCapacityError(EdgeboxError):
    """To serve this camera would take the service of others, and the box shall not do that."""

    http_status = 503
    code = "no_capacity"


class UnavailableError(EdgeboxError):
    """No executor that runs this camera's model family is up just now."""

    http_status = 503
    code = "unavailable"


REFUSALS = (CameraInUseError, BoxFullError, NoCapacityError, UnavailableError)


class Refusals:
    """Counts who was turned away since the start, by code."""

    def __init__(
        self, note: Callable[[str, CameraId, str], None], clock_ns: Callable[[], int]
    ) -> None:
        """Count from nothing; `note` is told of each camera, but not of each of its attempts."""
        self.counts: Counter[str] = Counter()
        self._note = note
        self._clock_ns = clock_ns
        self._told_ns: dict[tuple[CameraId, str], int] = {}

    def add(self, camera: CameraId, address: str, error: EdgeboxError) -> None:
        """Count one, from an address."""
        self.counts[error.code] += 1
        now_ns, key = self._clock_ns(), (camera, error.code)
        told_ns = self._told_ns.pop(key, None)
        if told_ns is None or told_ns <= now_ns - _QUIET_NS:
            self._note(f"{camera} was refused: {error}", camera, address)
        self._told_ns[key] = now_ns
        while next(iter(self._told_ns.values())) <= now_ns - _QUIET_NS:
            del self._told_ns[next(iter(self._told_ns))]
