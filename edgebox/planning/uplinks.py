"""Decides how the cameras of a site divide the uplink that they share. Pure.

All cameras of a site count as one queue: a frame is through no later than one frame of each of them
together, whether the link sends them one after the other or all at once. With f_i for the bits of a
frame, r_i for the rates and B for the bandwidth, that is T = (f_1 + ... + f_n) / B. Every camera's
compute budget loses T, and f_1 r_1 + ... + f_n r_n is at most the share of B that may be filled. So
the uplink is a resource that large frames take from everybody, and a size is worth its accuracy
times rate per bit. From the smallest sizes up, the step that brings most per bit is taken as long
as all of the site can still be in time (as if the executors were theirs alone).

What is in force stays unless the new division is clearly better, and a step above what a camera has
asks for a reserve of bandwidth and time, as on an uplink of its own. Where not even the smallest
sizes fit, the highest rates come down to a common ceiling.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from edgebox.domain.model_family import Variant, VariantName
from edgebox.domain.plans import CameraSnapshot, PlanningSnapshot, UplinkShare
from edgebox.domain.requests import SiteId
from edgebox.planning.budgets import deadline_left_ns, share_of, transmission_ns
from edgebox.planning.by_application import by_application
from edgebox.planning.capacity import BatchTimes, ExecutorPool, batch_times
from edgebox.planning.disjoint import parts
from edgebox.planning.options import (
    Option,
    current_pixels,
    is_held,
    is_upgrade,
    least_rate,
    option_of,
    rising_family,
    round_rate,
    sensible_variants,
)
from edgebox.planning.planner_parameters import PlanningParameters

_ROUNDING = 1 + 1e-9
"""Sums of floats in another order are not a larger frame."""


def with_uplink_shares(
    snapshot: PlanningSnapshot, parameters: PlanningParameters
) -> PlanningSnapshot:
    """Return a snapshot in which cameras of a site have their shares of its uplink.

    Each is taken to need the time of its own application, as the rest of the plan does.
    O(n V log n) for n cameras of a site and V variants, and O(n^2 log n) where n are crowded out.
    """
    sites: dict[SiteId, list[int]] = {}
    for at, seen in enumerate(snapshot.cameras):
        if seen.camera.site is not None:
            sites.setdefault(seen.camera.site, []).append(at)
    if not any(len(members) > 1 for members in sites.values()):
        return snapshot
    by_app = by_application(snapshot).snapshot
    timing = batch_times(by_app, parameters.quantile)
    roomy = {
        seen.camera.family
        for part in parts(by_app)
        if len(part.cameras) <= len(ExecutorPool(part, parameters.quantile).executors)
        for seen in part.cameras
    }
    cameras = list(snapshot.cameras)

    for members in sites.values():
        of_app = [by_app.cameras[at] for at in members]
        found = [
            _member(each, by_app, timing, parameters, dedicated=each.camera.family in roomy)
            for each in of_app
        ]
        for at, share in zip(members, _shares(found, by_app, parameters), strict=True):
            cameras[at] = replace(cameras[at], share=share)
    return replace(snapshot, cameras=tuple(cameras))


def _shares(
    members: Sequence["_Member | None"], snapshot: PlanningSnapshot, parameters: PlanningParameters
) -> list[UplinkShare | None]:
    """Return the shares of a site's cameras; None: no variant of its family is loaded."""
    sending = [member for member in members if member is not None]
    if len(sending) < 2:
        return [None] * len(members)
    shares = iter(_Site(sending, snapshot, parameters).shares())
    return [None if member is None else next(shares) for member in members]


@dataclass(frozen=True, slots=True)
class _Member:
    """A camera of a site, as if it had the executors to itself."""

    snapshot: CameraSnapshot
    options: tuple[Option, ...]
    """From the smallest up; the frames' bits rise with them."""
    current: int
    """The largest that is no larger than what it has; the last one: it has nothing yet."""
    current_px: int | None
    """Input pixels of what it has; None: it has nothing yet."""
    held: bool
    """It may not be given more than it has, because it was lowered so lately."""
    least_hz: float

    def is_upgrade(self, number: int) -> bool:
        """Say whether an option is larger than what it has; it has the smallest at least."""
        return number > 0 and is_upgrade(self.options[number].variant, self.current_px)


def _member(
    camera: CameraSnapshot,
    snapshot: PlanningSnapshot,
    timing: Mapping[VariantName, BatchTimes],
    parameters: PlanningParameters,
    *,
    dedicated: bool,
) -> _Member | None:
    family = rising_family(camera.camera, snapshot.variants, timing)
    if not family:
        return None
    sensible: Sequence[Variant] = sensible_variants(camera, family) or family[:1]
    options = tuple(
        option_of(camera, each, snapshot, timing, parameters, dedicated=dedicated)
        for each in sensible
    )
    has_px = current_pixels(camera, family)
    held = has_px is not None and is_held(camera, snapshot.taken_ns, parameters)
    kept = [n for n, o in enumerate(options) if has_px is None or o.variant.pixels <= has_px]
    return _Member(
        camera,
        options,
        kept[-1] if kept else 0,
        has_px,
        held,
        least_rate(camera.camera, parameters),
    )


