"""Formats the notice that an executor's times differ from its profiles."""

from edgebox.scheduling.actions import ReportDrift
from edgebox.storage.rows import Level


def drift_text(drift: ReportDrift, since: str) -> tuple[Level, str]:
    """Return the level and the sentence; `since`: the time of day at which it began."""
    what = f"{drift.variant} on {drift.executor}"
    if drift.factor == 1:
        return "info", f"{what} runs as it was profiled again, since about {since}"
    times, how = (drift.factor, "slower") if drift.factor > 1 else (1 / drift.factor, "faster")
    worse = drift.ratio > 1
    why = " (a hot chip, another power mode, other work on this machine?)" if worse else ""
    if worse and len(drift.apps) == 1:
        # With a single application a slower machine and larger requests look the same.
        why = f"{why[:-2]}, or more in what {drift.apps[0]!r} sends?)"
    return "warning" if worse else "info", (
        f"{what} runs {times:.1f} times {how} than profiled since about {since}{why}; "
        "plans take this into account from now on"
    )
