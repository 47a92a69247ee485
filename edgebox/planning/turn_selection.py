"""Decides which levels cameras get on executors that take turns at a few variants. Pure.

The step-by-step selection (`steps.py`) credits batches only with what gathers in half of the
tightest budget of all, and many cameras at many sizes share few batches. Here the test is that of
`turns.py`, and cameras move to the same size together. Where batches gain much, as on a GPU, this
finds far more accuracy; where they gain nothing it finds no more than the steps.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import accumulate

from edgebox.domain.models import VariantName
from edgebox.planning.candidates import Candidates, Level
from edgebox.planning.capacity import Timing
from edgebox.planning.parameters import PlanningParameters
from edgebox.planning.selection import Chosen, Refusal
from edgebox.planning.turns import NEVER_NS, Asked, Late, asked_of, busy_share, lends_ns, turn

_TESTS_MAX = 240
"""Bound on the assignments that one search tries."""
_GAIN = 0.8
"""Turns are worth a try where a request in a batch takes at most this much of one alone."""


class TurnSelection(Chosen):
    """Levels that executors which take turns can serve."""

    def __init__(
        self,
        cameras: Sequence[Candidates],
        at: Sequence[int],
        timing: Mapping[VariantName, Timing],
    ) -> None:
        super().__init__(cameras, at)
        self._timing = timing

    @property
    def utilisation(self) -> float:
        """Planned share of the executors' time, in the largest batches that deadlines allow."""
        return busy_share(asked_of(self.cameras, self.levels), self._timing)

    @property
    def lends_ns(self) -> int:
        """The longest foreign batch that these executors may run while nothing waits for them."""
        return lends_ns(asked_of(self.cameras, self.levels), self._timing)

    def refusal(self, camera: int, level: Level, parameters: PlanningParameters) -> Refusal | None:
        """Say what forbids a camera to have this level; None: nothing does."""
        levels = self.levels
        levels[camera] = level
        return _refusal(self.cameras, levels, self._timing, parameters, upgrade=True)


def _refusal(
    cameras: Sequence[Candidates],
    levels: Sequence[Level],
    timing: Mapping[VariantName, Timing],
    parameters: PlanningParameters,
    *,
    upgrade: bool,
) -> Refusal | None:
    asked = asked_of(cameras, levels)
    found = turn(asked, timing, parameters.latency_upgrade_ns if upgrade else 0)
    if isinstance(found, Late):
        who = min(
            (
                at
                for at, (c, level) in enumerate(zip(cameras, levels, strict=True))
                if c.served and level.variant.name == found.variant
            ),
            key=lambda at: levels[at].budget.compute_ns,
            default=None,
        )
        if who is not None:
            return Refusal(who=who, over_ns=found.over_ns)
        return Refusal(missing_share=1.0)
    limit = parameters.turn_share * (parameters.upgrade_share if upgrade else 1.0)
    missing = busy_share(asked, timing) - limit
    return Refusal(missing_share=missing) if missing > 0 else None


def works_in_turns(
    cameras: Sequence[Candidates],
    timing: Mapping[VariantName, Timing],
    parameters: PlanningParameters,
) -> bool:
    """Say whether turns are worth a try here, and all can at least have their smallest levels."""
    if not batches_gain(timing):
        return False
    smallest = [c.levels[0] for c in cameras]
    return _refusal(cameras, smallest, timing, parameters, upgrade=True) is None


def batches_gain(timing: Mapping[VariantName, Timing]) -> bool:
    """Say whether full batches gain much, as on a GPU; else nothing is won in turns."""
    return any(
        pooled_ns / size <= _GAIN * of.batches[0][2] / of.batches[0][0]
        for of in timing.values()
        for size, _, pooled_ns in of.batches
    )


def kept_in_turns(
    cameras: Sequence[Candidates],
    timing: Mapping[VariantName, Timing],
    parameters: PlanningParameters,
    tests_max: int,
) -> TurnSelection | None:
    """Keep what cameras have, or the largest below it, and raise whom it lets; None: it fails."""
    kept = TurnSelection(cameras, [c.current for c in cameras], timing)
    if _refusal(cameras, kept.levels, timing, parameters, upgrade=False) is not None:
        return None
    search = _Search(cameras, timing, parameters, tests_max, kept.at)
    search.rise()
    return TurnSelection(cameras, search.best, timing)


def best_in_turns(
    cameras: Sequence[Candidates],
    timing: Mapping[VariantName, Timing],
    parameters: PlanningParameters,
    tests_max: int,
) -> TurnSelection | None:
    """Search levels for all cameras; None: not even the smallest ones work, or batches gain little.

    Every pair of sizes is tried: as many cameras as possible have the larger one, those first that
    have most time left there or are worth most, the others the smaller one, or the largest below it
    that they can have. Then single cameras rise, to sizes in use or by one, as long as any can.
    O(T (n + V B)) for T tests, n cameras, V sizes of B batches.

    Args:
        cameras: what each could be given; at least one camera.
        timing: what batches take.
        parameters: the tunables.
        tests_max: bound on the assignments tried.
    """
    if not works_in_turns(cameras, timing, parameters):
        return None
    search = _Search(cameras, timing, parameters, tests_max, [0] * len(cameras))
    search.pairs()
    search.rise()
    return TurnSelection(cameras, search.best, timing)