class _Site:
    """The cameras of a site, and what its uplink carries."""

    def __init__(
        self,
        members: Sequence[_Member],
        snapshot: PlanningSnapshot,
        parameters: PlanningParameters,
    ) -> None:
        self._members = members
        self._parameters = parameters
        known = [m.snapshot.link for m in members if m.snapshot.link.bandwidth_bps is not None]
        self._bandwidth_bps = min((of.bandwidth_bps or 0.0 for of in known), default=0.0)
        self._fill = min((share_of(link, parameters) for link in known), default=0.0)
        self._rates_hz = [m.snapshot.camera.rate_hz for m in members]
        self._left_ns = [
            deadline_left_ns(m.snapshot.camera, m.snapshot.link, snapshot.fixed_of(m.snapshot))
            for m in members
        ]
        """What each deadline leaves for the link and the batches."""
        smallest_bits = sum(m.options[0].budget.frame_bits for m in members)
        self._infeasible = [
            not self._bandwidth_bps
            or m.options[0].needed_ns + transmission_ns(smallest_bits, self._bandwidth_bps, None)
            > left_ns
            for m, left_ns in zip(members, self._left_ns, strict=True)
        ]
        """Cameras that are late even at everybody's smallest sizes: best effort, and small."""

    def shares(self) -> list[UplinkShare]:
        """Return what each camera has of the uplink."""
        at = [0] * len(self._members)
        if self._bandwidth_bps:
            self._lower_rates()
            at = self._sizes()
        bits = [m.options[n].budget.frame_bits for m, n in zip(self._members, at, strict=True)]
        bps = [of * hz for of, hz in zip(bits, self._rates_hz, strict=True)]
        all_bits, all_bps = sum(bits), sum(bps)
        return [
            UplinkShare(len(self._members), all_bits - own, all_bps - sent, own * _ROUNDING, hz)
            for own, sent, hz in zip(bits, bps, self._rates_hz, strict=True)
        ]

    def _lower_rates(self) -> None:
        """Lower the highest rates to a common ceiling if the smallest frames do not fit.

        Nobody is sent below the least rate that is of use to it: the fewest cameras are crowded out
        instead, those first that are best effort already, then those that free most.
        """
        bits = [m.options[0].budget.frame_bits for m in self._members]
        wanted_hz, numbers = list(self._rates_hz), range(len(bits))
        crowded: set[int] = set()

        def frees(at: int) -> tuple[bool, float, int]:
            now = self._members[at].snapshot.current
            return now is not None and not now.served, self._members[at].least_hz * bits[at], at

        while True:
            box_hz = self._parameters.rate_min_hz
            asked_hz = [min(box_hz, hz) if at in crowded else hz for at, hz in enumerate(wanted_hz)]
            ceiling_hz = _ceiling(bits, asked_hz, self._fill * self._bandwidth_bps)
            self._rates_hz = [min(hz, ceiling_hz) for hz in asked_hz]
            short = [
                at
                for at in numbers
                if at not in crowded and self._members[at].least_hz > self._rates_hz[at]
            ]
            if not short:
                return
            crowded.add(max(short, key=frees))

    def _sizes(self) -> list[int]:
        """Return the sizes of all, as numbers of their options."""
        smallest = [0] * len(self._members)
        most = [m.current for m in self._members]
        kept = self._filled(smallest, most)
        kept = self._filled(kept, [len(m.options) - 1 for m in self._members])
        fresh = self._filled(smallest, [len(m.options) - 1 for m in self._members])
        better = self._value(fresh) > self._parameters.hysteresis_ratio * self._value(kept)
        return fresh if better else kept

    def _value(self, at: Sequence[int]) -> float:
        """Return accuracy times rate."""
        return sum(
            m.options[n].accuracy * hz
            for m, n, hz in zip(self._members, at, self._rates_hz, strict=True)
        )

    def _filled(self, start: Sequence[int], most: Sequence[int]) -> list[int]:
        """Take steps up, those that bring most per bit first, as long as all are in time."""
        division = _Division(self._members, self._rates_hz, self._in_time_ns, start)
        at = division.at

        def entry(member: int) -> tuple[float, int] | None:
            of = self._members[member]
            if self._infeasible[member] or at[member] >= most[member]:
                return None
            low, high = of.options[at[member]], of.options[at[member] + 1]
            gained = (high.accuracy - low.accuracy) * self._rates_hz[member]
            return -gained / max(1.0, high.budget.frame_bits - low.budget.frame_bits), member

        heap = [each for member in range(len(at)) if (each := entry(member)) is not None]
        heapify(heap)
        while heap:
            _, member = heappop(heap)
            # Where a step does not fit, larger frames of anybody fit later no better.
            if self._fits(division.after(member)):
                division.step_up(member)
                if (after := entry(member)) is not None:
                    heappush(heap, after)
        return at

    def _in_time_ns(self, member: int, number: int) -> int | None:
        """Return how long the frames may be on the link for a camera to be in time with an option.

        None: it is late even at everybody's smallest sizes.
        """
        if self._infeasible[member]:
            return None
        return self._left_ns[member] - self._members[member].options[number].needed_ns

    def _fits(self, after: "_Taken | None") -> bool:
        """Say whether all who could be in time at the smallest sizes are so at these."""
        if after is None:
            return False
        weaker = self._parameters.link_upgrade if after.raised else 1.0
        bandwidth_bps = self._bandwidth_bps / weaker
        if after.bps > self._fill * bandwidth_bps:
            return False
        network_ns = transmission_ns(after.bits, bandwidth_bps, None)
        return after.on_link_ns is None or network_ns <= after.on_link_ns


