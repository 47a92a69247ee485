"""What a simulated box believes of captures, of cameras that do not tell it their clock."""

from statistics import median

import pytest

from edgebox.domain.errors import InvalidInputError
from edgebox.domain.requests import Outcome
from edgebox.link.transit import RETURN_ALLOWANCE_NS
from edgebox.simulation.report import Report
from edgebox.simulation.run import run_scenario
from edgebox.simulation.scenario import Scenario, parse_scenario
from edgebox.simulation.simulated_cameras import CameraClock
from tests.simulation.scenes import gate, scenario_text

MS = 1_000_000
SLO_NS = 300 * MS
ENCODE_MS = 12


def scenario(clock: str) -> Scenario:
    lines = f'rtt_ms = 30\njitter_ms = 1\nencode_ms = [{ENCODE_MS}, {ENCODE_MS}]\nclock = "{clock}"'
    cameras = gate(mbps="[3, 6, 2, 8, 4]", slo_ms=300) + "\n" + lines
    return parse_scenario(scenario_text(cameras, top="duration_s = 12"), "test.toml", str)


def errors_ms(report: Report) -> list[float]:
    """Return by how much each frame is believed younger than it is, once links are known."""
    return [
        (ended.request.captured_ns - ended.truly_captured_ns) / MS
        for ended in report.ended
        if ended.truly_captured_ns > 3_000 * MS
    ]


@pytest.fixture(scope="module", params=list(CameraClock))
def run(request: pytest.FixtureRequest) -> tuple[CameraClock, Report]:
    clock = CameraClock(request.param)
    return clock, run_scenario(scenario(clock))


def test_a_capture_is_believed_as_well_as_the_camera_lets_it_be(
    run: tuple[CameraClock, Report],
) -> None:
    clock, report = run
    errors = errors_ms(report)
    believed = {
        CameraClock.EXCHANGED: (-0.001, 0.001),
        # Not further than a segment, the noise of the loop and the drift of clocks.
        CameraClock.STAMPS: (-2, 2),
        # Its encoding shows nowhere.
        CameraClock.NONE: (ENCODE_MS - 4, ENCODE_MS + 2),
    }
    low_ms, high_ms = believed[clock]
    assert low_ms <= median(errors) <= high_ms
    took_ms = [(e.request.arrival_ns - e.truly_captured_ns) / MS for e in report.ended]
    assert median(took_ms) > 50  # what would be wrong if frames were as old as their arrival


def test_no_deadline_is_later_than_arrival_and_slo(run: tuple[CameraClock, Report]) -> None:
    _, report = run
    for ended in report.ended:
        request = ended.request
        assert request.captured_ns <= request.arrival_ns
        assert request.deadline_ns <= request.arrival_ns + SLO_NS - RETURN_ALLOWANCE_NS


def test_the_camera_judges_what_was_in_time(run: tuple[CameraClock, Report]) -> None:
    _, report = run
    for ended in report.ended:
        if ended.reason is None:
            took_ns = ended.at_ns + 15 * MS - ended.truly_captured_ns
            assert (ended.outcome is Outcome.ON_TIME) == (took_ns <= SLO_NS)
    assert report.on_time_share() > 0.95


def test_cameras_without_a_clock_are_sent_up_as_others_are() -> None:
    """The bandwidth is known without a clock, so they need not stay at small sizes."""
    widths = {
        clock: [ended.request.width_px for ended in run_scenario(scenario(clock)).ended]
        for clock in CameraClock
    }
    known = sum(widths[CameraClock.EXCHANGED]) / len(widths[CameraClock.EXCHANGED])
    for clock in (CameraClock.STAMPS, CameraClock.NONE):
        assert sum(widths[clock]) / len(widths[clock]) > 0.85 * known


def test_a_clock_is_one_of_three() -> None:
    with pytest.raises(InvalidInputError, match="clock: must be one of exchanged, stamps, none"):
        scenario("sundial")
