"""Hundreds of cameras connect at once, together far beyond the capacity: who is answered."""

import pytest

from edgebox.domain.requests import Outcome
from edgebox.simulation.report import Report
from edgebox.simulation.run import run_scenario
from edgebox.simulation.scenario import parse_scenario

SECOND = 1_000_000_000
JOINED_S, SETTLED_S, UNTIL_S = 4, 8, 14

SCENARIO = f"""
duration_s = {UNTIL_S}
seed = 1
[[executors]]
name = "cpu/0"
spread = [0.8, 0.85, 0.88, 0.9, 0.92, 0.95, 0.97, 1.0, 1.1]
[[variants]]
name = "gate-256"
family = "default"
width_px = 256
accuracy = 0.45
batch_ms = {{ 1 = 10, 2 = 20, 4 = 40 }}
[[cameras]]
name = "first"
count = 4
slo_ms = 500
rate_hz = 20
mbps = 100
[[cameras]]
name = "many"
count = 300
slo_ms = 500
rate_hz = 1
mbps = 100
joins_s = {JOINED_S}
joins_apart_s = 0.002
"""


@pytest.fixture(scope="module")
def report() -> Report:
    def no_file(name: str) -> str:
        raise FileNotFoundError(name)

    return run_scenario(parse_scenario(SCENARIO, "at once", no_file, None))


def on_time(report: Report, prefix: str, from_s: float) -> list[bool]:
    """Return of each frame that cameras sent since then whether it was answered on time."""
    return [
        each.outcome is Outcome.ON_TIME
        for each in report.ended
        if each.request.camera.startswith(prefix)
        and each.captured_ns is not None
        and each.captured_ns >= from_s * SECOND
    ]


def test_cameras_that_were_there_keep_their_share_while_others_connect(report: Report) -> None:
    before = on_time(report, "first", 0)[: 4 * 20 * JOINED_S - 8]
    assert all(before)
    after = on_time(report, "first", JOINED_S)
    assert len(after) > 40
    assert sum(after) >= 0.95 * len(after)


def test_as_many_are_served_as_there_is_time_for(report: Report) -> None:
    """100 frames a second at most: the executor does not work for frames that come to nothing."""
    settled = on_time(report, "", SETTLED_S)
    assert sum(settled) >= 0.95 * len(settled)
    assert sum(settled) >= 85 * (UNTIL_S - SETTLED_S)
