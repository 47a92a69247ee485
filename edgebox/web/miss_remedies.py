"""Tells what a person can do for a camera whose promised answers are missing, by what most miss.

A remedy of the plan lifts the constraint that binds it; one from here is for frames that are lost
although the plan has room for them. Pure.
"""

from collections.abc import Mapping

from edgebox.domain.plans import Remedy, RemedyAction
from edgebox.domain.requests import DropReason
from edgebox.planning.remedies import ADD_EXECUTOR, FEWER_FRAMES, NOTHING_TO_DO

MORE_TIME = Remedy(RemedyAction.EXTEND_DEADLINE, "allow more time for an answer")
BETTER_UPLINK = Remedy(RemedyAction.IMPROVE_UPLINK, "give the camera a better uplink")
EVEN_SOURCE = Remedy(
    RemedyAction.CHECK_SOURCE,
    "see that its pictures come one by one and soon: turn B-frames off in the camera's settings "
    "(H.264 baseline profile), connect it by wire, and have its clock and the box's set by NTP",
)
JPEG_SOURCE = Remedy(
    RemedyAction.CHECK_SOURCE, "check what the camera sends: each picture must be a whole JPEG"
)
STEADY_CONNECTION = Remedy(
    RemedyAction.CHECK_SOURCE, "keep the camera connected: check its power and its network"
)
OTHER_MODEL = Remedy(
    RemedyAction.CHOOSE_MODEL, "choose another model: the events say how this one fails"
)

_BY_REASON: Mapping[str, tuple[Remedy, ...]] = {
    DropReason.SENDER: (FEWER_FRAMES, BETTER_UPLINK),
    DropReason.QUEUE: (FEWER_FRAMES, ADD_EXECUTOR),
    DropReason.OVERLOAD: (FEWER_FRAMES, ADD_EXECUTOR),
    DropReason.INFEASIBLE: (MORE_TIME,),
    DropReason.INVALID: (JPEG_SOURCE,),
    DropReason.FAILED: (OTHER_MODEL,),
    DropReason.DEPARTED: (STEADY_CONNECTION,),
    DropReason.SHUTDOWN: (NOTHING_TO_DO,),
}


def miss_remedies(
    dropped: Mapping[str, int], late: int, planned: tuple[Remedy, ...], *, pulled: bool
) -> tuple[Remedy, ...]:
    """Return what helps against the most frequent kind of miss, the least costly first.

    Args:
        dropped: frames by the reason that they were dropped for, of the last minute.
        late: answers that came late in that time; where both are as many, they count.
        planned: remedies of the plan; one for the same action has figures, and is preferred.
        pulled: whether the box fetches the camera's pictures.
    """
    misses = {reason: n for reason, n in dropped.items() if n and reason != DropReason.PLAN}
    worst = min(misses, key=lambda reason: (-misses[reason], reason), default=None)
    if worst is None or misses[worst] <= late:
        found: tuple[Remedy, ...] = (MORE_TIME, FEWER_FRAMES)
    elif pulled and worst in (DropReason.SENDER, DropReason.INFEASIBLE):
        found = (EVEN_SOURCE, MORE_TIME)
    else:
        found = _BY_REASON[worst]
    by_action = {remedy.action: remedy for remedy in reversed(planned)}
    return tuple(by_action.get(remedy.action, remedy) for remedy in found)
