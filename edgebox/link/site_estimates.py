"""Owns the estimates of uplinks, one for each camera or for all cameras of a site.

A camera says what site it is of, or it is found out from how its frames arrive
(`site_inference.py`). The box and the simulator use the same.

When a camera enters a site, the site's estimate is made anew from the last second's frames of all
its members, in the order of their arrivals. Neither the sum of what they were believed to carry
apart nor the largest of these would be right: apart, each camera's frames are timed with those of
the others in their way, by how much only the frames tell. So the site knows at once what it would
if it had been known as one before. How steady the link is must be learnt anew, as what was
compared before lacked the newcomer's frames. A camera that leaves a site while it stays connected
begins with a copy of the site's estimate, which its own frames replace within a second.

Pure: no clock, no I/O.
"""

from collections.abc import Callable, Sequence

from edgebox.domain.requests import CameraId, SiteId
from edgebox.link.bandwidth import CarriedFrame, LinkEstimate
from edgebox.link.site_inference import SiteInference


class MemberEstimate:
    """What one camera teaches and asks; the estimate may be its site's."""

    def __init__(
        self, uplink: LinkEstimate, camera: CameraId, inference: SiteInference | None
    ) -> None:
        self.uplink = uplink
        self._camera = camera
        self._inference = inference

    def add(
        self, size_bytes: int, sent_ns: int, arrival_ns: int, base_ns: int = 0, camera: str = ""
    ) -> None:
        """Learn from one frame of this camera that has arrived whole."""
        self.uplink.add(size_bytes, sent_ns, arrival_ns, base_ns, camera or self._camera)
        if self._inference is not None:
            self._inference.add(self._camera, size_bytes, sent_ns + base_ns, arrival_ns)

    def forget(self, camera: str) -> None:
        """Wait no more for frames of a camera that has left."""
        self.uplink.forget(camera)

    def bps(self, now_ns: int, waiting_bytes: int = 0, waiting_since_ns: int = 0) -> float | None:
        """Return what the uplink carries, for all its cameras; None when nothing is known."""
        return self.uplink.bps(now_ns, waiting_bytes, waiting_since_ns)

    def throughput_stability(self) -> float | None:
        """Return the share of the estimate that frames get in bad seconds; None: not known."""
        return self.uplink.throughput_stability()

    def newest(self) -> tuple[int, int] | None:
        """Return the bits of the uplink's last frame and how long, in ns, they took."""
        return self.uplink.newest()

    def frames(self) -> Sequence[CarriedFrame]:
        """Return the frames that the estimate rests on, oldest first."""
        return self.uplink.frames()

    def copy_for(self, camera: str) -> LinkEstimate:
        """Return a copy that learns apart from this one, from frames of one camera."""
        return self.uplink.copy_for(camera)


class SiteEstimates:
    """The estimates of the uplinks of all cameras that are connected."""

    def __init__(self, make: Callable[[], LinkEstimate]) -> None:
        """Know nothing; `make` makes an estimate of an uplink of which nothing is known."""
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
            camera: the camera; it leaves the site it was of before. What was learnt of its
                uplink since it last joined is kept, unless it has left meanwhile.
            site: whose uplink it says it uses; None: it says nothing.
            address: where it comes from, if its site may be found out; else empty.
            make: makes the estimate, if this camera needs one of another kind.
        """
        self._inference.closed(camera)
        infer = site is None and bool(address)
        if infer:
            self._inference.opened(camera, address)
        return self._member(camera, site, make or self._make, inferred=infer)

    def leave(self, camera: CameraId) -> None:
        """Let a camera go; a site without cameras is forgotten."""
        self._inference.closed(camera)
        self._part(camera)
        self._members.pop(camera, None)

    def take_updates(self) -> list[tuple[CameraId, SiteId | None, LinkEstimate]]:
        """Return whose site was found out to be another than before, and their estimates."""
        return [
            (camera, site, self._member(camera, site, self._make, inferred=True))
            for camera, site in self._inference.take_updates().items()
        ]

    def _member(
        self,
        camera: CameraId,
        site: SiteId | None,
        make: Callable[[], LinkEstimate],
        *,
        inferred: bool,
    ) -> LinkEstimate:
        before = self._members.get(camera)
        self._part(camera)
        if site is not None:
            known = () if before is None else before.frames()
            uplink = self._enter(camera, site, make, known)
        elif before is not None:
            uplink = before.copy_for(camera)
        else:
            uplink = make()
        member = MemberEstimate(uplink, camera, self._inference if inferred else None)
        self._members[camera] = member
        return member

    def _enter(
        self,
        camera: CameraId,
        site: SiteId,
        make: Callable[[], LinkEstimate],
        known: Sequence[CarriedFrame],
    ) -> LinkEstimate:
        """Return the estimate of a site that a camera enters, with what is known of its frames."""
        shared = self._shared.get(site)
        carried = set() if shared is None else set(shared.frames())
        # Those of others, from a site that it has left, are not of this link.
        own = {frame for frame in known if frame.camera == camera}
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
        self._site_of[camera] = site
        return shared

    def _part(self, camera: CameraId) -> None:
        site = self._site_of.pop(camera, None)
        if site is None:
            return
        self._shared[site].forget(camera)
        if site not in self._site_of.values():
            del self._shared[site]
