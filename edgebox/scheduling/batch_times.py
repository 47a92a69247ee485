"""Decides how long a batch takes, given the work of its longest member.

Pure. Orloj (section 4.2.1, equation 3) uses `c0 + c1 * k * l` for a batch of k whose longest member
takes l in a batch of its own. Here the time of a padded size k is

    fixed + pace * slope[k] * work

where work is relative: 1 is the profile's median request, on any executor. `slope[k]` comes from
the profile, so it need not be linear in k; `fixed` and `pace` follow the served batches. Work
between -1 and 0 reduces the fixed part by that share, at every size.
"""

import math
from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from edgebox.domain.model_family import QUANTILES, LatencyProfile
from edgebox.scheduling.distributions import Floats, values_from_quantiles

FIXED_SHARE_MAX = 0.9995
"""Upper bound of the fixed part of a single request's time; if all of it were fixed, work would be
undefined."""

_MEDIAN = QUANTILES.index(0.5)
_INNER = slice(1, -1)
"""All quantiles but the minimum and the maximum, which are the noisiest."""

_SPLITS = 32
PRIOR_WEIGHT = 20.0
"""The weight of the profile, in batches."""

MEMORY_NS = 10_000_000_000
"""Time constant by which served batches lose weight, so that slow sizes are tried again."""

FADED_EVERY_NS = 1_000_000_000
"""Interval of fading without batches: otherwise a variant that seems too slow for every deadline
would never run again."""

PACE_LIMITS = (0.25, 64.0)


class BatchTimes:
    """The times of one variant's batches on one executor, calibrated by those that it served."""

    def __init__(self, profile: LatencyProfile) -> None:
        self.sizes = profile.batch_sizes
        times = np.maximum.accumulate(
            np.array([profile.quantiles_ns[size] for size in self.sizes], dtype=np.float64)
        )  # (sizes, quantiles)
        medians = np.maximum(times[:, _MEDIAN], 1.0)
        self.profile_fixed_ns = _fixed_ns(np.array(self.sizes, dtype=np.float64), medians, times)
        self.fixed_ns = self.profile_fixed_ns
        self.pace = 1.0
        self.profile_slope_ns = medians - self.profile_fixed_ns
        self._slopes_ns: tuple[float, ...] = tuple(self.profile_slope_ns.tolist())
        """The same, for single sizes."""
        self._prior_work = np.maximum(
            (times[0] - self.profile_fixed_ns) / self.profile_slope_ns[0], 0.0
        )
        self._observed = _Sums()
        self._observed_ns = 0
        """The instant up to which the observations have faded."""
        self._served_ns = 0
        self._prior = _Sums()
        for median_ns, slope_ns in zip(medians, self.profile_slope_ns, strict=True):
            weight = PRIOR_WEIGHT / len(self.sizes) / float(median_ns) ** 2
            self._prior.add(weight, float(slope_ns), 0.0)
        # With only one profiled size the slope would be undetermined.
        self._prior.one *= 1 + 1e-3
        self._prior.square *= 1 + 1e-3

    @property
    def slope_ns(self) -> Floats:
        """Time per unit of work at each size, pace included: (sizes,) float64."""
        return self.profile_slope_ns * self.pace

    @property
    def prior_work(self) -> list[float]:
        """Equally likely amounts of work of single requests, by the profile."""
        return values_from_quantiles([float(work) for work in self._prior_work])

    def work_of(self, took_ns: float) -> float:
        """Return the work of a request that ran in a batch of its own and took this long.

        The reference is the profile without the pace. The pace follows the last seconds, so it
        absorbs a change of the request mix as well as a change of the machine's speed; work
        relative to it would miss the former.
        """
        if took_ns < self.profile_fixed_ns:
            return max(-1.0, took_ns / self.profile_fixed_ns - 1)
        return self.longest_work(self.sizes[0], took_ns)

    def longest_work(self, size: int, took_ns: float) -> float:
        """Return the work of the longest member of a batch of a profiled size, at least 0."""
        slope_ns = self._slopes_ns[self.sizes.index(size)]
        return max(0.0, took_ns - self.profile_fixed_ns) / slope_ns

    def batch_ns(self, at: int, work: float) -> float:
        """Return the time of the `at`-th size whose longest member has this much work."""
        return _time_ns(self.fixed_ns, self._slopes_ns[at] * self.pace, work)

    def profiled_ns(self, size: int, work: float) -> float:
        """Return the time of a batch by the profile, given the work of its longest member.

        Unlike `batch_ns` it ignores the batches served in the last seconds.

        Args:
            size: at most the largest size; padded to the next profiled one.
            work: of the longest member.
        """
        at = bisect_left(self.sizes, size)
        return _time_ns(self.profile_fixed_ns, self._slopes_ns[at], work)

    def profiled_each_ns(self, work: Floats) -> Floats:
        """Return `profiled_ns` of each profiled size, for amounts of work given per size.

        Args:
            work: (sizes, n)
        """
        more_ns = self.profile_slope_ns[:, None] * np.maximum(work, 0.0)
        times_ns: Floats = self.profile_fixed_ns * (1 + np.minimum(work, 0.0)) + more_ns
        return times_ns

    def served(self, size: int, work: float, took_ns: float, now_ns: int) -> None:
        """Learn from a batch by least squares, regularised towards the profile and weighted by age.

        Args:
            size: the padded size.
            work: the expected work of its longest member.
            took_ns: its execution time.
            now_ns: when it ended.
        """
        if not (math.isfinite(took_ns) and took_ns > 0 and math.isfinite(work)):
            return
        if self.is_stale(now_ns) and took_ns < self.batch_ns(self.sizes.index(size), work) / 2:
            self._observed = _Sums()  # The slow period is over; forget it at once.
        self._fade(max(0, now_ns - self._observed_ns))
        self._served_ns = now_ns
        slope_ns = self._slopes_ns[self.sizes.index(size)] * work
        expected_ns = self.profile_fixed_ns + slope_ns
        self._observed.add(1 / max(1.0, expected_ns) ** 2, slope_ns, took_ns - expected_ns)
        self._settle()

    def relax(self, now_ns: int) -> None:
        """Let observations fade while nothing is served.

        Any number of calls has the same effect as one call at the last instant.
        """
        steps = (now_ns - self._observed_ns) // FADED_EVERY_NS
        if steps > 0 and self._observed.one:
            self._fade(steps * FADED_EVERY_NS)
            self._settle()

    def is_stale(self, now_ns: int) -> bool:
        """Say whether the last batch is so old that the pace should be measured again."""
        return now_ns - self._served_ns > FADED_EVERY_NS

    def _fade(self, by_ns: int) -> None:
        self._observed.fade(math.exp(-by_ns / MEMORY_NS))
        self._observed_ns += by_ns

    def _settle(self) -> None:
        off_ns, pace = self._observed.line(self._prior)
        self.fixed_ns = max(0.0, self.profile_fixed_ns + off_ns)
        self.pace = min(max(1 + pace, PACE_LIMITS[0]), PACE_LIMITS[1])


