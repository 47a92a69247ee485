"""Decides, for all cameras together, which candidate each one gets. Pure.

Two things couple the cameras: a frame may have to wait for the longest batch of any camera, and
all share the executors' time. Both only get worse as levels rise, so levels rise one step at a
time from a start that satisfies them.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush

from edgebox.domain.models import VariantName
from edgebox.planning.candidates import Candidates, Level
from edgebox.planning.capacity import Timing
from edgebox.planning.parameters import PlanningParameters


class Selection:
    """A level for each camera, with what the levels add up to."""

    def __init__(
        self,
        cameras: Sequence[Candidates],
        at: Sequence[int],
        timing: Mapping[VariantName, Timing],
        window_ns: int,
    ) -> None:
        self.cameras = cameras
        self.at = list(at)
        self._timing = timing
        self.window_ns = window_ns
        """The time in which batches gather."""
        self._rates: dict[VariantName, float] = {}
        for level in self.levels:
            name = level.variant.name
            self._rates[name] = self._rates.get(name, 0.0) + level.rate_hz
        self._shares = {name: self._share(name, rate) for name, rate in self._rates.items()}
        self.blocker_ns = max(level.single_ns for level in self.levels)
        """The longest batch that anyone may have to wait for."""
        self.slack_ns = min(
            (level.slack_ns for c, level in zip(cameras, self.levels, strict=True) if c.served),
            default=self.blocker_ns,
        )
        """The longest batch that every served camera can wait for."""

    @property
    def levels(self) -> list[Level]:
        """What each camera has."""
        return [c.levels[at] for c, at in zip(self.cameras, self.at, strict=True)]

    @property
    def utilisation(self) -> float:
        """Planned share of the executors' time."""
        return sum(self._shares.values())

    @property
    def accuracy_rate(self) -> float:
        """What is maximised: accuracy times rate, over all cameras (Jellyfish, Eq. 2)."""
        return sum(level.variant.accuracy * level.rate_hz for level in self.levels)

    def above(self, camera: int) -> Level | None:
        """Return the next level of a camera."""
        levels = self.cameras[camera].levels
        at = self.at[camera] + 1
        return levels[at] if at < len(levels) else None

    def utilisation_at(self, camera: int, level: Level) -> float:
        """Return the utilisation if one camera had another level."""
        changed = self._shares | self._changed(camera, level)
        return sum(changed.values())

    def blocks(self, level: Level) -> bool:
        """Say whether a camera that rises to this level would make anyone wait too long."""
        return max(self.blocker_ns, level.single_ns) > min(self.slack_ns, level.slack_ns)

    def move(self, camera: int, to: int) -> None:
        """Give a camera another of its levels."""
        level = self.cameras[camera].levels[to]
        old = self.cameras[camera].levels[self.at[camera]].variant.name
        self._shares.update(self._changed(camera, level))
        self._rates[old] -= level.rate_hz
        self._rates[level.variant.name] = self._rates.get(level.variant.name, 0.0) + level.rate_hz
        self.at[camera] = to
        self.blocker_ns = max(self.blocker_ns, level.single_ns)
        if self.cameras[camera].served:
            self.slack_ns = min(self.slack_ns, level.slack_ns)

    def _changed(self, camera: int, level: Level) -> dict[VariantName, float]:
        old, new = self.cameras[camera].levels[self.at[camera]].variant.name, level.variant.name
        if old == new:
            return {}
        return {
            old: self._share(old, self._rates[old] - level.rate_hz),
            new: self._share(new, self._rates.get(new, 0.0) + level.rate_hz),
        }

    def _share(self, variant: VariantName, rate_hz: float) -> float:
        # What is left of a sum of floats after all its terms are gone is not a rate.
        if rate_hz < 1e-9:
            return 0.0
        return self._timing[variant].share(rate_hz, self.window_ns)


