"""Measures the execution times of each application's requests, for comparison with the profiles.

Cameras name their application in the hello; requests of one application resemble each other. A
time is either that of a request's batch, scaled to a batch of one, or that of a sample that was run
alone (`scheduling.sampling`).
"""

from collections.abc import Container
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.runtime.batch_latency import Profiles, profile_of

SAMPLES = 1_024
"""Recent requests kept for each application, variant and executor."""
_KEYS_MAX = 64
"""Most keys kept, since cameras choose the names; the key that was idle longest is dropped."""


@dataclass(frozen=True, slots=True)
class AppLatency:
    """One application on one variant and executor, measured and as profiled."""

    app: str
    variant: VariantName
    executor: ExecutorId
    count: int
    """Number of recent requests behind the measured quantiles."""
    measured_ns: tuple[int, int]
    """P50 and P99."""
    profile_ns: tuple[int, int]
    """P50 and P99 of a batch of one."""


class _Samples:
    """The last `SAMPLES` requests of one key."""

    def __init__(self) -> None:
        self._ring: NDArray[np.int64] = np.zeros((SAMPLES, 2), np.int64)
        #: (ring, 2): batch size, took ns
        self._next = 0

    def add(self, batch_size: int, took_ns: int) -> None:
        self._ring[self._next % SAMPLES] = (batch_size, took_ns)
        self._next += 1

    @property
    def kept(self) -> NDArray[np.int64]:  #: (n, 2), in no order
        return self._ring[: min(self._next, SAMPLES)]


class AppLatencies:
    """Recent execution times by application, variant and executor."""

    def __init__(self) -> None:
        """Start with nothing measured."""
        self._ran: dict[tuple[str, VariantName, ExecutorId], _Samples] = {}

    def ran(
        self, app: str, variant: VariantName, executor: ExecutorId, batch_size: int, took_ns: int
    ) -> None:
        """Add one request of a batch, or a sample; `batch_size` includes padding."""
        key = (app, variant, executor)
        # The order of the keys is the order of their last use.
        samples = self._ran.pop(key, None)
        if samples is None:
            samples = _Samples()
            if len(self._ran) >= _KEYS_MAX:
                del self._ran[next(iter(self._ran))]
        self._ran[key] = samples
        samples.add(batch_size, took_ns)

    def forget(self, variants: Container[VariantName], executor: ExecutorId | None = None) -> None:
        """Forget the requests of some variants on one executor; None: on all."""
        self._ran = {
            key: ran
            for key, ran in self._ran.items()
            if key[1] not in variants or executor not in (None, key[2])
        }

    def times(self, profiles: Profiles) -> list[AppLatency]:
        """Return the measured times of everything that has a profile, ordered by name.

        A batch of k that took t counts for each of its requests as t x P50(1) / P50(k) of the
        profile: exact where batching changes the scale of the distribution and not its shape.
        """
        rows = []
        for (app, variant, executor), samples in sorted(self._ran.items()):
            table = samples.kept
            alone_ns: list[NDArray[np.float64]] = []
            for size in np.unique(table[:, 0]).tolist():
                profile = profile_of(profiles, executor, variant, size)
                if profile is not None:
                    scale = profile.quantile_ns(1, 0.5) / max(1, profile.quantile_ns(size, 0.5))
                    alone_ns.append(scale * table[table[:, 0] == size, 1])
            if not alone_ns:
                continue
            profile = profiles[executor][variant]
            times_ns = np.concatenate(alone_ns)
            p50, p99 = np.quantile(times_ns, (0.5, 0.99))
            rows.append(
                AppLatency(
                    app,
                    variant,
                    executor,
                    len(times_ns),
                    (round(float(p50)), round(float(p99))),
                    (profile.quantile_ns(1, 0.5), profile.quantile_ns(1, 0.99)),
                )
            )
        return rows
