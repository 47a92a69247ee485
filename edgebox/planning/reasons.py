"""Tells what holds a camera at its option: the constraint that binds, and a sentence for a person.

Pure. The constraint and the sentence come from the same test of the next larger option, so they
cannot disagree.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from edgebox.domain.model_family import ExecutorId
from edgebox.domain.plans import CameraSnapshot, Limit, Remedy, Resource, ResourcePrice
from edgebox.planning.allocation import Allocation, Violation, option_value
from edgebox.planning.budgets import bandwidth_needed_bps, transmission_ns
from edgebox.planning.later_work import most_later_s
from edgebox.planning.options import CameraOptions, Option
from edgebox.planning.planner_parameters import PlanningParameters
from edgebox.planning.remedies import remedies
from edgebox.planning.wording import (
    bandwidth_text,
    missing_ms_text,
    ms_text,
    number_text,
    rate_text,
)


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a camera has no more than it has."""

    text: str
    """One sentence."""
    limit: Limit | None = None
    """The constraint that binds; None: none does, or it is a matter of time."""
    remedies: tuple[Remedy, ...] = ()
    """What a person can do about it."""


class Reasons:
    """A finished allocation, asked why its cameras have no more."""

    def __init__(
        self,
        allocation: Allocation,
        executors: Sequence[ExecutorId],
        fixed_of: Callable[[CameraSnapshot], int],
        parameters: PlanningParameters,
    ) -> None:
        """Ask an allocation.

        Args:
            allocation: what all cameras have.
            executors: all there are.
            fixed_of: what a camera's frame costs outside link and inference.
            parameters: the planner's.
        """
        self._allocation = allocation
        self._executors = executors
        self._fixed_of = fixed_of
        self._parameters = parameters

    def reason(self, camera: int) -> Reason:
        """Say why a camera has the option it has, and what would give it more."""
        why = self._reason(camera)
        of, option = self._allocation.cameras[camera], self._allocation.chosen_of(camera)
        top = of.served and option.rate_hz >= of.snapshot.camera.rate_hz and why.limit is None
        if top and all(each.variant.pixels <= option.variant.pixels for each in of.ladder):
            return why  # it has all that it can use
        return replace(why, remedies=remedies(of, option, why.limit))

    def _reason(self, camera: int) -> Reason:
        of = self._allocation.cameras[camera]
        option = self._allocation.chosen_of(camera)
        size = option.variant.size_text
        wanted_hz = of.snapshot.camera.rate_hz
        if of.crowded:
            least = of.ladder[0]._replace(rate_hz=of.least_hz)
            least_text = f"{rate_text(of.least_hz)} at {least.variant.size_text}"
            text = (
                f"{self.sharing(camera)}, too many even for {least_text}, the least that is of use"
            )
            if of.waits:
                text = f"{self.sharing(camera)}; {least_text} follows once there is time to spare"
            return Reason(
                f"{size}, {option.rate_hz:g} of {rate_text(wanted_hz)}, best effort: {text}",
                self._time_for(camera, least),
            )
        if not of.served:
            why = self._unserved(of)
            return Reason(f"{size}, best effort: {why.text}", why.limit)
        if option.rate_hz < wanted_hz:
            why = self._slowed(camera, option)
            return Reason(
                f"{size}, {option.rate_hz:g} of {rate_text(wanted_hz)}: {why.text}", why.limit
            )
        above = next((r for r in of.ladder if r.variant.pixels > option.variant.pixels), None)
        if above is None:
            return Reason(f"{size}: {_top(of, option)}")
        if above in of.options:
            why = self.shared(camera, above)
        elif of.snapshot.share is None and self._within_reach(of, above):
            text = f"{self.sharing(camera)}, too many for {above.variant.size_text}"
            why = Reason(text, self._time_for(camera, above))
        else:
            why = self.infeasible(of, above, option)
        return Reason(f"{size}: {why.text}", why.limit)

    def _slowed(self, camera: int, option: Option) -> Reason:
        """Say why a camera is advised a lower rate than it requests."""
        of = self._allocation.cameras[camera]
        wanted_hz = of.snapshot.camera.rate_hz
        full = option._replace(rate_hz=wanted_hz)
        if option.budget.rate_hz >= wanted_hz:
            text = f"{self.sharing(camera)}, too many for {rate_text(wanted_hz)}"
            return Reason(text, self._time_for(camera, full))
        bandwidth_bps = of.snapshot.link.bandwidth_bps
        if bandwidth_bps is None:
            return Reason("the link has not been measured yet")
        limit = None
        needed_bps = self.needed_bps(of, full)
        if needed_bps is not None and needed_bps > bandwidth_bps:
            limit = self._uplink_limit(of, bandwidth_bps, needed_bps, _gain(of, option, full))
        return Reason(_carries_text(of), limit)

    def infeasible(self, of: CameraOptions, above: Option, has: Option) -> Reason:
        """Say why a camera that has one option could not have another on an idle box."""
        link = of.snapshot.link
        size = above.variant.size_text
        if link.bandwidth_bps is None:
            return Reason(f"the link has not been measured yet; {size} has to wait for that")
        needed_bps = self.needed_bps(of, above)
        if needed_bps is not None and needed_bps > link.bandwidth_bps:
            if self._lacks_bandwidth(of, above, needed_bps):
                return self._uplink(of, above, needed_bps, _gain(of, has, above))
            return self._late(of, above, has)
        if of.held:
            hold_s = self._parameters.upgrade_hold_ns / 1e9
            return Reason(
                f"its size was lowered a moment ago; {size} follows once it has been possible for "
                f"{hold_s:g} s"
            )
        if needed_bps is not None:
            carries = bandwidth_text(link.bandwidth_bps)
            return Reason(
                f"the uplink carries {carries}; {size} would leave too little for the other "
                "cameras that share it"
            )
        return self._late(of, above, has)

    def _late(self, of: CameraOptions, above: Option, has: Option) -> Reason:
        """Say that the batches of an option take too long for the deadline."""
        # Learned times need not grow with the size: a larger one may fit.
        largest = of.options[-1].variant.pixels < above.variant.pixels
        slo = ms_text(of.snapshot.camera.slo_ns)
        fits = f"the largest size that can be answered within {slo}; " if largest else ""
        missing = missing_ms_text(self._missing_ns(of, above))
        return Reason(
            f"{fits}{above.variant.size_text} would be {missing} too late, because "
            f"its inference can take {missing_ms_text(above.single_ns)}",
            self.deadline_limit(of, above, has),
        )

    def deadline_limit(self, of: CameraOptions, above: Option, has: Option) -> Limit | None:
        """Return by how much the deadline forbids an option; None: it does not."""
        return _deadline_limit(of, self._missing_ns(of, above), _gain(of, has, above))

    def _missing_ns(self, of: CameraOptions, option: Option) -> int:
        """Return by how much an option exceeds its compute budget, with the margin of its link."""
        left_ns = option.budget.compute_ns
        bandwidth_bps = of.snapshot.link.bandwidth_bps
        if of.is_upgrade(option) and bandwidth_bps:
            on_link_ns = transmission_ns(option.budget.frame_bits, bandwidth_bps, of.snapshot.share)
            left_ns -= round((self._parameters.link_upgrade - 1) * on_link_ns)
        return option.needed_ns - left_ns

    def _lacks_bandwidth(self, of: CameraOptions, option: Option, needed_bps: float) -> bool:
        """Say whether the uplink forbids an option, and not the time of its batches.

        If a faster link and faster batches would both do, that one is named that has to become
        better by the smaller factor: a link that would have to carry twenty times as much lacks
        nothing if batches that are a tenth shorter would do.
        """
        missing_ns = self._missing_ns(of, option)
        left_ns = option.needed_ns - missing_ns
        if missing_ns <= 0 or left_ns <= 0 or option.budget.rate_hz < of.snapshot.camera.rate_hz:
            return True
        bandwidth_bps = of.snapshot.link.bandwidth_bps
        return not bandwidth_bps or needed_bps / bandwidth_bps <= option.needed_ns / left_ns

    def _within_reach(self, of: CameraOptions, above: Option) -> bool:
        """Say whether a camera could have an option if there were no others."""
        bandwidth_bps, needed_bps = of.snapshot.link.bandwidth_bps, self.needed_bps(of, above)
        if bandwidth_bps is None or needed_bps is None or of.held:
            return False
        return needed_bps <= bandwidth_bps

    def shared(self, camera: int, above: Option) -> Reason:
        """Say why a camera could not have an option beside the others."""
        size = above.variant.size_text
        of = self._allocation.cameras[camera]
        refused = self._violation(camera, above)
        gain = _gain(of, self._allocation.chosen_of(camera), above)
        if refused is None or refused.who is None:
            missing = max(0.01, refused.missing_share if refused else 0.0)
            on = self._on(camera)
            its_time = "of its time" if len(on) == 1 else "of their time"
            return Reason(
                f"{self.sharing(camera)}; {size} would need {_more_time(missing, its_time)}",
                self._time_limit(camera, missing, gain),
            )
        over = missing_ms_text(refused.over_ns)
        name = self._allocation.cameras[refused.who].snapshot.camera.id
        limit = Limit(
            Resource.WAITING,
            float(max(1, refused.over_ns)),
            gain,
            name,
        )
        if refused.who == camera:
            return Reason(
                f"frames of {size} would wait {over} too long behind those of other cameras",
                limit,
            )
        return Reason(f"{size} would make frames of {name} wait {over} too long", limit)

    def sharing(self, camera: int) -> str:
        """Say how many cameras share what."""
        count, _ = self._allocation.sharing(camera)
        what = _executors_text(self._on(camera))
        if count == 1:
            return f"one camera has {what} to itself"
        return f"{number_text(count)} cameras share {what}"

    def needed_bps(self, of: CameraOptions, option: Option) -> float | None:
        """Return the bandwidth that an option needs, margins included; None: none would do."""
        needed_bps = bandwidth_needed_bps(
            of.snapshot.camera,
            of.snapshot.link,
            frame_bits=option.budget.frame_bits,
            compute_ns=option.needed_ns,
            fixed_ns=self._fixed_of(of.snapshot),
            parameters=self._parameters,
            share=of.snapshot.share,
        )
        if needed_bps is None or not of.is_upgrade(option):
            return needed_bps
        return needed_bps * self._parameters.link_upgrade

    def prices(self, limits: Mapping[int, Limit]) -> tuple[ResourcePrice, ...]:
        """Return what more of the resources would bring that several cameras share.

        Args:
            limits: the constraints that bind, by the cameras' numbers.
        """
        found: dict[tuple[Resource, tuple[str, ...]], list[float]] = {}
        for camera, limit in limits.items():
            seen = self._allocation.cameras[camera].snapshot
            if limit.resource is Resource.EXECUTORS:
                found.setdefault((limit.resource, self._on(camera)), []).append(limit.price)
            if limit.resource is Resource.UPLINK and seen.share and seen.camera.site:
                site = limit.resource, (seen.camera.site,)
                found.setdefault(site, []).append(limit.price)
        return tuple(ResourcePrice(*key, max(of), len(of)) for key, of in found.items())

    def _on(self, camera: int) -> tuple[ExecutorId, ...]:
        return self._allocation.sharing(camera)[1] or tuple(self._executors)

    def _unserved(self, of: CameraOptions) -> Reason:
        """Say why not even the smallest option would do."""
        camera, link = of.snapshot.camera, of.snapshot.link
        if not of.ladder:
            return Reason(
                "no size of its model has the accuracy of "
                f"{camera.min_accuracy:g} that is asked for"
            )
        least = of.ladder[0]
        size = least.variant.size_text
        if least.variant.name != of.smallest.variant.name:
            size += f" (for an accuracy of {camera.min_accuracy:g})"
        if camera.min_rate_hz > 0:
            # What would get it served, not all it would like.
            size += f" at {rate_text(of.least_hz)}, the least that is of use,"
            least_camera = replace(of.snapshot.camera, rate_hz=of.least_hz)
            of = of._replace(snapshot=replace(of.snapshot, camera=least_camera))
        gain = least.accuracy * of.snapshot.camera.rate_hz
        if least.fits and least.budget.rate_hz >= of.least_hz:
            waits = Limit(Resource.WAITING, float(least.single_ns), gain, camera.id)
            text = f"frames of {size} would wait too long behind those of other cameras"
            return Reason(text, waits)
        needed_bps = self.needed_bps(of, least)
        if (
            needed_bps is not None
            and link.bandwidth_bps is not None
            and self._lacks_bandwidth(of, least, needed_bps)
        ):
            limit = self._uplink_limit(of, link.bandwidth_bps, needed_bps, gain)
            return Reason(_uplink_text(of, size, needed_bps), limit)
        if link.bandwidth_bps is None and least.fits:
            return Reason(f"the link has not been measured yet; {size} has to wait for that")
        missing_ns = least.needed_ns - least.budget.compute_ns
        return Reason(
            f"{size} would miss the deadline of {ms_text(camera.slo_ns)} "
            f"by {missing_ms_text(missing_ns)}",
            _deadline_limit(of, missing_ns, gain),
        )

    def _uplink(self, of: CameraOptions, above: Option, needed_bps: float, gain: float) -> Reason:
        bandwidth_bps = of.snapshot.link.bandwidth_bps or 0.0
        return Reason(
            _uplink_text(of, above.variant.size_text, needed_bps),
            self._uplink_limit(of, bandwidth_bps, needed_bps, gain),
        )

    @staticmethod
    def _uplink_limit(
        of: CameraOptions, bandwidth_bps: float, needed_bps: float, gain: float
    ) -> Limit | None:
        missing_bps = needed_bps - bandwidth_bps
        if missing_bps <= 0:
            return None  # it is not the uplink
        camera = of.snapshot.camera
        whose = camera.site if of.snapshot.share and camera.site else camera.id
        return Limit(Resource.UPLINK, missing_bps, gain, whose)

    def _time_for(self, camera: int, option: Option) -> Limit | None:
        """Return how much of the executors' time an option lacks; None: it is not that."""
        of = self._allocation.cameras[camera]
        refused = self._violation(camera, option)
        if refused is None or refused.who is not None:
            return None
        gain = _gain(of, self._allocation.chosen_of(camera), option)
        return self._time_limit(camera, max(0.01, refused.missing_share), gain)

    def _violation(self, camera: int, option: Option) -> Violation | None:
        """Return the constraint that forbids to give a camera an option; None: none does."""
        of = self._allocation.cameras[camera]
        counted = of.options[0].rate_hz * most_later_s(of.options)
        more = max(0.0, option.later_share - counted)
        limits = self._parameters.without_later_stages(more)
        return self._allocation.violation(camera, option, limits)

    def _time_limit(self, camera: int, missing: float, gain: float) -> Limit:
        return Limit(Resource.EXECUTORS, missing, gain, _executors_text(self._on(camera)))


