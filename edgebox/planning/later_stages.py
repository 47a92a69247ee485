"""Decides what the later stages of pipelines add to the value of an option, and at what cost. Pure.

Crops are cut from the picture as sent, so a smaller picture has smaller crops, and later stages are
right less often. An option of a camera counts with its detector's accuracy times the mean accuracy
of its later stages on the objects that this camera usually has, at the size of the option's picture
(product of independent stages). For each option, each later stage gets the variant that is worth
most at a price on the executors' time (a Lagrangian relaxation, as in `price_search`). A cascade's
large model is a later stage, too: the share of the pictures that is sent on to it makes the answers
more accurate, as its curve says, and takes executors' time; each share is a choice. Which price
is decided once for the whole box (`later_prices`): the prices at which some choice changes are
tried, as many as `PRICES_MAX`, and `optimised_part` keeps the one with which all are worth most.
What later stages take is counted at the rate of the option, and by family, so that it burdens the
part of the box that runs that family.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import sqrt

from edgebox.domain.model_family import FamilyName, Variant, VariantName
from edgebox.domain.pipelines import StageName
from edgebox.domain.plans import CameraSnapshot, LaterStage, PlannedCascade, PlanningSnapshot
from edgebox.planning.budgets import picture_pixels

PRICES_MAX = 6
"""So many prices above 0 are tried; planning takes as many times as long under overload."""
STAY_BONUS = 1.01
"""How much more a later variant counts that is in force, so that noise does not change it."""


Loads = dict[FamilyName, float]
"""By family: executor-seconds a second."""

_Pictures = list[tuple[int, Variant]]
"""The pixels of the pictures that a camera may be told to send, and their variants."""


@dataclass(frozen=True, slots=True)
class LaterChoice:
    """What the later stages of a camera run on, for one size of its pictures."""

    variants: tuple[tuple[StageName, VariantName], ...] = ()
    accuracy: float = 1.0
    """The mean over all crops, 1 for those of families whose accuracy by side is not known; times
    how much more accurate a cascade makes the objects, 1 or more."""
    executor_s: tuple[tuple[FamilyName, float], ...] = ()
    """The time of executors that each takes for one frame, in seconds."""
    cascade_share: float | None = None
    """The share of the pictures that a cascade sends on; None: that is not planned."""


NO_LATER = LaterChoice()
NOTHING_SENT_ON = LaterChoice(cascade_share=0.0)


def later_choice(
    camera: CameraSnapshot, picture_px: int, first: Variant, price: float | None
) -> LaterChoice:
    """Choose what a camera's later stages do for one of its options. O(stages x variants).

    Args:
        camera: with what is known of its later stages.
        picture_px: the pixels of the option's picture.
        first: the option's variant, which its first stage runs on.
        price: accuracy times rate that an executor-second a second costs; None: what is in force
            stays.
    """
    choice = _of_crops(camera.later, picture_px, first.accuracy, price)
    if camera.cascade is None:
        return choice
    return _with_cascade(choice, camera.cascade, first, price)


def _with_cascade(
    crops: LaterChoice, cascade: PlannedCascade, first: Variant, price: float | None
) -> LaterChoice:
    """Add the share that a cascade sends on."""
    if first.name != cascade.small:
        return NOTHING_SENT_ON if crops is NO_LATER else replace(crops, cascade_share=0.0)
    of = _cascade_shares(cascade, first.accuracy)
    at = of.shares.index(cascade.reserved) if price is None else of.best(crops.accuracy, price)
    return LaterChoice(
        crops.variants,
        crops.accuracy * of.gains[at],
        (*crops.executor_s, (cascade.large.family, of.costs[at])),
        of.shares[at],
    )


@dataclass(frozen=True, slots=True)
class _CascadeShares:
    """The shares that a cascade may send on, rising, and what each costs and gains."""

    shares: tuple[float, ...]
    costs: tuple[float, ...]
    """The executors' time for one frame, in seconds."""
    gains: tuple[float, ...]
    """How many times as accurate as the small model's all answers are; never below 1."""
    worth: tuple[float, ...]
    """The accuracy of all answers, and a little more for what is in force."""

    def best(self, of_crops: float, price: float) -> int:
        """Return which is best at a price; `of_crops`: accuracy of the other later stages."""
        return _best(self.costs, [of_crops * each for each in self.worth], price)


@lru_cache(maxsize=4096)
def _cascade_shares(cascade: PlannedCascade, small: float) -> _CascadeShares:
    """Return the shares to choose from; `small`: accuracy of the small model."""
    shares = tuple(sorted({*(point.share for point in cascade.curve.points), cascade.reserved}))
    large = cascade.large.accuracy
    gains = tuple(
        max(1.0, cascade.curve.accuracy_at(share, small, large) / small) if small > 0 else 1.0
        for share in shares
    )
    return _CascadeShares(
        shares,
        tuple(share * cascade.executor_s for share in shares),
        gains,
        tuple(
            small * gain * (STAY_BONUS if share == cascade.reserved else 1.0)
            for share, gain in zip(shares, gains, strict=True)
        ),
    )


