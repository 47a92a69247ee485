"""Learned execution times in the form that is stored over a restart. Pure data."""

from dataclasses import dataclass

from edgebox.domain.model_family import ExecutorId, VariantName

FACTOR_LIMITS = (1 / 8, 64.0)
"""Limits of the factor by which drift multiplies a profile."""


@dataclass(frozen=True, slots=True)
class LearnedWork:
    """The work of an application's requests on a variant; 1: its profile's median.

    A value between -1 and 0 reduces the fixed part of the profile's time by that share.
    """

    variant: VariantName
    app: str
    work: tuple[float, ...]
    """Equally likely amounts, rising: samples, or quantiles of them."""
    age_ns: int
    """How long ago the newest sample was taken."""


@dataclass(frozen=True, slots=True)
class LearnedDrift:
    """The drift factor of a variant's profile on an executor."""

    executor: ExecutorId
    variant: VariantName
    factor: float
    age_ns: int
    """How long ago it was last confirmed."""


@dataclass(frozen=True, slots=True)
class Learned:
    """Everything learned of execution times."""

    work: tuple[LearnedWork, ...] = ()
    drifts: tuple[LearnedDrift, ...] = ()
