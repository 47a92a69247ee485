"""Roll-ups: they add up to the counters, whatever happens when."""

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.model_family import FamilyName, Variant, VariantName
from edgebox.domain.requests import CameraId, DropReason, Outcome
from edgebox.runtime.frame_metrics import CameraMetrics, Metrics
from edgebox.runtime.frames import FrameResult
from edgebox.runtime.rollup import Interval, Rollup
from edgebox.storage.periods import BOX, Period, Periods
from tests.runtime.endings import SECOND, answer, refusal

STREET = FamilyName("street")
VARIANTS = {
    VariantName(f"street-{px}"): Variant(VariantName(f"street-{px}"), STREET, px, px, 0.5)
    for px in (256, 608)
}
GATE, YARD = CameraId("gate"), CameraId("yard")


def make(metrics: Metrics, names_max: int = 99) -> Rollup:
    return Rollup(metrics, VARIANTS, names_max, lambda: None)


def take(
    rollup: Rollup, second: int, links: dict[CameraId, float | None]
) -> dict[CameraId, Period]:
    """Take a second that went by as it should."""
    (found,) = rollup.take(Interval(second * 1_000, second * SECOND, 1_000), links).values()
    return found


def summed(minutes: list[dict[int, Periods]], camera: CameraId) -> Period:
    total = Period()
    for found in minutes:
        for periods in found.values():
            if camera in periods:
                total.add(periods[camera])
    return total


def happen(camera: CameraMetrics, fact: str, now_ns: int) -> None:
    """Have one frame captured, and end as the fact says."""
    camera.captured(1, fact == "skip", now_ns)
    if fact == "skip":
        return
    camera.accepted(now_ns)
    camera.received(1000, (8000, 1_000_000))
    endings: dict[str, FrameResult] = {
        "answer": answer(),
        "late": answer(Outcome.LATE, "street-608", mismatched=True),
        "drop": refusal(DropReason.OVERLOAD),
    }
    camera.ended(endings[fact], now_ns)


FACT = st.tuples(
    st.sampled_from([GATE, YARD]), st.sampled_from(["answer", "late", "drop", "skip", "forget"])
)
SECONDS = st.lists(
    st.tuples(
        st.lists(FACT, max_size=6),
        # How the wall clock goes on: late timers, a step back by an hour, forward by a day.
        st.sampled_from([1, 1, 1, 0, 2, 59, 61, -3600, 86_400]),
        # How late the box came, ms.
        st.sampled_from([0, 0, 3, 700, 1_000, 4_300, 50_000]),
        st.sets(st.sampled_from([GATE, YARD])),
    ),
    max_size=30,
)


@given(SECONDS, st.booleans())
def test_minutes_add_up_to_the_counters_whatever_the_clock_does(
    seconds: list[tuple[list[tuple[CameraId, str]], int, int, set[CameraId]]], restarts: bool
) -> None:
    metrics = Metrics()
    rollup = make(metrics)
    taken: dict[CameraId, list[Period]] = {GATE: [], YARD: [], BOX: []}
    minutes: list[dict[int, Periods]] = []
    expected: Counter[tuple[CameraId, str]] = Counter()
    now_s = 1_790_000_000
    now_ns = elapsed_ms = 0
    for number, (facts, step, late_ms, connected) in enumerate(seconds):
        stretch = Interval(now_s * 1_000 + 250, now_ns, 1_000 + late_ms)
        elapsed_ms += stretch.elapsed_ms
        for camera, fact in facts:
            if fact == "forget":
                continue
            now_ns += stretch.elapsed_ms * 1_000_000 // (len(facts) + 1)
            happen(metrics.of(camera), fact, now_ns)
            for owner in (camera, BOX):
                expected[owner, fact] += 1
        now_ns = stretch.began_ns + stretch.elapsed_ms * 1_000_000
        for found in rollup.take(stretch, dict.fromkeys(connected, 1e6)).values():
            for name, period in found.items():
                taken[name].append(period)
        for camera, fact in facts:
            if fact == "forget":
                metrics.forget(camera)
        now_s += step
        minutes.append(rollup.finished(now_s))
        if restarts and number % 7 == 6:
            minutes.append(rollup.rest())
    minutes.append(rollup.rest())
    for name in (GATE, YARD, BOX):
        by_second = Period()
        for period in taken[name]:
            by_second.add(period)
        total = summed(minutes, name)
        assert total.captured == sum(expected[name, f] for f in ("answer", "late", "drop", "skip"))
        assert total.on_time == expected[name, "answer"]
        assert total.late == total.mismatches == expected[name, "late"]
        assert total.dropped["overload"] == expected[name, "drop"]
        assert total.dropped["sender"] == expected[name, "skip"]
        assert total.accepted == total.captured - total.dropped["sender"]
        assert total.received_bytes == 1000 * total.accepted
        assert total.variants["street-608"] == total.late
        assert total.latencies.sum() == 5 * (total.on_time + total.late)
        assert total.width_px_sum == 256 * total.on_time + 608 * total.late
        assert (total.latencies == by_second.latencies).all()
        assert total.covered_ms == by_second.covered_ms
    assert summed(minutes, BOX).covered_ms == elapsed_ms