def _of_crops(
    stages: tuple[LaterStage, ...], picture_px: int, accuracy: float, price: float | None
) -> LaterChoice:
    if not stages:
        return NO_LATER
    crops = sum(stage.crops for stage in stages)
    variants, right, executor_s = [], 0.0, []
    for stage in stages:
        known, weight = _accuracies(stage, picture_px), accuracy * stage.crops / crops
        worth = _worth(stage, picture_px, weight)
        at = _in_force(stage) if price is None else _best(_costs(stage), worth, price)
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


def _costs(stage: LaterStage) -> list[float]:
    return [each.executor_s for each in stage.variants]


def _best(costs: Sequence[float], worth: Sequence[float], price: float) -> int:
    return max(range(len(worth)), key=lambda at: (worth[at] - price * costs[at], -costs[at]))


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


def later_prices(snapshot: PlanningSnapshot) -> list[float | None]:
    """Return the prices of the later stages' time to plan with; none: there is nothing to choose.

    The first is 0, and then they rise; None, which keeps what is in force, comes last.
    """
    choosable = [
        c
        for c in snapshot.cameras
        if c.cascade is not None or any(len(stage.variants) > 1 for stage in c.later)
    ]
    if not choosable:
        return []
    of = [(camera, _pictures(camera, snapshot.variants)) for camera in choosable]
    return [0.0, *_prices(of), None]


def later_loads(camera: CameraSnapshot, choice: LaterChoice, rate_hz: float) -> Loads:
    """Return what a camera's later stages take at a rate.

    Args:
        camera: whose they are.
        choice: what they run on.
        rate_hz: what is planned for its first stage.
    """
    found: Loads = {}
    for family, time_s in (*camera.other_later_s, *choice.executor_s):
        load = rate_hz * camera.later_frames * time_s
        found[family] = found.get(family, 0.0) + load
    return found


def present_loads(camera: CameraSnapshot) -> Loads:
    """Return what a camera's later stages take at present."""
    now, rate_hz = camera.current, camera.camera.rate_hz
    if now is not None:
        rate_hz = min(rate_hz, now.rate_hz / camera.later_frames)
    return later_loads(camera, present_choice(camera), rate_hz)


def present_choice(camera: CameraSnapshot) -> LaterChoice:
    """Return what a camera's later stages run on at present."""
    choice = _of_crops(camera.later, 1, 1.0, None)
    if camera.cascade is None:
        return choice
    large_s = camera.cascade.reserved * camera.cascade.executor_s
    at_present = (*choice.executor_s, (camera.cascade.large.family, large_s))
    return replace(choice, executor_s=at_present)


def _pictures(camera: CameraSnapshot, variants: Sequence[Variant]) -> _Pictures:
    """Return the pictures that a camera may be told to send and that have later stages."""
    cascade = camera.cascade
    own = [
        v
        for v in variants
        if v.family == camera.camera.family
        and (camera.later or cascade is None or v.name == cascade.small)
    ]
    return [(picture_pixels(camera.camera, v), v) for v in own] or [(1, variants[0])]


def _prices(cameras: Iterable[tuple[CameraSnapshot, _Pictures]]) -> list[float]:
    """Return the prices just above those at which some stage's best variant changes, rising."""
    found: set[float] = set()
    for camera, pictures in cameras:
        crops = sum(stage.crops for stage in camera.later)
        for px, first in pictures:
            for stage in camera.later:
                worth = _worth(stage, px, first.accuracy * stage.crops / crops)
                found.update(_breakpoints(_costs(stage), worth))
            if camera.cascade is not None and first.name == camera.cascade.small:
                of = _cascade_shares(camera.cascade, first.accuracy)
                found.update(_breakpoints(of.costs, of.worth))
    rising = sorted(found)
    if len(rising) > PRICES_MAX:
        step = (len(rising) - 1) / (PRICES_MAX - 1)
        rising = [rising[round(at * step)] for at in range(PRICES_MAX)]
    return [1.0001 * price for price in rising]


def _breakpoints(costs: Sequence[float], worth: Sequence[float]) -> list[float]:
    """Return the slopes of the concave hull of value over cost, from the most valuable down."""
    out: list[float] = []
    at = max(range(len(costs)), key=lambda n: (worth[n], -costs[n]))
    while True:
        cheaper = [
            ((worth[at] - worth[n]) / (costs[at] - cost), n)
            for n, cost in enumerate(costs)
            if cost < costs[at]
        ]
        if not cheaper:
            return out
        slope, at = min(cheaper)
        out.append(slope)
