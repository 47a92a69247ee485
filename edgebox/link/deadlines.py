"""Owns the notation of several deadlines: `[[100, 1], [300, 0.3]]`.

An answer within 100 ms has utility 1, one within 300 ms 0.3, a later one 0. A camera's hello, the
camera daemon and the simulator's workloads use the same notation. Pure.
"""

from collections.abc import Sequence

from edgebox.domain.errors import InvalidInputError
from edgebox.domain.field_reader import is_number, number_range, shown
from edgebox.domain.requests import UtilityStep

STEPS_MAX = 4

LaterDeadlines = tuple[tuple[float, float], ...]
"""(ms, utility) of every deadline but the first, whose utility is 1."""


def read_deadlines(
    written: Sequence[object], low_ms: float, high_ms: float
) -> tuple[float, LaterDeadlines]:
    """Return the first deadline in ms, and the later ones.

    Args:
        written: pairs of deadline and utility.
        low_ms: the minimum of a deadline.
        high_ms: the maximum.

    Raises:
        InvalidInputError: the first mistake, beginning with its position: "[1][0] must be ...".
    """
    if not written:
        raise InvalidInputError(
            f" must be {number_range(low_ms, high_ms)}, or a list of 1 to "
            f"{STEPS_MAX} pairs [deadline in ms, utility], not []"
        )
    if len(written) > STEPS_MAX:
        raise InvalidInputError(f" must have at most {STEPS_MAX} deadlines, not {len(written)}")
    read: list[tuple[float, float]] = []
    for at, pair in enumerate(written):
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise InvalidInputError(
                f"[{at}] must be a pair [deadline in ms, utility], not {shown(pair)}"
            )
        by_ms, utility = pair
        if not is_number(by_ms, low_ms, high_ms):
            wanted = number_range(low_ms, high_ms)
            raise InvalidInputError(f"[{at}][0] must be {wanted}, not {shown(by_ms)}")
        if read and by_ms <= read[-1][0]:
            raise InvalidInputError(
                f"[{at}][0] must be above the deadline before it, {read[-1][0]:g}, "
                f"not {shown(by_ms)}"
            )
        read.append((float(by_ms), _utility(utility, at, read[-1][1] if read else None)))
    return read[0][0], tuple(read[1:])


def _utility(utility: object, at: int, before: float | None) -> float:
    if before is None:
        wanted = "1, the utility of an answer by the first deadline"
        right = is_number(utility) and utility == 1
    else:
        wanted = f"a utility above 0 and below the one before it, {before:g}"
        right = is_number(utility) and 0 < utility < before
    if not right or not is_number(utility):
        raise InvalidInputError(f"[{at}][1] must be {wanted}, not {shown(utility)}")
    return float(utility)


def written_deadlines(first_ms: float, later: LaterDeadlines) -> float | list[list[float]]:
    """Return the notation that `read_deadlines` reads, or the plain number of a single deadline."""
    if not later:
        return first_ms
    return [[first_ms, 1.0], *([by_ms, utility] for by_ms, utility in later)]


def written_steps(first_ns: int, steps: Sequence[UtilityStep]) -> float | list[list[float]]:
    """Return the same notation for deadlines in nanoseconds."""
    return written_deadlines(first_ns / 1e6, to_later(steps))


def to_later(steps: Sequence[UtilityStep]) -> LaterDeadlines:
    """Return later deadlines in ms."""
    return tuple((step.by_ns / 1e6, step.utility) for step in steps)


def to_steps(later: LaterDeadlines) -> tuple[UtilityStep, ...]:
    """Return later deadlines in nanoseconds, counted from the same instant."""
    return tuple(UtilityStep(round(by_ms * 1e6), utility) for by_ms, utility in later)
