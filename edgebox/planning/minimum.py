"""Decides who is served, and at what rates, where not all can be: the minimum allocation. Pure.

All cameras have their smallest sizes. A camera with a weak uplink has little time left, and so all
cameras get small batches. So the cameras with the tightest deadlines may become best effort; what
the others gain by that is weighed against what these lose (`Allocation.service`). Where the
executors' time does not suffice, the highest rates are lowered to a common ceiling (max-min
fairness), none below what its camera can use. Where not even these rates fit, the fewest cameras
are crowded out: best effort at the least rate of the box, or, where not even that of all fits, at
what is next to nothing.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from edgebox.domain.model_family import VariantName
from edgebox.planning import cycle_allocation
from edgebox.planning.allocation import BEST_EFFORT_SERVICE
from edgebox.planning.batch_cycle import NEVER_NS, VariantDemand
from edgebox.planning.capacity import BatchTimes
from edgebox.planning.later_work import less_later_stages, most_later_s
from edgebox.planning.option_table import Bools, Floats, Ints
from edgebox.planning.options import CameraOptions, round_rate
from edgebox.planning.planner_parameters import PlanningParameters

_HALVINGS = 16


@dataclass(frozen=True, slots=True)
class Load:
    """All cameras at their smallest sizes: what they demand of each variant."""

    demand: Mapping[VariantName, VariantDemand]
    longest_ns: int
    """The longest batch that anyone may have to wait for."""
    slack_ns: int
    """The longest batch that every served camera can wait for."""
    window_ns: int
    """The time in which batches gather: half of the tightest budget."""
    later_share: float = 0.0
    """The share of the executors' time that later stages take at these rates."""
    least_later_share: float = 0.0
    """The same at everybody's least rates."""

    def utilisation(self, timing: Mapping[VariantName, BatchTimes]) -> float:
        """Return the share of the executors' time that this takes, batches of a window credited."""
        return sum(timing[n].share(d.rate_hz, self.window_ns) for n, d in self.demand.items())

    def left(self, parameters: PlanningParameters) -> PlanningParameters:
        """Return the limits, less what later stages take."""
        return less_later_stages(parameters, self.later_share, self.least_later_share)


Feasible = Callable[[Load], bool]


def shared_feasibility(
    timing: Mapping[VariantName, BatchTimes], parameters: PlanningParameters, share: float = 1.0
) -> Feasible:
    """Return the test of `SharedAllocation`, with this part of the time that may be planned."""

    def feasible(load: Load) -> bool:
        left = load.left(parameters)
        limit = share * max(left.utilisation_slow, left.utilisation_max)
        return load.longest_ns <= load.slack_ns and load.utilisation(timing) <= limit

    return feasible


def cycle_feasibility(
    timing: Mapping[VariantName, BatchTimes], parameters: PlanningParameters
) -> Feasible:
    """Return the test of `CycleAllocation`."""
    return lambda load: cycle_allocation.cycle_feasible(
        load.demand, timing, load.left(parameters), upgrade=False
    )


