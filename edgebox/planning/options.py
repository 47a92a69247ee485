"""Decides which variants one camera could be given, as if it had the box to itself. Pure.

A variant is a candidate when the camera's compute budget covers the worst case of waiting for
one batch as long as its own and then running (Jellyfish, Eq. 6), and its uplink carries the
rate. With an executor to itself a camera does not wait (`dedicated`). Above what the camera has
now, all must hold with a margin, so that advice does not flap.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from edgebox.domain.model_family import FamilyName, Variant, VariantName, up_to
from edgebox.domain.plans import CameraSnapshot, PlanningSnapshot
from edgebox.domain.requests import Camera
from edgebox.planning.budgets import Budget, CameraBudgets, picture_pixels, transmission_ns
from edgebox.planning.capacity import BatchTimes
from edgebox.planning.later_stages import NO_LATER, LaterChoice, later_choice, later_loads
from edgebox.planning.planner_parameters import PlanningParameters


class Option(NamedTuple):
    """One variant for one camera."""

    variant: Variant
    budget: Budget
    single_ns: int
    rate_hz: float
    """What the camera would be told to send."""
    reserve_ns: int | None = None
    """With an executor to itself: what is kept for a link that may be slower than believed; None:
    the executor is shared."""
    later: LaterChoice = NO_LATER
    """What the later stages of the camera's pipeline run on."""
    later_share_s: float = 0.0
    """The share of the executors' time that these take at one frame a second."""

    @property
    def later_share(self) -> float:
        """The share of the executors' time that the later stages take."""
        return self.rate_hz * self.later_share_s

    @property
    def accuracy(self) -> float:
        """The variant's accuracy times that of the later stages on crops of its pictures."""
        return self.variant.accuracy * self.later.accuracy

    @property
    def dedicated(self) -> bool:
        """Say whether its camera has an executor to itself."""
        return self.reserve_ns is not None

    @property
    def slack_ns(self) -> int:
        """How long a batch in front of it may take."""
        return self.budget.compute_ns - self.single_ns

    @property
    def needed_ns(self) -> int:
        """Its own batch's time, and that of one in front as long as its own, or the reserve."""
        return self.single_ns + (self.single_ns if self.reserve_ns is None else self.reserve_ns)

    @property
    def fits(self) -> bool:
        """Say whether it meets the deadline."""
        return self.needed_ns <= self.budget.compute_ns


class CameraOptions(NamedTuple):
    """What one camera could be given."""

    snapshot: CameraSnapshot
    options: tuple[Option, ...]
    """From the smallest up, at least one."""
    served: bool
    """False: nothing fits, the only option is best effort."""
    ladder: tuple[Option, ...]
    """All of its family that make sense for it, fitting or not; for reasons."""
    smallest: Option
    """The family's smallest variant, whatever accuracy was asked for."""
    current_px: int | None
    """Input pixels of the variant it has now; None: a new camera."""
    least_hz: float = 0.0
    """Below this rate it is not served."""
    held: bool = False
    """It was lowered so lately that it is not raised yet."""
    crowded: bool = False
    """Not served because the executors' time does not suffice for everybody's least rate."""
    waits: bool = False
    """Its least rate would fit: it is crowded out until there is time to spare."""
    best_accuracy: float = 0.0
    """Of its family's variants; known where it is not served."""

    @property
    def current(self) -> int:
        """Index of the largest option that is no larger than what the camera has; 0: none is."""
        if self.current_px is None:
            return 0
        sizes = [option.variant.pixels for option in self.options]
        return max(0, bisect_right(sizes, self.current_px) - 1)

    def is_upgrade(self, option: Option) -> bool:
        """Say whether an option is larger than what the camera has: then margins apply."""
        return is_upgrade(option.variant, self.current_px)

    def best_effort(self) -> "CameraOptions":
        """Return what remains when this camera cannot be served beside the others."""
        return self._replace(options=(self.smallest,), served=False)

    def crowded_out(self, rate_hz: float, *, waits: bool = False) -> "CameraOptions":
        """Return what remains when the others need the time: best effort at this rate at most."""
        least = self.smallest._replace(rate_hz=min(rate_hz, self.smallest.rate_hz))
        return self._replace(options=(least,), served=False, crowded=True, waits=waits)

    def slowed(self, ceiling_hz: float, rate_min_hz: float) -> "CameraOptions":
        """Return this camera at its smallest option only, its rate lowered as far as it may be."""
        option = self.options[0]
        if option.rate_hz <= ceiling_hz:
            return self._replace(options=(option,))
        least_hz = self.least_hz if self.served else min(rate_min_hz, option.rate_hz)
        rate_hz = max(least_hz, round_rate(ceiling_hz))
        return self._replace(options=(option._replace(rate_hz=rate_hz),))


