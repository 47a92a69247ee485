"""Plans the parts of a box: the one function that planner, explanation and admission call. Pure.

Cameras of a site divide their uplink first (`uplinks`). What has no executor in common is planned
by itself (`disjoint`), and decided by itself unless it shares an uplink or later stages.
Applications that take longer or shorter than the profiles say get variants of their own
(`by_application`). Then all cameras of a part are optimised together (`optimisation`), for the
quantile of the batches' times that brings most (`on_time`), and at the price of the later stages'
time that is worth most (`later_stages`), which counts at the rates that are planned (`later_work`).
"""

from collections.abc import Set
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import chain

from edgebox.domain.model_family import ExecutorId, FamilyName
from edgebox.domain.plans import PlanningSnapshot
from edgebox.domain.requests import CameraId
from edgebox.planning.allocation import Allocation
from edgebox.planning.by_application import ByApplication, by_application
from edgebox.planning.disjoint import parts, separate_boxes
from edgebox.planning.laggards import without_laggards
from edgebox.planning.later_stages import Loads, later_loads, later_prices, present_loads
from edgebox.planning.later_work import left_to_first_stages
from edgebox.planning.on_time import Expected, expected, lower_quantiles, slowest_profiles
from edgebox.planning.optimisation import optimise
from edgebox.planning.planner_parameters import PlanningParameters
from edgebox.planning.reasons import Reasons
from edgebox.planning.uplinks import with_uplink_shares


@dataclass(frozen=True)
class OptimisedPart:
    """A part of a box, what its cameras are given, and why none is given more."""

    snapshot: PlanningSnapshot
    """The part, its uplinks divided."""
    by_app: ByApplication
    """The same, by application: what the allocation's variants are named by."""
    allocation: Allocation
    parameters: PlanningParameters
    """With the quantile of the batches' times that it is planned for, and with what later stages
    leave to first stages at the rates that it gives."""

    @property
    def executors(self) -> tuple[ExecutorId, ...]:
        """Return the executors of the part."""
        return tuple(self.snapshot.profiles)

    @cached_property
    def numbers(self) -> dict[CameraId, int]:
        """The cameras that have a loaded variant, by name: their numbers in the allocation."""
        return {of.snapshot.camera.id: at for at, of in enumerate(self.allocation.cameras)}

    @cached_property
    def reasons(self) -> Reasons:
        """What answers why a camera has no more."""
        return Reasons(self.allocation, self.executors, self.snapshot.fixed_of, self.parameters)

    def expected(self, parameters: PlanningParameters) -> Expected:
        """Return what it is expected to bring; `parameters`: with the highest quantile."""
        quantile = self.parameters.quantile
        profiles = slowest_profiles(self.by_app.snapshot, quantile)
        return expected(self.allocation, profiles, quantile, parameters)

    def later_loads(self) -> list[Loads]:
        """Return what the later stages of each camera take with what it is given."""
        return [
            later_loads(of.snapshot, option.later, option.rate_hz)
            for of, option in zip(self.allocation.cameras, self.allocation.chosen, strict=True)
            if of.snapshot.has_later
        ]

    def served(self) -> set[CameraId]:
        """Return the cameras that are more than best effort."""
        return {of.snapshot.camera.id for of in self.allocation.cameras if of.served}

    def why(self, camera: CameraId) -> str:
        """Say why a camera has no more than it has."""
        return self.reasons.reason(self.numbers[camera]).text


class _DividedBox:
    """The parts of a box by application: they are the same at every quantile of the batches' times,
    unless cameras share an uplink."""

    def __init__(self) -> None:
        self._whole: PlanningSnapshot | None = None
        self._parts: list[tuple[PlanningSnapshot, ByApplication]] = []

    def parts(self, whole: PlanningSnapshot) -> list[tuple[PlanningSnapshot, ByApplication]]:
        """Return the parts."""
        if whole is not self._whole:
            self._parts = [(part, by_application(part)) for part in parts(whole)]
            self._whole = whole
        return self._parts