class Minimum:
    """Cameras at their smallest sizes, as arrays: rates may be lowered, and service given up."""

    def __init__(
        self,
        cameras: Sequence[CameraOptions],
        parameters: PlanningParameters,
        executors: int = 1,
    ) -> None:
        self._cameras = cameras
        self._executors = executors
        self._parameters = parameters
        served = np.array([c.served for c in cameras])
        smallest = [c.options[0] for c in cameras]
        effort = [c.smallest for c in cameras]
        names = sorted({o.variant.name for o in (*smallest, *effort)})
        column = {name: at for at, name in enumerate(names)}
        self._names = names
        self._served = served
        self._variant = np.array([column[o.variant.name] for o in smallest])
        self._effort_variant = np.array([column[o.variant.name] for o in effort])
        self._rate_hz = np.array([o.rate_hz for o in smallest])
        self._effort_hz = np.array([o.rate_hz for o in effort])
        self._served_least_hz = np.array([c.least_hz for c in cameras])
        self._compute_ns = np.array([o.budget.compute_ns for o in smallest])
        self._single_ns = {o.variant.name: o.single_ns for o in (*smallest, *effort)}
        self._effort_later_s = np.array([o.later_share_s for o in effort])
        self._later_s = np.array([o.later_share_s for o in smallest])
        self._most_later_s = np.array(
            [most_later_s(c.options) if c.snapshot.has_later else 0.0 for c in cameras]
        )
        """The same where no camera's options are fewer than they are now."""
        self._wished_hz = np.array([c.snapshot.camera.rate_hz for c in cameras])
        self._effort_limit_hz = parameters.rate_min_hz
        """The rate at which best-effort cameras send that are in nobody's way."""

    def best(self, feasible: Feasible, spare: Feasible) -> list[CameraOptions] | None:
        """Return the cameras with the most service that is feasible; None: none is.

        Args:
            feasible: the test of a discipline.
            spare: the same with time to spare: who was crowded out stays so until it holds.
        """
        for limit_hz in (self._parameters.rate_min_hz, self._parameters.next_to_nothing_hz):
            self._effort_limit_hz = limit_hz
            at_limit = spare if self._below(limit_hz) else feasible
            if (best := self._best_within(at_limit, spare)) is not None:
                return best
        return None

    def _below(self, limit_hz: float) -> bool:
        """Say whether cameras that are best effort now are told to send less than this."""
        now = [(c.snapshot.current, c.smallest.rate_hz) for c in self._cameras]
        return any(
            of is not None and not of.served and of.rate_hz < min(limit_hz, rate_hz)
            for of, rate_hz in now
        )

    def _best_within(self, feasible: Feasible, spare: Feasible) -> list[CameraOptions] | None:
        none = np.zeros(len(self._cameras), np.bool_)
        if not self._waiting().any() and feasible(self._load(none, none)):
            return list(self._cameras)
        best = max(self._by_deadline(feasible, none), key=lambda each: each[0], default=None)
        if best is None or self._waiting().any():
            found = self._crowded_out(feasible, spare)
            if found is None:
                return None
            crowded, waits = found
            if crowded.any() or best is None:
                given_up = next(self._deadlines_kept(feasible, crowded), none)
                ceiling_hz = self._ceiling(feasible, given_up, crowded, freed=True)
                return self._applied(given_up, crowded, ceiling_hz, waits)
        _, given_up, _ = best
        return self._applied(given_up, none, self._ceiling(feasible, given_up, none, freed=True))

    def least(self) -> list[CameraOptions]:
        """Return the cameras with the least that can be given to them, feasible or not."""
        self._effort_limit_hz = self._parameters.next_to_nothing_hz
        none = np.zeros(len(self._cameras), np.bool_)
        return self._applied(none, self._movable(), 0.0)

    def _best_effort_now(self) -> Bools:
        """Say who is best effort now although its link and deadline would do."""
        return np.array(
            [
                c.served and c.snapshot.current is not None and not c.snapshot.current.served
                for c in self._cameras
            ]
        )

    def _waiting(self) -> Bools:
        """Say who of them is told to send no more than who is crowded out.

        Others were given up for the batches of the others, or their links were too weak.
        """
        now = (c.snapshot.current for c in self._cameras)
        rate_hz = np.array([0.0 if of is None else of.rate_hz for of in now])
        most_hz = np.minimum(self._parameters.rate_min_hz, self._effort_hz)
        return np.asarray(self._best_effort_now() & (rate_hz <= most_hz))

    def _by_deadline(
        self, feasible: Feasible, crowded: Bools
    ) -> Iterator[tuple[float, Bools, float]]:
        """Give up the tightest deadlines, more and more: service, who was given up, ceiling."""
        for given_up in self._deadlines_kept(feasible, crowded):
            ceiling_hz = self._ceiling(feasible, given_up, crowded)
            rate_hz = self._rates(given_up, crowded, ceiling_hz)
            weight = np.where(self._served & ~given_up, 1.0, BEST_EFFORT_SERVICE)
            yield float((weight * rate_hz / self._wished_hz).sum()), given_up, ceiling_hz
            if np.isinf(ceiling_hz):
                break  # more would only lose service

    def _deadlines_kept(self, feasible: Feasible, crowded: Bools) -> Iterator[Bools]:
        """Return who may be given up so that all others' least rates fit, the fewest first."""
        order = np.argsort(self._compute_ns, kind="stable")
        tightest = order[(self._served & ~crowded)[order]]

        def without(count: int) -> Bools:
            out = np.zeros(len(self._cameras), np.bool_)
            out[tightest[:count]] = True
            return out

        def fits(count: int) -> bool:
            return feasible(self._load(without(count), crowded, 0.0))

        tried, fitted = -1, False
        while tried < len(tightest):
            count = min(len(tightest), tried + max(1, tried // 4))
            if fits(count):
                if not fitted:  # none of those that were skipped was tried
                    count = next(each for each in range(tried + 1, count + 1) if fits(each))
                fitted = True
                yield without(count)
            tried = count

    def _ceiling(
        self, feasible: Feasible, given_up: Bools, crowded: Bools, *, freed: bool = False
    ) -> float:
        """Return the highest common rate that is feasible; infinite: nobody need be slower.

        `freed`: the time that those who are given up leave to the others counts.
        """
        if feasible(self._load(given_up, crowded, freed=freed)):
            return float("inf")
        low_hz, high_hz = 0.0, float(self._rate_hz.max())
        for _ in range(_HALVINGS):
            middle_hz = (low_hz + high_hz) / 2
            if feasible(self._load(given_up, crowded, middle_hz, freed=freed)):
                low_hz = middle_hz
            else:
                high_hz = middle_hz
        return low_hz

    def _crowded_out(self, feasible: Feasible, spare: Feasible) -> tuple[Bools, Bools] | None:
        """Return the fewest cameras that must not be served for all others' least rates to fit.

        With them comes who of them only waits for time to spare. Two orders are tried: those first
        that free most time, which takes the fewest where batches bring nothing, and those first
        whose deadlines make everybody's batches small. Of equals, who came last goes first. Who is
        best effort now stays so until there is time to spare: a load at the limit would else swing.
        Of as many cameras those go that are best effort now, and somebody who is served only if
        that does not suffice. O(n log n) for n cameras.
        """
        freed, waiting, effort = self._freed(), self._waiting(), self._best_effort_now()
        movable = np.flatnonzero(self._movable()).tolist()
        by_time = sorted(movable, key=lambda at: (-freed[at], -at))
        by_deadline = sorted(movable, key=lambda at: (int(self._compute_ns[at]), -at))

        def fits(crowd: Sequence[int], holds: Feasible) -> bool:
            return next(self._deadlines_kept(holds, self._those(crowd)), None) is not None

        def fewest(order: Sequence[int], holds: Feasible) -> int:
            numbers = range(len(order) + 1)
            return bisect_left(numbers, True, key=lambda number: fits(order[:number], holds))

        order = min(by_time, by_deadline, key=lambda each: fewest(each, feasible))
        least = fewest(order, feasible)
        if least > len(order):
            return None
        most = min(fewest(order, spare), len(order))
        number = min(max(least, int(waiting[movable].sum())), most)
        # Those that wait lose nothing.
        first = sorted((at for at in order if effort[at]), key=lambda at: not waiting[at])
        served = [at for at in order if not effort[at]]
        usual = sum(not effort[at] for at in order[:number])
        fewer = range(max(0, number - len(first)), usual + 1)

        def crowd(of_served: int) -> list[int]:
            return [*served[:of_served], *first[: number - of_served]]

        at = bisect_left(fewer, True, key=lambda some: fits(crowd(some), feasible))
        out = crowd(fewer[at]) if at < len(fewer) else order[:number]
        needed = fewest(out, feasible) if number > least else number
        return self._those(out), self._those(out[needed:])

    def _those(self, cameras: Sequence[int]) -> Bools:
        out = np.zeros(len(self._cameras), np.bool_)
        out[[*cameras]] = True
        return out

    def _freed(self) -> Floats:
        """Return the time that crowding each camera out frees, in a unit that does not matter."""
        single_ns = np.array([self._single_ns[name] for name in self._names])
        later_ns = 1e9 * self._executors
        least_ns = single_ns[self._variant] + later_ns * self._later_s
        crowded_ns = single_ns[self._effort_variant] + later_ns * self._effort_later_s
        return np.asarray(self._least_hz() * least_ns - self._crowded_hz() * crowded_ns)

    def _least_hz(self) -> Floats:
        """Return the rates below which none of them is told to send."""
        limit_hz = np.minimum(self._effort_limit_hz, self._rate_hz)
        return np.asarray(np.where(self._served, self._served_least_hz, limit_hz))

    def _crowded_hz(self) -> Floats:
        return np.asarray(np.minimum(self._effort_limit_hz, self._effort_hz))

    def _movable(self) -> Bools:
        return np.asarray(self._served & (self._freed() > 0))

    def _rates(
        self, given_up: Bools, crowded: Bools, ceiling_hz: float, *, freed: bool = False
    ) -> Floats:
        rate_hz = np.where(given_up, self._effort_hz, self._rate_hz)
        crowded_hz = self._crowded_hz()
        if np.isfinite(ceiling_hz):
            least_hz = self._least_hz()
            if freed:
                least_hz = np.where(given_up, crowded_hz, least_hz)
            lowered_hz = np.maximum(least_hz, round_rate(ceiling_hz))
            rate_hz = np.where(rate_hz <= ceiling_hz, rate_hz, lowered_hz)
        return np.asarray(np.where(crowded, crowded_hz, rate_hz))

    def _load(
        self,
        given_up: Bools,
        crowded: Bools,
        ceiling_hz: float = float("inf"),
        *,
        freed: bool = False,
    ) -> Load:
        out = given_up | crowded
        # Whether to give a camera up is decided by what longer batches bring to the others, not by
        # the time that it leaves to them: rates are lowered first.
        left = out if freed else crowded
        variant: Ints = np.where(left, self._effort_variant, self._variant)
        runs: Ints = np.where(out, self._effort_variant, self._variant)
        rates_hz = self._rates(given_up, crowded, ceiling_hz, freed=freed)
        rate_hz = np.bincount(variant, rates_hz, len(self._names))
        own_s = self._later_s if np.isfinite(ceiling_hz) else self._most_later_s
        later_share = float(rates_hz @ np.where(left, self._effort_later_s, own_s))
        least_later_share = 0.0
        if later_share > 0:
            least_s = np.where(left, self._effort_later_s, self._later_s)
            least_later_share = float(self._rates(given_up, crowded, 0.0, freed=freed) @ least_s)
        served = self._served & ~out
        demand: dict[VariantName, VariantDemand] = {}
        slack_ns = NEVER_NS
        for at in np.flatnonzero(rate_hz).tolist():
            name = self._names[at]
            there = served & (variant == at)
            tightest_ns = int(self._compute_ns[there].min()) if there.any() else NEVER_NS
            demand[name] = VariantDemand(float(rate_hz[at]), tightest_ns)
            slack_ns = min(slack_ns, tightest_ns - self._single_ns[name])
        tightest = int(self._compute_ns[served].min()) if served.any() else 2
        longest_ns = max(self._single_ns[self._names[at]] for at in np.unique(runs).tolist())
        return Load(
            demand, longest_ns, slack_ns, max(1, tightest // 2), later_share, least_later_share
        )

    def _applied(
        self, given_up: Bools, crowded: Bools, ceiling_hz: float, waits: Bools | None = None
    ) -> list[CameraOptions]:
        least_hz = self._effort_limit_hz
        out = []
        for at, of in enumerate(self._cameras):
            if crowded[at]:
                waiting = waits is not None and bool(waits[at])
                out.append(of.crowded_out(least_hz, waits=waiting))
                continue
            kept = of.best_effort() if given_up[at] else of
            out.append(kept.slowed(ceiling_hz, least_hz) if np.isfinite(ceiling_hz) else kept)
        return out
