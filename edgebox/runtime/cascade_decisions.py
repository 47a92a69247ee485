"""Decides which frames a cascade sends on, when their first stage has answered.

On the event loop, in the same turn as the crops of other stages: some 0.1 ms for a picture.
"""

from edgebox.domain.cascades import CascadeOutcome
from edgebox.domain.model_family import VariantName
from edgebox.runtime.frames import PendingFrame
from edgebox.vision.cascade_decider import expected_loss
from edgebox.vision.detections import Detections


def decide(
    frame: PendingFrame, found: Detections, variant: VariantName, planned_share: float
) -> bool:
    """Return whether a frame is sent on to its cascade's large model, and note it in the frame.

    A frame that ran on a smaller variant than the cascade's small model is not: the box was short
    of time for it.

    Args:
        frame: that its first stage has answered.
        found: what that found, in px of the camera's own picture.
        variant: that found it.
        planned_share: of the camera's pictures; where the plan says how many are sent on.
    """
    stage = None if frame.pipeline is None else frame.pipeline.cascade_stage
    cascade = None if stage is None else stage.cascade
    if cascade is None or variant != cascade.small:
        return False
    size_px = frame.source_width_px, frame.source_height_px
    loss = expected_loss(cascade.decider, found, *size_px, cascade.score_shown)
    sent_on = loss > cascade.threshold_with(planned_share)
    frame.cascade = CascadeOutcome.MISSED if sent_on else CascadeOutcome.KEPT
    return sent_on
