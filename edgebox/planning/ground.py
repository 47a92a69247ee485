"""Decides who is served at all, and at what rates, if all have their smallest levels. Pure."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence

from edgebox.domain.models import VariantName
from edgebox.planning.candidates import Candidates
from edgebox.planning.capacity import Timing
from edgebox.planning.parameters import PlanningParameters
from edgebox.planning.selection import Selection


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
    if ground.utilisation <= time_limit(parameters) * parameters.upgrade_share:
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
    most = fewest(order, limit * parameters.upgrade_share)
    return without(order, min(max(least, sum(map(waits, movable))), most))


def slow_down(
    cameras: Sequence[Candidates],
    timing: Mapping[VariantName, Timing],
    parameters: PlanningParameters,
) -> Selection:
    """Lower the highest rates to a common one, the highest for which the time suffices.

    Shares are max-min fair: a camera that asks for little keeps it, and one that asks for a hundred
    times as much as the others takes nothing from them. None falls below its least.
    """
    low_hz, high_hz = 0.0, max(c.levels[0].rate_hz for c in cameras)
    for _ in range(24):
        middle_hz = (low_hz + high_hz) / 2
        slowed = at_least_rates(cameras, timing, parameters, middle_hz)
        if slowed.utilisation > time_limit(parameters):
            high_hz = middle_hz
        else:
            low_hz = middle_hz
    return at_least_rates(cameras, timing, parameters, low_hz)


def at_least_rates(
    cameras: Sequence[Candidates],
    timing: Mapping[VariantName, Timing],
    parameters: PlanningParameters,
    ceiling_hz: float = 0.0,
) -> Selection:
    """Return all cameras at their smallest levels, none above this rate unless it is its least."""
    slowed = [c.slowed(ceiling_hz, parameters.rate_min_hz) for c in cameras]
    return Selection(slowed, [0] * len(slowed), timing, _window_ns(slowed))


def time_limit(parameters: PlanningParameters) -> float:
    """Return the share of the executors' time above which frames are given up."""
    return max(parameters.utilisation_slow, parameters.utilisation_max)
