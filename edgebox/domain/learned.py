"""What a box has learned of execution times, as it outlives a restart. Pure data."""

from dataclasses import dataclass

from edgebox.domain.model_family import ExecutorId, VariantName

FACTOR_LIMITS = (1 / 8, 64.0)
"""What drift can be believed to multiply a profile by."""


@dataclass(frozen=True, slots=True)
class LearnedWork:
    """How much work one application's requests are on a variant; 1: its profile's median.

    Below 0, down to -1: less than any work, by that share of what all requests take in the profile.
    """

    variant: VariantName
    app: str
    work: tuple[float, ...]
    """Equally likely amounts, rising: samples, or quantiles of more of them."""
    age_ns: int
    """How long ago the newest sample was taken."""


@dataclass(frozen=True, slots=True)
class LearnedDrift:
    """What the profile of a variant on an executor had to be multiplied by."""

    executor: ExecutorId
    variant: VariantName
    factor: float
    age_ns: int
    """How long ago it was last known to hold."""


@dataclass(frozen=True, slots=True)
class Learned:
    """All of it."""

    work: tuple[LearnedWork, ...] = ()
    drifts: tuple[LearnedDrift, ...] = ()