Parts = list[tuple[PlanningSnapshot, OptimisedPart | None]]
"""The parts of a box; None: no camera of it has a loaded variant."""


def optimised_parts(
    snapshot: PlanningSnapshot,
    iterations_max: int,
    parameters: PlanningParameters,
    family: FamilyName | None = None,
) -> Parts:
    """Return the parts of a box, optimised, each for the quantile that is worth most.

    Parts that have an uplink or later stages in common are decided together, all others as if they
    were alone (`disjoint.separate_boxes`).

    Args:
        snapshot: all there is to know of the box.
        iterations_max: bound on the single steps of a search.
        parameters: the tunables.
        family: only the part that runs it is wanted, and what is decided with it; None: all are.
    """
    return [
        part
        for box in separate_boxes(snapshot)
        if family is None or _runs(box, family)
        for part in _optimised_together(box, iterations_max, parameters)
    ]


def _runs(part: PlanningSnapshot, family: FamilyName) -> bool:
    return any(variant.family == family for variant in part.variants)


def _optimised_together(
    snapshot: PlanningSnapshot, iterations_max: int, parameters: PlanningParameters
) -> Parts:
    """Return the parts of a box, all of them for the same quantile.

    Executors that are far slower than others of their part are left out where that is worth more
    (`laggards`).
    """
    best, found = snapshot, _with_all_executors(snapshot, iterations_max, parameters)
    for part in parts(snapshot):
        box = best
        for fewer, share in without_laggards(part, parameters.quantile):
            if not _fits(_same_part(found, part), share):
                continue
            without = _without(box, part.profiles.keys() - fewer.profiles.keys())
            others = _with_all_executors(without, iterations_max, parameters)
            if _is_better(others, found, parameters):
                best, found = without, others
    return found


def _without(snapshot: PlanningSnapshot, executors: Set[ExecutorId]) -> PlanningSnapshot:
    """Return a box without some executors."""
    return replace(
        snapshot,
        profiles={e: of for e, of in snapshot.profiles.items() if e not in executors},
        groups=tuple(g for g in snapshot.groups if executors.isdisjoint(g.executors)),
    )


def _same_part(of: Parts, part: PlanningSnapshot) -> OptimisedPart | None:
    """Return what was found for a part, perhaps with fewer executors."""
    return next(found for each, found in of if each.profiles.keys() <= part.profiles.keys())


def _fits(of: OptimisedPart | None, share: float) -> bool:
    """Return whether what is served may be served by executors that do this share of the work.

    If not, more accuracy takes more time than they have.
    """
    return of is None or of.allocation.utilisation <= share * of.parameters.utilisation_max


def _with_all_executors(
    snapshot: PlanningSnapshot, iterations_max: int, parameters: PlanningParameters
) -> Parts:
    divided = _DividedBox()
    best = best_price(snapshot, iterations_max, parameters)
    if best is not None:
        parameters, found = best.parameters, best.found
    else:
        found = _at_one_quantile(snapshot, iterations_max, parameters, divided)
    for lower in lower_quantiles(snapshot, parameters):
        others = _at_one_quantile(snapshot, iterations_max, lower, divided)
        found = others if _is_better(others, found, parameters) else found
    return found


def utilisations(of: Parts) -> list[float]:
    """Return the share of each part's time that is used, that of the later stages included.

    Args:
        of: the parts of a box, all of them.
    """
    loads = [each for _, part in of if part is not None for each in part.later_loads()]
    return [
        (0.0 if found is None else found.allocation.utilisation) + sum(map(part.share_of, loads))
        for part, found in of
    ]


@dataclass(frozen=True)
class AtPrice:
    """What comes of a plan at a price of the later stages' time."""

    parameters: PlanningParameters
    found: Parts
    worth: Expected
    has_all: bool
    """Whether every camera has its best option and all of it fits."""


