"""Endings of frames for tests: answers and refusals with chosen figures."""

from edgebox.domain.model_family import VariantName
from edgebox.domain.requests import DropReason, Outcome
from edgebox.runtime.frames import Answer, Refusal, Timing
from edgebox.vision.detections import Detections

MS = 1_000_000
SECOND = 1_000_000_000


def answer(
    outcome: Outcome = Outcome.ON_TIME,
    variant: str = "street-256",
    ms: int = 10,
    utility: float | None = None,
    *,
    mismatched: bool = False,
) -> Answer:
    """Return an answer whose parts take 1, 2, 3, 4 times `ms`, and all together 10 times.

    Its utility, unless given: 1 on time, else 0.
    """
    timing = Timing(ms * MS, 2 * ms * MS, 3 * ms * MS, 4 * ms * MS, 10 * ms * MS, 1)
    if utility is None:
        utility = float(outcome is Outcome.ON_TIME)
    return Answer(outcome, VariantName(variant), Detections.empty(), timing, utility, mismatched)


def refusal(reason: DropReason = DropReason.QUEUE) -> Refusal:
    return Refusal(reason, "because")
