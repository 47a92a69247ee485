"""Defines the systems of Jellyfish's section 7.4, which adapt the data and the variant separately.

Used by benchmarks.adaptation. The cameras here ignore the box's advice, and the planner assumes a
fixed part of the deadline, or frames of a fixed size.
"""

from dataclasses import dataclass, replace
from functools import partial

from edgebox.domain.plans import Advice, CameraSnapshot, Plan, PlanningSnapshot
from edgebox.domain.requests import Camera
from edgebox.link.bandwidth import LinkEstimate, message_bytes
from edgebox.link.sender import Decision, Send, send_sizes
from edgebox.planning.planner import Planner, plan
from edgebox.planning.planner_parameters import PlanningParameters
from edgebox.simulation.senders import ObedientSender, SenderFactory

FIXED_PX = 352
"""The middle variant's input."""
ENDLESS_BPS = 1e12


class OwnSender(ObedientSender):
    """A sender of every frame at a size of its own choice, whatever the box advises."""

    def __init__(self, camera: Camera, bandwidth: LinkEstimate, limit_s: float | None) -> None:
        """Start.

        Args:
            camera: whose frames.
            bandwidth: the estimate of the link, by the paper's rule.
            limit_s: how long a frame may take to send; None: the size is fixed.
        """
        super().__init__(camera, bandwidth)
        self._limit_s = limit_s

    def advised(self, advice: Advice) -> None:
        """Ignore the advice."""

    def captured(self, frame: int, captured_ns: int, now_ns: int) -> list[Decision]:
        """Send the frame."""
        if self._limit_s is None:
            return [Send(frame, FIXED_PX, FIXED_PX, 85)]
        sizes = send_sizes((self._camera.width_px, self._camera.height_px), None)
        within_s = min(self._limit_s, 1 / self._camera.rate_hz)
        return [Send(frame, *self._largest(sizes, within_s, now_ns, unknown=sizes[-1]), 85)]


@dataclass(frozen=True, slots=True)
class Ablation:
    """One of the systems compared."""

    network_share: float | None
    """Part of the deadline that frames may be on their way; None: as long as they take."""
    compute_share: float | None
    """Part of the deadline that the planner gives the box; None: what fixed frames leave."""

    @property
    def sender(self) -> SenderFactory:
        """What decides at the cameras."""
        return self._sender

    def _sender(self, camera: Camera, bandwidth: LinkEstimate) -> OwnSender:
        if self.compute_share is None:
            return OwnSender(camera, bandwidth, None)
        share = 1e9 if self.network_share is None else self.network_share
        return OwnSender(camera, bandwidth, share * camera.slo_ns / 1e9)

    def planner(self, parameters: PlanningParameters) -> Planner:
        """Return the box's planner, with another deadline and an endless link."""
        inner = partial(plan, parameters=parameters)

        def answer(snapshot: PlanningSnapshot, iterations_max: int) -> Plan:
            cameras = tuple(self._seen(camera) for camera in snapshot.cameras)
            return inner(replace(snapshot, cameras=cameras), iterations_max)

        return answer

    def _seen(self, of: CameraSnapshot) -> CameraSnapshot:
        if self.compute_share is not None:
            slo_ns = round(self.compute_share * of.camera.slo_ns)
        elif of.link.bandwidth_bps is None or of.link.bytes_per_pixel is None:
            slo_ns = of.camera.slo_ns // 2
        else:
            bits = 8 * message_bytes(of.link.bytes_per_pixel, FIXED_PX**2)
            slo_ns = max(1, of.camera.slo_ns - round(bits / of.link.bandwidth_bps * 1e9))
        link = replace(of.link, bandwidth_bps=ENDLESS_BPS)
        return replace(of, camera=replace(of.camera, slo_ns=slo_ns), link=link)


ABLATIONS: dict[str, Ablation] = {
    "DA-off": Ablation(None, None),
    "DA-bw-CB50": Ablation(None, 0.5),
    "DA-bw-CB75": Ablation(None, 0.75),
    "DA-slo-CB50": Ablation(0.5, 0.5),
    "DA-slo-CB75": Ablation(0.25, 0.75),
}
"""As the paper's figure 16 calls them: no data adaptation, one that knows the bandwidth, one that
knows the deadline too; with 50 % or 75 % of the deadline for the box."""