def _time_ns(fixed_ns: float, slope_ns: float, work: float) -> float:
    return fixed_ns + slope_ns * work if work >= 0 else fixed_ns * (1 + work)


@dataclass(slots=True)
class _Sums:
    """The sums for a weighted linear regression of residuals, in closed form."""

    one: float = 0.0
    at: float = 0.0
    square: float = 0.0
    residual: float = 0.0
    cross: float = 0.0

    def add(self, weight: float, at: float, residual: float) -> None:
        """Add a point."""
        self.one += weight
        self.at += weight * at
        self.square += weight * at * at
        self.residual += weight * residual
        self.cross += weight * at * residual

    def fade(self, keep: float) -> None:
        """Multiply all weights by `keep`."""
        self.one *= keep
        self.at *= keep
        self.square *= keep
        self.residual *= keep
        self.cross *= keep

    def line(self, prior: "_Sums") -> tuple[float, float]:
        """Return offset and slope of the residuals, regularised towards 0 by a prior's points."""
        one, at, square = self.one + prior.one, self.at + prior.at, self.square + prior.square
        determinant = one * square - at * at
        offset = (square * self.residual - at * self.cross) / determinant
        return offset, (one * self.cross - at * self.residual) / determinant


def _fixed_ns(sizes: np.ndarray, medians: np.ndarray, times: np.ndarray) -> float:
    """Return the part of a batch's time that does not grow with the work in it.

    It is at most the intercept of the line through the medians. It is less where the spread of the
    times grows with the size as if it were noise on the whole time, not different amounts of work.
    """
    if len(sizes) < 2:
        return 0.0
    slope = np.polyfit(sizes, medians, 1)[0]
    through = float(medians[0] - slope * sizes[0])
    most = min(max(through, 0.0), FIXED_SHARE_MAX * float(medians[0]))
    spread = (times - medians[:, None])[:, _INNER]
    if most == 0.0 or not spread.any():
        return most
    shares = most * np.arange(_SPLITS + 1) / _SPLITS
    growth = (medians[:, None] - shares) / (medians[0] - shares)  # (sizes, splits)
    misfit = spread[:, :, None] - growth[:, None, :] * spread[0][None, :, None]
    errors = (misfit**2).sum(axis=(0, 1))
    return float(shares[len(shares) - 1 - int(np.argmin(errors[::-1]))])
