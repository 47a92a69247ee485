"""Tells, size by size, what the planner considers for one camera and why it is or is not chosen.

Pure. It plans a snapshot as the planner does and keeps what that throws away: the sentences are
those of `reasons.py`, so that table and sentence cannot disagree.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from edgebox.domain.model_family import Variant
from edgebox.domain.picture_size import camera_send_size
from edgebox.domain.plans import Limit, PlanningSnapshot, Remedy
from edgebox.domain.requests import CameraId
from edgebox.planning.allocation import Allocation
from edgebox.planning.by_application import ByApplication
from edgebox.planning.capacity import ExecutorPool
from edgebox.planning.optimised_part import optimised_parts
from edgebox.planning.options import (
    CameraOptions,
    Option,
    camera_options,
    largest_of,
    option_of,
)
from edgebox.planning.planner_parameters import PlanningParameters
from edgebox.planning.reasons import Reason, Reasons
from edgebox.planning.remedies import remedies
from edgebox.planning.wording import missing_ms_text

Verdict = Literal[
    "chosen",
    "smaller",
    "contended",
    "infeasible",
    "not_yet",
    "inaccurate",
    "no_gain",
    "exceeds_source",
    "exceeds_stage",
]
"""Why a size is (not) what a camera gets: it is the choice; it would do, but there is better; the
other cameras leave no time; not even with the box to itself; its link is not measured yet, or it
was lowered so lately that it must wait; below the accuracy asked for; no more
accurate than a smaller one; a smaller one takes the camera's whole picture already; larger than
its pipeline's first stage may run on."""


