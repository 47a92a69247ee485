"""Decides by how much an executor is slower than its profiles, and what a frame costs besides.

Pure: no clock, no I/O. The values come from `BatchCompleted` and `RequestPrepared`.
"""

import math
from bisect import bisect_left, insort
from collections import deque
from dataclasses import dataclass

from edgebox.domain.model_family import ExecutorId
from edgebox.scheduling.scheduler_parameters import SchedulerParameters

SLOWDOWN_STEPS = 16
"""A slowdown is a multiple of 1/16, which is as precisely as it can be measured."""

SLOWDOWN_CHANGE_MIN = 0.1
"""A slowdown changes only if the measured one differs by so much, so that plans do not follow
noise.

Beside `SIGNIFICANT` it is worth little: where other programs slow all batches by 3 for some
seconds, cameras miss 1.1 % of their frames, and 1.5 % with a hundredth in its place
(`python -m benchmarks.busy_machine --ablation --seeds 11,12 --duration-s 60`, as below).
"""

SIGNIFICANT = 2.0
"""Standard errors. A slowdown changes only if the measured one differs by more than chance does:
where batches have a heavy tail, a quantile of the last few swings by more than
`SLOWDOWN_CHANGE_MIN` while nothing changes, and plans would swing with it.

Under a heavy tail and slow spells a camera changes its variant 10 times a minute, and 16 times
without.
"""

ALL_SLOWER = 6
"""If this many batches in a row all exceed the known slowdown by `SLOWDOWN_CHANGE_MIN`, the
slowdown rises at once. Waiting until a quarter of the window is slow would let a queue build up
that misses its deadlines. While a profile holds, a batch lies above its 0.75 quantile with a
probability of a quarter: six in a row do so by chance once in 4,000 batches, and hardly ever by
this much.

Where other programs slow all batches by 3 for some seconds, cameras miss 1.1 % of their frames, and
2.9 % without; by 6, there is no difference.
"""

AT_ONCE_MAX = 2.0
"""Such a row of batches raises a slowdown at most by this factor, and the next row again. Frames
must still be admitted after a chance event, because only batches can correct the estimate."""

_STEP = 1 / SLOWDOWN_STEPS

HIGH = 0.9
"""The quantile of fixed costs that planning uses."""


class RecentValues:
    """The last `size` values; a quantile is a look-up, adding is O(log size) comparisons.

    It starts full of `initial`, so that the first measurements count no more than any others.
    """

    def __init__(self, size: int, initial: float) -> None:
        self._recent = deque([initial] * size)
        self._ordered = [initial] * size

    def add(self, value: float) -> None:
        """Add a value and forget the oldest."""
        oldest = self._recent.popleft()
        self._recent.append(value)
        if value != oldest:
            del self._ordered[bisect_left(self._ordered, oldest)]
            insort(self._ordered, value)

    def quantile(self, q: float) -> float:
        """Return the value that a fraction of about `q` does not exceed."""
        return self._ordered[round(q * (len(self._ordered) - 1))]

    @property
    def mean(self) -> float:
        """The mean; O(size)."""
        return sum(self._recent) / len(self._recent)

    def raise_quantile(self, q: float, value: float) -> None:
        """Raise as many of the oldest values as needed for a quantile to be at least this."""
        for at in range(len(self._recent) - round(q * (len(self._recent) - 1))):
            self._recent[at] = max(self._recent[at], value)
        self._ordered = sorted(self._recent)

    def halve(self) -> None:
        """Halve every value."""
        self._recent = deque(value / 2 for value in self._recent)
        self._ordered = [value / 2 for value in self._ordered]


@dataclass(frozen=True, slots=True)
class SlowPeriod:
    """A period in which an executor was slower than usual."""

    since_ns: int
    """When its first batch ended."""
    until_ns: int
    """When its last batch ended."""


@dataclass(frozen=True, slots=True)
class _OpenSlowPeriod:
    """A slow period that has not ended."""

    since_ns: int
    usual: float
    """The slowdown before it."""


