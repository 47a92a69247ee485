"""Owns the sentence that tells a person what holds a camera at its size. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from edgebox.domain.models import ExecutorId, Variant
from edgebox.planning.allocation import Allocation
from edgebox.planning.budgets import bandwidth_needed_bps
from edgebox.planning.options import CameraOptions, Option
from edgebox.planning.parameters import PlanningParameters

_WORDS = (
    *("no", "one", "two", "three", "four", "five", "six"),
    *("seven", "eight", "nine", "ten", "eleven", "twelve"),
)


def size_text(variant: Variant) -> str:
    """Name a variant's input: "320 px", or "640x384 px" where it is not square."""
    if variant.width_px == variant.height_px:
        return f"{variant.width_px} px"
    return f"{variant.width_px}x{variant.height_px} px"


def bandwidth_text(bandwidth_bps: float) -> str:
    """Write a bandwidth to two digits or so: "1.9 Mbit/s", "85 kbit/s"."""
    if bandwidth_bps < 999_500:
        return f"{bandwidth_bps / 1e3:.0f} kbit/s"
    return f"{bandwidth_bps / 1e6:.{1 if bandwidth_bps < 9.95e6 else 0}f} Mbit/s"


def reason(
    allocation: Allocation,
    camera: int,
    executors: Sequence[ExecutorId],
    fixed_ns: int,
    parameters: PlanningParameters,
) -> str:
    """Say why a camera has the option it has, with the figures that decide it."""
    of = allocation.cameras[camera]
    option = allocation.chosen_of(camera)
    size = size_text(option.variant)
    wanted_hz = of.snapshot.camera.rate_hz
    if of.crowded:
        least = f"{of.least_hz:g} Hz of {size_text(of.rungs[0].variant)}"
        busy = sharing(allocation, camera, executors)
        why = f"{busy}, too many for {least}, the least that is of use"
        return f"{size} at {option.rate_hz:g} of {wanted_hz:g} Hz, best effort: {why}"
    if not of.served:
        return f"{size}, best effort: {_unserved(of, fixed_ns, parameters)}"
    if option.rate_hz < wanted_hz:
        if option.budget.rate_hz < wanted_hz:
            bandwidth_bps = of.snapshot.link.bandwidth_bps
            why = "the link is not measured yet"
            if bandwidth_bps is not None:
                why = f"the uplink carries {bandwidth_text(bandwidth_bps)}"
        else:
            why = f"{sharing(allocation, camera, executors)}, too many for {wanted_hz:g} Hz"
        return f"{size} at {option.rate_hz:g} of {wanted_hz:g} Hz: {why}"
    above = next((r for r in of.rungs if r.variant.pixels > option.variant.pixels), None)
    if above is None:
        return f"{size}: {_top(of, option)}"
    if above in of.options:
        return f"{size}: {shared(allocation, camera, above, executors, parameters)}"
    return f"{size}: {alone_text(of, above, fixed_ns, parameters)}"


def _top(of: CameraOptions, option: Option) -> str:
    camera = of.snapshot.camera
    if option.variant.covers(camera.width_px, camera.height_px):
        return f"covers the camera's own picture of {camera.width_px}x{camera.height_px} px"
    return f"the largest size of {camera.family}"


def alone_text(
    of: CameraOptions, above: Option, fixed_ns: int, parameters: PlanningParameters
) -> str:
    """Say why a camera could not have a option even with the box to itself."""
    camera, link = of.snapshot.camera, of.snapshot.link
    size = size_text(above.variant)
    if link.bandwidth_bps is None:
        return f"the link is not measured yet; {size} must wait for that"
    needed_bps = needed_bps_of(of, above, fixed_ns, parameters)
    if needed_bps is not None and needed_bps > link.bandwidth_bps:
        return _uplink(link.bandwidth_bps, size, needed_bps)
    if of.held:
        hold_s = parameters.raise_after_ns / 1e9
        return f"lowered a moment ago; {size} must be affordable for {hold_s:g} s first"
    if needed_bps is not None:
        return _uplink(link.bandwidth_bps, size, needed_bps)
    missing_ns = above.needed_ns + margin_of_ns(of, above, parameters) - above.budget.compute_ns
    return (
        f"the largest that fits {_ms(camera.slo_ns)} ms; "
        f"{size} would need {ms_up(missing_ns)} ms more"
    )


