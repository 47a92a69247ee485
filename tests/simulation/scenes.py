"""A scenario to vary: a small family on one executor, cameras behind a link."""

from benchmarks.applications import HARDWARE


def scenario_text(*cameras: str, top: str = "duration_s = 20") -> str:
    """Return a scenario; each camera is the lines under its [[cameras]]."""
    return "\n".join([top, HARDWARE, *(f"[[cameras]]\n{lines}\n" for lines in cameras)])


def gate(name: str = "gate", mbps: object = 20, slo_ms: int = 200, rate_hz: int = 10) -> str:
    """Return the lines of a camera."""
    return f'name = "{name}"\nslo_ms = {slo_ms}\nrate_hz = {rate_hz}\nmbps = {mbps}'