class Calibration:
    """The slowdown of every executor and the fixed costs of a frame, over recent windows.

    A batch's excess is `took / P - 1`, where P is the profile's own `slowdown_quantile` for that
    variant and batch size. The slowdown is 1 plus the same quantile of the recent excesses. While
    the profile holds, a share of `slowdown_quantile` of the batches is below P, whatever the
    profile's spread, and the slowdown is 1. If everything takes k times as long, it is k. It
    changes only when the recent excesses differ by more than chance. It is never below 1: the
    profile is taken as the accelerator's time without other load.
    """

    def __init__(self, parameters: SchedulerParameters) -> None:
        self._parameters = parameters
        q, count = parameters.slowdown_quantile, parameters.slowdown_window
        error = SIGNIFICANT * math.sqrt(q * (1 - q) / count)
        self._confident = max(0.0, q - error), min(1.0, q + error)
        """The quantiles of the last batches between which `slowdown_quantile` of all batches is, by
        the binomial distribution, whatever the distribution of their times."""
        self._excess: dict[ExecutorId, RecentValues] = {}
        self._slowdown: dict[ExecutorId, float] = {}
        self._slower: dict[ExecutorId, list[float]] = {}
        """Excesses of the last batches in a row that were slower than the known slowdown."""
        self._batches: dict[ExecutorId, deque[tuple[int, float]]] = {}
        """When the last batches ended, and the excess of each."""
        self._slow_periods: dict[ExecutorId, _OpenSlowPeriod] = {}
        self._over: dict[ExecutorId, SlowPeriod] = {}
        """Slow periods that have ended and were not yet returned."""
        self._idle_since_ns: dict[ExecutorId, int] = {}
        self._prepare = RecentValues(parameters.prepare_window, parameters.prepare_initial_ns)
        self._overhead: dict[ExecutorId, RecentValues] = {}

    def executor_started(self, executor: ExecutorId, now_ns: int) -> None:
        """Reset the calibration of a new executor to its profiles."""
        self.profiles_corrected(executor)
        self._idle_since_ns[executor] = now_ns
        self._overhead[executor] = RecentValues(self._parameters.prepare_window, 0)

    def profiles_corrected(self, executor: ExecutorId) -> None:
        """Reset the calibration of an executor: its corrected profiles contain its excess now."""
        self._excess[executor] = RecentValues(self._parameters.slowdown_window, 0.0)
        self._slowdown[executor] = 1.0
        self._slower[executor] = []
        self._batches[executor] = deque(maxlen=self._parameters.slowdown_window)
        self._slow_periods.pop(executor, None)
        self._over.pop(executor, None)

    def executor_stopped(self, executor: ExecutorId) -> None:
        """Forget an executor."""
        del self._excess[executor], self._slowdown[executor], self._slower[executor]
        del self._idle_since_ns[executor], self._overhead[executor], self._batches[executor]
        self._slow_periods.pop(executor, None)
        self._over.pop(executor, None)

    def batch_completed(
        self, executor: ExecutorId, expected_ns: int, took_ns: int, now_ns: int
    ) -> None:
        """Learn from a batch.

        Args:
            executor: where it ran.
            expected_ns: the profile's `slowdown_quantile` for it, uncalibrated.
            took_ns: its execution time with the interference of other executors removed.
            now_ns: when the executor became idle.
        """
        excess = self._excess[executor]
        value = max(0.0, took_ns / max(1, expected_ns) - 1)
        excess.add(value)
        self._batches[executor].append((now_ns, value))
        proven = self._proven_excess(executor, value)
        if proven is not None:
            excess.raise_quantile(self._confident[0], proven)
        self._settle(executor)
        self._idle_since_ns[executor] = now_ns

    def _slow_interval(self, executor: ExecutorId, usual: float) -> SlowPeriod:
        """Return the interval of the last batches with the largest surplus of slow ones.

        The surplus is relative to the share that may exceed `slowdown_quantile`.
        """
        slow, q = usual - 1 + SLOWDOWN_CHANGE_MIN, self._parameters.slowdown_quantile
        most = total = 0.0
        began_ns, found = 0, SlowPeriod(0, 0)
        for ended_ns, excess in self._batches[executor]:
            if total <= 0:
                total, began_ns = 0.0, ended_ns
            total += q if excess >= slow else q - 1
            if total > most:
                most, found = total, SlowPeriod(began_ns, ended_ns)
        return found

    def slow_period_ended(self, executor: ExecutorId) -> SlowPeriod | None:
        """Return, once, the slow period of an executor that has ended."""
        return self._over.pop(executor, None)

    def batch_failed(self, executor: ExecutorId, now_ns: int) -> None:
        """Note that an executor is idle again; a failed batch gives no measurement."""
        self._idle_since_ns[executor] = now_ns

    def handed_over(self, executor: ExecutorId, overhead_ns: int) -> None:
        """Learn the overhead of handing over a batch and its outputs."""
        self._overhead[executor].add(max(0, overhead_ns))

    def prepared(self, took_ns: int) -> None:
        """Learn what decoding a frame took."""
        self._prepare.add(max(0, took_ns))

    def relax(self, executor: ExecutorId, now_ns: int) -> bool:
        """Let an idle executor's excess fade; say whether anything changed.

        Any number of calls has the same effect as one call at the last instant.
        """
        half_life_ns = self._parameters.idle_half_life_ns
        halvings = (now_ns - self._idle_since_ns[executor]) // half_life_ns
        if halvings < 1:
            return False
        self._idle_since_ns[executor] += halvings * half_life_ns
        excess = self._excess[executor]
        for _ in range(min(halvings, 64)):
            excess.halve()
            self._settle(executor)
        return True

    def relax_at_ns(self, executor: ExecutorId) -> int:
        """Return when `relax` next has an effect if the executor stays idle."""
        return self._idle_since_ns[executor] + self._parameters.idle_half_life_ns

    def slowdown(self, executor: ExecutorId) -> float:
        """Return how much slower than its profile an executor is at present, at least 1."""
        return self._slowdown[executor]

    def _proven_excess(self, executor: ExecutorId, excess: float) -> float | None:
        """Add a batch's excess; return the excess that the last batches in a row prove, if any."""
        known, row = self._slowdown[executor], self._slower[executor]
        if 1 + excess - known < SLOWDOWN_CHANGE_MIN:
            row.clear()
            return None
        row.append(excess)
        if len(row) < ALL_SLOWER:
            return None
        proven = min(*row, AT_ONCE_MAX * known - 1)
        row.clear()
        return proven

    def _settle(self, executor: ExecutorId) -> None:
        excess, known = self._excess[executor], self._slowdown[executor]
        measured = 1 + excess.quantile(self._parameters.slowdown_quantile)
        least, most = (1 + excess.quantile(q) for q in self._confident)
        differs = least > known or most < known
        if differs and abs(measured - known) >= SLOWDOWN_CHANGE_MIN - _STEP / 2:
            self._slowdown[executor] = round(measured * SLOWDOWN_STEPS) / SLOWDOWN_STEPS
            self._note_slow_period(executor, known)

    def _note_slow_period(self, executor: ExecutorId, before: float) -> None:
        """Note whether a change of the slowdown starts or ends a slow period."""
        known, begun = self._slowdown[executor], self._slow_periods.get(executor)
        if begun is None and known > before:
            self._slow_periods[executor] = _OpenSlowPeriod(
                self._slow_interval(executor, before).since_ns, before
            )
        elif begun is not None and known - begun.usual < SLOWDOWN_CHANGE_MIN:
            until_ns = self._slow_interval(executor, begun.usual).until_ns
            self._over[executor] = SlowPeriod(begun.since_ns, until_ns)
            del self._slow_periods[executor]

    @property
    def prepare_ns(self) -> int:
        """The median time of decoding a frame."""
        return round(self._prepare.quantile(0.5))

    def overhead_ns(self, executor: ExecutorId) -> int:
        """Return the high quantile of the overhead of handing over a batch and its outputs."""
        return round(self._overhead[executor].quantile(HIGH))

    @property
    def fixed_ns(self) -> int:
        """The high quantile of a frame's costs outside link and inference, on any executor."""
        overhead_ns = max(map(self.overhead_ns, self._overhead), default=0)
        return round(self._prepare.quantile(HIGH)) + overhead_ns
