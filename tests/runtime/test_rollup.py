"""Minutes: their rows add up to the counts, whatever happens when."""

from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.models import FamilyName, Variant, VariantName
from edgebox.domain.requests import CameraId, DropReason, Outcome
from edgebox.runtime.metrics import Metrics
from edgebox.runtime.rollup import MINUTE_MS, MinuteRollup
from edgebox.storage.rows import CameraMinute
from tests.runtime.endings import SECOND, answer, refusal

STREET = FamilyName("street")
VARIANTS = {
    VariantName(f"street-{px}"): Variant(VariantName(f"street-{px}"), STREET, px, px, 0.5)
    for px in (256, 608)
}
GATE = CameraId("gate")

MINUTES = st.lists(st.lists(st.sampled_from(["capture", "answer", "late", "drop"]), max_size=20))


@given(MINUTES)
def test_rows_add_up_to_the_counts(minutes: list[list[str]]) -> None:
    metrics = Metrics()
    rollup = MinuteRollup(metrics, VARIANTS)
    rows: list[CameraMinute] = []
    for number, facts in enumerate(minutes):
        now_ns = (number + 1) * 60 * SECOND
        for fact in facts:
            camera = metrics.of(GATE)
            camera.captured(1, 0, now_ns)
            if fact == "answer":
                camera.accepted(now_ns)
                camera.ended(answer(), now_ns)
            elif fact == "late":
                camera.ended(answer(Outcome.LATE, mismatched=True), now_ns)
            elif fact == "drop":
                camera.ended(refusal(DropReason.OVERLOAD), now_ns)
        taken = rollup.take(number * MINUTE_MS, now_ns)
        assert len(taken) == bool(facts), "a minute without news has no row"
        rows += taken
    counts = metrics.of(GATE).counts
    assert sum(row.captured for row in rows) == counts.captured
    assert sum(row.accepted for row in rows) == counts.accepted
    assert sum(row.on_time for row in rows) == counts.on_time
    assert sum(row.late for row in rows) == sum(row.mismatches for row in rows) == counts.late
    assert sum(row.dropped.get("overload", 0) for row in rows) == counts.dropped["overload"]
    assert all(row.minute_ms % MINUTE_MS == 0 for row in rows)


def test_a_row_says_what_ran_and_how_long_it_took() -> None:
    metrics = Metrics()
    rollup = MinuteRollup(metrics, VARIANTS)
    camera = metrics.of(GATE)
    camera.captured(4, 0, SECOND)
    for ending in (answer(), answer(variant="street-608"), answer(variant="street-608"), refusal()):
        camera.ended(ending, SECOND)
    (row,) = rollup.take(0, SECOND)
    assert row.variants == {"street-256": 1, "street-608": 2}
    assert row.mean_px == (256 + 608 + 608) / 3
    assert row.latency_ms["p50"]["total"] == 100
    assert row.latency_ms["p99"]["queue"] == 20


def test_a_minute_of_drops_has_no_latency() -> None:
    metrics = Metrics()
    rollup = MinuteRollup(metrics, VARIANTS)
    metrics.of(GATE).captured(1, 1, SECOND)
    (row,) = rollup.take(0, SECOND)
    assert row.mean_px is None
    assert row.latency_ms == {}
    assert row.dropped == {"sender": 1}


def test_a_camera_that_was_forgotten_starts_anew() -> None:
    metrics = Metrics()
    rollup = MinuteRollup(metrics, VARIANTS)
    metrics.of(GATE).captured(9, 9, SECOND)
    assert len(rollup.take(0, SECOND)) == 1
    metrics.forget(GATE)
    assert rollup.take(MINUTE_MS, 61 * SECOND) == []
    metrics.of(GATE).captured(2, 2, 100 * SECOND)
    (row,) = rollup.take(2 * MINUTE_MS, 121 * SECOND)
    assert (row.captured, row.dropped) == (2, {"sender": 2})
