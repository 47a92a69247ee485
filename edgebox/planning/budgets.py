"""Decides what a camera's link leaves of its SLO, for each variant it could send to. Pure.

Source: Jellyfish (sections 3.3 and 6): compute budget = SLO - bytes / bandwidth - RTT. Here the
bytes are those of the picture that would really be sent (its aspect kept inside the variant's
input, never enlarged), predicted from what this camera's own frames weighed per pixel; fixed
costs and a guard come off too, and an uplink may be filled to a share only.

Cameras of a site share an uplink. Whether it sends frames one after the other or all at once, a
frame is through no later than one frame of each of them together would be. So one frame of each
other camera counts with a camera's own (`uplinks` decides how large those are).
"""

from dataclasses import dataclass

from edgebox.domain.model_family import Variant
from edgebox.domain.picture_size import send_size
from edgebox.domain.plans import UplinkShare
from edgebox.domain.requests import Camera, LinkState
from edgebox.link.bandwidth import message_bytes
from edgebox.planning.planner_parameters import PlanningParameters

BITS_PER_BYTE = 8


@dataclass(frozen=True, slots=True)
class Budget:
    """What one camera could do with one variant."""

    frame_bits: float
    compute_ns: int
    """Left for batches; may be negative."""
    rate_hz: float
    """What the uplink carries of the frames the camera wants to send."""


def budget(
    camera: Camera,
    link: LinkState,
    variant: Variant,
    fixed_ns: int,
    parameters: PlanningParameters,
    *,
    share: UplinkShare | None = None,
) -> Budget:
    """Compute a camera's budget for a variant.

    Without a bandwidth estimate nothing is known of the network time: a share of the SLO is
    left for batches, and the uplink is taken to carry the rate with small frames only.

    Args:
        camera: what it asks for.
        link: what its uplink carries, all of it.
        variant: what it could send to.
        fixed_ns: what a frame costs outside link and inference.
        parameters: the tunables.
        share: its part of an uplink that it shares; None: the uplink is its own.
    """
    width_px, height_px = send_size(camera.width_px, camera.height_px, variant)
    bytes_per_pixel = link.bytes_per_pixel or parameters.bytes_per_pixel
    frame_bits = BITS_PER_BYTE * message_bytes(bytes_per_pixel, width_px * height_px)
    fixed_ns += parameters.guard_ns
    if link.bandwidth_bps is None:
        left_ns = round(camera.slo_ns * parameters.unmeasured_slo_share)
        unmeasured_bytes = parameters.unmeasured_frame_bytes / (share.cameras if share else 1)
        carried = min(1.0, BITS_PER_BYTE * unmeasured_bytes / frame_bits)
        return Budget(frame_bits, left_ns - fixed_ns, camera.rate_hz * carried)
    if link.bandwidth_bps <= 0:
        return Budget(frame_bits, -camera.slo_ns, 0.0)
    others_bits = share.others_bits if share else 0.0
    transmission_ns = (frame_bits + others_bits) / link.bandwidth_bps * 1e9
    if share is None:
        carried_hz = share_of(link, parameters) * link.bandwidth_bps / frame_bits
    else:
        carried_hz = share.rate_hz_max if frame_bits <= share.frame_bits_max else 0.0
    return Budget(
        frame_bits,
        round(camera.slo_ns - transmission_ns) - (link.rtt_ns or 0) - fixed_ns,
        min(camera.rate_hz, carried_hz),
    )


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
    rest_ns = camera.slo_ns - (link.rtt_ns or 0) - fixed_ns - parameters.guard_ns - compute_ns
    if rest_ns <= 0:
        return None
    others_bits, others_bps = (share.others_bits, share.others_bps) if share else (0.0, 0.0)
    sent_bps = camera.rate_hz * frame_bits + others_bps
    return max((frame_bits + others_bits) / rest_ns * 1e9, sent_bps / share_of(link, parameters))


def share_of(link: LinkState, parameters: PlanningParameters) -> float:
    """Return the share of an uplink that frames may fill: the more the steadier it is."""
    steady = min(link.throughput_stability or 0.0, parameters.uplink_utilisation_max_stable)
    return max(parameters.uplink_utilisation_max, steady)
