"""Decides what the later stages of pipelines add to the value of an option, and at what cost. Pure.

Crops are cut from the picture as sent, so a smaller picture has smaller crops, and later stages are
right less often. An option of a camera counts with its detector's accuracy times the mean accuracy
of its later stages on the objects that this camera usually has, at the size of the option's picture
(product of independent stages). For each option, each later stage gets the variant that is worth
most at a price on the executors' time (a Lagrangian relaxation, as in `price_search`). Which price
is decided once for the whole box (`priced`): the prices at which some choice changes are tried, as
many as `PRICES_MAX`, and `optimised_part` keeps the one with which all are worth most.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import sqrt

from edgebox.domain.model_family import Variant, VariantName
from edgebox.domain.pipelines import StageName
from edgebox.domain.plans import CameraSnapshot, LaterStage, LaterVariant, PlanningSnapshot
from edgebox.planning.budgets import picture_pixels
from edgebox.planning.planner_parameters import PlanningParameters

PRICES_MAX = 6
"""So many prices above 0 are tried; planning takes as many times as long under overload."""
STAY_BONUS = 1.01
"""How much more a later variant counts that is in force, so that noise does not change it."""


@dataclass(frozen=True, slots=True)
class LaterChoice:
    """What the later stages of a camera run on, for one size of its pictures."""

    variants: tuple[tuple[StageName, VariantName], ...] = ()
    accuracy: float = 1.0
    """The mean over all crops; 1 for those of families whose accuracy by side is not known."""
    share_per_hz: float = 0.0
    """The share of the executors' time that they take for one frame a second."""


NO_LATER = LaterChoice()


def later_choice(
    stages: tuple[LaterStage, ...], picture_px: int, accuracy: float, price: float | None
) -> LaterChoice:
    """Choose the variants of a camera's later stages for one of its options. O(stages x variants).

    Args:
        stages: what is known of them.
        picture_px: the pixels of the option's picture.
        accuracy: of the option's first stage.
        price: accuracy times rate that all of the executors' time costs; None: what is in force
            stays.
    """
    if not stages:
        return NO_LATER
    crops = sum(stage.crops for stage in stages)
    variants, right, share_per_hz = [], 0.0, 0.0
    for stage in stages:
        known, weight = _accuracies(stage, picture_px), accuracy * stage.crops / crops
        worth = _worth(stage, picture_px, weight)
        at = _in_force(stage) if price is None else _best(stage, worth, price)
        chosen = stage.variants[at]
        variants.append((stage.name, chosen.variant.name))
        right += stage.crops / crops * known[at]
        share_per_hz += chosen.share_per_hz
    return LaterChoice(tuple(variants), right, share_per_hz)


def _worth(stage: LaterStage, picture_px: int, weight: float) -> list[float]:
    """Return what each variant is worth: its accuracy, and a little more for what is in force."""
    return [
        weight * known * (STAY_BONUS if of.variant.name == stage.current else 1.0)
        for of, known in zip(stage.variants, _accuracies(stage, picture_px), strict=True)
    ]


def _best(stage: LaterStage, worth: Sequence[float], price: float) -> int:
    def net(at: int) -> tuple[float, float]:
        cost = stage.variants[at].share_per_hz
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


def priced(snapshot: PlanningSnapshot, parameters: PlanningParameters) -> list[PlanningParameters]:
    """Return the parameters to plan with: one for each price of the later stages' time.

    The first has no price. The limits of each are lower by what the later stages take at most,
    whichever options are chosen. What is in force comes last, if there is something to choose.
    """
    choosable = [c for c in snapshot.cameras if any(len(stage.variants) > 1 for stage in c.later)]
    if not choosable:
        return [parameters.beside(snapshot.later_share)]
    prices: list[float | None] = [0.0, *_prices(snapshot, choosable)]
    present = sum(later_share_of_camera(c) for c in choosable)
    found = []
    for price in [*prices, None]:
        taken = sum(
            c.later_rate_hz
            * max(
                later_choice(c.later, px, first.accuracy, price).share_per_hz
                for px, first in _pictures(c, snapshot.variants)
            )
            for c in choosable
        )
        later_share = max(0.0, snapshot.later_share - present) + taken
        found.append(replace(parameters.beside(later_share), later_price=price))
    return found


def later_share(
    snapshot: PlanningSnapshot, chosen: Iterable[tuple[CameraSnapshot, LaterChoice]]
) -> float:
    """Return the share of the executors' time that the later stages take with some choices."""
    share = snapshot.later_share
    for camera, choice in chosen:
        if camera.later:
            more = choice.share_per_hz - _present(camera).share_per_hz
            share += camera.later_rate_hz * more
    return max(0.0, share)


def later_share_of_camera(camera: CameraSnapshot) -> float:
    """Return the share of the executors' time that a camera's known later stages take at present.

    That is a part of the snapshot's `later_share`.
    """
    return camera.later_rate_hz * _present(camera).share_per_hz


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
    at = max(range(len(variants)), key=lambda n: (worth[n], -variants[n].share_per_hz))
    while True:
        cheaper = [
            ((worth[at] - worth[n]) / (variants[at].share_per_hz - each.share_per_hz), n)
            for n, each in enumerate(variants)
            if each.share_per_hz < variants[at].share_per_hz
        ]
        if not cheaper:
            return out
        slope, at = min(cheaper)
        out.append(slope)
