"""Records of captured frames: how they were sent and how they ended. Pure data.

Instants are nanoseconds of the camera's monotonic clock.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from edgebox.domain.model_family import VariantName
from edgebox.domain.requests import Outcome, StagePlacement


@dataclass(frozen=True, slots=True)
class HandedOver:
    """A frame that is handed to the socket."""

    number: int
    width_px: int
    height_px: int
    size_bytes: int
    """Size of the whole message."""
    sent_ns: int
    encode_ns: int
    """Time for scaling and encoding, including the wait for a thread; or for the first stage."""
    placement: StagePlacement = StagePlacement.BOX
    """Where its first stage runs; at the camera: boxes and crops are sent."""


@dataclass(frozen=True, slots=True)
class FrameRecord:
    """One frame that has ended."""

    frame: int
    captured_ns: int
    ended_ns: int
    """When the camera learned it; for an answered frame, the arrival of its result."""
    outcome: Outcome
    """Outcome by the camera's clock."""
    reason: str | None = None
    """Drop reason as in the summary, with the cause of an unsent frame: "sender:window"."""
    handed_over: HandedOver | None = None
    """How it was sent; None: it was not."""
    advised: VariantName | None = None
    """The variant advised when it was sent."""
    acked_ns: int | None = None
    variant: VariantName | None = None
    """The variant that ran; None if it was not answered."""
    timing_ms: Mapping[str, float] | None = None
    """Latency by part, as the box estimated it."""

    def to_json(self) -> dict[str, object]:
        """Return one flat object of plain JSON values; `null` for what did not happen."""
        sent = self.handed_over
        return {
            "frame": self.frame,
            "captured_ns": self.captured_ns,
            "ended_ns": self.ended_ns,
            "outcome": self.outcome.value,
            "reason": self.reason,
            "width_px": sent and sent.width_px,
            "height_px": sent and sent.height_px,
            "size_bytes": sent and sent.size_bytes,
            "encode_ms": sent and round(sent.encode_ns / 1e6, 3),
            "sent_ns": sent and sent.sent_ns,
            "placement": sent and sent.placement.value,
            "advised": self.advised,
            "acked_ns": self.acked_ns,
            "variant": self.variant,
            "timing_ms": self.timing_ms and dict(self.timing_ms),
        }
