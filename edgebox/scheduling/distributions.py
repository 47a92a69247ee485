"""Owns the distributions of execution time: windows of samples, and quantiles of several draws.

Pure. A window forgets samples that are old. It also forgets, all at once, older samples that newer
ones contradict (`change_detection`); Orloj (section 3.2) resets its memory at intervals.

Samples are in any unit of time or work. A sample between -1 and 0 is a request that takes less time
than the fixed part of a batch (`batch_times`). It counts as 0 except in the `signed` properties. A
batch takes as long as its longest member, so the relevant quantity is the maximum of k draws. For
independent draws of one distribution its CDF is the k-th power (`work` has batches of several).
"""

import math
from array import array
from bisect import bisect_left, insort
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from edgebox.domain.model_family import QUANTILES
from edgebox.scheduling import change_detection

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
WINDOW = 2000
"""Samples that a distribution keeps: enough for a P99, and few enough to follow changes of the
input."""

SAMPLES_MIN = 20
"""With fewer samples than this the prior is used as well."""

SAMPLES_ENOUGH = 100
"""This many samples are kept whatever their age: old samples of a rare request are better than
none."""

_PRIOR_SAMPLES = 64


class EmpiricalDistribution:
    """The last `window` samples of a quantity, or its prior as long as there are too few.

    Adding a sample costs O(log window) comparisons and, rarely, a test whether older samples still
    hold. Nothing is approximated by bins.
    """

    DERIVED = frozenset(("_ordered", "_values", "_signed", "_sampled"))
    """Attributes that checkpoints leave out: they are computed again where they are None."""

    def __init__(
        self, prior: Sequence[float] = (), window: int = WINDOW, horizon_ns: int | None = None
    ) -> None:
        """Start with a prior.

        Args:
            prior: equally likely values; without prior and samples no quantile is defined.
            window: the number of samples to keep.
            horizon_ns: age at which samples are forgotten while `SAMPLES_ENOUGH` newer ones remain;
                None: never.
        """
        self._prior = sorted(value for value in prior if _usable(value))
        # Arrays, because checkpoints copy them in one piece; a window is short enough to be moved.
        self._recent = array("d")
        self._taken_ns = array("q")
        self._sources = array("H")
        """Numbers of `_names`, in a window that forgets them as it forgets samples."""
        self._names: list[str] = []
        self._ordered: array[float] | None = None
        self._window = window
        self._horizon_ns = horizon_ns
        self._added = 0
        self._values: Floats | None = None
        self._signed: Floats | None = None
        self._sampled: Floats | None = None
        self._inferred: Floats | None = None
        self._inferred_ns = 0
        self.resets = 0
        """How often newer samples contradicted older ones, which were then forgotten."""

    def add(self, sample: float, now_ns: int = 0, source: str = "") -> bool:
        """Add a sample and forget those beyond the window; False: it was not finite and was
        ignored.

        Args:
            sample: a time or an amount of work.
            now_ns: when it was taken.
            source: the executor it was taken on, so that `undo` can find it; empty: never undone.
        """
        if not _usable(sample):
            return False
        if len(self._recent) >= self._window:
            self._forget_oldest()
        ordered = self._rising
        self._recent.append(sample)
        self._taken_ns.append(now_ns)
        self._sources.append(self._number_of(source))
        insort(ordered, sample)
        if self._horizon_ns is not None:
            since_ns = now_ns - self._horizon_ns
            while len(self._recent) > SAMPLES_ENOUGH and self._taken_ns[0] < since_ns:
                self._forget_oldest()
        self._values = self._signed = self._sampled = None
        self._added += 1
        if self._added % change_detection.TEST_EVERY == 0:
            self._test()
        return True

    @property
    def _rising(self) -> "array[float]":
        """The samples, rising; those below 0 as they are."""
        if self._ordered is None:
            self._ordered = array("d", sorted(self._recent))
        return self._ordered

    def _number_of(self, source: str) -> int:
        try:
            return self._names.index(source)
        except ValueError:
            self._names.append(source)
            return len(self._names) - 1

    def _forget_oldest(self) -> None:
        ordered = self._rising
        del ordered[bisect_left(ordered, self._recent[0])]
        self._keep_newest(len(self._recent) - 1)

    def _keep_newest(self, count: int) -> None:
        """Forget the samples before the newest ones, but for `_ordered`."""
        for samples in (self._recent, self._taken_ns, self._sources):
            del samples[: len(samples) - count]

    def _test(self) -> None:
        """Forget the samples that the newest ones contradict."""
        held = change_detection.newest_that_hold(self._recent, self._rising, self._added)
        if held == len(self._recent):
            return
        self._keep_newest(held)
        self._ordered = None
        self.resets += 1

    def forget_before(self, since_ns: int) -> None:
        """Forget the samples taken before an instant."""
        while self._taken_ns and self._taken_ns[0] < since_ns:
            self._forget_oldest()
        self._values = self._signed = self._sampled = None

    def undo(self, source: str, since_ns: int, before: Sequence[float]) -> None:
        """Forget the samples of one source since an instant, and restore earlier values.

        Args:
            source: the source whose samples are forgotten.
            since_ns: samples of the source from this instant on are forgotten.
            before: equally likely values from before `since_ns`. If fewer samples than these
                remain, they replace all samples older than `since_ns`.
        """
        every = zip(self._taken_ns, self._recent, self._sources, strict=True)
        undone = self._number_of(source)
        kept = [each for each in every if each[0] < since_ns or each[2] != undone]
        if len(kept) < len(before):
            later = [each for each in kept if each[0] >= since_ns]
            kept = [*((since_ns, value, self._number_of("")) for value in before), *later]
        self._taken_ns = array("q", (taken_ns for taken_ns, _, _ in kept))
        self._recent = array("d", (value for _, value, _ in kept))
        self._sources = array("H", (of for _, _, of in kept))
        self._ordered = None
        self._values = self._signed = self._sampled = self._inferred = None

    def rescale(self, source: str, since_ns: int, factor: float) -> None:
        """Multiply the inferred values, and a source's samples since an instant, by a factor."""
        samples = zip(self._recent, self._taken_ns, self._sources, strict=True)
        rescaled = self._number_of(source)
        self._recent = array(
            "d",
            (
                _multiplied(value, factor) if taken_ns >= since_ns and of == rescaled else value
                for value, taken_ns, of in samples
            ),
        )
        self._ordered = None
        self._values = self._signed = self._sampled = None
        if self._inferred is not None:
            self._inferred = self._inferred * factor

    def set_prior(self, prior: Sequence[float]) -> None:
        """Replace the prior; the samples stay."""
        self._prior = sorted(value for value in prior if _usable(value))
        self._values = self._signed = None

    def infer(self, values: Floats | None, seen_ns: int = 0) -> None:
        """Use these equally likely values, rising, in place of the samples; None: use the samples.

        The samples are kept and updated meanwhile.

        Args:
            values: the values to use.
            seen_ns: when the newest batch ended from which they were inferred.
        """
        self._inferred = values
        self._inferred_ns = 0 if values is None else seen_ns

    @property
    def inferred(self) -> bool:
        """Whether inferred values are used instead of the samples."""
        return self._inferred is not None

    @property
    def known(self) -> bool:
        """Whether measurements replace the prior: enough samples, or inferred values."""
        return self.inferred or self.samples >= SAMPLES_MIN

    @property
    def seen_ns(self) -> int:
        """When the newest sample was taken, or the newest batch used for inference ended."""
        return max(self.newest_ns, self._inferred_ns if self.inferred else 0)

    @property
    def sampled_values(self) -> Floats:
        """The samples, rising: (n,) float64."""
        if self._sampled is None:
            self._sampled = np.maximum(np.array(self._rising, dtype=np.float64), 0.0)
        return self._sampled

    @property
    def samples(self) -> int:
        """The number of samples in the window."""
        return len(self._recent)

    @property
    def newest_ns(self) -> int:
        """When the newest sample was taken; 0 if there is none."""
        return self._taken_ns[-1] if self._taken_ns else 0

    @property
    def values(self) -> Floats:
        """The equally likely values that represent the distribution, rising: (n,) float64."""
        if self._inferred is not None:
            return self._inferred
        if len(self._recent) >= SAMPLES_MIN:
            return self.sampled_values
        if self._values is None:
            self._values = np.maximum(self.signed, 0.0)
        return self._values

    @property
    def signed(self) -> Floats:
        """`values` with those below 0 kept as they are: (n,) float64."""
        if self._inferred is not None:
            return self._inferred
        if self._signed is None:
            prior = self._prior if len(self._recent) < SAMPLES_MIN else []
            self._signed = np.array(sorted([*prior, *self._rising]), dtype=np.float64)
        return self._signed

    def cdf(self, at: Floats) -> Floats:
        """Return the fraction of values at most each point."""
        values = self.values
        share: Floats = np.searchsorted(values, at, side="right") / len(values)
        return share

    def quantile(self, q: float) -> float:
        """Return the smallest value that a fraction of at least `q` does not exceed."""
        return max(0.0, self.signed_quantile(q))

    def signed_quantile(self, q: float) -> float:
        """Return the quantile of `signed`."""
        values = self.signed
        return float(values[min(len(values) - 1, max(0, math.ceil(q * len(values) - 1e-9) - 1))])

    def sampled_quantile(self, q: float) -> float:
        """Return the quantile of the samples without the prior; there must be at least one."""
        return float(self._rising[max(0, math.ceil(q * len(self._recent) - 1e-9) - 1)])

    def signed_quantiles(self, q: Floats) -> Floats:
        """Return `signed_quantile` of each element of `q`."""
        values = self.signed
        indices = np.ceil(q * len(values) - 1e-9).astype(np.intp) - 1
        found: Floats = values[np.clip(indices, 0, len(values) - 1)]
        return found

    def quantile_of_max(self, draws: int, q: float) -> float:
        """Return the `q` quantile of the maximum of several independent draws."""
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
        """The smallest of `signed`."""
        return float(self.signed[0])


def _usable(sample: float) -> bool:
    return math.isfinite(sample) and sample >= -1


def _multiplied(sample: float, factor: float) -> float:
    return sample * factor if sample >= 0 else min(0.0, (1 + sample) * factor - 1)


def values_from_quantiles(times: Sequence[float], count: int = _PRIOR_SAMPLES) -> list[float]:
    """Return equally likely values that have the given `QUANTILES`, linear in between."""
    middles = (np.arange(count) + 0.5) / count
    return [float(value) for value in np.interp(middles, QUANTILES, times)]
