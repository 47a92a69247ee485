"""Counts the later stages' work as a part of the options that cause it. Pure.

What later stages take depends on the rate of an option and, through the sizes of crops, on its
variant. All options of a camera have one rate, so as long as options are compared, the most that
later stages take with any of them is taken off what may be planned. Where rates are lowered
(`minimum`), what they take is lowered with them. Later stages that run in another part of the box
than the first stage burden that part.

Frames whose crops find no time are answered without them. So what later stages take even at
everybody's least rates crowds nobody out: `LEFT_MIN` is left to the first stages beside it.
"""

from collections.abc import Sequence

from edgebox.planning.options import CameraOptions, Option
from edgebox.planning.planner_parameters import LEFT_MIN, PlanningParameters


def most_later_s(options: Sequence[Option]) -> float:
    """Return the most that later stages take with some option at one frame a second, as a share."""
    return max(option.later_share_s for option in options)


def left_to_first_stages(
    parameters: PlanningParameters,
    cameras: Sequence[CameraOptions],
    dedicated: Sequence[CameraOptions] = (),
) -> PlanningParameters:
    """Return the limits, less what later stages take at most with the options of some cameras.

    Args:
        parameters: with limits for first and later stages together.
        cameras: what each could be given.
        dedicated: what else, in the same order.
    """
    most = least = 0.0
    for of, other in zip(cameras, dedicated or cameras, strict=True):
        if of.snapshot.has_later:
            smallest = of.options[0]
            most += smallest.rate_hz * most_later_s((*of.options, *other.options))
            least_hz = of.least_hz if of.served else min(parameters.rate_min_hz, smallest.rate_hz)
            least += least_hz * smallest.later_share_s
    return less_later_stages(parameters, most, least)


def less_later_stages(
    parameters: PlanningParameters, share: float, least: float
) -> PlanningParameters:
    """Return the limits, less what later stages take.

    Args:
        parameters: with limits for first and later stages together.
        share: of the executors' time that later stages take.
        least: the same at everybody's least rates.
    """
    return parameters.with_at_least(least + LEFT_MIN).without_later_stages(share)