def select(
    cameras: Sequence[Candidates],
    timing: Mapping[VariantName, Timing],
    parameters: PlanningParameters,
    iterations_max: int,
) -> Selection:
    """Choose a level for every camera.

    First, cameras that could not be served even if all had their smallest level become best
    effort. Then the plan in force is repaired (lowered where the executors' time no longer
    suffices) and raised where there is room; beside it one is built from the ground up, one from
    the highest level that all can have together, and one from what the best choice of a longest
    batch allows; the best of these replaces the repaired one only if it is better by a margin, so
    that nobody is moved for nothing. Where not even the smallest levels fit the executors' time,
    all rates are lowered by the same factor, none below what its camera can use; where not even
    these fit, the fewest cameras become best effort.

    Steps are taken in the order of accuracy per time (gained or lost). The rates cancel out, so
    a family's cameras are treated alike: where larger variants gain ever less, the worst-off is
    raised first and the best-off lowered first. O(S (V + log n)) for S steps, V variants.

    Args:
        cameras: what each could be given; at least one camera.
        timing: what batches take.
        parameters: the tunables.
        iterations_max: bound on the steps considered from each start.
    """
    ground = on_the_ground(cameras, timing, parameters)
    cameras, window_ns = ground.cameras, ground.window_ns
    if ground.utilisation > time_limit(parameters):
        return _slow_down(cameras, timing, parameters)
    starts = (
        ground,
        _level_start(ground, timing, window_ns, parameters),
        _longest_batch_start(ground, timing, parameters),
    )
    raised = (_raise(start, parameters, iterations_max) for start in starts if start is not None)
    best = max(raised, key=lambda selection: selection.accuracy_rate)
    kept = _lower(Selection(cameras, [c.current for c in cameras], timing, window_ns), parameters)
    if kept is not None:
        # Lowering leaves the longest batch and the least slack out of date: take them anew.
        kept = Selection(cameras, kept.at, timing, window_ns)
        if kept.blocker_ns <= kept.slack_ns:
            kept = _raise(kept, parameters, iterations_max)
            if best.accuracy_rate <= kept.accuracy_rate * parameters.better_by:
                return kept
    return best


def on_the_ground(
    cameras: Sequence[Candidates],
    timing: Mapping[VariantName, Timing],
    parameters: PlanningParameters,
) -> Selection:
    """Decide who is served at all: all at their smallest levels, who cannot be as best effort.

    Rates are those wished for; where these take too much time, they can all be lowered enough.
    """
    cameras, window_ns = _grounded(_serviceable(cameras), timing, parameters)
    ground = Selection(cameras, [0] * len(cameras), timing, window_ns)
    if ground.utilisation <= time_limit(parameters) * _spare(parameters):
        return ground
    cameras = _affordable(cameras, timing, parameters)
    return Selection(cameras, [0] * len(cameras), timing, _window_ns(cameras))


def _serviceable(cameras: Sequence[Candidates]) -> list[Candidates]:
    """Make cameras best effort until the rest can wait for each other's smallest batches."""
    out = list(cameras)
    while True:
        blocker_ns = max(c.levels[0].single_ns for c in out)
        tightest = min(
            (at for at, c in enumerate(out) if c.served),
            key=lambda at: out[at].levels[0].slack_ns,
            default=None,
        )
        if tightest is None or out[tightest].levels[0].slack_ns >= blocker_ns:
            return out
        out[tightest] = out[tightest].best_effort()


