"""Owns how long requests take, as empirical distributions: windows of samples, and maxima of many.

Pure. A window forgets what no longer holds: samples that are old, and at once all those that newer
ones contradict (`regime`); Orloj (section 3.2) resets its memory every once in a while.

Samples are of any unit of time or work, not below 0. A batch runs at the pace of its
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
from edgebox.scheduling import regime

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]
WINDOW = 2000
"""Samples that a distribution keeps: enough for a P99, few enough to follow the input's drift."""

SAMPLES_MIN = 20
"""Below so many samples the prior is believed as well."""

SAMPLES_ENOUGH = 100
"""So many are kept however old they are: old news of a rare request is better than none."""

_PRIOR_SAMPLES = 64


class EmpiricalDistribution:
    """The last `window` samples of a quantity that is not below 0; its prior until there are some.

    Adding costs O(log window) comparisons and, rarely, a test of whether the samples still belong
    together; nothing is approximated by bins.
    """

    def __init__(
        self, prior: Sequence[float] = (), window: int = WINDOW, horizon_ns: int | None = None
    ) -> None:
        """Start with what is believed before anything was measured.

        Args:
            prior: equally likely values; with neither prior nor samples nothing can be asked.
            window: how many samples are kept.
            horizon_ns: older samples are forgotten while `SAMPLES_ENOUGH` newer ones remain;
                None: never.
        """
        self._prior = sorted(value for value in prior if _usable(value))
        # Apart and plain, because they are written down with the scheduler's state.
        self._recent: deque[float] = deque()
        self._taken_ns: deque[int] = deque()
        self._ordered: list[float] = []
        self._window = window
        self._horizon_ns = horizon_ns
        self._added = 0
        self._values: Floats | None = None
        self.turns = 0
        """How often newer samples contradicted the older ones, which then were forgotten."""

    def add(self, sample: float, now_ns: int = 0) -> bool:
        """Take a sample in and forget what is too much; False: no finite time, it was ignored."""
        if not _usable(sample):
            return False
        if len(self._recent) >= self._window:
            self._forget_oldest()
        self._recent.append(sample)
        self._taken_ns.append(now_ns)
        insort(self._ordered, sample)
        if self._horizon_ns is not None:
            since_ns = now_ns - self._horizon_ns
            while len(self._recent) > SAMPLES_ENOUGH and self._taken_ns[0] < since_ns:
                self._forget_oldest()
        self._values = None
        self._added += 1
        if self._added % regime.TEST_EVERY == 0:
            self._test()
        return True

    def _forget_oldest(self) -> None:
        self._taken_ns.popleft()
        del self._ordered[bisect_left(self._ordered, self._recent.popleft())]

    def _test(self) -> None:
        """Forget what the newest samples contradict."""
        held = regime.newest_that_hold(self._recent, self._ordered, self._added)
        if held == len(self._recent):
            return
        while len(self._recent) > held:
            self._recent.popleft()
            self._taken_ns.popleft()
        self._ordered = sorted(self._recent)
        self.turns += 1

    def reset(self, prior: Sequence[float]) -> None:
        """Forget every sample and believe something else beforehand."""
        self._prior = sorted(value for value in prior if _usable(value))
        self._recent.clear()
        self._taken_ns.clear()
        self._ordered.clear()
        self._values = None

    @property
    def samples(self) -> int:
        """How many samples are in the window."""
        return len(self._recent)

    @property
    def newest_ns(self) -> int:
        """When the newest sample was taken; 0 if there is none."""
        return self._taken_ns[-1] if self._taken_ns else 0

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
