"""Decides what a camera's link leaves of its SLO, for each variant it could send to. Pure.

Source: Jellyfish (sections 3.3 and 6): compute budget = SLO - bytes / bandwidth - RTT. Here the
bytes are those of the picture that would really be sent (its aspect kept inside the variant's
input, never enlarged), predicted from what this camera's own frames weighed per pixel; fixed
costs and a guard come off too, and an uplink may be filled to a share only.
"""

from dataclasses import dataclass

from edgebox.domain.models import Variant
from edgebox.domain.pictures import send_size
from edgebox.domain.requests import Camera, LinkState
from edgebox.link.bandwidth import message_bytes
from edgebox.planning.parameters import PlanningParameters

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
) -> Budget:
    """Compute a camera's budget for a variant.

    Without a bandwidth estimate nothing is known of the network time: a share of the SLO is
    left for batches, and the uplink is taken to carry the rate with small frames only.
    """
    width_px, height_px = send_size(camera.width_px, camera.height_px, variant)
    bytes_per_pixel = link.bytes_per_pixel or parameters.bytes_per_pixel
    frame_bits = BITS_PER_BYTE * message_bytes(bytes_per_pixel, width_px * height_px)
    fixed_ns += parameters.guard_ns
    if link.bandwidth_bps is None:
        left_ns = round(camera.slo_ns * parameters.unmeasured_slo_share)
        carried = min(1.0, BITS_PER_BYTE * parameters.unmeasured_frame_bytes / frame_bits)
        return Budget(frame_bits, left_ns - fixed_ns, camera.rate_hz * carried)
    if link.bandwidth_bps <= 0:
        return Budget(frame_bits, -camera.slo_ns, 0.0)
    transmission_ns = frame_bits / link.bandwidth_bps * 1e9
    return Budget(
        frame_bits,
        round(camera.slo_ns - transmission_ns) - (link.rtt_ns or 0) - fixed_ns,
        min(camera.rate_hz, share_of(link, parameters) * link.bandwidth_bps / frame_bits),
    )


def bandwidth_needed_bps(
    camera: Camera,
    link: LinkState,
    *,
    frame_bits: float,
    compute_ns: int,
    fixed_ns: int,
    parameters: PlanningParameters,
) -> float | None:
    """Return the bandwidth at which frames of this size leave this much compute time.

    None: none would do, because round trip, fixed costs and batches alone exceed the SLO.
    """
    rest_ns = camera.slo_ns - (link.rtt_ns or 0) - fixed_ns - parameters.guard_ns - compute_ns
    if rest_ns <= 0:
        return None
    return max(frame_bits / rest_ns * 1e9, camera.rate_hz * frame_bits / share_of(link, parameters))


def share_of(link: LinkState, parameters: PlanningParameters) -> float:
    """Return the share of an uplink that frames may fill: the more the steadier it is."""
    steady = min(link.steadiness or 0.0, parameters.link_share_steady)
    return max(parameters.link_share, steady)
