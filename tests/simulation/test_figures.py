"""What a run comes to, on reports written by hand."""

import pytest

from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.domain.requests import CameraId, DropReason, Outcome, Request, RequestId
from edgebox.link.sender import SkipReason
from edgebox.simulation.figures import figures
from edgebox.simulation.report import DEPARTED, Ended, Report, Unsent
from edgebox.simulation.run import run_scenario
from edgebox.simulation.scenario import Scenario, parse_scenario
from tests.simulation.scenes import gate, scenario_text

MS = 1_000_000
S = 1000 * MS
GATE = CameraId("gate")


def scenario() -> Scenario:
    text = scenario_text(gate() + "\nrtt_ms = 4", top="duration_s = 10\nwarmup_s = 2")
    return parse_scenario(text, "t", lambda name: name)


def ended(
    at_s: float,
    outcome: Outcome,
    *,
    px: int = 608,
    ran_on: int = 608,
    advised: int = 608,
    reason: DropReason | None = None,
) -> Ended:
    captured_ns = round(at_s * S)
    request = Request(
        RequestId(captured_ns), GATE, "default", captured_ns, captured_ns + 20 * MS,
        captured_ns + 198 * MS, px, px * 9 // 16, 10_000,
        advised=VariantName(f"s-{advised}"),
    )  # fmt: skip
    if reason is not None:
        return Ended(request, None, outcome, reason, captured_ns + 30 * MS)
    started_ns, at_ns = captured_ns + 25 * MS, captured_ns + 60 * MS
    return Ended(request, VariantName(f"s-{ran_on}"), outcome, None, at_ns, started_ns)


def test_a_miss_is_whatever_was_not_answered_in_time() -> None:
    report = Report()
    report.ended = [
        ended(1, Outcome.LATE),  # in the warm-up
        ended(3, Outcome.ON_TIME),
        ended(4, Outcome.ON_TIME, px=256, ran_on=256),
        ended(5, Outcome.LATE),
        ended(6, Outcome.DROPPED, reason=DropReason.QUEUE),
        ended(7, Outcome.DROPPED, reason=DropReason.DEPARTED),
    ]
    report.lost = [
        Unsent(GATE, 8 * S, SkipReason.WINDOW),
        Unsent(GATE, 9 * S, DEPARTED),
        Unsent(GATE, 1 * S, SkipReason.WINDOW),
    ]
    report.changes[GATE] = 2
    of = figures(report, scenario())["all"]
    assert of["captured"] == 7
    assert (of["on_time"], of["late"], of["departed"]) == (2, 1, 2)
    assert of["dropped"] == {"queue": 1, "sender:window": 1}
    assert of["miss_rate"] == pytest.approx(3 / 5)
    assert of["accuracy"] == pytest.approx((0.6 + 0.45) / 5)
    assert of["accuracy_on_time"] == pytest.approx((0.6 + 0.45) / 2)
    assert of["mismatches"] == 1
    assert of["changes_per_camera_minute"] == 12
    means = {part: ms["mean"] for part, ms in of["latency_ms"].items()}
    assert means == {"sending": 20, "waiting": 5, "running": 35, "all": 62}


@pytest.mark.parametrize(
    ("px", "ran_on", "accuracy"),
    [
        (608, 608, 0.6),
        (512, 608, 0.575),  # half way between 416 and 608
        (336, 608, 0.5),  # half way between 256 and 416, whatever it ran on
        (336, 416, 0.5),
        (256, 256, 0.45),
        (96, 128, 0.225),
        (1280, 416, 0.55),
    ],
)
def test_enlarging_a_picture_earns_nothing(px: int, ran_on: int, accuracy: float) -> None:
    report = Report()
    report.ended = [ended(3, Outcome.ON_TIME, px=px, ran_on=ran_on)]
    assert figures(report, scenario())["all"]["accuracy"] == pytest.approx(accuracy)


def test_a_run_without_frames_has_figures() -> None:
    of = figures(Report(), scenario())
    assert of["all"]["miss_rate"] == of["all"]["accuracy"] == 0
    assert of["utilisation"] == {"gpu/0": 0}


def test_executors_are_busy_for_what_they_run_while_cameras_film() -> None:
    report = Report()
    gpu = ExecutorId("gpu/0")
    report.busy[gpu] = [(0, 2 * S), (4 * S, 5 * S), (8 * S, 13 * S)]
    assert figures(report, scenario())["utilisation"] == {"gpu/0": 0.5}
    assert report.busy_ns == {gpu: 8 * S}


@pytest.mark.parametrize(("slo_ms", "slowdown"), [(5000, 1), (300, 60), (300, 200)])
def test_no_executor_is_busy_for_longer_than_there_is(slo_ms: int, slowdown: int) -> None:
    """Neither with what is answered after the end, nor with batches that are given up."""
    text = f"""
duration_s = 5
[box]
slowdown = {slowdown}
[policy]
planning = "none"
variant_per_batch = false
[[executors]]
name = "cpu/0"
[[variants]]
name = "a"
width_px = 128
accuracy = 0.5
batch_ms = {{ 1 = 120 }}
[[cameras]]
name = "c"
slo_ms = {slo_ms}
rate_hz = 10
mbps = 100
"""
    of = parse_scenario(text, "t", lambda name: name)
    found = figures(run_scenario(of), of)
    assert 0.5 < found["utilisation"]["cpu/0"] <= 1
