"""Decides what the later stages of pipelines add to the value of an option, and at what cost. Pure.

Crops are cut from the picture as sent, so a smaller picture has smaller crops, and later stages are
right less often. An option of a camera counts with its detector's accuracy times the mean accuracy
of its later stages on the objects that this camera usually has, at the size of the option's picture
(product of independent stages). For each option, each later stage gets the variant that is worth
most at a price on the executors' time (a Lagrangian relaxation, as in `price_search`). Which price
is decided once for the whole box (`priced`): the prices at which some choice changes are tried, as
many as `PRICES_MAX`, and `optimised_part` keeps the one with which all are worth most. What later
stages take is counted by family, so that it burdens the part of the box that runs that family.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import sqrt

from edgebox.domain.model_family import FamilyName, Variant, VariantName
from edgebox.domain.pipelines import StageName
from edgebox.domain.plans import CameraSnapshot, LaterStage, LaterVariant, PlanningSnapshot
from edgebox.planning.budgets import picture_pixels
from edgebox.planning.planner_parameters import PlanningParameters

PRICES_MAX = 6
"""So many prices above 0 are tried; planning takes as many times as long under overload."""
STAY_BONUS = 1.01
"""How much more a later variant counts that is in force, so that noise does not change it."""


Loads = dict[FamilyName, float]
"""By family: executor-seconds a second."""


@dataclass(frozen=True, slots=True)
class LaterChoice:
    """What the later stages of a camera run on, for one size of its pictures."""

    variants: tuple[tuple[StageName, VariantName], ...] = ()
    accuracy: float = 1.0
    """The mean over all crops; 1 for those of families whose accuracy by side is not known."""
    executor_s: tuple[tuple[FamilyName, float], ...] = ()
    """The time of executors that each takes for one frame, in seconds."""


NO_LATER = LaterChoice()


def later_choice(
    stages: tuple[LaterStage, ...], picture_px: int, accuracy: float, price: float | None
) -> LaterChoice:
    """Choose the variants of a camera's later stages for one of its options. O(stages x variants).

    Args:
        stages: what is known of them.
        picture_px: the pixels of the option's picture.
        accuracy: of the option's first stage.
        price: accuracy times rate that an executor-second a second costs; None: what is in force
            stays.
    """
    if not stages:
        return NO_LATER
    crops = sum(stage.crops for stage in stages)
    variants, right, executor_s = [], 0.0, []
    for stage in stages:
        known, weight = _accuracies(stage, picture_px), accuracy * stage.crops / crops
        worth = _worth(stage, picture_px, weight)
        at = _in_force(stage) if price is None else _best(stage, worth, price)
        chosen = stage.variants[at]
        variants.append((stage.name, chosen.variant.name))
        right += stage.crops / crops * known[at]
        executor_s.append((chosen.variant.family, chosen.executor_s))
    return LaterChoice(tuple(variants), right, tuple(executor_s))


def _worth(stage: LaterStage, picture_px: int, weight: float) -> list[float]:
    """Return what each variant is worth: its accuracy, and a little more for what is in force."""
    return [
        weight * known * (STAY_BONUS if of.variant.name == stage.current else 1.0)
        for of, known in zip(stage.variants, _accuracies(stage, picture_px), strict=True)
    ]


def _best(stage: LaterStage, worth: Sequence[float], price: float) -> int:
    def net(at: int) -> tuple[float, float]:
        cost = stage.variants[at].executor_s
        return worth[at] - price * cost, -cost

    return max(range(len(worth)), key=net)


def _in_force(stage: LaterStage) -> int:
    names = [each.variant.name for each in stage.variants]
    return names.index(stage.current) if stage.current in names else len(names) - 1


@lru_cache(maxsize=1024)
def _accuracies(stage: LaterStage, picture_px: int) -> tuple[float, ...]:
    """Return the accuracy of each variant on the objects of a picture; 1: it is not known."""
    picture_side_px = sqrt(picture_px)
    return tuple(
        sum(each.variant.accuracy_at(side * picture_side_px) for side in stage.sides)
        / len(stage.sides)
        if each.variant.accuracy_by_side
        else 1.0
        for each in stage.variants
    )


def priced(
    snapshot: PlanningSnapshot, parameters: PlanningParameters
) -> list[tuple[PlanningSnapshot, PlanningParameters]]:
    """Return what to plan with: one candidate for each price of the later stages' time.

    The first has no price. The loads of each are what the later stages take at most, whichever
    options are chosen. What is in force comes last, if there is something to choose.
    """
    choosable = [c for c in snapshot.cameras if any(len(stage.variants) > 1 for stage in c.later)]
    if not choosable:
        return [(snapshot, parameters)]
    prices: list[float | None] = [0.0, *_prices(snapshot, choosable)]
    fixed = without(snapshot.later_loads, (later_loads_of(c) for c in choosable))
    return [
        (
            replace(
                snapshot,
                later_loads=total(fixed, *(_most(c, snapshot.variants, price) for c in choosable)),
            ),
            replace(parameters, later_price=price),
        )
        for price in [*prices, None]
    ]


def _most(camera: CameraSnapshot, variants: Sequence[Variant], price: float | None) -> Loads:
    """Return the most that a camera's later stages take of each family with any of its options."""
    found: Loads = {}
    for px, first in _pictures(camera, variants):
        choice = later_choice(camera.later, px, first.accuracy, price)
        for family, load in _loads(camera, choice).items():
            found[family] = max(load, found.get(family, 0.0))
    return found