def best_price(
    snapshot: PlanningSnapshot, iterations_max: int, parameters: PlanningParameters
) -> AtPrice | None:
    """Return the plan at the price of later stages that is worth most; None: there is no price.

    The higher the price, the more time is left to first stages: they serve as many frames or more,
    and have as large variants or larger. So the lowest price that serves as many as the highest
    is found by bisection. From there on prices are tried until all first stages have the best there
    is: above that, later stages would only lose. What is in force stays unless another price serves
    more frames, or is worth more by `hysteresis_ratio`.
    """
    prices = later_prices(snapshot)
    if not prices:
        return None

    @cache
    def at(number: int) -> AtPrice:
        return planned_at(snapshot, iterations_max, parameters, prices[number])

    last = len(prices) - 2
    below, lowest = -1, last
    if at(0).has_all:
        return at(0)
    while lowest - below > 1:
        middle = (below + lowest) // 2
        if round(at(last).worth.promised - at(middle).worth.promised, 9) <= 0:
            lowest = middle
        else:
            below = middle
    best = at(lowest)
    while lowest < last and not at(lowest).has_all:
        lowest += 1
        best = at(lowest) if at(lowest).worth.exceeds(best.worth) else best
    kept = at(last + 1)
    more = replace(kept.worth, value=parameters.hysteresis_ratio * kept.worth.value)
    return best if best.worth.exceeds(more) else kept


def planned_at(
    snapshot: PlanningSnapshot,
    iterations_max: int,
    parameters: PlanningParameters,
    price: float | None,
) -> AtPrice:
    """Return the plan at one price.

    Args:
        snapshot: the whole box at present.
        iterations_max: bound on the single steps of a search.
        parameters: the tunables.
        price: what the later stages' time costs; None: what is in force stays.
    """
    at_price = replace(parameters, later_price=price)
    found = _at_one_quantile(snapshot, iterations_max, at_price, _DividedBox())
    taken = max(utilisations(found))
    has_all = taken <= parameters.utilisation_slow and _has_all(found)
    # Frames that find no time are refused.
    share = min(1.0, parameters.utilisation_slow / max(taken, 1e-9))
    return AtPrice(at_price, found, _expected(found, at_price).scaled(share), has_all)


def _has_all(found: Parts) -> bool:
    """Say whether every camera has the best of its options at its full rate."""
    return all(
        part is not None
        and all(
            of.served
            and option.rate_hz >= of.snapshot.camera.rate_hz
            and option.variant == of.ladder[-1].variant
            for of, option in zip(part.allocation.cameras, part.allocation.chosen, strict=True)
        )
        and part.allocation.utilisation <= part.parameters.utilisation_max
        for _, part in found
    )


def _at_one_quantile(
    snapshot: PlanningSnapshot,
    iterations_max: int,
    parameters: PlanningParameters,
    divided: _DividedBox,
) -> Parts:
    whole = with_uplink_shares(snapshot, parameters)
    wanted = divided.parts(whole)
    present = [[present_loads(c) for c in part.cameras if c.has_later] for part, _ in wanted]
    found: Parts = []
    for at, (part, by_app) in enumerate(wanted):
        # Parts that are planned already count at their new rates, the others at those in force.
        known = [each for _, of in found if of is not None for each in of.later_loads()]
        elsewhere = chain(known, *present[at + 1 :])
        of_part = parameters.without_later_stages(sum(map(part.share_of, elsewhere)))
        allocation = optimise(by_app, iterations_max, of_part)
        optimised = None
        if allocation is not None:
            left = left_to_first_stages(of_part, allocation.cameras)
            optimised = OptimisedPart(part, by_app, allocation, left)
        found.append((part, optimised))
    return found


def _is_better(some: Parts, others: Parts, parameters: PlanningParameters) -> bool:
    return _expected(some, parameters).exceeds(_expected(others, parameters))


def _expected(of: Parts, parameters: PlanningParameters) -> Expected:
    found = (part.expected(parameters) for _, part in of if part is not None)
    return sum(found, Expected(0.0, 0.0, 0.0))
