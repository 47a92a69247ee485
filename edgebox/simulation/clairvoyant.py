"""Decides like the adaptive policy, but knows every execution time: a reference, not an option.

Pure. Its share on time shows the cost of not knowing the execution times. It is greedy, so it is no
upper bound: where batches should wait for more requests, a policy that waits can be better.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.domain.requests import Request
from edgebox.scheduling.adaptive import URGENCY, URGENCY_SLOS
from edgebox.scheduling.deadline_utility import Steps
from edgebox.scheduling.distributions import Floats, Indices
from edgebox.scheduling.policy import Batch
from edgebox.scheduling.queueing import QueueingPolicy, Queues
from edgebox.simulation.workload import Model

_LIMITS_MAX = 24
"""This many of the waiting requests' execution times are tried as the longest of a batch."""

_MS = 1_000_000


class Clairvoyant(QueueingPolicy):
    """Batching by the utility of answers per unit of time, with all execution times known."""

    def __init__(self, model: Model, exec_ms: Mapping[int, float]) -> None:
        super().__init__()
        self._sizes = model.batch_sizes
        self._fixed_ns = model.c0_ms * _MS
        self._slope_ns = model.c1 * _MS
        self._exec_ms = exec_ms

    def admitted(self, request: Request, variant: VariantName, now_ns: int) -> None:
        """Add a request; its id is used as its application."""
        self._waiting.admit(request, variant, request.id)

    def _choose(self, executor: ExecutorId, queues: Queues, now_ns: int) -> Batch | None:
        """Remove and return the batch with the best score."""
        for variant, _, _ in queues:
            indices, size = self._best(variant, now_ns)
            if indices:
                members = self._waiting.take(variant, indices)
                return Batch(variant, tuple(member.id for member in members), size)
        return None

    def _best(self, variant: VariantName, now_ns: int) -> tuple[list[int], int]:
        columns = self._waiting.queues[variant].columns
        slack_ns = (columns.deadline_ns - now_ns).astype(np.float64)
        if columns.steps is None:
            one = np.ones((1, len(slack_ns)))
            steps = Steps(slack_ns[None], columns.slo_ns[None], one)
        else:
            steps = columns.steps.left(now_ns)
        exec_ms = np.array([self._exec_ms[int(at)] for at in columns.app])
        limits = np.unique(exec_ms)
        if len(limits) > _LIMITS_MAX:
            limits = limits[np.linspace(0, len(limits) - 1, _LIMITS_MAX).astype(np.intp)]
        best, indices, padded = 0.0, [], self._sizes[0]
        for limit in limits:
            short = np.flatnonzero(exec_ms <= limit)
            for members in self._candidates(short, float(limit), exec_ms, steps):
                real = next(one for one in self._sizes if one >= len(members))
                takes_ns = self._fixed_ns + self._slope_ns * real * exec_ms[members].max()
                score = _utility(steps.of(members), takes_ns) / takes_ns
                if score > best:
                    best, indices, padded = score, [int(at) for at in members], real
        return indices, padded

    def _candidates(
        self, short: Indices, limit: float, exec_ms: Floats, steps: Steps
    ) -> Iterator[Indices]:
        """Yield the batches of requests no longer than a limit, by deadline and longest first.

        With several deadlines, also the batches that aim at the first deadline of each request, the
        second, and so on, and those of the requests with the greatest remaining utility.
        """
        groups = [(slack_ns, short) for slack_ns in steps.slack_ns]
        tiers = (np.intersect1d(short, tier, assume_unique=True) for tier in steps.tiers())
        groups += [(steps.slack_ns[0], among) for among in tiers]
        for size in self._sizes:
            need_ns = self._fixed_ns + self._slope_ns * size * limit - 1
            for slack_ns, among in groups:
                in_time = among[slack_ns[among] >= need_ns]
                by_deadline = in_time[np.argsort(slack_ns[in_time], kind="stable")[:size]]
                longest_first = in_time[np.argsort(-exec_ms[in_time], kind="stable")[:size]]
                for members in (by_deadline, longest_first):
                    if len(members):
                        yield members

    def _quickest_ns(self, variant: VariantName, app: int) -> float:
        return self._fixed_ns + self._slope_ns * self._exec_ms[app]


def _utility(steps: Steps, takes_ns: float) -> float:
    """Return the utility of a batch's answers, and the urgency of its members."""
    spare_ns = steps.slack_ns - takes_ns
    gained = steps.gain * (spare_ns >= -1)
    urgency = np.exp(np.minimum(-spare_ns / (URGENCY_SLOS * steps.slo_ns), 1))
    return float(gained.sum() + URGENCY * (gained * urgency).sum())
