"""Writes figures as they stand in sentences for people. Pure."""

_WORDS = (
    *("no", "one", "two", "three", "four", "five", "six"),
    *("seven", "eight", "nine", "ten", "eleven", "twelve"),
)


def bandwidth_text(bandwidth_bps: float) -> str:
    """Write a bandwidth to two digits or so: "1.9 Mbit/s", "85 kbit/s"."""
    if bandwidth_bps < 999_500:
        return f"{bandwidth_bps / 1e3:.0f} kbit/s"
    return f"{bandwidth_bps / 1e6:.{1 if bandwidth_bps < 9.95e6 else 0}f} Mbit/s"


def number_text(count: int) -> str:
    """Write a number as in a sentence: a word up to twelve."""
    return _WORDS[count] if count < len(_WORDS) else str(count)


def ms_text(duration_ns: int) -> str:
    """Write a duration, as one that somebody has set: "1,214 ms"."""
    return f"{duration_ns / 1e6:,g} ms"


def missing_ms_text(duration_ns: int) -> str:
    """Write a duration that is missing in whole milliseconds, rounded up: "1,214 ms"."""
    return f"{max(1, -(-duration_ns // 1_000_000)):,} ms"


def rate_text(rate_hz: float) -> str:
    """Write a rate: "2 frames/s"."""
    return f"{rate_hz:g} frames/s"
