"""What is written down of each captured frame: how it was sent, and how it ended. Pure data.

Instants are nanoseconds of the camera's monotonic clock.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from edgebox.domain.model_family import VariantName
from edgebox.domain.requests import Outcome


@dataclass(frozen=True, slots=True)
class HandedOver:
    """A frame that starts to leave now."""

    number: int
    width_px: int
    height_px: int
    size_bytes: int
    """Of the whole message."""
    sent_ns: int
    encode_ns: int
    """What scaling and encoding took, the wait for a thread included."""


@dataclass(frozen=True, slots=True)
class FrameRecord:
    """One frame that has ended."""

    frame: int
    captured_ns: int
    ended_ns: int
    """When the camera knew: of an answered frame, when its result arrived."""
    outcome: Outcome
    """By the camera's own clock."""
    reason: str | None = None
    """Of a dropped frame: as in the summary, with why it was not sent: "sender:window"."""
    handed_over: HandedOver | None = None
    """None: it was never sent."""
    advised: VariantName | None = None
    """The variant that the advice in force named when it was sent."""
    acked_ns: int | None = None
    variant: VariantName | None = None
    """What it ran on; None if it was not answered."""
    timing_ms: Mapping[str, float] | None = None
    """Where its time went, by the box's estimate."""

    def to_json(self) -> dict[str, object]:
        """Return one flat object of plain JSON values; `null` is what never was."""
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
            "advised": self.advised,
            "acked_ns": self.acked_ns,
            "variant": self.variant,
            "timing_ms": self.timing_ms and dict(self.timing_ms),
        }