class _Search:
    """The best assignment so far, as levels' numbers, and how many more may be tried."""

    def __init__(
        self,
        cameras: Sequence[Candidates],
        timing: Mapping[VariantName, Timing],
        parameters: PlanningParameters,
        tests_max: int,
        start: Sequence[int],
    ) -> None:
        self._cameras = cameras
        self._timing = timing
        self._parameters = parameters
        self._tests = min(tests_max, _TESTS_MAX)
        self._values = [
            [level.variant.accuracy * level.rate_hz for level in c.levels] for c in cameras
        ]
        self._wishes = [
            [
                (
                    level.variant.name,
                    level.rate_hz,
                    level.budget.compute_ns if c.served else NEVER_NS,
                )
                for level in c.levels
            ]
            for c in cameras
        ]
        self.best = list(start)
        self._worth = self._worth_of(start)

    def pairs(self) -> None:
        """Try pairs of sizes, the largest first; some tests are left for single cameras.

        The larger the smaller size, the fewer cameras can have the larger one.
        """
        spared = self._tests // 3
        sizes = sorted({_size(level) for c in self._cameras for level in c.levels})
        caps = list(zip(*(_caps(c.levels, sizes) for c in self._cameras), strict=True))
        for large in range(len(sizes) - 1, 0, -1):
            high = caps[large]
            if self._worth_of(high) <= self._worth or self._tried(high):
                break
            risers = [
                at
                for at, c in enumerate(self._cameras)
                if _size(c.levels[high[at]]) == sizes[large]
            ]
            # Who has most time there rises first; or who is worth most there.
            for order in (self._slack_ns, self._worth_there):
                rising = sorted(risers, key=partial(order, high), reverse=True)
                for small in range(large):
                    rising = self._rising(caps[small], high, rising)
                    if not rising or self._tests <= spared:
                        break

    def _rising(self, low: Sequence[int], high: Sequence[int], risers: list[int]) -> list[int]:
        """Return the most of these cameras, in this order, that can rise from a size to another.

        By halving: more of them ask for more of the larger size, and somebody tighter perhaps.
        """
        gains = (self._values[c][high[c]] - self._values[c][low[c]] for c in risers)
        worth = list(accumulate(gains, initial=self._worth_of(low)))
        # What is worth less than the best is not tried; with a larger low size it may be.
        can, cannot = max(0, bisect_right(worth, self._worth) - 1), len(worth)
        while cannot - can > 1:
            middle = (can + cannot) // 2
            at = list(low)
            for camera in risers[:middle]:
                at[camera] = high[camera]
            if self._tried(at):
                can = middle
            else:
                cannot = middle
        return risers[:can]

    def rise(self) -> None:
        """Let single cameras rise, the worst off first, as long as any can."""
        risen = True
        while risen and self._tests > 0:
            risen = False
            used = {_size(c.levels[n]) for c, n in zip(self._cameras, self.best, strict=True)}
            for camera, of in sorted(
                enumerate(self._cameras), key=lambda pair: self._values[pair[0]][self.best[pair[0]]]
            ):
                has = self.best[camera]
                for to in range(len(of.levels) - 1, has, -1):
                    if to == has + 1 or _size(of.levels[to]) in used:
                        changed = [*self.best[:camera], to, *self.best[camera + 1 :]]
                        if self._tried(changed):
                            risen = True
                            break

    def _tried(self, at: Sequence[int]) -> bool:
        """Say whether executors can serve this, and remember it if it is the best so far."""
        if self._tests <= 0:
            return False
        self._tests -= 1
        asked: dict[VariantName, Asked] = {}
        for wishes, n in zip(self._wishes, at, strict=True):
            name, rate_hz, tightest_ns = wishes[n]
            of = asked.get(name)
            if of is None:
                asked[name] = Asked(rate_hz, tightest_ns)
                continue
            of.rate_hz += rate_hz
            of.tightest_ns = min(of.tightest_ns, tightest_ns)
        found = turn(asked, self._timing, self._parameters.latency_upgrade_ns)
        limit = self._parameters.turn_share * self._parameters.upgrade_share
        if isinstance(found, Late) or busy_share(asked, self._timing) > limit:
            return False
        if (worth := self._worth_of(at)) > self._worth:
            self.best, self._worth = list(at), worth
        return True

    def _slack_ns(self, at: Sequence[int], camera: int) -> int:
        return self._cameras[camera].levels[at[camera]].slack_ns

    def _worth_there(self, at: Sequence[int], camera: int) -> float:
        return self._values[camera][at[camera]]

    def _worth_of(self, at: Sequence[int]) -> float:
        return sum(values[n] for values, n in zip(self._values, at, strict=True))


def _size(level: Level) -> tuple[int, VariantName]:
    return level.variant.pixels, level.variant.name


def _caps(levels: Sequence[Level], sizes: Sequence[tuple[int, VariantName]]) -> list[int]:
    """Return the largest level up to each of rising sizes; the smallest one if all are larger."""
    of = [_size(level) for level in levels]
    return [max(0, bisect_right(of, size) - 1) for size in sizes]