class _Rung(NamedTuple):
    """One variant, for all cameras with pictures of one size."""

    variant: Variant
    picture_px: int
    """The pixels of the pictures that are sent to it."""
    single_ns: int


class _Ladder(NamedTuple):
    """What is the same for all cameras of one family, picture size and least accuracy."""

    family: Sequence[Variant]
    smallest: _Rung
    rungs: tuple[_Rung, ...]
    """The steps that make sense, from the smallest up."""


def all_options(
    snapshot: PlanningSnapshot,
    timing: Mapping[VariantName, BatchTimes],
    parameters: PlanningParameters,
    *,
    dedicated: bool = False,
) -> list[CameraOptions]:
    """Find what each camera could be given; those without a loaded variant are left out."""
    rising: dict[tuple[FamilyName, VariantName | None], list[Variant]] = {}
    ladders: dict[tuple[FamilyName, VariantName | None, int, int, float], _Ladder] = {}
    out = []
    for seen in snapshot.cameras:
        camera = seen.camera
        limited = camera.family, camera.variant_max
        if limited not in rising:
            rising[limited] = rising_family(camera, snapshot.variants, timing)
        if not (family := rising[limited]):
            continue
        kind = *limited, camera.width_px, camera.height_px, camera.min_accuracy
        if kind not in ladders:
            ladders[kind] = _ladder(seen, family, timing)
        out.append(_options_of(seen, ladders[kind], snapshot, parameters, dedicated=dedicated))
    return out


def dedicated_options(
    snapshot: PlanningSnapshot,
    timing: Mapping[VariantName, BatchTimes],
    parameters: PlanningParameters,
    *,
    cameras: int,
    executors: int,
) -> list[CameraOptions]:
    """Find what each of some cameras could be given with one of some executors to itself.

    Empty where none could be spared: one executor for several cameras.
    """
    if cameras > executors and executors < 2:
        return []
    return all_options(snapshot, timing, parameters, dedicated=True)


def camera_options(
    camera: CameraSnapshot,
    snapshot: PlanningSnapshot,
    timing: Mapping[VariantName, BatchTimes],
    parameters: PlanningParameters,
    *,
    dedicated: bool = False,
) -> CameraOptions | None:
    """Find what a camera could be given; None: no variant of its family is loaded."""
    family = rising_family(camera.camera, snapshot.variants, timing)
    if not family:
        return None
    ladder = _ladder(camera, family, timing)
    return _options_of(camera, ladder, snapshot, parameters, dedicated=dedicated)


def _ladder(
    camera: CameraSnapshot, family: Sequence[Variant], timing: Mapping[VariantName, BatchTimes]
) -> _Ladder:
    rungs = tuple(_rung(camera, each, timing) for each in sensible_variants(camera, family))
    return _Ladder(family, _rung(camera, family[0], timing), rungs)


def _rung(
    camera: CameraSnapshot, variant: Variant, timing: Mapping[VariantName, BatchTimes]
) -> _Rung:
    return _Rung(variant, picture_pixels(camera.camera, variant), timing[variant.name].single_ns)


