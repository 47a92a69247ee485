"""Owns the estimates of uplinks, one for each camera or for all cameras of a site.

Pure: no clock, no I/O.
"""

from collections.abc import Callable

from edgebox.domain.requests import CameraId, SiteId
from edgebox.link.bandwidth import LinkEstimate


class SharedEstimate:
    """What one camera of a site teaches and asks: the estimate is the site's."""

    def __init__(self, estimate: LinkEstimate, camera: CameraId) -> None:
        self.estimate = estimate
        self._camera = camera

    def add(
        self, size_bytes: int, sent_ns: int, arrival_ns: int, base_ns: int = 0, camera: str = ""
    ) -> None:
        """Learn from one frame of this camera that has arrived whole."""
        self.estimate.add(size_bytes, sent_ns, arrival_ns, base_ns, camera or self._camera)

    def forget(self, camera: str) -> None:
        """Wait no more for frames of a camera that has left."""
        self.estimate.forget(camera)

    def bps(self, now_ns: int, waiting_bytes: int = 0, waiting_since_ns: int = 0) -> float | None:
        """Return what the site's uplink carries; None when nothing is known (any more)."""
        return self.estimate.bps(now_ns, waiting_bytes, waiting_since_ns)

    def steadiness(self) -> float | None:
        """Return the share of the estimate that frames get in bad seconds; None: not known."""
        return self.estimate.steadiness()

    def newest(self) -> tuple[int, int] | None:
        """Return the bits of the site's last frame and how long, in ns, they took."""
        return self.estimate.newest()


class SiteEstimates:
    """The estimates of all sites with a camera that is connected."""

    def __init__(self, make: Callable[[], LinkEstimate]) -> None:
        """Know nothing; `make` makes an estimate of an uplink of which nothing is known."""
        self._make = make
        self._shared: dict[SiteId, LinkEstimate] = {}
        self._site_of: dict[CameraId, SiteId] = {}

    def join(
        self,
        camera: CameraId,
        site: SiteId | None,
        make: Callable[[], LinkEstimate] | None = None,
    ) -> LinkEstimate:
        """Return the estimate of a camera's uplink.

        Args:
            camera: the camera; it leaves the site it was of before.
            site: whose uplink it uses; None: its own.
            make: makes the estimate, if this camera needs one of another kind.
        """
        make = make or self._make
        self.leave(camera)
        if site is None:
            return make()
        self._site_of[camera] = site
        if site not in self._shared:
            self._shared[site] = make()
        return SharedEstimate(self._shared[site], camera)

    def leave(self, camera: CameraId) -> None:
        """Let a camera go; a site without cameras is forgotten."""
        site = self._site_of.pop(camera, None)
        if site is None:
            return
        self._shared[site].forget(camera)
        if site not in self._site_of.values():
            del self._shared[site]
