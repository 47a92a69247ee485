"""The recorder against a real database: what was counted is kept, whatever the clocks do."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from edgebox.domain.requests import CameraId
from edgebox.runtime.frame_metrics import Metrics
from edgebox.runtime.history_recorder import HistoryRecorder
from edgebox.runtime.rollup import Rollup
from edgebox.storage.database import Storage
from edgebox.storage.levels import HOUR, MINUTE, SECOND
from edgebox.storage.periods import BOX
from tests.runtime.endings import answer

GATE = CameraId("gate")
DAY_MS = 86_400_000


class Clocks:
    """A wall clock that can be set, and one that cannot."""

    def __init__(self) -> None:
        self.wall_ms = 1_790_000_000_000 // DAY_MS * DAY_MS
        self.ns = 0

    def pass_ms(self, ms: int) -> None:
        self.wall_ms += ms
        self.ns += ms * 1_000_000


class Life:
    """One run of a box's recorder."""

    def __init__(self, storage: Storage, clocks: Clocks, on_minute: Callable[[], None]) -> None:
        self.metrics = Metrics()
        self.connected: dict[CameraId, float | None] = {GATE: 2e6}
        self.clocks = clocks
        self.recorder = HistoryRecorder(
            Rollup(self.metrics, {}, 9, lambda: None),
            storage.history,
            links=lambda: self.connected,
            on_minute=on_minute,
            wall_ms=lambda: clocks.wall_ms,
            clock_ns=lambda: clocks.ns,
        )

    def live(self, seconds: int, ms: int = 1_000) -> None:
        for _ in range(seconds):
            gate = self.metrics.of(GATE)
            gate.captured(1, 0, self.clocks.ns)
            gate.ended(answer(), self.clocks.ns)
            self.clocks.pass_ms(ms)
            self.recorder.tick()


async def captured(storage: Storage, camera: CameraId) -> list[int]:
    """Return what the minutes, and what the hours of a camera add up to."""
    return [
        sum(row["captured"] for row in (await storage.history.periods(level, camera)).values())
        for level in (MINUTE, HOUR)
    ]


@pytest.mark.parametrize("step_ms", [-3_600_000, DAY_MS, -40 * DAY_MS, 500, -500, 0])
async def test_a_clock_that_is_set_loses_nothing(tmp_path: Path, step_ms: int) -> None:
    clocks = Clocks()
    storage = await Storage.open(tmp_path / "box.sqlite3", now_ms=lambda: clocks.wall_ms)
    life = Life(storage, clocks, lambda: None)
    life.live(90)
    clocks.wall_ms += step_ms
    life.live(150)
    life.recorder.close()
    await storage.flush()
    for camera in (GATE, BOX):
        assert await captured(storage, camera) == [240, 240]
        for level in (SECOND, MINUTE, HOUR):
            rows = await storage.history.periods(level, camera)
            assert sum(row["covered_ms"] for row in rows.values()) == 240_000
    await storage.close()


@pytest.mark.parametrize("step_ms", [-20_000 * DAY_MS, -3_600_000, 3_600_000, 20_000 * DAY_MS])
async def test_charts_show_what_was_before_a_clock_was_wrong_for_a_while(
    tmp_path: Path, step_ms: int
) -> None:
    clocks = Clocks()
    storage = await Storage.open(tmp_path / "box.sqlite3", now_ms=lambda: clocks.wall_ms)
    life = Life(storage, clocks, lambda: None)
    life.live(130)
    clocks.wall_ms += step_ms
    life.live(10)
    clocks.wall_ms -= step_ms
    life.live(10)
    await storage.flush()
    for range_ms in (3_600_000, DAY_MS, 30 * DAY_MS):
        chart = json.loads(
            await storage.history.chart(GATE, clocks.wall_ms - range_ms, clocks.wall_ms, 300)
        )
        # The last second before a step belongs to the clock before it.
        assert sum(n or 0 for n in chart["captured"]) >= 140, chart["segments"]
    await storage.close()


async def test_a_forgotten_camera_has_no_history_when_its_minute_ends(tmp_path: Path) -> None:
    clocks = Clocks()
    storage = await Storage.open(tmp_path / "box.sqlite3", now_ms=lambda: clocks.wall_ms)
    life = Life(storage, clocks, lambda: None)
    life.live(30)
    # Counted since the last second, for the box alone.
    life.metrics.of(GATE).captured(1, 1, clocks.ns)
    life.connected.clear()
    life.metrics.forget(GATE)
    life.recorder.forget(GATE)
    storage.forget_camera(GATE)
    for _ in range(60):
        clocks.pass_ms(1_000)
        life.recorder.tick()
    await storage.flush()
    for level in (SECOND, MINUTE, HOUR):
        assert await storage.history.periods(level, GATE) == {}
    assert await captured(storage, BOX) == [31, 31]
    await storage.close()


async def test_seconds_that_a_busy_box_missed_are_no_gaps(tmp_path: Path) -> None:
    clocks = Clocks()
    storage = await Storage.open(tmp_path / "box.sqlite3", now_ms=lambda: clocks.wall_ms)
    life = Life(storage, clocks, lambda: None)
    begin_ms = clocks.wall_ms
    for late_ms in (0, 400, 2_300, 1_000, 0):
        life.live(2, 1_000 + late_ms)
    life.recorder.close()
    await storage.flush()
    end_ms = clocks.wall_ms
    for camera in (GATE, BOX):
        rows = await storage.history.periods(SECOND, camera)
        assert sorted(rows) == list(range(begin_ms // 1_000, -(-end_ms // 1_000)))
        assert sum(row["captured"] for row in rows.values()) == 10
        assert sum(row["covered_ms"] for row in rows.values()) == end_ms - begin_ms
    await storage.close()


async def test_a_restart_within_a_minute_adds_to_it(tmp_path: Path) -> None:
    clocks = Clocks()
    for _ in range(3):
        storage = await Storage.open(tmp_path / "box.sqlite3", now_ms=lambda: clocks.wall_ms)
        life = Life(storage, clocks, lambda: None)
        life.live(10)
        life.recorder.close()
        await storage.close()
        clocks.pass_ms(5_000)
    storage = await Storage.open(tmp_path / "box.sqlite3")
    rows = await storage.history.periods(MINUTE, GATE)
    (row,) = rows.values()
    assert (row["captured"], row["covered_ms"]) == (30, 30_000)
    assert await captured(storage, GATE) == [30, 30]
    await storage.close()


async def test_minutes_are_written_as_they_end_and_charts_know_the_rest(tmp_path: Path) -> None:
    clocks = Clocks()
    ended: list[int] = []
    storage = await Storage.open(tmp_path / "box.sqlite3", now_ms=lambda: clocks.wall_ms)
    life = Life(storage, clocks, lambda: ended.append(clocks.wall_ms))
    begin_ms = clocks.wall_ms
    # Timers that are 0.3 s late, now and then early.
    life.live(100, 1_300)
    assert [at // 60_000 - begin_ms // 60_000 for at in ended] == [1, 2]
    await storage.flush()
    assert (
        sum(row["captured"] for row in (await storage.history.periods(MINUTE, BOX)).values()) < 100
    )
    for range_ms in (300_000, 6 * 3_600_000, 30 * DAY_MS):
        chart = json.loads(
            await storage.history.chart(GATE, clocks.wall_ms - range_ms, clocks.wall_ms, 300)
        )
        assert sum(n or 0 for n in chart["captured"]) == 100, chart["segments"]
        assert sum(n or 0 for n in chart["covered_ms"]) == 130_000
    await storage.close()