def _options_of(
    camera: CameraSnapshot,
    of: _Ladder,
    snapshot: PlanningSnapshot,
    parameters: PlanningParameters,
    *,
    dedicated: bool,
) -> CameraOptions:
    """Find what a camera could be given of its family's variants, from the smallest up."""
    asked, link, share = camera.camera, camera.link, camera.share
    budgets = CameraBudgets(asked, link, snapshot.fixed_of(camera), parameters, share)
    rungs, price = (of.smallest, *of.rungs), parameters.later_price
    smallest, *rest = _options(camera, rungs, budgets, snapshot, price, dedicated=dedicated)
    # Best effort is what is left when its least rate is out of reach: only the box's counts then.
    box_least_hz = min(parameters.rate_min_hz, asked.rate_hz)
    smallest = smallest._replace(rate_hz=_reduced(camera, smallest, box_least_hz))
    least_hz = least_rate(asked, parameters)
    ladder = _rising(rest) if camera.has_later else tuple(rest)
    current_px = current_pixels(camera, of.family)
    held = current_px is not None and is_held(camera, snapshot.taken_ns, parameters)
    options = [option for option in ladder if _carried(option, option.budget, asked.rate_hz)]
    if current_px is not None:
        kept = [option for option in options if not is_upgrade(option.variant, current_px)]
        upgrades = [] if held else options[len(kept) :]
        options = kept
        if upgrades:
            fixed_ns, weaker = snapshot.fixed_of(camera), parameters.link_upgrade
            with_margins = CameraBudgets(asked, link, fixed_ns, parameters, share, weaker=weaker)
            left = with_margins.of_frames(option.budget.frame_bits for option in upgrades)
            options = kept + [
                option
                for option, within in zip(upgrades, left, strict=True)
                if _carried(option, within, asked.rate_hz)
            ]
    if options:
        return CameraOptions(
            camera, tuple(options), True, ladder, smallest, current_px, least_hz, held
        )
    for option in ladder:
        if option.fits and option.budget.rate_hz >= least_hz:
            slower = option._replace(rate_hz=_reduced(camera, option, least_hz))
            return CameraOptions(camera, (slower,), True, ladder, smallest, current_px, least_hz)
    best = max(variant.accuracy for variant in of.family)
    return CameraOptions(
        camera, (smallest,), False, ladder, smallest, current_px, least_hz, best_accuracy=best
    )


def least_rate(camera: Camera, parameters: PlanningParameters) -> float:
    """Return the rate below which a camera is not served: its own least, or the box's."""
    return min(camera.rate_hz, max(parameters.rate_min_hz, camera.min_rate_hz))


def is_held(camera: CameraSnapshot, taken_ns: int, parameters: PlanningParameters) -> bool:
    """Say whether a camera was lowered so lately that it is not raised yet."""
    lowered_ns = camera.lowered_ns
    return lowered_ns is not None and taken_ns - lowered_ns < parameters.upgrade_hold_ns


def rising_family(
    camera: Camera, variants: Sequence[Variant], timing: Mapping[VariantName, BatchTimes]
) -> list[Variant]:
    """Return the loaded variants a camera may have, without those that are larger but no better."""
    rising: list[Variant] = []
    of_family = sorted(
        (v for v in variants if v.family == camera.family and v.name in timing),
        key=lambda v: (v.pixels, v.name),
    )
    for variant in up_to(of_family, largest_of(camera, variants)):
        if not rising or variant.accuracy > rising[-1].accuracy:
            rising.append(variant)
    return rising


def largest_of(camera: Camera, variants: Iterable[Variant]) -> Variant | None:
    """Return the largest of some variants that a camera's pipeline allows; None: any."""
    return next((v for v in variants if v.name == camera.variant_max), None)


def sensible_variants(camera: CameraSnapshot, family: Sequence[Variant]) -> list[Variant]:
    """Return what is accurate enough, up to the first that covers the camera's own picture."""
    sensible = []
    for variant in family:
        if variant.accuracy >= camera.camera.min_accuracy:
            sensible.append(variant)
            if variant.covers(camera.camera.width_px, camera.camera.height_px):
                break
    return sensible


