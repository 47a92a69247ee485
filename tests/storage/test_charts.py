"""Charts: segments cover the span within the points; figures are those of the rows."""

import itertools
import json
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.synthetic_history import latencies_ns, period
from edgebox.domain.errors import StorageError, UnknownNameError
from edgebox.domain.latency_histogram import HISTORY_BUCKETS, PARTS
from edgebox.domain.requests import CameraId
from edgebox.storage.charts import CHART_CLASSES_MAX, POINTS_MIN, STEPS_MS, Kept, segments
from edgebox.storage.database import Storage
from edgebox.storage.levels import HOUR, MINUTE, SECOND
from edgebox.storage.periods import (
    BOX,
    CLASS_FRAMES,
    CLASSES_MAX,
    Extent,
    Period,
    latency_counts,
)

GATE = CameraId("gate")
T = 1_790_000_000_000 // 86_400_000 * 86_400_000
INSTANT = st.integers(T - 86_400_000 * 400, T + 86_400_000)


KEPT = st.builds(
    lambda second_ms, minute_ms, hour_ms, until_ms: Kept(
        second_ms,
        minute_ms,
        hour_ms and hour_ms // 3_600_000 * 3_600_000,
        until_ms // 60_000 * 60_000,
    ),
    st.none() | INSTANT,
    st.none() | INSTANT,
    st.none() | INSTANT,
    INSTANT,
)


@given(INSTANT, st.integers(1, 400 * 86_400_000), st.integers(POINTS_MIN, 2_000), KEPT)
def test_segments_cover_the_span_once_within_the_points(
    from_ms: int, span_ms: int, points: int, kept: Kept
) -> None:
    found = segments(from_ms, from_ms + span_ms, points, kept)
    assert sum(segment.points for segment in found) <= points
    assert found[0].begin_ms <= from_ms
    assert found[-1].end_ms == from_ms + span_ms
    for one, following in itertools.pairwise(found):
        assert one.end_ms == following.begin_ms
        assert one.level.step_ms > following.level.step_ms or following.level is SECOND
        # No row is in two segments: hours and minutes hold nothing from `until_ms` on.
        assert one.end_ms % one.level.step_ms == 0 or one.end_ms == kept.until_ms
    for segment in found:
        assert segment.begin_ms % segment.level.step_ms == 0
        assert segment.step_ms % segment.level.step_ms == 0
        assert segment.step_ms in STEPS_MS


@pytest.mark.parametrize(
    ("span_ms", "level", "step_ms"),
    [
        (60_000, SECOND, 1_000),
        (900_000, SECOND, 5_000),
        (3_600_000, SECOND, 15_000),
        (6 * 3_600_000, MINUTE, 120_000),
        (86_400_000, MINUTE, 300_000),
        (7 * 86_400_000, HOUR, 3_600_000),
        (30 * 86_400_000, HOUR, 3 * 3_600_000),
    ],
)
def test_the_usual_ranges(span_ms: int, level: object, step_ms: int) -> None:
    kept = Kept(T - 3_700_000, T - 40 * 86_400_000, T - 90 * 86_400_000, T)
    (segment,) = segments(T - span_ms, T, 300, kept)
    assert (segment.level, segment.step_ms) == (level, step_ms)


def test_after_a_restart_the_minutes_tell_what_the_seconds_forgot() -> None:
    kept = Kept(T - 600_000, T - 86_400_000, T - 90 * 86_400_000, T)
    minutes, seconds = segments(T - 3_600_000, T, 300, kept)
    assert (minutes.level, minutes.step_ms, minutes.end_ms) == (MINUTE, 60_000, T - 600_000)
    assert (seconds.level, seconds.step_ms) == (SECOND, 15_000)


def test_a_chart_that_begins_after_the_first_second_is_read_by_the_second() -> None:
    """Of a box that has just started: the whole minute of its start would be one step."""
    kept = Kept(T - 70_000, T - 86_400_000, T - 90 * 86_400_000, T)
    (segment,) = segments(T - 65_000, T - 5_000, 300, kept)
    assert (segment.level, segment.begin_ms) == (SECOND, T - 65_000)


@pytest.mark.parametrize("span_ms", [3_600_000, 6 * 3_600_000, 86_400_000])
def test_a_box_younger_than_the_range_is_read_by_the_minute(span_ms: int) -> None:
    kept = Kept(T - 600_000, T - 1_500_000, T - 3_600_000, T)
    found = segments(T - span_ms, T, 300, kept)
    assert found[0].level is MINUTE
    assert found[0].begin_ms == T - span_ms
    older = Kept(T - 600_000, T - 1_500_000, T - 7_200_000, T)
    assert segments(T - 2 * 3_600_000, T, 300, older)[0].level is HOUR


