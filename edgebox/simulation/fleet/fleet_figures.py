"""Decides the figures of a simulated fleet: frames on time, recovery, redirects. Pure."""

from collections.abc import Sequence
from typing import Any

from edgebox.simulation.fleet.fleet_simulator import FleetRun, Loss, Sample
from edgebox.simulation.fleet.timetable import (
    ARRIVALS_NS,
    BACK_NS,
    CRASH_NS,
    END_NS,
    JOIN_NS,
    POWER_NS,
    UPGRADE_NS,
    S,
)

PHASES = (
    ("cameras come", 0, ARRIVALS_NS),
    ("quiet", ARRIVALS_NS, JOIN_NS),
    ("boxes join", JOIN_NS, CRASH_NS),
    ("after the crash", CRASH_NS, POWER_NS),
    ("after the power loss", POWER_NS, BACK_NS),
    ("boxes are back", BACK_NS, UPGRADE_NS),
    ("rolling upgrade", UPGRADE_NS, END_NS),
)
OVER_TIME_NS = 5 * S


def fleet_figures(run: FleetRun, cameras: int) -> dict[str, Any]:
    """Return the figures of a run, for programs."""
    phases = {
        name: _served([each for each in run.samples if start_ns <= each.at_ns < end_ns])
        for name, start_ns, end_ns in PHASES
    }
    settled = [each for each in run.samples if each.at_ns >= ARRIVALS_NS]
    over_time = [
        {
            "at_s": start_ns / S,
            **_served([each for each in run.samples if 0 <= each.at_ns - start_ns < OVER_TIME_NS]),
        }
        for start_ns in range(0, END_NS, OVER_TIME_NS)
    ]
    return {
        **_served(settled),
        "phases": phases,
        "redirects_per_camera": round(run.redirects_of_hellos / cameras, 3),
        "redirects_of_one_hello_max": run.redirects_max,
        "moves_per_camera": round(run.moves / cameras, 3),
        "accepted_per_second_max": run.hellos_most,
        "recovery": [_recovery(loss) for loss in run.losses],
        "unconnected_at_the_end": run.samples[-1].unconnected,
        "over_time": over_time,
    }


def _served(samples: Sequence[Sample]) -> dict[str, float]:
    captured = sum(each.captured_hz for each in samples)
    loads = [each.loads for each in samples if each.loads]
    means = [sum(of) / len(of) for of in loads]
    squares = [
        sum((load - mean) ** 2 for load in of) for of, mean in zip(loads, means, strict=True)
    ]
    boxes = sum(map(len, loads))
    return {
        "on_time": _share(sum(each.on_time_hz for each in samples), captured),
        "accuracy": _share(sum(each.accuracy_hz for each in samples), captured),
        "load_mean": _share(sum(map(sum, loads)), boxes),
        "load_deviation": round((sum(squares) / boxes) ** 0.5, 4) if boxes else 0.0,
        "load_max": round(max((max(of) for of in loads), default=0.0), 4),
    }


def _recovery(loss: Loss) -> dict[str, Any]:
    took_s = sorted(took_ns / 1e9 for took_ns in loss.took_ns)
    return {
        "what": str(loss.event.what),
        "boxes": len(loss.event.boxes),
        "cameras": len(took_s) + len(loss.waiting),
        "median_s": round(took_s[len(took_s) // 2], 2) if took_s else None,
        "p99_s": round(took_s[min(len(took_s) - 1, len(took_s) * 99 // 100)], 2)
        if took_s
        else None,
        "all_s": None if loss.waiting else round(max(took_s, default=0.0), 2),
    }


def _share(part: float, whole: float) -> float:
    return round(part / whole, 5) if whole else 0.0