@dataclass(frozen=True, slots=True)
class OptionExplanation:
    """One size for one camera, with the figures that decide."""

    variant: Variant
    width_px: int
    """Width of the pictures that the camera would send."""
    height_px: int
    frame_bytes: int
    """What a frame of it is expected to weigh."""
    needed_bps: float | None
    """The bandwidth it needs, margins included; None: none would do."""
    needed_ns: int
    """One batch to wait for, its own, and the margin of an upgrade."""
    left_ns: int
    """What the link leaves of the deadline for that; may be negative."""
    verdict: Verdict
    why: str
    limit: Limit | None = None
    """The constraint that forbids it, and its price; None: none does, or it is a matter of time."""
    remedies: tuple[Remedy, ...] = ()
    """What a person can do to get it, or of the chosen size, to get more."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """What was considered for one camera."""

    bandwidth_bps: float | None
    """What the planner believes of its uplink; None: not measured yet."""
    options: tuple[OptionExplanation, ...]
    """Every loaded size of its family, from the smallest up."""


def explanation(
    snapshot: PlanningSnapshot,
    camera: CameraId,
    parameters: PlanningParameters,
    iterations_max: int,
) -> Explanation | None:
    """Plan what the camera's options depend on and say what that considers; None: it is not there.

    Takes as long as `planner.plan`, and O(V (V + n)) for V sizes of its family and n cameras.
    """
    family = next((s.camera.family for s in snapshot.cameras if s.camera.id == camera), None)
    if family is None:
        return None
    planned = optimised_parts(snapshot, iterations_max, parameters, family)
    part = next((of for _, of in planned if of is not None and camera in of.numbers), None)
    if part is None:
        return None
    at, allocation, by_app = part.numbers[camera], part.allocation, part.by_app
    of = allocation.cameras[at].snapshot
    snapshot, parameters = by_app.snapshot, part.parameters
    pool = ExecutorPool(snapshot, parameters.quantile)
    timing = pool.together
    dedicated = allocation.chosen_of(at).dedicated

    def on_an_idle_box(*, dedicated: bool) -> CameraOptions:
        found = camera_options(of, snapshot, timing, parameters, dedicated=dedicated)
        assert found is not None
        return found

    idle = on_an_idle_box(dedicated=dedicated)
    enough = len(part.numbers) <= len(pool.executors)
    hoped = on_an_idle_box(dedicated=True) if enough else idle
    largest = largest_of(of.camera, snapshot.variants)
    weighed = _Weighed(idle, hoped, allocation, at, by_app, part.reasons, largest)
    sizes = sorted(
        (v for v in snapshot.variants if v.family == of.camera.family and v.name in timing),
        key=lambda v: (v.pixels, v.name),
    )
    options = []
    for variant in sizes:
        option = option_of(of, variant, snapshot, timing, parameters, dedicated=dedicated)
        explained = weighed.explained(option, sizes)
        options.append(replace(explained, variant=by_app.variant(variant)))
    return Explanation(of.link.bandwidth_bps, tuple(options))


@dataclass(frozen=True, slots=True)
class _Weighed:
    """A finished allocation, asked about all sizes of one of its cameras."""

    idle: CameraOptions
    """What the camera could have with the box to itself."""
    hoped: CameraOptions
    """The same, with an executor to itself where there are enough."""
    allocation: Allocation
    at: int
    by_app: ByApplication
    reasons: Reasons
    largest: Variant | None
    """The largest that the camera's pipeline allows; None: any."""

    def explained(self, option: Option, family: Sequence[Variant]) -> OptionExplanation:
        """Weigh one size."""
        camera, variant = self.idle.snapshot.camera, option.variant
        width_px, height_px = camera_send_size(camera, variant)
        verdict, why = self._verdict(option, family)
        return OptionExplanation(
            variant=variant,
            width_px=width_px,
            height_px=height_px,
            frame_bytes=round(option.budget.frame_bits / 8),
            needed_bps=self.reasons.needed_bps(self.idle, option),
            needed_ns=option.needed_ns,
            left_ns=option.budget.compute_ns,
            verdict=verdict,
            why=why.text,
            limit=None if verdict == "chosen" else why.limit,
            remedies=why.remedies or self._remedies(verdict, why),
        )

    def _remedies(self, verdict: Verdict, why: Reason) -> tuple[Remedy, ...]:
        if why.limit is None and verdict != "not_yet":
            return ()
        return remedies(self.idle, None, why.limit)

    def _verdict(self, option: Option, family: Sequence[Variant]) -> tuple[Verdict, Reason]:
        has = self.allocation.chosen_of(self.at).variant
        if option.variant.name == has.name:
            return "chosen", self.reasons.reason(self.at)
        if not _named(option, self.idle.ladder):
            return self._senseless(option.variant, family)
        if not _named(option, self.idle.options):
            return self._infeasible(option)
        if option.variant.pixels < has.pixels:
            return "smaller", Reason(f"possible, but {has.size_text} is more accurate")
        if _named(option, self.allocation.cameras[self.at].options):
            return "contended", self.reasons.shared(self.at, option)
        # All were sent to their smallest size, or it to best effort.
        return "contended", Reason(f"{self.reasons.sharing(self.at)}, too many for this size")

    def _infeasible(self, option: Option) -> tuple[Verdict, Reason]:
        if _named(option, self.hoped.options):
            return "contended", Reason("its frames would need an executor of their own")
        of, has = self.idle, self.allocation.chosen_of(self.at)
        bandwidth_bps = of.snapshot.link.bandwidth_bps
        needed_bps = self.reasons.needed_bps(of, option)
        if bandwidth_bps is not None and needed_bps is None:
            more = missing_ms_text(option.needed_ns - option.budget.compute_ns)
            limit = self.reasons.deadline_limit(of, option, has)
            return "infeasible", Reason(
                f"even the best link would not do: inference alone takes {more} too long",
                limit,
            )
        waits = bandwidth_bps is None or (
            of.held and needed_bps is not None and needed_bps <= bandwidth_bps
        )
        return "not_yet" if waits else "infeasible", self.reasons.infeasible(of, option, has)

    def _senseless(self, variant: Variant, family: Sequence[Variant]) -> tuple[Verdict, Reason]:
        camera = self.idle.snapshot.camera
        if variant.accuracy < camera.min_accuracy:
            least = f"less accurate than the {camera.min_accuracy:g} that is asked for"
            return "inaccurate", Reason(least)
        below = family[: next(n for n, each in enumerate(family) if each.name == variant.name)]
        as_good = next((v for v in below if v.accuracy >= variant.accuracy), None)
        if as_good is not None:
            return "no_gain", Reason(f"no more accurate than {self.by_app.name(as_good.name)}")
        if self.largest is not None and variant.pixels > self.largest.pixels:
            limit = f"larger than {self.by_app.name(self.largest.name)}, the largest of its stage"
            return "exceeds_stage", Reason(limit)
        own = f"{camera.width_px} × {camera.height_px} px"
        return "exceeds_source", Reason(
            f"a smaller size is enough for the camera's own picture of {own}"
        )


def _named(option: Option, among: Sequence[Option]) -> bool:
    return any(each.variant.name == option.variant.name for each in among)