class _Taken(NamedTuple):
    """What the sizes of a site's cameras take of its uplink, and what they leave for it."""

    bits: float
    """Of one frame of each."""
    bps: float
    raised: bool
    """Whether one of them has more than it has now."""
    on_link_ns: int | None
    """How long the frames may be on the link for all to be in time; None: nobody could be."""


class _Division:
    """Sizes of a site's cameras, which step up one by one. O(log n) a step for n cameras.

    A site may have hundreds of cameras and a division thousands of steps, so nothing is added up
    anew for a step.
    """

    def __init__(
        self,
        members: Sequence[_Member],
        rates_hz: Sequence[float],
        in_time_ns: Callable[[int, int], int | None],
        start: Sequence[int],
    ) -> None:
        """Begin with some sizes.

        Args:
            members: the cameras.
            rates_hz: their rates.
            in_time_ns: returns how long all frames may be on the link for a camera with an option.
            start: the sizes, as numbers of the cameras' options.
        """
        self.at = list(start)
        """The sizes of all."""
        self._members, self._rates_hz, self._in_time_ns = members, rates_hz, in_time_ns
        bits = [m.options[n].budget.frame_bits for m, n in zip(members, start, strict=True)]
        self._bits = sum(bits)
        self._bps = sum(of * hz for of, hz in zip(bits, rates_hz, strict=True))
        self._raised = any(m.is_upgrade(n) for m, n in zip(members, start, strict=True))
        known = ((in_time_ns(member, n), member) for member, n in enumerate(start))
        self._tightest = sorted((ns, member) for ns, member in known if ns is not None)
        """How long the frames may be on the link for each camera that can be in time."""

    def after(self, member: int) -> _Taken | None:
        """Return what is taken if a camera steps up; None: it may not."""
        of, to = self._members[member], self.at[member] + 1
        upgrade = of.is_upgrade(to)
        if upgrade and of.held:
            return None
        more_bits = of.options[to].budget.frame_bits - of.options[to - 1].budget.frame_bits
        own_ns = self._in_time_ns(member, to)
        others = (ns for ns, other in self._tightest[:2] if other != member)
        on_link_ns = min(
            (ns for ns in (own_ns, next(others, None)) if ns is not None), default=None
        )
        return _Taken(
            self._bits + more_bits,
            self._bps + more_bits * self._rates_hz[member],
            self._raised or upgrade,
            on_link_ns,
        )

    def step_up(self, member: int) -> None:
        """Give a camera its next larger option."""
        taken = self.after(member)
        assert taken is not None
        self._bits, self._bps, self._raised, _ = taken
        before_ns = self._in_time_ns(member, self.at[member])
        self.at[member] += 1
        after_ns = self._in_time_ns(member, self.at[member])
        if before_ns is not None and after_ns is not None:
            del self._tightest[bisect_left(self._tightest, (before_ns, member))]
            insort(self._tightest, (after_ns, member))


def _ceiling(bits: Sequence[float], wanted_hz: Sequence[float], room_bps: float) -> float:
    """Return the highest common rate at which frames fit a link; infinite: all fit as wanted.

    Those who want less keep their rates as long as an equal part of the room suffices.
    """
    left_bps, left_bits = room_bps, sum(bits)
    for at in sorted(range(len(bits)), key=lambda at: wanted_hz[at]):
        if wanted_hz[at] * left_bits > left_bps:
            return round_rate(left_bps / left_bits)
        left_bps -= wanted_hz[at] * bits[at]
        left_bits -= bits[at]
    return float("inf")
