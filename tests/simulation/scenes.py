"""A scenario to vary: a small family on one executor, cameras behind a link."""

from collections.abc import Iterable

from benchmarks.applications import HARDWARE
from edgebox.domain.requests import Outcome
from edgebox.simulation.report import Ended, Report
from edgebox.simulation.scenario import Scenario, parse_scenario

S = 1_000_000_000


def scenario_text(*cameras: str, top: str = "duration_s = 20") -> str:
    """Return a scenario; each camera is the lines under its [[cameras]]."""
    return "\n".join([top, HARDWARE, *(f"[[cameras]]\n{lines}\n" for lines in cameras)])


def gate(name: str = "gate", mbps: object = 20, slo_ms: int = 200, rate_hz: int = 10) -> str:
    """Return the lines of a camera."""
    return f'name = "{name}"\nslo_ms = {slo_ms}\nrate_hz = {rate_hz}\nmbps = {mbps}'


def scenario_of(*cameras: str, top: str = "duration_s = 20") -> Scenario:
    return parse_scenario(scenario_text(*cameras, top=top), "test.toml", lambda name: name)


def between(report: Report, from_s: float, to_s: float, camera: str = "gate") -> list[Ended]:
    return [
        end
        for end in report.ended
        if from_s * S <= end.request.captured_ns < to_s * S
        and end.request.camera.startswith(camera)
    ]


def on_time_share(ends: Iterable[Ended]) -> float:
    outcomes = [end.outcome is Outcome.ON_TIME for end in ends]
    return sum(outcomes) / len(outcomes)


def mean_width(ends: Iterable[Ended]) -> float:
    widths = [end.request.width_px for end in ends]
    return sum(widths) / len(widths)
