"""Cascades: a small model first, a larger one for the pictures it is unsure about. Pure data.

An early exit is a cascade whose models are the two parts of one network.

The loss of a picture is 1 - F1 of what the small model shows against what the large one shows (IoU
0.5), in [0, 1]. A decider expects a loss of each picture from the small model's output, and those
above a threshold are sent on. The curve says what a threshold costs and gains.
"""

import hashlib
import itertools
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NewType

from edgebox.domain.errors import InvalidInputError
from edgebox.domain.model_family import LatencyProfile, VariantName

_LOSS_MIN = 1e-9
"""Models that differ by less say the same."""

CascadeName = NewType("CascadeName", str)


class CascadeOutcome(StrEnum):
    """The model whose objects the answer of a frame has."""

    KEPT = "kept"
    """The small model's: a small loss was expected."""
    SENT_ON = "sent_on"
    """The large model's."""
    MISSED = "missed"
    """The small model's, because the large one could not answer in time."""


def cascade_json(outcome: CascadeOutcome | None) -> dict[str, str]:
    """Return the field of an answer that says what its cascade did; nothing without one."""
    return {} if outcome is None else {"cascade": outcome.value}


@dataclass(frozen=True, slots=True)
class Decider:
    """The expected loss of a picture: a logistic function of its features."""

    weights: tuple[float, ...]
    """One for each feature."""
    bias: float

    @property
    def fingerprint(self) -> str:
        """A checksum: a decider that was fitted again has another."""
        return hashlib.sha256(repr((self.weights, self.bias)).encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class CascadeEvidence:
    """What the last pictures of a camera said of its cascade. Logits are the decider's own."""

    hard: tuple[tuple[float, float], ...] = ()
    """(logit, measured loss) of pictures sent on for their expected loss, oldest first."""
    easy: tuple[tuple[float, float], ...] = ()
    """The same for samples, whose expected loss was small."""
    logits: tuple[float, ...] = ()
    """Logits of all pictures, oldest first."""


@dataclass(frozen=True, slots=True)
class CascadePoint:
    """What a threshold does, measured on pictures that the decider was not fitted to."""

    threshold: float
    """Pictures with a greater expected loss are sent on; in [0, 1]."""
    share: float
    """The share of the pictures that are sent on; in [0, 1]."""
    loss: float
    """The mean loss of all answers: 0 for pictures that were sent on; in [0, 1]."""


@dataclass(frozen=True, slots=True)
class CascadeCurve:
    """Share and loss by threshold; between the points they are linear.

    Raises:
        InvalidInputError: there are less than two points, or shares do not rise from 0 to 1 while
            thresholds and losses fall to 0.
    """

    points: tuple[CascadePoint, ...]

    def __post_init__(self) -> None:
        points = self.points
        if len(points) < 2 or (points[0].share, points[-1].share) != (0.0, 1.0):
            raise InvalidInputError("a cascade's curve needs points from share 0 to share 1")
        for one, other in itertools.pairwise(points):
            if not (
                one.share < other.share
                and 1 >= one.threshold >= other.threshold >= 0
                and 1 >= one.loss >= other.loss >= 0
            ):
                raise InvalidInputError(
                    "along a cascade's curve shares must rise and thresholds and losses fall, "
                    f"which {one} and {other} do not"
                )
        if points[-1].loss != 0:
            raise InvalidInputError("a cascade's curve must end with the loss 0 at share 1")

    @property
    def loss_max(self) -> float:
        """The mean loss if no picture is sent on."""
        return self.points[0].loss

    def at_share(self, share: float) -> CascadePoint:
        """Return the point at which this share of the pictures is sent on."""
        at = bisect_left(self.points, share, key=_share_of)
        if at <= 0:
            return self.points[0]
        if at >= len(self.points):
            return self.points[-1]
        return _between(self.points[at - 1], self.points[at], share)

    def at_threshold(self, threshold: float) -> CascadePoint:
        """Return what a threshold does: the smallest share at which all above it are sent on."""
        points = self.points
        if threshold >= points[0].threshold:
            return points[0]
        for left, right in itertools.pairwise(points):
            if right.threshold <= threshold:
                part = (left.threshold - threshold) / (left.threshold - right.threshold)
                return _between(left, right, left.share + part * (right.share - left.share))
        return points[-1]

    def loss_of(self, quantile: float) -> float:
        """Return the mean loss of the pictures near a quantile, from the hardest (0) on.

        These are the pictures that are sent on at this share and not at a smaller one.
        """
        points = self.points
        at = min(max(1, bisect_left(points, quantile, key=_share_of)), len(points) - 1)
        left, right = points[at - 1], points[at]
        return (left.loss - right.loss) / (right.share - left.share)

    def accuracy_of(self, quantile: float, small: float, large: float) -> float:
        """Return the accuracy to be expected of the small model's answer for such pictures.

        Args:
            quantile: of their expected losses, from the hardest (0) on.
            small: the small model's accuracy over all pictures.
            large: the large model's.
        """
        if self.loss_max < _LOSS_MIN:
            return large
        return large - (large - small) * self.loss_of(quantile) / self.loss_max

    def accuracy_at(self, share: float, small: float, large: float) -> float:
        """Return the accuracy to be expected at a share, between those of the two models.

        Args:
            share: of the pictures, sent on.
            small: the small model's accuracy, of any kind (mAP, F1).
            large: the large model's, of the same kind.
        """
        if self.loss_max < _LOSS_MIN:
            return large
        return large - (large - small) * self.at_share(share).loss / self.loss_max


def _share_of(point: CascadePoint) -> float:
    return point.share


def _between(left: CascadePoint, right: CascadePoint, share: float) -> CascadePoint:
    part = (share - left.share) / (right.share - left.share)
    if part >= 1:
        return right
    return CascadePoint(
        left.threshold + part * (right.threshold - left.threshold),
        share,
        left.loss + part * (right.loss - left.loss),
    )


@dataclass(frozen=True, slots=True)
class Cascade:
    """What a pipeline's stage must know of the cascade whose large model it is."""

    name: CascadeName
    small: VariantName
    large: VariantName
    large_px: tuple[int, int]
    """Width and height of the large model's input: pictures are sent for it."""
    decider: Decider
    score_shown: float
    """Detections that score less are not part of an answer, for the decider."""
    curve: CascadeCurve
    threshold: float | None = None
    """Pictures whose expected loss is greater are sent on; None: by the share."""
    share: float | None = None
    """The share of the pictures that is sent on; None: by the threshold, and without that the plan
    chooses it."""
    continues: bool = False
    """Whether the large model is the second part of the small one's network: it is given the
    features that this one left, in place of the picture (early exit)."""

    @property
    def planned(self) -> bool:
        """Whether the plan chooses how many pictures are sent on."""
        return self.threshold is None and self.share is None

    def threshold_with(self, planned_share: float, curve: CascadeCurve | None = None) -> float:
        """Return the threshold in force: its own, or else that of a share.

        Args:
            planned_share: that the plan chooses; it counts where nothing is set.
            curve: of the camera's pictures; None: as fitted.
        """
        if self.threshold is not None:
            return self.threshold
        share = planned_share if self.share is None else self.share
        return (curve or self.curve).at_share(share).threshold


def picture_ns(profiles: Iterable[LatencyProfile], variant: VariantName) -> float | None:
    """Return the median time per picture in a variant's best batch; None: it has no profile."""
    times = [
        profile.quantile_ns(size, 0.5) / size
        for profile in profiles
        if profile.variant == variant
        for size in profile.batch_sizes
    ]
    return min(times) if times else None


def saving(share: float, small_ns: float, large_ns: float, *, continues: bool = False) -> float:
    """Return the share of the execution time without a cascade that it saves; below 0: none.

    Without it, pictures run on the large model, or on both parts of one network.

    Args:
        share: of the pictures that both models run on; the others run on the small one only.
        small_ns: what a picture takes on the small model.
        large_ns: what a picture takes on the large model, above 0.
        continues: whether that one is the second part of the small one's network.
    """
    return 1 - (small_ns + share * large_ns) / (large_ns + small_ns * continues)