def option_of(
    camera: CameraSnapshot,
    variant: Variant,
    snapshot: PlanningSnapshot,
    timing: Mapping[VariantName, BatchTimes],
    parameters: PlanningParameters,
    *,
    dedicated: bool = False,
) -> Option:
    """Return what one loaded variant would be for a camera, sensible or not."""
    fixed_ns = snapshot.fixed_of(camera)
    budgets = CameraBudgets(camera.camera, camera.link, fixed_ns, parameters, camera.share)
    rungs, price = (_rung(camera, variant, timing),), parameters.later_price
    return _options(camera, rungs, budgets, snapshot, price, dedicated=dedicated)[0]


def _rising(options: Iterable[Option]) -> tuple[Option, ...]:
    """Return options without those that are larger but no better, later stages included."""
    rising: list[Option] = []
    for option in options:
        if not rising or option.accuracy > rising[-1].accuracy:
            rising.append(option)
    return tuple(rising)


def _options(
    camera: CameraSnapshot,
    rungs: Sequence[_Rung],
    budgets: CameraBudgets,
    snapshot: PlanningSnapshot,
    later_price: float | None,
    *,
    dedicated: bool,
) -> list[Option]:
    rate_hz, reserve_ns = camera.camera.rate_hz, None
    found = []
    for rung, of in zip(rungs, budgets.of_pictures([r.picture_px for r in rungs]), strict=True):
        if dedicated:
            reserve_ns = _reserve_ns(camera, of, rung.single_ns)
        option = Option(rung.variant, of, rung.single_ns, rate_hz, reserve_ns)
        if camera.has_later:
            later = later_choice(camera, rung.picture_px, rung.variant, later_price)
            share_s = snapshot.share_of(later_loads(camera, later, 1.0))
            option = option._replace(later=later, later_share_s=share_s)
        found.append(option)
    return found


def _reserve_ns(camera: CameraSnapshot, of: Budget, single_ns: int) -> int:
    """Return what bad luck costs a frame; no more than a batch in front would.

    A bad second of its link, and what its frames take longer than planned otherwise. A camera that
    shares an executor rarely waits for as long as it may have to, which makes up for such things;
    one with an executor to itself has nothing of that kind.
    """
    link = camera.link
    if not link.bandwidth_bps or not link.throughput_stability or camera.overrun_ns is None:
        return single_ns
    on_link_ns = transmission_ns(of.frame_bits, link.bandwidth_bps, camera.share)
    bad_second_ns = round(on_link_ns * (1 / link.throughput_stability - 1))
    return min(single_ns, bad_second_ns + camera.overrun_ns)


def _carried(option: Option, within: Budget, rate_hz: float) -> bool:
    """Say whether an option meets the deadline, and its uplink carries the rate, in a budget."""
    return option.needed_ns <= within.compute_ns and within.rate_hz >= rate_hz


def is_upgrade(variant: Variant, current_px: int | None) -> bool:
    """Say whether a variant is larger than what its camera has; None: it has nothing yet."""
    return current_px is not None and variant.pixels > current_px


def current_pixels(camera: CameraSnapshot, family: Sequence[Variant]) -> int | None:
    now = camera.current
    return next((v.pixels for v in family if now is not None and v.name == now.variant), None)


def _reduced(camera: CameraSnapshot, option: Option, least_hz: float) -> float:
    """Return the rate that the uplink carries with this option, a round figure."""
    if option.budget.rate_hz >= camera.camera.rate_hz:
        return camera.camera.rate_hz
    return max(least_hz, round_rate(option.budget.rate_hz))


def round_rate(rate_hz: float) -> float:
    """Round down to a step of 0.1 or, from 2 Hz, 0.5, so that an estimate's noise is not news."""
    steps_per_hz = 10 if rate_hz < 2 else 2
    return int(rate_hz * steps_per_hz) / steps_per_hz
