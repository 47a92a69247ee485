"""Draws the actual times of simulated batches from profiles, work and slowdowns. Pure."""

import random
from collections.abc import Callable, Mapping, Sequence

from edgebox.domain.model_family import ExecutorId, LatencyProfile, VariantName
from edgebox.domain.requests import RequestId
from edgebox.scheduling.actions import Infer, Sample
from edgebox.scheduling.batch_times import BatchTimes

Profiles = Mapping[ExecutorId, Mapping[VariantName, LatencyProfile]]


class ActualTimes:
    """Draws the time of each batch of one run.

    Attributes:
        work: the work of requests that differs from the profile's 1. Kept when they end, as they
            may be sampled.
    """

    def __init__(
        self,
        profiles: Profiles,
        rng: random.Random,
        slowdown: Mapping[ExecutorId, float],
        throttling: Callable[[int], float] | None,
    ) -> None:
        """Prepare for a run.

        Args:
            profiles: the actual ones.
            rng: the generator of randomness.
            slowdown: factors of executors that are not as profiled.
            throttling: returns a further factor at an instant; None: 1 always.
        """
        self.work: dict[RequestId, float] = {}
        self._profiles = profiles
        self._rng = rng
        self._slowdown = slowdown
        self._throttling = throttling
        self._fixed_ns: dict[tuple[ExecutorId, VariantName], float] = {}

    def draw_ns(
        self, runs: Infer | Sample, requests: Sequence[RequestId], now_ns: int, others: int = 0
    ) -> int:
        """Draw the time of a batch: the profile's, scaled by the work of its longest picture.

        Args:
            runs: the batch.
            requests: its members.
            now_ns: when it starts.
            others: the number of batches that run beside it.
        """
        slowdown = self._slowdown.get(runs.executor, 1.0)
        if self._throttling is not None:
            slowdown *= self._throttling(now_ns)
        profile = self._profiles[runs.executor][runs.variant]
        took_ns: float = profile.quantile_ns(runs.batch_size, self._rng.random())
        work = max(self.work.get(request, 1.0) for request in requests)
        if work != 1:
            fixed_ns = min(took_ns, self._profile_fixed_ns(profile))
            took_ns = fixed_ns + (took_ns - fixed_ns) * work
        threads = runs.threads if isinstance(runs, Infer) else 0
        slowdown *= profile.core_factor(runs.batch_size, threads)
        return round(round(took_ns * slowdown) * profile.slowed(others))

    def _profile_fixed_ns(self, profile: LatencyProfile) -> float:
        """Return the part of a batch's time that does not depend on its pictures."""
        key = profile.executor, profile.variant
        if key not in self._fixed_ns:
            self._fixed_ns[key] = BatchTimes(profile).profile_fixed_ns
        return self._fixed_ns[key]