def test_a_second_says_what_ran_and_what_the_uplink_carried() -> None:
    metrics = Metrics()
    gate = metrics.of(GATE)
    gate.captured(3, 0, SECOND)
    gate.received(5_000, (40_000, 10_000_000))
    gate.received(5_000, (40_000, 30_000_000))
    gate.received(5_000, None)
    for ending in (answer(), answer(variant="street-608"), refusal()):
        gate.ended(ending, SECOND)
    found = take(make(metrics), 1, {GATE: 3e6})
    period = found[GATE]
    assert period.variants == {"street-256": 1, "street-608": 1}
    assert period.width_px_sum == 256 + 608
    assert period.received_bytes == 15_000
    assert (period.measured.total, period.measured.weight) == (80_000, 40_000)
    assert (period.measured.least, period.measured.most) == (1_333_333, 4_000_000)
    assert (period.estimated.total, period.estimated.weight) == (3_000_000, 1)
    assert period.connected_ms == found[BOX].connected_ms == 1_000
    assert found[BOX].measured.weight == 0, "uplinks of different cameras have no common rate"


def test_a_camera_that_is_there_and_silent_has_a_period_and_one_that_left_has_none() -> None:
    metrics = Metrics()
    metrics.of(GATE)
    metrics.of(YARD)
    rollup = make(metrics)
    found = take(rollup, 0, {GATE: None})
    assert set(found) == {BOX, GATE}
    assert found[GATE].covered_ms == 1_000


def test_a_forgotten_camera_leaves_the_minute_that_runs_and_the_box_keeps_its_frames() -> None:
    metrics = Metrics()
    rollup = make(metrics)
    for camera in (GATE, YARD):
        happen(metrics.of(camera), "answer", 0)
    take(rollup, 0, {})
    # What was counted since the last second is of the box as well.
    happen(metrics.of(GATE), "late", SECOND)
    metrics.forget(GATE)
    rollup.forget(GATE)
    take(rollup, 1, {})
    minutes = rollup.finished(60)
    assert set(minutes[0]) == {BOX, YARD}
    box = minutes[0][BOX]
    assert (box.captured, box.on_time, box.late) == (3, 2, 1)
    assert box.width_px_sum == 2 * 256 + 608
    # One of the same name begins anew.
    happen(metrics.of(GATE), "answer", 60 * SECOND)
    take(rollup, 60, {})
    assert rollup.rest()[1][GATE].captured == 1


def test_a_minute_ends_once() -> None:
    metrics = Metrics()
    rollup = make(metrics)
    metrics.of(GATE).captured(1, 1, SECOND)
    take(rollup, 59, {})
    assert rollup.finished(59) == {}
    assert set(rollup.finished(60)) == {0}
    assert rollup.finished(60) == rollup.rest() == {}


def test_endless_names_get_rows_for_so_many_an_hour_and_the_box_counts_them_all() -> None:
    metrics = Metrics()
    full: list[str] = []
    rollup = Rollup(metrics, VARIANTS, 5, lambda: full.append("told"))
    rng = random.Random(1)
    metrics.of(GATE).captured(1, 1, SECOND)
    names: set[CameraId] = set()
    for second in range(3_600):
        metrics.of(GATE).captured(1, 1, SECOND)
        metrics.of(CameraId(f"x{rng.random()}")).captured(1, 1, SECOND)
        names |= set(take(rollup, second, {}))
    assert len(names) == 6
    assert GATE in names
    assert full == ["told"]
    assert summed([rollup.rest()], BOX).captured == 7_201
    metrics.of(GATE).captured(1, 1, SECOND)
    metrics.of(YARD).captured(1, 1, SECOND)
    assert set(take(rollup, 3_600, {})) == {BOX, GATE, YARD}, "a new hour, new names"


def test_a_box_that_missed_seconds_tells_them_apart_afterwards() -> None:
    metrics = Metrics()
    gate = metrics.of(GATE)
    rollup = make(metrics)
    # The wall clock's seconds begin a quarter after this one's; the box came 2.5 s too late.
    for at_ms in (10_300, 10_900, 11_500, 13_100):
        gate.captured(1, 0, at_ms * 1_000_000)
    found = rollup.take(Interval(60_250, 10_250 * 1_000_000, 3_500), {GATE: 2e6})
    assert {second: periods[BOX].covered_ms for second, periods in found.items()} == {
        60: 750, 61: 1_000, 62: 1_000, 63: 750
    }  # fmt: skip
    assert [periods[GATE].captured for periods in found.values()] == [2, 1, 0, 1]
    assert [periods[GATE].connected_ms for periods in found.values()] == [750, 1_000, 1_000, 750]
    assert [periods[GATE].estimated.weight for periods in found.values()] == [1, 1, 1, 1]


def test_a_box_that_was_stopped_has_a_gap_and_loses_no_frame() -> None:
    metrics = Metrics()
    metrics.of(GATE).captured(1, 0, 0)
    metrics.of(GATE).captured(1, 0, 7_199 * SECOND)
    found = make(metrics).take(Interval(0, 0, 7_200_000), {GATE: None})
    assert {second: periods[GATE].captured for second, periods in found.items()} == {0: 1, 7_199: 1}
    assert {second: periods[BOX].covered_ms for second, periods in found.items()} == {
        0: 1_000, 7_199: 1_000
    }  # fmt: skip
