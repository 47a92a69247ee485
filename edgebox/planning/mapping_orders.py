"""Decides in which orders cameras are lined up to be cut into groups. Pure."""

import numpy as np

from edgebox.planning.mapping_table import Floats, Ints, MappingTable


class Orders:
    """Orders by tolerance, the most tolerant first; high rates last, so that they are left out."""

    def __init__(self, table: MappingTable, rng: np.random.Generator) -> None:
        self._rng = rng
        tolerance = table.tolerance[:, :-1].astype(np.float64)
        self._tolerance: Floats = tolerance / np.maximum(1.0, tolerance.max(axis=0))
        """(n, v) between 0 and 1."""
        self.mean: Floats = self._tolerance.mean(axis=1)
        """(n,) mean tolerance."""
        rates = table.units.astype(np.float64)
        self._rate: Floats = rates / rates.max()

    def plain(self) -> Ints:
        """Return (rows, n): orders of all cameras that are good by themselves."""
        last = self._tolerance.shape[1] - 1
        keys = [self.mean]
        keys += [self._tolerance[:, at] for at in sorted({0, last // 3, 2 * last // 3, last})]
        keys.append((self._tolerance > 0).mean(axis=1))
        keys += [self._tolerance[:, last] - weight * self._rate for weight in (0.1, 0.5, 3.0)]
        # Equal keys: by mean tolerance, then by rate.
        tie = 1e-3 * self.mean - 1e-6 * self._rate
        return np.argsort(-(np.stack(keys) + tie), axis=1, kind="stable")

    def perturbed(self, cameras: Ints, rows: int, as_is: float = 0.0) -> Ints:
        """Return (rows, m): places in `cameras`, in noisy orders.

        Args:
            cameras: (m,) those to be lined up.
            rows: how many orders to make.
            as_is: about this share of them are the order given, disturbed a little.
        """
        variant = self._rng.integers(0, self._tolerance.shape[1], rows)
        one = self._tolerance[cameras][:, variant].T
        mixed = self._rng.random((rows, 1))
        key = mixed * self.mean[cameras] + (1 - mixed) * one
        place = np.linspace(1.0, 0.0, len(cameras))
        key = np.where(self._rng.random((rows, 1)) < as_is, place, key)
        key -= self._rng.choice([0.0, 0.1, 0.5, 2.0], (rows, 1)) * self._rate[cameras]
        key += self._rng.choice([0.03, 0.1, 0.3, 1.0], (rows, 1)) * self._rng.standard_normal(
            key.shape
        )
        return np.argsort(-key, axis=1)