@pytest.fixture
async def storage(tmp_path: Path) -> AsyncIterator[Storage]:
    opened = await Storage.open(tmp_path / "box.sqlite3", now_ms=lambda: T)
    yield opened
    await opened.close()


@pytest.mark.parametrize("seed", range(3))
async def test_quantiles_of_an_hour_are_those_of_all_its_answers(
    storage: Storage, seed: int
) -> None:
    """Exact quantiles of all answers are the judge, not quantiles of quantiles."""
    rng = np.random.default_rng(seed)
    exact = []
    for minute in range(180):
        # Busy minutes are slow ones: an average of their P99 would be far off.
        busy = rng.random() < 0.2
        ns = latencies_ns(rng, 900 if busy else 30) * (3 if busy else 1)
        exact.append(ns)
        answers = Period(covered_ms=60_000, on_time=len(ns), latencies=latency_counts(ns))
        storage.history.record_minutes({T // 60_000 - 180 + minute: {GATE: answers}})
    await storage.flush()
    for points in (10, 300):
        chart = json.loads(await storage.history.chart(GATE, T - 10_800_000, T, points))
        (segment,) = chart["segments"]
        per_step = segment["step_ms"] // 60_000
        for step in range(segment["points"]):
            answers_ms = np.concatenate(exact[step * per_step : (step + 1) * per_step]) / 1e6
            for name, q in (("p50", 0.5), ("p99", 0.99)):
                right = np.quantile(answers_ms, q, axis=0, method="inverted_cdf")
                for part, right_ms in zip(PARTS, right, strict=True):
                    read_ms = chart["latency_ms"][name][part][step]
                    assert (
                        abs(read_ms - right_ms) <= HISTORY_BUCKETS.relative_error * right_ms + 0.01
                    )


async def test_the_span_of_a_history_is_from_its_first_row_to_its_last(storage: Storage) -> None:
    history = storage.history
    yard, dock = CameraId("yard"), CameraId("dock")
    first, last = T // 60_000 - 180, T // 60_000 - 120
    for minute in (first, last - 1):
        history.record_minutes({minute: {GATE: Period(60_000)}})
    history.record_minutes({first - 600: {yard: Period(60_000)}})
    history.record_second(T // 1000 - 9, {dock: Period(1_000)})
    await storage.flush()
    assert await history.span_ms(GATE) == (first * 60_000, last * 60_000)
    assert await history.span_ms(yard) == ((first - 600) * 60_000, (first - 540) * 60_000)
    assert await history.span_ms(dock) == (T - 9_000, T - 8_000)
    assert await history.span_ms(CameraId("none")) is None


async def test_every_level_adds_up_to_the_same(storage: Storage) -> None:
    """The same three hours as seconds, minutes and hours: every chart has the same sums."""
    rng = np.random.default_rng(5)
    total = Period()
    for minute in range(T // 60_000 - 180, T // 60_000):
        one = period(rng)
        one.tracked.update({"in/entry": minute % 3, "out/entry": 1})
        one.classes.update({CLASS_FRAMES: 4, "person": 4 * (minute % 5), "car": 4})
        total.add(one)
        storage.history.record_minutes({minute: {GATE: one, BOX: one}})
        storage.history.record_second(minute * 60, {GATE: one, BOX: one})
    await storage.flush()
    charts = [
        json.loads(await storage.history.chart(camera, T - span_ms, T, points))
        for camera in (GATE, BOX)
        for span_ms, points in (
            (10_800_000, 2_000), (10_800_000, 300), (10_800_000, 10), (30 * 86_400_000, 300)
        )
    ]  # fmt: skip
    assert {segment["level"] for chart in charts for segment in chart["segments"]} == {
        "second", "minute", "hour"
    }  # fmt: skip
    for chart in charts:
        for name in ("captured", "accepted", "on_time", "late", "mismatches", "covered_ms"):
            assert sum(n or 0 for n in chart[name]) == getattr(total, name)
        for reason, column in chart["dropped"].items():
            assert sum(n or 0 for n in column) == total.dropped[reason]
        for variant, column in chart["variants"].items():
            assert sum(n or 0 for n in column) == total.variants[variant]
        if chart["camera"] is not None:
            for way in ("in", "out"):
                crossed = sum(n or 0 for n in chart["lines"]["entry"][way])
                assert crossed == total.tracked[f"{way}/entry"] > 0
            assert list(chart["classes"]) == ["person", "car"]
            assert {n for n in chart["classes"]["car"] if n is not None} == {1}
        measured = chart["bandwidth_bps"]["measured"]
        assert min(n for n in measured["min"] if n is not None) == total.measured.least
        assert max(n for n in measured["max"] if n is not None) == total.measured.most
        columns = [chart["at_ms"], chart["fps"], chart["captured"], measured["mean"]]
        assert len({len(column) for column in columns}) == 1
        assert chart["at_ms"] == sorted(set(chart["at_ms"]))


async def test_figures_of_a_step_and_gaps(storage: Storage) -> None:
    minute = T // 60_000 - 60
    there = Period(
        covered_ms=60_000, connected_ms=30_000, captured=600, on_time=540, late=30,
        width_px_sum=570 * 256, received_bytes=7_500_000,
        measured=Extent(1_000_000, 250_000, 1, 9), estimated=Extent(600, 3, 100, 300),
    )  # fmt: skip
    there.dropped["queue"] = 30
    there.variants["street-256"] = 570
    there.classes.update({CLASS_FRAMES: 400, "car": 100, "person": 600})
    there.tracked.update({"frames/yard": 400, "objects/yard": 500, "in/entry": 0, "out/entry": 2})
    storage.history.record_minutes({minute: {GATE: there}, minute + 2: {GATE: Period(60_000)}})
    await storage.flush()
    chart = json.loads(
        await storage.history.chart(GATE, minute * 60_000, (minute + 4) * 60_000, 10)
    )
    assert chart["camera"] == "gate"
    assert chart["at_ms"] == [(minute + k) * 60_000 for k in range(4)]
    assert chart["captured"] == [600, None, 0, None]
    assert chart["fps"] == [9.5, None, 0, None]
    assert chart["connected"] == [0.5, None, 0, None]
    assert chart["dropped"] == {"queue": [30, None, 0, None]}
    assert chart["variants"] == {"street-256": [570, None, 0, None]}
    assert chart["zones"] == {"yard": [1.25, None, None, None]}
    assert chart["classes"] == {"person": [1.5, None, None, None], "car": [0.25, None, None, None]}
    assert chart["lines"] == {"entry": {"in": [0, None, 0, None], "out": [2, None, 0, None]}}
    assert chart["width_px"] == [256, None, None, None]
    assert chart["received_bps"] == [1e6, None, 0, None]
    assert chart["bandwidth_bps"]["measured"]["mean"] == [4e6, None, None, None]
    assert chart["bandwidth_bps"]["estimated"] == {
        "mean": [200, None, None, None],
        "min": [100, None, None, None],
        "max": [300, None, None, None],
    }
    assert chart["latency_ms"]["p50"]["total"] == [None] * 4


async def test_a_camera_that_sees_very_many_classes_keeps_the_most_frequent(
    storage: Storage,
) -> None:
    minute = T // 60_000 - 60
    for number in range(3):
        seen = Period(60_000, on_time=10)
        seen.classes[CLASS_FRAMES] = 10
        seen.classes.update({f"rare-{number}-{n}": 1 for n in range(100)})
        seen.classes.update({f"class-{n}": 20 + n for n in range(12)})
        storage.history.record_minutes({minute + number: {GATE: seen}})
        storage.history.record_minutes({minute + number: {GATE: seen}})
    await storage.flush()
    for level in (MINUTE, HOUR):
        for row in (await storage.history.periods(level, GATE)).values():
            assert len(json.loads(row["classes"])) <= CLASSES_MAX + 1
    chart = json.loads(await storage.history.chart(GATE, T - 86_400_000, T, 300))
    assert list(chart["classes"]) == [f"class-{11 - n}" for n in range(CHART_CLASSES_MAX)]
    assert max(n for n in chart["classes"]["class-11"] if n is not None) == 3.1


async def test_a_camera_nobody_knows(storage: Storage) -> None:
    with pytest.raises(UnknownNameError, match="nobody"):
        await storage.history.check_camera(CameraId("nobody"))
    chart = json.loads(await storage.history.chart(BOX, T - 3_600_000, T, 300))
    assert chart["camera"] is None
    assert set(chart["captured"]) == {None}


async def test_a_damaged_row_is_a_clear_error(storage: Storage) -> None:
    storage.history.record_minutes({T // 60_000 - 120: {GATE: period(np.random.default_rng(1))}})
    await storage.flush()
    await storage._writer.execute("UPDATE history_minute SET latencies = x'00'")
    with pytest.raises(StorageError, match="gate: packed counts are damaged"):
        await storage.history.chart(GATE, T - 6 * 3_600_000, T, 300)
