"""A camera whose link breaks and whose clock lies, with counts of its own of how frames ended."""

import random
from collections import Counter
from dataclasses import dataclass, field, replace

from edgebox.domain.plans import Advice
from edgebox.domain.requests import Camera, LinkState, Request, RequestId, UtilityStep
from edgebox.link.transit import FrameArrival, TransitEstimator
from edgebox.simulation.faults.fault_kinds import MS, SECOND, FaultKind, Faults
from edgebox.simulation.faults.small_box import PIPELINES, STREET

_JUMPS_NS = (-3600 * SECOND, -SECOND, 30 * MS, SECOND, 60 * SECOND, 3600 * SECOND)


@dataclass(slots=True)
class FaultyCamera:
    """One camera: what it wants, what its clock says, and what became of its frames."""

    wants: Camera
    rng: random.Random
    faults: Faults
    estimate: TransitEstimator = field(default_factory=TransitEstimator)
    clock_offset_ns: int = 0
    connection: int = 0
    """Counts connections; frames of an earlier one are lost on the way."""
    connected: bool = False
    advice: Advice | None = None
    captured: int = 0
    on_way: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    """How its frames ended: an outcome or a reason."""

    @classmethod
    def drawn(cls, number: int, rng: random.Random, faults: Faults) -> "FaultyCamera":
        """Draw what a camera wants."""
        slo_ns = rng.choice((60, 150, 300, 1000)) * MS
        steps: tuple[UtilityStep, ...] = ()
        if rng.random() < 0.2:
            steps = (UtilityStep(2 * slo_ns, 0.5), UtilityStep(3 * slo_ns, 0.2))
        wants = Camera(
            f"camera-{number}",  # type: ignore[arg-type]
            rng.choice(("street", "yard")),
            STREET,
            slo_ns,
            rng.choice((2.0, 5.0, 15.0)),
            1280,
            720,
            rng.choice((0.0, 0.0, 0.5)),
            0.0,
            steps,
            pipeline=rng.choice(PIPELINES),
        )
        return cls(wants, rng, faults)

    def clock_ns(self, now_ns: int) -> int:
        """Return what its clock says, which may have jumped."""
        return now_ns + self.clock_offset_ns

    def jump(self) -> None:
        """Set the clock to something else."""
        self.clock_offset_ns += self.faults.rng(FaultKind.CLOCK).choice(_JUMPS_NS)

    def reconnect(self) -> None:
        """Begin a connection; the box knows nothing of its clock and its link."""
        self.connection += 1
        self.connected = True
        self.estimate = TransitEstimator()

    def answer_ping(self, now_ns: int) -> None:
        """Tell the box its clock, unless the fault is that it does not."""
        if self.faults.active(FaultKind.CLOCK, self.wants.id, now_ns) and self.rng.random() < 0.7:
            return
        rtt_ns = self.rng.randint(1, 40) * MS
        self.estimate.pong(now_ns - rtt_ns, self.clock_ns(now_ns - rtt_ns // 2), now_ns)

    def period_ns(self, now_ns: int) -> int:
        """Return the time until it captures again."""
        rate_hz = self.wants.rate_hz
        if self.advice is not None:
            rate_hz = min(rate_hz, max(self.advice.rate_hz, 0.2))
        if self.faults.active(FaultKind.GREED, self.wants.id, now_ns):
            rate_hz = 10 * self.wants.rate_hz
        return max(1, round(SECOND / rate_hz))

    def request(self, number: RequestId, captured_ns: int, now_ns: int) -> Request:
        """Return the frame that has arrived now, its deadline by what its stamps seem to say.

        Args:
            number: of the request.
            captured_ns: what the camera's clock said at the capture.
            now_ns: on the box's clock.
        """
        side = self.advice.width_px if self.advice is not None else 416
        if self.faults.active(FaultKind.GREED, self.wants.id, now_ns):
            side = self.faults.rng(FaultKind.GREED).choice((1, 64, 1280, 3840))
        size = max(1, side), max(1, side * 9 // 16)
        size_bytes = 200 + size[0] * size[1] // 10
        transit = self.estimate.frame_arrived(
            captured_ns,
            captured_ns + MS,
            FrameArrival.at_once(size_bytes, now_ns),
            size[0] * size[1],
            self.wants.slo_ns,
        )
        deadline_ns = transit.compute_deadline_ns
        assert deadline_ns <= now_ns + self.wants.slo_ns, "a clock gave its frame more time"
        return Request(
            number,
            self.wants.id,
            self.wants.app,
            transit.captured_ns,
            now_ns,
            deadline_ns,
            *size,
            size_bytes,
            steps=self.wants.steps_after(deadline_ns),
            advised=None if self.advice is None else self.advice.variant,
            sent_ns=transit.sent_ns,
        )

    def link(self, now_ns: int) -> LinkState | None:
        """Return the link's state if the core shall learn it; nonsense if the link is broken."""
        if not self.faults.active(FaultKind.LINK, self.wants.id, now_ns):
            return self.estimate.take_updates(now_ns)
        rng = self.faults.rng(FaultKind.LINK)
        bps = rng.choice((None, 0.0, 1.0, 1e4, 1e6, 1e12))
        return LinkState(
            bps, rng.choice((None, 0, 5 * MS, 10 * SECOND)), None, rng.choice((None, 9.0))
        )

    def changed(self, rng: random.Random) -> Camera:
        """Want something else."""
        self.wants = replace(
            self.wants,
            rate_hz=rng.choice((0.5, 5.0, 30.0)),
            slo_ns=rng.choice((20, 300, 2000)) * MS,
            steps=(),
            pipeline=rng.choice(PIPELINES),
        )
        return self.wants
