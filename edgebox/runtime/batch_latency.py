"""Measures the execution times of batches by variant, batch size and executor.

People compare them with the profiles; `scheduling.drift` decides.
"""

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgebox.domain.model_family import ExecutorId, LatencyProfile, VariantName

SAMPLES = 256
"""Recent batches kept of each kind."""

SHOWN = (0.5, 0.9, 0.99)

Profiles = Mapping[ExecutorId, Mapping[VariantName, LatencyProfile]]


@dataclass(frozen=True, slots=True)
class BatchLatency:
    """Recent batches of one kind."""

    executor: ExecutorId
    variant: VariantName
    batch_size: int
    count: int
    """Number of batches behind the quantiles."""
    quantiles_ns: tuple[int, ...]
    """One per entry of `SHOWN`."""
    profile_ns: tuple[int, ...]
    """The same of the profile."""


def profile_of(
    profiles: Profiles, executor: ExecutorId, variant: VariantName, batch_size: int
) -> LatencyProfile | None:
    """Return the profile that batches of a size are compared with; None: there is none now.

    A variant may have been removed since they ran, or measured again up to another size.
    """
    profile = profiles.get(executor, {}).get(variant)
    return profile if profile is not None and batch_size in profile.quantiles_ns else None


class _Ring:
    __slots__ = ("count", "took_ns")

    def __init__(self) -> None:
        self.took_ns: NDArray[np.int64] = np.zeros(SAMPLES, np.int64)
        self.count = 0


class BatchLatencies:
    """Recent execution times, by executor, variant and batch size."""

    def __init__(self) -> None:
        """Start with nothing measured."""
        self._rings: dict[tuple[ExecutorId, VariantName, int], _Ring] = {}

    def ran(
        self, variant: VariantName, executor: ExecutorId, batch_size: int, took_ns: int
    ) -> None:
        """Add a batch; `batch_size` includes padding."""
        ring = self._rings.setdefault((executor, variant, batch_size), _Ring())
        ring.took_ns[ring.count % SAMPLES] = took_ns
        ring.count += 1

    def forget(self, variants: Container[VariantName], executor: ExecutorId | None = None) -> None:
        """Forget the batches of some variants on one executor; None: on all."""
        self._rings = {
            key: ring
            for key, ring in self._rings.items()
            if key[1] not in variants or executor not in (None, key[0])
        }

    def times(self, profiles: Profiles) -> Iterator[BatchLatency]:
        """Yield the measured times of everything that has a profile, ordered by name."""
        for (executor, variant, size), ring in sorted(self._rings.items(), key=lambda kv: kv[0]):
            profile = profile_of(profiles, executor, variant, size)
            if profile is None:
                continue
            count = min(ring.count, SAMPLES)
            found = np.quantile(ring.took_ns[:count], SHOWN)
            quantiles_ns = tuple(round(float(each)) for each in found)
            profile_ns = tuple(profile.quantile_ns(size, q) for q in SHOWN)
            yield BatchLatency(executor, variant, size, count, quantiles_ns, profile_ns)