def loads_with(
    snapshot: PlanningSnapshot, chosen: Iterable[tuple[CameraSnapshot, LaterChoice]]
) -> Loads:
    """Return the loads of the later stages with some choices."""
    chosen = list(chosen)
    others = without(snapshot.later_loads, (later_loads_of(camera) for camera, _ in chosen))
    return total(others, *(_loads(camera, choice) for camera, choice in chosen))


def later_loads_of(camera: CameraSnapshot) -> Loads:
    """Return the loads of a camera's known later stages at present.

    They are a part of the snapshot's `later_loads`.
    """
    return _loads(camera, _present(camera))


def total(*loads: Mapping[FamilyName, float]) -> Loads:
    """Return the sum of loads, by family."""
    found: Loads = {}
    for each in loads:
        for family, load in each.items():
            found[family] = found.get(family, 0.0) + load
    return found


def without(
    loads: Mapping[FamilyName, float], parts: Iterable[Mapping[FamilyName, float]]
) -> Loads:
    """Return loads less some that are a part of them, at least 0 each."""
    left = total(*parts)
    return {family: max(0.0, load - left.get(family, 0.0)) for family, load in loads.items()}


def _loads(camera: CameraSnapshot, choice: LaterChoice) -> Loads:
    return total(*({of: camera.later_rate_hz * time_s} for of, time_s in choice.executor_s))


def _present(camera: CameraSnapshot) -> LaterChoice:
    return later_choice(camera.later, 1, 1.0, None)


def _pictures(camera: CameraSnapshot, variants: Sequence[Variant]) -> list[tuple[int, Variant]]:
    """Return the pixels of the pictures that a camera may be told to send, and their variants."""
    own = [v for v in variants if v.family == camera.camera.family]
    return [(picture_pixels(camera.camera, v), v) for v in own] or [(1, variants[0])]


def _prices(snapshot: PlanningSnapshot, cameras: Iterable[CameraSnapshot]) -> list[float]:
    """Return the prices just above those at which some stage's best variant changes, rising."""
    found: set[float] = set()
    for camera in cameras:
        crops = sum(stage.crops for stage in camera.later)
        for px, first in _pictures(camera, snapshot.variants):
            for stage in camera.later:
                worth = _worth(stage, px, first.accuracy * stage.crops / crops)
                found.update(_breakpoints(stage.variants, worth))
    rising = sorted(found)
    if len(rising) > PRICES_MAX:
        step = (len(rising) - 1) / (PRICES_MAX - 1)
        rising = [rising[round(at * step)] for at in range(PRICES_MAX)]
    return [1.0001 * price for price in rising]


def _breakpoints(variants: Sequence[LaterVariant], worth: Sequence[float]) -> list[float]:
    """Return the slopes of the concave hull of value over cost, from the most valuable down."""
    out: list[float] = []
    at = max(range(len(variants)), key=lambda n: (worth[n], -variants[n].executor_s))
    while True:
        cheaper = [
            ((worth[at] - worth[n]) / (variants[at].executor_s - each.executor_s), n)
            for n, each in enumerate(variants)
            if each.executor_s < variants[at].executor_s
        ]
        if not cheaper:
            return out
        slope, at = min(cheaper)
        out.append(slope)
