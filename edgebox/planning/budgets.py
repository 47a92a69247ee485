"""Decides what a camera's link leaves of its SLO, for each variant it could send to. Pure.

Source: Jellyfish (sections 3.3 and 6): compute budget = SLO - bytes / bandwidth - RTT. Here the
bytes are those of the picture that would really be sent (its aspect kept inside the variant's
input, never enlarged), predicted from what this camera's own frames weighed per pixel; fixed
costs come off too, and an uplink may be filled to a share only.

Cameras of a site share an uplink. Whether it sends frames one after the other or all at once, a
frame is through no later than one frame of each of them together would be. So one frame of each
other camera counts with a camera's own (`uplinks` decides how large those are).
"""

from collections.abc import Iterable
from typing import NamedTuple

from edgebox.domain.model_family import Variant
from edgebox.domain.picture_size import camera_send_size
from edgebox.domain.plans import UplinkShare
from edgebox.domain.requests import Camera, LinkState
from edgebox.link.bandwidth import message_bytes
from edgebox.planning.planner_parameters import PlanningParameters

BITS_PER_BYTE = 8


class Budget(NamedTuple):
    """What one camera could do with one variant."""

    frame_bits: float
    compute_ns: int
    """Left for batches; may be negative."""
    rate_hz: float
    """What the uplink carries of the frames the camera wants to send."""


def deadline_left_ns(camera: Camera, link: LinkState, fixed_ns: int) -> int:
    """Return what a deadline leaves for transmission and batches together."""
    return camera.slo_ns - (link.rtt_ns or 0) - fixed_ns


def transmission_ns(frame_bits: float, bandwidth_bps: float, share: UplinkShare | None) -> float:
    """Return how long a frame is on its uplink, with one frame of each camera that shares it."""
    others_bits = share.others_bits if share else 0.0
    return (frame_bits + others_bits) / bandwidth_bps * 1e9


class CameraBudgets:
    """The budgets of one camera for frames of any size."""

    def __init__(
        self,
        camera: Camera,
        link: LinkState,
        fixed_ns: int,
        parameters: PlanningParameters,
        share: UplinkShare | None = None,
        *,
        weaker: float = 1.0,
    ) -> None:
        """Gather what does not depend on the variant.

        Args:
            camera: what it asks for.
            link: what its uplink carries, all of it.
            fixed_ns: what a frame costs outside link and inference.
            parameters: the tunables.
            share: its part of an uplink that it shares; None: the uplink is its own.
            weaker: what the uplink carries is divided by this.
        """
        self._camera = camera
        known_bps = link.bandwidth_bps
        self._bandwidth_bps = None if known_bps is None else known_bps / weaker
        self._share = share
        self._left_ns = deadline_left_ns(camera, link, fixed_ns)
        self._carried_bps = share_of(link, parameters) * (self._bandwidth_bps or 0.0)
        self._bytes_per_pixel = link.bytes_per_pixel or parameters.bytes_per_pixel
        unmeasured_ns = round(camera.slo_ns * parameters.unmeasured_slo_share)
        self._unmeasured_ns = unmeasured_ns - fixed_ns
        unmeasured_bytes = parameters.unmeasured_frame_bytes / (share.cameras if share else 1)
        self._unmeasured_bits = BITS_PER_BYTE * unmeasured_bytes

    def of_pictures(self, pixels: Iterable[int]) -> list[Budget]:
        """Return the budgets for pictures of so many pixels.

        Without a bandwidth estimate nothing is known of the network time: a share of the SLO is
        left for batches, and the uplink is taken to carry the rate with small frames only.
        """
        per_pixel = self._bytes_per_pixel
        return self.of_frames(BITS_PER_BYTE * message_bytes(per_pixel, each) for each in pixels)

    def of_frames(self, frames_bits: Iterable[float]) -> list[Budget]:
        """Return the budgets for frames of some sizes."""
        wanted_hz, bandwidth_bps = self._camera.rate_hz, self._bandwidth_bps
        if bandwidth_bps is None:
            unmeasured_ns, most_bits = self._unmeasured_ns, self._unmeasured_bits
            return [
                Budget(bits, unmeasured_ns, wanted_hz * min(1.0, most_bits / bits))
                for bits in frames_bits
            ]
        if bandwidth_bps <= 0:
            return [Budget(bits, -self._camera.slo_ns, 0.0) for bits in frames_bits]
        share, left_ns, carried_bps = self._share, self._left_ns, self._carried_bps
        found = []
        for bits in frames_bits:
            if share is None:
                carried_hz = carried_bps / bits
            else:
                carried_hz = share.rate_hz_max if bits <= share.frame_bits_max else 0.0
            compute_ns = round(left_ns - transmission_ns(bits, bandwidth_bps, share))
            found.append(Budget(bits, compute_ns, min(wanted_hz, carried_hz)))
        return found


def picture_pixels(camera: Camera, variant: Variant) -> int:
    """Return the pixels of the pictures that a camera sends to a variant."""
    width_px, height_px = camera_send_size(camera, variant)
    return width_px * height_px


def budget(
    camera: Camera,
    link: LinkState,
    variant: Variant,
    fixed_ns: int,
    parameters: PlanningParameters,
    *,
    share: UplinkShare | None = None,
) -> Budget:
    """Compute a camera's budget for one variant; the arguments are those of `CameraBudgets`."""
    budgets = CameraBudgets(camera, link, fixed_ns, parameters, share)
    return budgets.of_pictures((picture_pixels(camera, variant),))[0]


def bandwidth_needed_bps(
    camera: Camera,
    link: LinkState,
    *,
    frame_bits: float,
    compute_ns: int,
    fixed_ns: int,
    parameters: PlanningParameters,
    share: UplinkShare | None = None,
) -> float | None:
    """Return the bandwidth of the uplink at which frames of this size leave this compute time.

    None: none would do, because round trip, fixed costs and batches alone exceed the SLO.
    """
    rest_ns = deadline_left_ns(camera, link, fixed_ns) - compute_ns
    if rest_ns <= 0:
        return None
    others_bps = share.others_bps if share else 0.0
    sent_bps = camera.rate_hz * frame_bits + others_bps
    # Time on the link falls with the bandwidth: what takes T at 1 bit/s takes `rest_ns` at T / it.
    in_time_bps = transmission_ns(frame_bits, 1.0, share) / rest_ns
    return max(in_time_bps, sent_bps / share_of(link, parameters))


def share_of(link: LinkState, parameters: PlanningParameters) -> float:
    """Return the share of an uplink that frames may fill: the more the steadier it is."""
    steady = min(link.throughput_stability or 0.0, parameters.uplink_utilisation_max_stable)
    return max(parameters.uplink_utilisation_max, steady)