def _unserved(of: CameraOptions, fixed_ns: int, parameters: PlanningParameters) -> str:
    """Say why not even the smallest option would do."""
    camera, link = of.snapshot.camera, of.snapshot.link
    if not of.rungs:
        return f"no loaded size of {camera.family} is as accurate as {camera.min_accuracy:g}"
    least = of.rungs[0]
    size = size_text(least.variant)
    if least.variant.name != of.smallest.variant.name:
        size += f" (for an accuracy of {camera.min_accuracy:g})"
    if camera.min_rate_hz > 0:
        # What would get it served, not all it would like.
        size += f" at {of.least_hz:g} Hz, the least that is of use,"
        least_camera = replace(of.snapshot.camera, rate_hz=of.least_hz)
        of = replace(of, snapshot=replace(of.snapshot, camera=least_camera))
    if least.fits and least.budget.rate_hz >= of.least_hz:
        return f"frames of {size} would wait too long behind those of other cameras"
    needed_bps = needed_bps_of(of, least, fixed_ns, parameters)
    if needed_bps is not None and link.bandwidth_bps is not None:
        return _uplink(link.bandwidth_bps, size, needed_bps)
    missing_ns = least.needed_ns - least.budget.compute_ns
    return f"{size} would need {ms_up(missing_ns)} ms more than {_ms(camera.slo_ns)} ms leave"


def _uplink(bandwidth_bps: float, size: str, needed_bps: float) -> str:
    carries, needs = bandwidth_text(bandwidth_bps), bandwidth_text(needed_bps)
    return f"the uplink carries {carries}; {size} would need {needs}"


def needed_bps_of(
    of: CameraOptions, option: Option, fixed_ns: int, parameters: PlanningParameters
) -> float | None:
    """Return the bandwidth that a option needs, margins included; None: none would do."""
    margin_ns = margin_of_ns(of, option, parameters)
    needed_bps = bandwidth_needed_bps(
        of.snapshot.camera,
        of.snapshot.link,
        frame_bits=option.budget.frame_bits,
        compute_ns=option.needed_ns + margin_ns,
        fixed_ns=fixed_ns,
        parameters=parameters,
    )
    if needed_bps is None or not margin_ns:
        return needed_bps
    return needed_bps * parameters.link_upgrade


def margin_of_ns(of: CameraOptions, option: Option, parameters: PlanningParameters) -> int:
    """Return the time that must be left over at a option: an upgrade asks for some."""
    above = of.current_px is not None and option.variant.pixels > of.current_px
    return parameters.latency_upgrade_ns if above else 0


def shared(
    allocation: Allocation,
    camera: int,
    above: Option,
    executors: Sequence[ExecutorId],
    parameters: PlanningParameters,
) -> str:
    """Say why a camera could not have a option beside the others."""
    size = size_text(above.variant)
    refused = allocation.violation(camera, above, parameters)
    if refused is None or refused.who is None:
        percent = max(1, round(100 * (refused.missing_share if refused else 0)))
        on = allocation.sharing(camera)[1] or executors
        its = "its" if len(on) == 1 else "their"
        busy = sharing(allocation, camera, executors)
        return f"{busy}; {size} would need {percent} % more of {its} time"
    over = ms_up(refused.over_ns)
    if refused.who == camera:
        return f"{size} would wait {over} ms too long behind other cameras' frames"
    name = allocation.cameras[refused.who].snapshot.camera.id
    return f"{size} would make frames of {name} wait {over} ms too long"


def sharing(allocation: Allocation, camera: int, executors: Sequence[ExecutorId]) -> str:
    """Say how many cameras share what."""
    count, apart = allocation.sharing(camera)
    on = apart or executors
    what = on[0] if len(on) == 1 else f"{len(on)} executors"
    if count == 1:
        return f"one camera has {what} to itself"
    return f"{_WORDS[count] if count < len(_WORDS) else count} cameras share {what}"


def _ms(duration_ns: int) -> str:
    return f"{duration_ns / 1e6:g}"


def ms_up(duration_ns: int) -> int:
    """Return a duration that is missing in whole milliseconds, rounded up."""
    return max(1, -(-duration_ns // 1_000_000))
