"""Decides how far the box lately runs from its profiles: slowdown and fixed costs.

Pure: no clock, no I/O. Values come from `BatchCompleted` and `RequestPrepared`.
"""

from bisect import bisect_left, insort
from collections import deque
from dataclasses import dataclass

from edgebox.domain.model_family import ExecutorId
from edgebox.scheduling.scheduler_parameters import SchedulerParameters

SLOWDOWN_STEPS = 16
"""A slowdown is a multiple of 1/16, which is as well as it is known."""

SLOWDOWN_NEWS = 0.1
"""A slowdown stays until the measured one is this much above it: plans must not follow noise."""

SLOWDOWN_FADED = 0.8
"""It falls only when this share of its excess over 1 is left, or less: being too careful costs a
little accuracy, being too hopeful costs deadlines."""

ALL_SLOWER = 6
"""So many batches in a row that are all slower than known by `SLOWDOWN_NEWS` are news at once: to
wait until a quarter of the window is slow lets a queue build up that deadlines do not survive.
While a profile holds each lies above its 0.75 quantile with a probability of a quarter: six in a
row do by chance once in 4,000 batches, and hardly any of those by so much."""

AT_ONCE_MAX = 2.0
"""They raise a slowdown by this factor at most, and the next six again: what even a rare chance
does must leave frames a chance, for batches are all that proves it wrong."""

_STEP = 1 / SLOWDOWN_STEPS

HIGH = 0.9
"""The quantile of fixed costs that planning reckons with."""


class RecentValues:
    """The last `size` values; quantiles are a look-up, adding is O(log size) comparisons.

    It starts full of `initial`, which makes the first few measurements count no more than any.
    """

    def __init__(self, size: int, initial: float) -> None:
        self._recent = deque([initial] * size)
        self._ordered = [initial] * size

    def add(self, value: float) -> None:
        """Take a value in and forget the oldest."""
        oldest = self._recent.popleft()
        del self._ordered[bisect_left(self._ordered, oldest)]
        self._recent.append(value)
        insort(self._ordered, value)

    def quantile(self, q: float) -> float:
        """Return the value that a share of about `q` does not exceed."""
        return self._ordered[round(q * (len(self._ordered) - 1))]

    def raise_quantile(self, q: float, value: float) -> None:
        """Raise as many of the oldest values as it takes for a quantile to be at least this."""
        for at in range(len(self._recent) - round(q * (len(self._recent) - 1))):
            self._recent[at] = max(self._recent[at], value)
        self._ordered = sorted(self._recent)

    def halve(self) -> None:
        """Halve every value."""
        self._recent = deque(value / 2 for value in self._recent)
        self._ordered = [value / 2 for value in self._ordered]


@dataclass(frozen=True, slots=True)
class Spell:
    """A time for which an executor was slower than usual."""

    since_ns: int
    """When the first batch of it ended."""
    until_ns: int
    """And the last."""


@dataclass(frozen=True, slots=True)
class _Begun:
    """A spell that has begun."""

    since_ns: int
    usual: float
    """The slowdown of before."""


