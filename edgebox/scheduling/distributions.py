"""Owns how long requests take, as empirical distributions: windows of samples, and maxima of many.

Pure. A window forgets what no longer holds: samples that are old, and at once all those that newer
ones contradict (`regime`); Orloj (section 3.2) resets its memory every once in a while.

Samples are of any unit of time or work. One below 0, down to -1, is a request that takes less than
any work would (`batch_times`): it counts as 0 but where `signed` is asked for. A batch runs at the
pace of its longest member, so what counts is the maximum of k draws: for independent draws its CDF
is the product of theirs. Source: Orloj (arXiv 2209.00159), section 4.2. Its equation 8, a sum over
all subsets of a batch, is the derivative of that product; the product takes k multiplications.
"""

import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from edgebox.domain.model_family import QUANTILES
from edgebox.scheduling import change_detection

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
    """The last `window` samples of a quantity; its prior until there are some.

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
        self._sources: deque[str] = deque()
        self._ordered: list[float] = []
        self._window = window
        self._horizon_ns = horizon_ns
        self._added = 0
        self._values: Floats | None = None
        self._signed: Floats | None = None
        self._sampled: Floats | None = None
        self._inferred: Floats | None = None
        self._inferred_ns = 0
        self.turns = 0
        """How often newer samples contradicted the older ones, which then were forgotten."""

    def add(self, sample: float, now_ns: int = 0, source: str = "") -> bool:
        """Take a sample in and forget what is too much; False: no finite time, it was ignored.

        Args:
            sample: a time or an amount of work.
            now_ns: when it was taken.
            source: what it was taken on; empty: nothing that anybody doubts (`undo`).
        """
        if not _usable(sample):
            return False
        if len(self._recent) >= self._window:
            self._forget_oldest()
        self._recent.append(sample)
        self._taken_ns.append(now_ns)
        self._sources.append(source)
        insort(self._ordered, sample)
        if self._horizon_ns is not None:
            since_ns = now_ns - self._horizon_ns
            while len(self._recent) > SAMPLES_ENOUGH and self._taken_ns[0] < since_ns:
                self._forget_oldest()
        self._values = self._signed = self._sampled = None
        self._added += 1
        if self._added % change_detection.TEST_EVERY == 0:
            self._test()
        return True

    def _forget_oldest(self) -> None:
        self._taken_ns.popleft()
        self._sources.popleft()
        del self._ordered[bisect_left(self._ordered, self._recent.popleft())]

    def _test(self) -> None:
        """Forget what the newest samples contradict."""
        held = change_detection.newest_that_hold(self._recent, self._ordered, self._added)
        if held == len(self._recent):
            return
        while len(self._recent) > held:
            self._recent.popleft()
            self._taken_ns.popleft()
            self._sources.popleft()
        self._ordered = sorted(self._recent)
        self.turns += 1

    def forget_before(self, since_ns: int) -> None:
        """Forget the samples of before an instant."""
        while self._taken_ns and self._taken_ns[0] < since_ns:
            self._forget_oldest()
        self._values = self._signed = self._sampled = None

    def undo(self, source: str, since_ns: int, before: Sequence[float]) -> None:
        """Forget a source's samples since an instant, and put back what they had overthrown.

        Args:
            source: of others nothing is forgotten.
            since_ns: its later samples go.
            before: equally likely values of before; where fewer than these are left, they count as
                samples instead of all that is older than they are.
        """
        every = zip(self._taken_ns, self._recent, self._sources, strict=True)
        kept = [each for each in every if each[0] < since_ns or each[2] != source]
        if len(kept) < len(before):
            later = [each for each in kept if each[0] >= since_ns]
            kept = [*((since_ns, value, "") for value in before), *later]
        self._taken_ns = deque(taken_ns for taken_ns, _, _ in kept)
        self._recent = deque(value for _, value, _ in kept)
        self._sources = deque(of for _, _, of in kept)
        self._ordered = sorted(self._recent)
        self._values = self._signed = self._sampled = self._inferred = None

    def rescale(self, source: str, since_ns: int, factor: float) -> None:
        """Multiply a source's samples since an instant, and what was inferred, by a factor."""
        told = zip(self._recent, self._taken_ns, self._sources, strict=True)
        self._recent = deque(
            _multiplied(value, factor) if taken_ns >= since_ns and of == source else value
            for value, taken_ns, of in told
        )
        self._ordered = sorted(self._recent)
        self._values = self._signed = self._sampled = None
        if self._inferred is not None:
            self._inferred = self._inferred * factor

    def believe(self, prior: Sequence[float]) -> None:
        """Believe something else beforehand; what was measured stays."""
        self._prior = sorted(value for value in prior if _usable(value))
        self._values = self._signed = None

    def infer(self, values: Floats | None, seen_ns: int = 0) -> None:
        """Believe these equally likely values, rising, instead of the samples; None: the samples.

        The samples stay, and go on to come and go.

        Args:
            values: believed.
            seen_ns: when the newest batch ended from which they are inferred.
        """
        self._inferred = values
        self._inferred_ns = 0 if values is None else seen_ns

    @property
    def inferred(self) -> bool:
        """Whether something else than the samples is believed."""
        return self._inferred is not None

    @property
    def known(self) -> bool:
        """Whether what was seen is believed, and not the prior: enough samples, or batches."""
        return self.inferred or self.samples >= SAMPLES_MIN

    @property
    def seen_ns(self) -> int:
        """When the newest sample was taken, or the newest batch ended that is made use of."""
        return max(self.newest_ns, self._inferred_ns if self.inferred else 0)

    @property
    def sampled_values(self) -> Floats:
        """The samples, rising: (n,) float64."""
        if self._sampled is None:
            self._sampled = np.maximum(np.array(self._ordered, dtype=np.float64), 0.0)
        return self._sampled

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
        if self._inferred is not None:
            return self._inferred
        if len(self._ordered) >= SAMPLES_MIN:
            return self.sampled_values
        if self._values is None:
            self._values = np.maximum(self.signed, 0.0)
        return self._values

    @property
    def signed(self) -> Floats:
        """The same, where what is below 0 is told as it is: (n,) float64."""
        if self._inferred is not None:
            return self._inferred
        if self._signed is None:
            prior = self._prior if len(self._ordered) < SAMPLES_MIN else []
            self._signed = np.array(sorted(prior + self._ordered), dtype=np.float64)
        return self._signed

    def cdf(self, at: Floats) -> Floats:
        """Return the share of values not above each point."""
        values = self.values
        share: Floats = np.searchsorted(values, at, side="right") / len(values)
        return share

    def quantile(self, q: float) -> float:
        """Return the least value that a share of at least `q` does not exceed."""
        return max(0.0, self.signed_quantile(q))

    def signed_quantile(self, q: float) -> float:
        """Return the same of `signed`."""
        values = self.signed
        return float(values[min(len(values) - 1, max(0, math.ceil(q * len(values) - 1e-9) - 1))])

    def sampled_quantile(self, q: float) -> float:
        """Return the same of the samples alone, of which there must be some."""
        return float(self._ordered[max(0, math.ceil(q * len(self._ordered) - 1e-9) - 1)])

    def signed_quantiles(self, q: Floats) -> Floats:
        """Return `signed_quantile` of each."""
        values = self.signed
        places = np.ceil(q * len(values) - 1e-9).astype(np.intp) - 1
        found: Floats = values[np.clip(places, 0, len(values) - 1)]
        return found

    def quantile_of_max(self, draws: int, q: float) -> float:
        """Return the least value that the maximum of some draws does not exceed with `q`."""
        return self.quantile(q ** (1 / draws))

    @property
    def mean(self) -> float:
        """The mean of the values."""
        return float(self.values.mean())

    @property
    def greatest(self) -> float:
        """The greatest of the values."""
        return float(self.values[-1])

    @property
    def signed_least(self) -> float:
        """The least of `signed`."""
        return float(self.signed[0])


def _usable(sample: float) -> bool:
    return math.isfinite(sample) and sample >= -1


def _multiplied(sample: float, factor: float) -> float:
    return sample * factor if sample >= 0 else min(0.0, (1 + sample) * factor - 1)


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
