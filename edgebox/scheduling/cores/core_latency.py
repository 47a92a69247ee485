"""The time of a batch by its size and the CPU cores that it runs on. Pure.

Source: Sponge (Razavi et al., EuroMLSys '24), Eq. 2: batch time grows linearly with the batch size,
and by Amdahl's law a part of both terms is divided by the cores:

    l(b, c) = (gamma * b + epsilon) / c + delta * b + eta

Ours differs in the fit: relative errors instead of absolute ones, so that short batches count as
much as long ones; no coefficient is negative, so that more cores or a smaller batch never predict a
longer time; measurements that fit badly weigh less (Huber, in place of RANSAC, which needs chance).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from edgebox.domain.errors import InvalidInputError

Floats = NDArray[np.float64]

_ROUNDS = 30
_HUBER = 1.345
"""In standard deviations: the usual constant, 95 % efficient where errors are normal."""
_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class CoreLatency:
    """The four coefficients, in ns."""

    gamma_ns: float
    """Time of each picture, divided by the cores."""
    epsilon_ns: float
    """Time of each batch, divided by the cores."""
    delta_ns: float
    """Time of each picture, whatever the cores."""
    eta_ns: float
    """Time of each batch, whatever the cores."""

    def of_ns(self, batch_size: int, cores: int) -> float:
        """Return the time of a batch."""
        parallel_ns = (self.gamma_ns * batch_size + self.epsilon_ns) / cores
        return parallel_ns + self.delta_ns * batch_size + self.eta_ns

    def table_ns(self, batch_max: int, cores_max: int) -> Floats:
        """Return the times, (B, C): row b - 1, column c - 1."""
        sizes = np.arange(1, batch_max + 1, dtype=np.float64)[:, None]
        cores = np.arange(1, cores_max + 1, dtype=np.float64)[None, :]
        parallel_ns = (self.gamma_ns * sizes + self.epsilon_ns) / cores
        return np.asarray(parallel_ns + self.delta_ns * sizes + self.eta_ns)


def fit_core_latency(measured_ns: Mapping[tuple[int, int], float]) -> CoreLatency:
    """Fit the coefficients to measured times.

    Args:
        measured_ns: times by (batch size, cores), all above 0. What cannot be told apart (all at
            one core count, say) is given to the terms that extrapolate with least error there.

    Raises:
        InvalidInputError: there is no measurement, or one is not above 0.
    """
    if not measured_ns or min(measured_ns.values()) <= 0:
        raise InvalidInputError("times by batch size and cores must be given, and be above 0")
    sizes = np.array([b for b, _ in measured_ns], np.float64)
    cores = np.array([c for _, c in measured_ns], np.float64)
    times = np.array(list(measured_ns.values()), np.float64)
    # Each row is divided by its time: the fit is to 1, and residuals are relative errors.
    terms = np.stack([sizes / cores, 1 / cores, sizes, np.ones_like(sizes)], axis=1)
    relative = terms / times[:, None]
    weights = np.ones_like(times)
    found = _nonnegative(relative, weights)
    for _ in range(_ROUNDS):
        errors = np.abs(relative @ found - 1)
        # The scale of errors from their median, which outliers do not move.
        scale = max(float(np.median(errors)) / 0.6745, _TINY)
        weights = np.minimum(1.0, _HUBER * scale / np.maximum(errors, _TINY))
        found, before = _nonnegative(relative, weights), found
        if np.allclose(found, before, rtol=1e-9, atol=0):
            break
    return CoreLatency(*map(float, found))


def _nonnegative(rows: Floats, weights: Floats) -> Floats:
    """Return the weighted least squares solution of rows @ x = 1 without negative coefficients.

    Every set of coefficients that may be above 0 is tried: there are 15, and the best of those
    whose solution has no negative one is the optimum.
    """
    root = np.sqrt(weights)
    weighted, ones = rows * root[:, None], root
    best, least = np.zeros(rows.shape[1]), float("inf")
    for count in range(1, rows.shape[1] + 1):
        for chosen in combinations(range(rows.shape[1]), count):
            columns = list(chosen)
            part, *_ = np.linalg.lstsq(weighted[:, columns], ones, rcond=None)
            if (part < 0).any():
                continue
            error = float(np.square(weighted[:, columns] @ part - ones).sum())
            # Fewer coefficients win unless more fit really better.
            if error < least - _TINY:
                least = error
                best = np.zeros(rows.shape[1])
                best[columns] = part
    return best