def _window_ns(cameras: Sequence[Candidates]) -> int:
    """Return the time in which batches gather: half of the tightest budget at the smallest size."""
    tightest = min((c.levels[0].budget.compute_ns for c in cameras if c.served), default=2)
    return max(1, tightest // 2)


def _grounded(
    cameras: Sequence[Candidates],
    timing: Mapping[VariantName, Timing],
    parameters: PlanningParameters,
) -> tuple[list[Candidates], int]:
    """Make the tightest cameras best effort where that lets the others share batches enough.

    One weak uplink leaves its camera little time, and so everybody small batches. Where these no
    longer carry everybody's rate, the fewest cameras are given up that make it fit; where none
    of that helps (batching gains nothing), all stay. Returns the cameras and their window.
    """

    served = [at for at, c in enumerate(cameras) if c.served]
    tightest = sorted(served, key=lambda at: cameras[at].levels[0].budget.compute_ns)

    def without(count: int) -> list[Candidates]:
        given_up = set(tightest[:count])
        return [c.best_effort() if at in given_up else c for at, c in enumerate(cameras)]

    def used(count: int) -> float:
        # What longer batches bring, not what the cameras that are given up would save.
        window_ns = _window_ns(without(count))
        return Selection(cameras, [0] * len(cameras), timing, window_ns).utilisation

    count = 0
    for limit in (parameters.utilisation_max, parameters.utilisation_slow):
        fewest = bisect_left(range(len(tightest)), True, key=lambda n: used(n) <= limit)
        if fewest < len(tightest):
            count = fewest
            break
    out = without(count)
    return out, _window_ns(out)


def _level_start(
    ground: Selection,
    timing: Mapping[VariantName, Timing],
    window_ns: int,
    parameters: PlanningParameters,
) -> Selection | None:
    """Return the best start above the ground at which all have the same rung, or their largest.

    Step by step, the first camera to rise would leave the others' batches and pay for its own:
    many cameras that share an accelerator would all stay at the bottom.
    """
    cameras = ground.cameras
    for rung in range(max(len(c.levels) for c in cameras) - 1, 0, -1):
        at = [min(rung, len(c.levels) - 1) for c in cameras]
        level = Selection(cameras, at, timing, window_ns)
        fits = level.utilisation <= parameters.utilisation_max
        if fits and level.blocker_ns <= level.slack_ns:
            return level
    return None


def _longest_batch_start(
    ground: Selection, timing: Mapping[VariantName, Timing], parameters: PlanningParameters
) -> Selection | None:
    """Return the best of the starts that are made for each batch that could be the longest.

    With the longest batch given, cameras no longer depend on each other but for the executors'
    time: each takes the largest level that neither is longer nor waits too little, and all step
    down until the time suffices. Step by step from the ground, a camera that rises early, for
    little, can keep others from rising for much. O(V n log n) for V variants, n cameras.
    """
    cameras, window_ns = ground.cameras, ground.window_ns
    longest = {level.single_ns for c in cameras if c.served for level in c.levels}
    best: Selection | None = None
    for batch_ns in sorted(longest):
        if batch_ns < ground.blocker_ns:
            continue
        if batch_ns > ground.slack_ns:
            break
        at = [
            max(
                n
                for n, level in enumerate(c.levels)
                if n == 0 or (level.single_ns <= batch_ns <= level.slack_ns)
            )
            for c in cameras
        ]
        start = _lower(Selection(cameras, at, timing, window_ns), parameters)
        if start is not None and (best is None or start.accuracy_rate > best.accuracy_rate):
            best = start
    # Lowering leaves the longest batch and the least slack out of date: take them anew.
    return None if best is None else Selection(cameras, best.at, timing, window_ns)


def _worth(low: Level, high: Level) -> float:
    """Return the accuracy that a step brings per nanosecond."""
    step_ns = max(1, high.single_ns - low.single_ns)
    return (high.variant.accuracy - low.variant.accuracy) / step_ns


def _raise(selection: Selection, parameters: PlanningParameters, iterations_max: int) -> Selection:
    """Take every step up that fits, the most worthwhile first, until none does."""

    def entry(camera: int) -> tuple[float, float, int] | None:
        above = selection.above(camera)
        if above is None:
            return None
        has = selection.cameras[camera].levels[selection.at[camera]]
        return -_worth(has, above), has.variant.accuracy, camera

    heap = [e for camera in range(len(selection.cameras)) if (e := entry(camera)) is not None]
    heapify(heap)
    refused: list[tuple[float, float, int]] = []
    progress = False
    for _ in range(iterations_max):
        if not heap:
            # A step may have become possible: requests that joined a variant share its batches.
            if not progress or not refused:
                break
            heap, refused, progress = refused, [], False
            heapify(heap)
        candidate = heappop(heap)
        camera = candidate[2]
        level = selection.above(camera)
        if level is None or refusal(selection, camera, level, parameters) is not None:
            refused.append(candidate)
            continue
        selection.move(camera, selection.at[camera] + 1)
        progress = True
        if (after := entry(camera)) is not None:
            heappush(heap, after)
    return selection


def refusal(
    selection: Selection, camera: int, level: Level, parameters: PlanningParameters
) -> float | None:
    """Say what forbids a camera to rise to this level.

    Returns:
        None: nothing does. 0: somebody would wait too long. Above 0: the share of the
        executors' time that is missing.
    """
    if selection.blocks(level):
        return 0.0
    has_px = selection.cameras[camera].has_px
    above = has_px is not None and level.variant.pixels > has_px
    limit = parameters.utilisation_upgrade if above else parameters.utilisation_max
    missing = selection.utilisation_at(camera, level) - limit
    return missing if missing > 0 else None


def _lower(selection: Selection, parameters: PlanningParameters) -> Selection | None:
    """Take steps down, those that lose least per time first, until the time suffices."""

    def entry(camera: int) -> tuple[float, float, int] | None:
        at, levels = selection.at[camera], selection.cameras[camera].levels
        if at == 0:
            return None
        return _worth(levels[at - 1], levels[at]), -levels[at].variant.accuracy, camera

    heap = [e for camera in range(len(selection.cameras)) if (e := entry(camera)) is not None]
    heapify(heap)
    while selection.utilisation > parameters.utilisation_max:
        if not heap:
            return None
        camera = heappop(heap)[2]
        selection.move(camera, selection.at[camera] - 1)
        if (after := entry(camera)) is not None:
            heappush(heap, after)
    return selection


def time_limit(parameters: PlanningParameters) -> float:
    """Return the share of the executors' time above which frames are given up."""
    return max(parameters.utilisation_slow, parameters.utilisation_max)


def _spare(parameters: PlanningParameters) -> float:
    """Return the share of a limit above which there is no time to spare for those who wait."""
    return parameters.utilisation_upgrade / parameters.utilisation_max


def at_least_rates(
    cameras: Sequence[Candidates],
    timing: Mapping[VariantName, Timing],
    parameters: PlanningParameters,
    factor: float = 0.0,
) -> Selection:
    """Return all cameras at their smallest levels, rates lowered by a factor, 0: to the least."""
    slowed = [c.slowed(factor, parameters.rate_min_hz) for c in cameras]
    return Selection(slowed, [0] * len(slowed), timing, _window_ns(slowed))


def _affordable(
    cameras: Sequence[Candidates],
    timing: Mapping[VariantName, Timing],
    parameters: PlanningParameters,
) -> list[Candidates]:
    """Make the fewest cameras best effort that lets the others have their least rates.

    Two orders are tried: those first that free most time, which takes the fewest where batches
    bring nothing, and those first whose deadlines make everybody's batches small. Of equals, who
    came last goes first. Who is best effort now stays so until there is time to spare: a load at
    the limit would else swing. O(n log n) for n cameras.
    """

    def freed_ns(at: int) -> float:
        level, least = cameras[at].levels[0], crowded[at].levels[0]
        return cameras[at].least_hz * level.single_ns - least.rate_hz * least.single_ns

    def waits(at: int) -> bool:
        current = cameras[at].snapshot.current
        return current is not None and not current.served

    crowded = [c.crowded_out(parameters.rate_min_hz) for c in cameras]
    movable = [at for at, c in enumerate(cameras) if c.served and freed_ns(at) > 0]
    by_time = sorted(movable, key=lambda at: (-freed_ns(at), not waits(at), -at))
    by_deadline = sorted(movable, key=lambda at: cameras[at].levels[0].budget.compute_ns)

    def without(order: Sequence[int], count: int) -> list[Candidates]:
        given_up = set(order[:count])
        return [crowded[at] if at in given_up else c for at, c in enumerate(cameras)]

    def fewest(order: Sequence[int], limit: float) -> int:
        def fits(count: int) -> bool:
            left = at_least_rates(without(order, count), timing, parameters)
            return left.utilisation <= limit

        return bisect_left(range(len(order)), True, key=fits)

    limit = time_limit(parameters)
    order = min(by_time, by_deadline, key=lambda of: fewest(of, limit))
    least = fewest(order, limit)
    most = fewest(order, limit * _spare(parameters))
    return without(order, min(max(least, sum(map(waits, movable))), most))


def _slow_down(
    cameras: Sequence[Candidates],
    timing: Mapping[VariantName, Timing],
    parameters: PlanningParameters,
) -> Selection:
    """Lower all rates by the same factor, none below its least, until the time suffices."""
    low, high = 0.0, 1.0
    for _ in range(20):
        middle = (low + high) / 2
        if at_least_rates(cameras, timing, parameters, middle).utilisation > time_limit(parameters):
            high = middle
        else:
            low = middle
    return at_least_rates(cameras, timing, parameters, low)
