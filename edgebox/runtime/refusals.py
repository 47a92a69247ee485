"""Refusals of cameras: their reasons, counts and notices.

Lives on the event loop.
"""

from collections import Counter
from collections.abc import Callable

from edgebox.domain.errors import EdgeboxError
from edgebox.domain.requests import CameraId

RETRY_S = 15
"""Retry delay of a refused camera: the longest backoff of `edgebox camera`."""
_QUIET_NS = 60_000_000_000
"""Pause after which another refusal of the same camera is published."""


class CameraInUseError(EdgeboxError):
    """Another camera with this name is connected."""

    http_status = 409
    code = "camera_in_use"
    title = "A camera of this name is connected"

    @classmethod
    def of(cls, camera: CameraId, address: str) -> "CameraInUseError":
        """Return the error for a name that a camera at this address uses."""
        return cls(
            f"a camera named {camera} is connected from {address}; give this one another name, or "
            "wait until the other has disconnected"
        )


class BoxFullError(EdgeboxError):
    """The configured number of cameras is connected."""

    http_status = 503
    code = "box_full"
    title = "The box has as many cameras as it takes"

    @classmethod
    def of(cls, cameras_max: int) -> "BoxFullError":
        """Return the error for a box with the most cameras that it may have."""
        return cls(
            f"{cameras_max} cameras are connected, which is the configured maximum "
            "(limits.cameras_max)"
        )


class NoCapacityError(EdgeboxError):
    """Serving this camera would degrade others."""

    http_status = 503
    code = "no_capacity"
    title = "The box has no room for this camera"

    @classmethod
    def of(cls, camera: CameraId, why: str) -> "NoCapacityError":
        """Return the error for a camera that would degrade others, for this reason."""
        return cls(
            f"this box refuses cameras that would degrade others "
            f'(planner.admission = "refuse"): with {camera}, {why}. Request a lower '
            f"rate_hz or min_rate_hz, or a longer slo_ms; or try again in {RETRY_S} s or "
            "when another camera has disconnected"
        )


class UnavailableError(EdgeboxError):
    """No executor that runs this camera's model family is up."""

    http_status = 503
    code = "unavailable"
    title = "No executor runs the model just now"


REFUSALS = (CameraInUseError, BoxFullError, NoCapacityError, UnavailableError)


class Refusals:
    """Counts what was refused since the start, by code: hellos, requests and connections."""

    def __init__(
        self, note: Callable[[str, CameraId | None, str], None], clock_ns: Callable[[], int]
    ) -> None:
        """Start with zero; `note` publishes a camera's first refusal, not each attempt after it.

        It does so again once a minute has passed without any.
        """
        self.counts: Counter[str] = Counter()
        self._note = note
        self._clock_ns = clock_ns
        self._noted_ns: dict[tuple[CameraId | None, str], int] = {}

    def add(self, camera: CameraId, address: str, error: EdgeboxError) -> None:
        """Count the refusal of a camera at an address."""
        if self._is_new(camera, error.code):
            self._note(f"{camera} was refused: {error}", camera, address)

    def add_request(self, address: str, error: EdgeboxError) -> None:
        """Count the refusal of a request or connection; one notice of each code tells of many."""
        if self._is_new(None, error.code):
            self._note(f"a request from {address} was refused: {error}", None, address)

    def _is_new(self, camera: CameraId | None, code: str) -> bool:
        """Count a refusal; return whether none like it was counted in the last minute."""
        self.counts[code] += 1
        now_ns, key = self._clock_ns(), (camera, code)
        noted_ns = self._noted_ns.pop(key, None)
        self._noted_ns[key] = now_ns
        while next(iter(self._noted_ns.values())) <= now_ns - _QUIET_NS:
            del self._noted_ns[next(iter(self._noted_ns))]
        return noted_ns is None or noted_ns <= now_ns - _QUIET_NS
