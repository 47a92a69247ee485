"""What a person reads."""

from dataclasses import replace

from edgebox.camera.accounting import Summary
from edgebox.camera.daemon import Status
from edgebox.commands.camera_live import describe, render
from tests.camera.box import advice

SUMMARY = Summary(
    camera="gate",
    slo_ms=300,
    later=(),
    duration_s=10.0,
    captured=100,
    sent=96,
    accepted=95,
    on_time=90,
    late=3,
    dropped={"queue": 2, "sender": 4, "lost": 1},
    skipped={"window": 4},
    pending=0,
    on_time_share=0.9,
    utility=90.0,
    latency_ms={
        part: {"p50": 1.0, "p90": 2.0, "p99": 3.0, "max": 1234.5}
        for part in ("network", "queue", "inference", "return", "total")
    },
    latency_histogram={},
    width_sent_mean_px=231.4,
    bytes_sent=1_500_000,
    detected=0,
    variants={"street-256": 90, "street-128": 3},
    detections={"bus": 2, "car": 180},
    reconnects=2,
)


def test_several_deadlines_have_a_worth() -> None:
    several = replace(SUMMARY, later=((500.0, 0.5),), utility=91.5)
    assert render(several).splitlines()[0] == (
        "gate: 100 frames in 10.0 s, 90.00% answered within 300 ms, utility 0.915 a frame"
    )


def test_frames_that_the_box_did_not_ask_for_are_no_misses() -> None:
    reduced = replace(SUMMARY, dropped={"plan": 39, "queue": 1}, on_time_share=0.6733)
    assert render(reduced).splitlines()[0] == (
        "gate: 100 frames in 10.0 s, 67.33% of the 61 asked for answered within 300 ms"
    )


def test_the_summary() -> None:
    assert render(SUMMARY).splitlines() == [
        "gate: 100 frames in 10.0 s, 90.00% answered within 300 ms",
        "  captured 100 = on time 90 + late 3 + dropped 7",
        "  sent 96 (1.5 MB), accepted 95",
        "  dropped: sender 4, queue 2, lost 1",
        "  of these never sent: window 4",
        "  latency, ms       P50      P90      P99      max",
        "    network         1.0      2.0      3.0   1234.5",
        "    queue           1.0      2.0      3.0   1234.5",
        "    inference       1.0      2.0      3.0   1234.5",
        "    return          1.0      2.0      3.0   1234.5",
        "    total           1.0      2.0      3.0   1234.5",
        "  mean width sent 231 px",
        "  variants: street-256 90, street-128 3",
        "  detections: car 180, bus 2",
        "  reconnected 2 times",
    ]


def test_the_summary_of_nothing() -> None:
    nothing = replace(
        SUMMARY,
        captured=0,
        sent=0,
        accepted=0,
        on_time=0,
        late=0,
        dropped={},
        skipped={},
        on_time_share=None,
        latency_ms={},
        width_sent_mean_px=None,
        bytes_sent=0,
        detected=0,
        variants={},
        detections={},
        reconnects=0,
    )
    assert render(nothing).splitlines() == [
        "gate: 0 frames in 10.0 s, - answered within 300 ms",
        "  captured 0 = on time 0 + late 0 + dropped 0",
        "  sent 0 (0.0 MB), accepted 0",
    ]


def test_the_live_line() -> None:
    status = Status(
        connected=True,
        captured=100,
        sent=96,
        on_time_share=0.985,
        latency_ms=33.4,
        bandwidth_bps=1_900_000.0,
        advice=advice(256),
        remark="",
    )
    assert describe(status, 9.87) == (
        "9.9 frames/s | 256 × 144 px | 98.5% on time (10 s) | 33 ms | link 1.9 Mbit/s | "
        "street-256 | as the test says"
    )
    slow = replace(status, bandwidth_bps=40_000.0)
    assert "| link 40 kbit/s |" in describe(slow, 9.87)
    away = replace(status, connected=False, remark="cannot connect: refused")
    assert describe(away, None) == "not connected: cannot connect: refused"
