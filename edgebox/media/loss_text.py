"""Says for people since when a source of pictures is lost, and why."""

import time


def lost_text(since_ms: int, why: str) -> str:
    """Return what is said of a source that was lost at an instant in Unix milliseconds."""
    return f"source lost since {clock_time(since_ms)}: {why}"


def clock_time(at_ms: int) -> str:
    """Return the local time of day, with the date if it is another day."""
    at = time.localtime(at_ms / 1000)
    today = at[:3] == time.localtime()[:3]
    return time.strftime("%H:%M" if today else "%Y-%m-%d %H:%M", at)
