"""Owns the estimates of uplinks, one for each camera or for all cameras of a site.

A camera states its site, or the site is inferred from the arrival times of its frames
(`site_inference.py`). The box and the simulator use the same code.

When a camera joins a site, the site's estimate is rebuilt from the last second's frames of all its
members, in the order of their arrivals. Neither the sum nor the maximum of their separate estimates
would be right: separately, each camera's frames are timed together with other cameras' frames in
their way, and only the frames tell by how much. So the site's estimate is at once what it would be
if the site had been known before. The stability of the link must be learned again, because earlier
comparisons lacked the new camera's frames. A camera that leaves a site while it stays connected
starts with a copy of the site's estimate, which its own frames replace within a second.

Pure: no clock, no I/O.
"""

from collections.abc import Callable, Sequence

from edgebox.domain.requests import CameraId, SiteId
from edgebox.link.bandwidth import CarriedFrame, LinkEstimate
from edgebox.link.site_inference import SiteInference


class MemberEstimate:
    """One camera's view of an estimate, which may be its site's."""

    def __init__(
        self, uplink: LinkEstimate, camera: CameraId, inference: SiteInference | None
    ) -> None:
        self.uplink = uplink
        self._camera = camera
        self._inference = inference

    def add(
        self, size_bytes: int, sent_ns: int, arrival_ns: int, base_ns: int = 0, camera: str = ""
    ) -> None:
        """Learn from a completely received frame of this camera."""
        self.uplink.add(size_bytes, sent_ns, arrival_ns, base_ns, camera or self._camera)
        if self._inference is not None:
            self._inference.add(self._camera, size_bytes, sent_ns + base_ns, arrival_ns)

    def forget(self, camera: str) -> None:
        """Stop waiting for frames of a camera that has left."""
        self.uplink.forget(camera)

    def bps(self, now_ns: int, waiting_bytes: int = 0, waiting_since_ns: int = 0) -> float | None:
        """Return the bandwidth of the uplink, for all its cameras; None if nothing is known."""
        return self.uplink.bps(now_ns, waiting_bytes, waiting_since_ns)

    def throughput_stability(self) -> float | None:
        """Return the fraction of the estimate that frames get in bad seconds; None: not known."""
        return self.uplink.throughput_stability()

    def newest(self) -> tuple[int, int] | None:
        """Return the bits of the uplink's last frame and its transmission time in ns."""
        return self.uplink.newest()

    def frames(self) -> Sequence[CarriedFrame]:
        """Return the frames on which the estimate is based, oldest first."""
        return self.uplink.frames()

    def copy_for(self, camera: str) -> LinkEstimate:
        """Return an independent copy that learns from the frames of one camera."""
        return self.uplink.copy_for(camera)


class SiteEstimates:
    """The uplink estimates of all connected cameras."""

    def __init__(self, make: Callable[[], LinkEstimate]) -> None:
        """Start empty; `make` creates a new estimate of an uplink."""
        self._make = make
        self._shared: dict[SiteId, LinkEstimate] = {}
        self._site_of: dict[CameraId, SiteId] = {}
        self._members: dict[CameraId, MemberEstimate] = {}
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
            camera: the camera; it leaves its previous site. What was learned of its uplink since it
                last joined is kept, unless it has left meanwhile.
            site: the site it states; None: it states none.
            address: its network address, if its site may be inferred; else empty.
            make: creates the estimate, if this camera needs another estimator.
        """
        self._inference.closed(camera)
        infer = site is None and bool(address)
        if infer:
            self._inference.opened(camera, address)
        self._part(camera)
        if site is not None:
            self._enter((camera,), site, make or self._make)
        return self._member(camera, site, make or self._make, inferred=infer)

    def leave(self, camera: CameraId) -> None:
        """Remove a camera; a site without cameras is forgotten."""
        self._inference.closed(camera)
        self._part(camera)
        self._members.pop(camera, None)

    def stalled(self, start_ns: int, end_ns: int) -> None:
        """Note that nothing was received meanwhile, because the receiver was busy."""
        self._inference.stalled(start_ns, end_ns)

    def take_updates(self) -> list[tuple[CameraId, SiteId | None, LinkEstimate]]:
        """Return the cameras whose inferred site has changed, with their estimates.

        All cameras that join a site together are added at once: its estimate is rebuilt from their
        frames once, not once for each of them.
        """
        updates = self._inference.take_updates()
        for camera in updates:
            self._part(camera)
        entering: dict[SiteId, list[CameraId]] = {}
        for camera, site in updates.items():
            if site is not None:
                entering.setdefault(site, []).append(camera)
        for site, cameras in entering.items():
            self._enter(cameras, site, self._make)
        return [
            (camera, site, self._member(camera, site, self._make, inferred=True))
            for camera, site in updates.items()
        ]

    def _member(
        self,
        camera: CameraId,
        site: SiteId | None,
        make: Callable[[], LinkEstimate],
        *,
        inferred: bool,
    ) -> LinkEstimate:
        """Return the estimate for a camera that has entered a site, or whose uplink is its own."""
        before = self._members.get(camera)
        if site is not None:
            uplink = self._shared[site]
        elif before is not None:
            uplink = before.copy_for(camera)
        else:
            uplink = make()
        member = MemberEstimate(uplink, camera, self._inference if inferred else None)
        self._members[camera] = member
        return member

    def _enter(
        self, cameras: Sequence[CameraId], site: SiteId, make: Callable[[], LinkEstimate]
    ) -> None:
        """Add cameras to a site and rebuild its estimate from the frames of all its members."""
        shared = self._shared.get(site)
        carried = set() if shared is None else set(shared.frames())
        # Frames of other cameras, from a site they have left, were not on this link.
        own = {
            frame
            for camera in cameras
            if (before := self._members.get(camera)) is not None
            for frame in before.frames()
            if frame.camera == camera
        }
        if shared is None or not own <= carried:
            shared = make()
            for frame in sorted(own | carried):
                shared.add(
                    frame.size_bytes, frame.sent_ns, frame.arrival_ns, frame.base_ns, frame.camera
                )
            self._shared[site] = shared
            for other, of in self._site_of.items():
                if of == site:
                    self._members[other].uplink = shared
        self._site_of |= dict.fromkeys(cameras, site)

    def _part(self, camera: CameraId) -> None:
        site = self._site_of.pop(camera, None)
        if site is None:
            return
        self._shared[site].forget(camera)
        if site not in self._site_of.values():
            del self._shared[site]