def _more_time(missing: float, of: str) -> str:
    """Say how much more time is needed, as a share of what there is.

    Args:
        missing: the share; above 1 it is said how many times as much is needed in all.
        of: whose time: "of its time", "time of cpu/0".
    """
    if missing < 1:
        return f"{round(100 * missing)} % more {of}"
    return f"{math.ceil(1 + missing)} times as much {of}"


def _gain(of: CameraOptions, has: Option, above: Option) -> float:
    return max(0.0, option_value(of, above, 1.0) - option_value(of, has, 1.0))


def _deadline_limit(of: CameraOptions, missing_ns: int, gain: float) -> Limit | None:
    if missing_ns <= 0:
        return None  # it is not the deadline
    return Limit(Resource.DEADLINE, float(missing_ns), gain, of.snapshot.camera.id)


def _top(of: CameraOptions, option: Option) -> str:
    camera = of.snapshot.camera
    if option.variant.covers(camera.width_px, camera.height_px):
        return f"enough for the camera's own picture of {camera.width_px} × {camera.height_px} px"
    if camera.variant_max is not None:
        return "the largest size that its pipeline allows"
    return "the largest size of its model"


def _uplink_text(of: CameraOptions, size: str, needed_bps: float) -> str:
    return f"{_carries_text(of)}; {size} would need {bandwidth_text(needed_bps)}"


def _carries_text(of: CameraOptions) -> str:
    share, bandwidth_bps = of.snapshot.share, of.snapshot.link.bandwidth_bps or 0.0
    whose = f" that {number_text(share.cameras)} cameras share" if share else ""
    return f"the uplink{whose} carries {bandwidth_text(bandwidth_bps)}"


def _executors_text(on: Sequence[ExecutorId]) -> str:
    return on[0] if len(on) == 1 else f"{len(on)} executors"