class Calibration:
    """Slowdown of every executor and the fixed costs of a frame, over recent windows.

    A batch's excess is `took / P - 1`, where P is the profile's own `slowdown_quantile` for that
    variant and batch size, and the slowdown is 1 + the same quantile of recent excesses. When
    the profile still holds, a share of `slowdown_quantile` of the batches is below P whatever
    the profile's spread, and the slowdown is 1; when everything takes k times as long, it is k.
    It is never below 1: a profile is believed to be what the accelerator does when left alone.
    """

    def __init__(self, parameters: SchedulerParameters) -> None:
        self._parameters = parameters
        self._excess: dict[ExecutorId, RecentValues] = {}
        self._slowdown: dict[ExecutorId, float] = {}
        self._slower: dict[ExecutorId, list[float]] = {}
        """Excesses of the last batches in a row that were slower than known."""
        self._batches: dict[ExecutorId, deque[tuple[int, float]]] = {}
        """When the last batches ended, and the excess of each."""
        self._spells: dict[ExecutorId, _Begun] = {}
        self._over: dict[ExecutorId, Spell] = {}
        """That nobody has asked for."""
        self._idle_since_ns: dict[ExecutorId, int] = {}
        self._prepare = RecentValues(parameters.prepare_window, parameters.prepare_initial_ns)
        self._overhead: dict[ExecutorId, RecentValues] = {}

    def executor_started(self, executor: ExecutorId, now_ns: int) -> None:
        """Trust the profiles of an executor that is new."""
        self.profiles_corrected(executor)
        self._idle_since_ns[executor] = now_ns
        self._overhead[executor] = RecentValues(self._parameters.prepare_window, 0)

    def profiles_corrected(self, executor: ExecutorId) -> None:
        """Trust the profiles of an executor anew: what it exceeded is part of them now."""
        self._excess[executor] = RecentValues(self._parameters.slowdown_window, 0.0)
        self._slowdown[executor] = 1.0
        self._slower[executor] = []
        self._batches[executor] = deque(maxlen=self._parameters.slowdown_window)
        self._spells.pop(executor, None)
        self._over.pop(executor, None)

    def executor_stopped(self, executor: ExecutorId) -> None:
        """Forget an executor."""
        del self._excess[executor], self._slowdown[executor], self._slower[executor]
        del self._idle_since_ns[executor], self._overhead[executor], self._batches[executor]
        self._spells.pop(executor, None)
        self._over.pop(executor, None)

    def batch_completed(
        self, executor: ExecutorId, expected_ns: int, took_ns: int, now_ns: int
    ) -> None:
        """Learn from a batch.

        Args:
            executor: where it ran.
            expected_ns: the profile's `slowdown_quantile` for it, uncalibrated.
            took_ns: its execution, as if the other executors had rested.
            now_ns: when the executor became idle.
        """
        excess = self._excess[executor]
        value = max(0.0, took_ns / max(1, expected_ns) - 1)
        excess.add(value)
        self._batches[executor].append((now_ns, value))
        surely = self._surely(executor, value)
        if surely is not None:
            excess.raise_quantile(self._parameters.slowdown_quantile, surely)
        self._settle(executor)
        self._idle_since_ns[executor] = now_ns

    def _stretch(self, executor: ExecutorId, usual: float) -> Spell:
        """Return the stretch of the last batches that has most slow ones too many.

        Too many are more than may be above `slowdown_quantile`.
        """
        slow, q = usual - 1 + SLOWDOWN_NEWS, self._parameters.slowdown_quantile
        most = total = 0.0
        began_ns, found = 0, Spell(0, 0)
        for ended_ns, excess in self._batches[executor]:
            if total <= 0:
                total, began_ns = 0.0, ended_ns
            total += q if excess >= slow else q - 1
            if total > most:
                most, found = total, Spell(began_ns, ended_ns)
        return found

    def spell_over(self, executor: ExecutorId) -> Spell | None:
        """Return the spell for which an executor was slow, once, when it is over."""
        return self._over.pop(executor, None)

    def batch_failed(self, executor: ExecutorId, now_ns: int) -> None:
        """Note that an executor is idle again without having told anything about its speed."""
        self._idle_since_ns[executor] = now_ns

    def handed_over(self, executor: ExecutorId, overhead_ns: int) -> None:
        """Learn what handing a batch to an executor and its outputs back took."""
        self._overhead[executor].add(max(0, overhead_ns))

    def prepared(self, took_ns: int) -> None:
        """Learn what decoding a frame took."""
        self._prepare.add(max(0, took_ns))

    def relax(self, executor: ExecutorId, now_ns: int) -> bool:
        """Let an idle executor's excess fade; say whether it was time to.

        Any number of calls leaves what one call at the last instant would have left.
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
        """Return when `relax` next changes something if the executor stays idle."""
        return self._idle_since_ns[executor] + self._parameters.idle_half_life_ns

    def slowdown(self, executor: ExecutorId) -> float:
        """Return how much slower than its profile an executor lately is, at least 1."""
        return self._slowdown[executor]

    def _surely(self, executor: ExecutorId, excess: float) -> float | None:
        """Take in a batch's excess; return what the last ones in a row prove, if anything."""
        known, row = self._slowdown[executor], self._slower[executor]
        if 1 + excess - known < SLOWDOWN_NEWS:
            row.clear()
            return None
        row.append(excess)
        if len(row) < ALL_SLOWER:
            return None
        surely = min(*row, AT_ONCE_MAX * known - 1)
        row.clear()
        return surely

    def _settle(self, executor: ExecutorId) -> None:
        measured = 1 + self._excess[executor].quantile(self._parameters.slowdown_quantile)
        known = self._slowdown[executor]
        faster = measured - 1 <= SLOWDOWN_FADED * (known - 1) and known - measured >= _STEP / 2
        if measured - known >= SLOWDOWN_NEWS or faster:
            self._slowdown[executor] = round(measured * SLOWDOWN_STEPS) / SLOWDOWN_STEPS
            self._note_spell(executor, known)

    def _note_spell(self, executor: ExecutorId, before: float) -> None:
        """Note whether a slowdown that was this before begins or ends a spell."""
        known, begun = self._slowdown[executor], self._spells.get(executor)
        if begun is None and known > before:
            self._spells[executor] = _Begun(self._stretch(executor, before).since_ns, before)
        elif begun is not None and known - begun.usual < SLOWDOWN_NEWS:
            until_ns = self._stretch(executor, begun.usual).until_ns
            self._over[executor] = Spell(begun.since_ns, until_ns)
            del self._spells[executor]

    @property
    def prepare_ns(self) -> int:
        """What decoding a frame usually takes."""
        return round(self._prepare.quantile(0.5))

    def overhead_ns(self, executor: ExecutorId) -> int:
        """Return what hands a batch over and its outputs back, on the high side."""
        return round(self._overhead[executor].quantile(HIGH))

    @property
    def fixed_ns(self) -> int:
        """What a frame costs outside link and inference, on the high side and on any executor."""
        overhead_ns = max(map(self.overhead_ns, self._overhead), default=0)
        return round(self._prepare.quantile(HIGH)) + overhead_ns
