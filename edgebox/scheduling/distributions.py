"""Owns how long requests take, as empirical distributions: windows of samples, and maxima of many.

Pure. Samples are of any unit of time or work, not below 0. A batch runs at the pace of its
longest member, so what counts is the maximum of k draws: for independent draws its CDF is the
product of theirs. Source: Orloj (arXiv 2209.00159), section 4.2. Its equation 8, a sum over all
subsets of a batch, is the derivative of that product; the product takes k multiplications.
"""

import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from edgebox.domain.models import QUANTILES

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]
WINDOW = 2000
"""Samples that a distribution keeps: enough for a P99, few enough to follow the input's drift."""

SAMPLES_MIN = 20
"""Below so many samples the prior is believed as well."""

_PRIOR_SAMPLES = 64


class EmpiricalDistribution:
    """The last `window` samples of a quantity that is not below 0; its prior until there are some.

    Adding costs O(log window) comparisons; nothing is approximated by bins.
    """

    def __init__(self, prior: Sequence[float] = (), window: int = WINDOW) -> None:
        """Start with what is believed before anything was measured.

        Args:
            prior: equally likely values; with neither prior nor samples nothing can be asked.
            window: how many samples are kept.
        """
        self._prior = sorted(value for value in prior if _usable(value))
        self._recent: deque[float] = deque()
        self._ordered: list[float] = []
        self._window = window
        self._values: Floats | None = None

    def add(self, sample: float) -> bool:
        """Take a sample in and forget the oldest; False: it is no finite time and was ignored."""
        if not _usable(sample):
            return False
        if len(self._recent) >= self._window:
            del self._ordered[bisect_left(self._ordered, self._recent.popleft())]
        self._recent.append(sample)
        insort(self._ordered, sample)
        self._values = None
        return True

    def reset(self) -> None:
        """Forget every sample; the prior stays."""
        self._recent.clear()
        self._ordered.clear()
        self._values = None

    @property
    def samples(self) -> int:
        """How many samples are in the window."""
        return len(self._recent)

    @property
    def values(self) -> Floats:
        """The equally likely values that stand for the distribution, rising: (n,) float64."""
        if self._values is None:
            believed = self._ordered
            if len(believed) < SAMPLES_MIN:
                believed = sorted(self._prior + believed)
            self._values = np.array(believed, dtype=np.float64)
        return self._values

    def cdf(self, at: Floats) -> Floats:
        """Return the share of values not above each point."""
        values = self.values
        share: Floats = np.searchsorted(values, at, side="right") / len(values)
        return share

    def quantile(self, q: float) -> float:
        """Return the least value that a share of at least `q` does not exceed."""
        values = self.values
        return float(values[min(len(values) - 1, max(0, math.ceil(q * len(values) - 1e-9) - 1))])

    def quantile_of_max(self, draws: int, q: float) -> float:
        """Return the least value that the maximum of some draws does not exceed with `q`."""
        return self.quantile(q ** (1 / draws))

    @property
    def mean(self) -> float:
        """The mean of the values."""
        return float(self.values.mean())

    @property
    def least(self) -> float:
        """The least of the values."""
        return float(self.values[0])


def _usable(sample: float) -> bool:
    return math.isfinite(sample) and sample >= 0


def cdf_of_max(members: Iterable[tuple[EmpiricalDistribution, int]], at: Floats) -> Floats:
    """Return the CDF of the maximum of independent draws, `(distribution, draws)` each."""
    product = np.ones_like(at)
    for distribution, draws in members:
        product *= distribution.cdf(at) ** draws
    return product


def mean_of_max(members: Sequence[tuple[EmpiricalDistribution, int]]) -> float:
    """Return the mean of the maximum of independent draws, exactly.

    Between two neighbouring values the CDF is constant, so the integral of 1 - CDF is a sum.
    """
    points = np.unique(np.concatenate([d.values for d, draws in members if draws > 0]))
    below = cdf_of_max(members, points[:-1])
    return float(points[0] + np.dot(1 - below, np.diff(points)))


def values_from_quantiles(times: Sequence[float], count: int = _PRIOR_SAMPLES) -> list[float]:
    """Return equally likely values that have the given `QUANTILES`, linear in between."""
    middles = (np.arange(count) + 0.5) / count
    return [float(value) for value in np.interp(middles, QUANTILES, times)]
