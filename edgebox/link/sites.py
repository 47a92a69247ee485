"""Owns the estimates of uplinks, one for each camera or for all cameras of a site.

A camera says what site it is of, or it is found out from how its frames arrive
(`site_inference.py`). The box and the simulator use the same. Pure: no clock, no I/O.
"""

from collections.abc import Callable

from edgebox.domain.requests import CameraId, SiteId
from edgebox.link.bandwidth import LinkEstimate
from edgebox.link.site_inference import SiteInference


class MemberEstimate:
    """What one camera teaches and asks; the estimate may be its site's."""

    def __init__(
        self, estimate: LinkEstimate, camera: CameraId, inference: SiteInference | None
    ) -> None:
        self._estimate = estimate
        self._camera = camera
        self._inference = inference

    def add(
        self, size_bytes: int, sent_ns: int, arrival_ns: int, base_ns: int = 0, camera: str = ""
    ) -> None:
        """Learn from one frame of this camera that has arrived whole."""
        self._estimate.add(size_bytes, sent_ns, arrival_ns, base_ns, camera or self._camera)
        if self._inference is not None:
            self._inference.add(self._camera, size_bytes, sent_ns + base_ns, arrival_ns)

    def forget(self, camera: str) -> None:
        """Wait no more for frames of a camera that has left."""
        self._estimate.forget(camera)

    def bps(self, now_ns: int, waiting_bytes: int = 0, waiting_since_ns: int = 0) -> float | None:
        """Return what the uplink carries, for all its cameras; None when nothing is known."""
        return self._estimate.bps(now_ns, waiting_bytes, waiting_since_ns)

    def steadiness(self) -> float | None:
        """Return the share of the estimate that frames get in bad seconds; None: not known."""
        return self._estimate.steadiness()

    def newest(self) -> tuple[int, int] | None:
        """Return the bits of the uplink's last frame and how long, in ns, they took."""
        return self._estimate.newest()


class SiteEstimates:
    """The estimates of the uplinks of all cameras that are connected."""

    def __init__(self, make: Callable[[], LinkEstimate]) -> None:
        """Know nothing; `make` makes an estimate of an uplink of which nothing is known."""
        self._make = make
        self._shared: dict[SiteId, LinkEstimate] = {}
        self._site_of: dict[CameraId, SiteId] = {}
        self._inference = SiteInference()

    def join(
        self,
        camera: CameraId,
        site: SiteId | None,
        address: str = "",
        make: Callable[[], LinkEstimate] | None = None,
    ) -> LinkEstimate:
        """Return the estimate of a camera's uplink.

        Args:
            camera: the camera; it leaves the site it was of before.
            site: whose uplink it says it uses; None: it says nothing.
            address: where it comes from, if its site may be found out; else empty.
            make: makes the estimate, if this camera needs one of another kind.
        """
        self.leave(camera)
        infer = site is None and bool(address)
        if infer:
            self._inference.opened(camera, address)
        return self._member(camera, site, make or self._make, inferred=infer)

    def leave(self, camera: CameraId) -> None:
        """Let a camera go; a site without cameras is forgotten."""
        self._inference.closed(camera)
        self._part(camera)

    def take_news(self) -> list[tuple[CameraId, SiteId | None, LinkEstimate]]:
        """Return whose site was found out to be another than before, and their estimates."""
        return [
            (camera, site, self._member(camera, site, self._make, inferred=True))
            for camera, site in self._inference.take_news().items()
        ]

    def _member(
        self,
        camera: CameraId,
        site: SiteId | None,
        make: Callable[[], LinkEstimate],
        *,
        inferred: bool,
    ) -> LinkEstimate:
        self._part(camera)
        if site is None:
            estimate = make()
        else:
            self._site_of[camera] = site
            if site not in self._shared:
                self._shared[site] = make()
            estimate = self._shared[site]
        return MemberEstimate(estimate, camera, self._inference if inferred else None)

    def _part(self, camera: CameraId) -> None:
        site = self._site_of.pop(camera, None)
        if site is None:
            return
        self._shared[site].forget(camera)
        if site not in self._site_of.values():
            del self._shared[site]
