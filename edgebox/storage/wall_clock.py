"""The wall clock, as stored instants count it."""

import time


def wall_clock_ms() -> int:
    """Return the present instant in Unix milliseconds."""
    return time.time_ns() // 1_000_000
