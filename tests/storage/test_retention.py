"""What the database forgets, by age and by size, in real files under a moved clock."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from benchmarks.synthetic_history import minute, period
from edgebox.domain.requests import CameraId
from edgebox.storage.database import Limits, Storage
from edgebox.storage.levels import HOUR, MINUTE, SECOND
from edgebox.storage.periods import BOX, Period, Periods
from edgebox.storage.retention import CAMERAS_MAX, EVENTS_MAX, EVENTS_SLACK, Retention
from tests.conftest import WallClock

DAY_MS = 86_400_000
DAY = 1440
T = 1_790_000_000_000 // DAY_MS * DAY_MS
GATE = CameraId("gate-0")
CAMERAS = 16


def made_up_minutes(count: int, cameras: int) -> Callable[[int], Periods]:
    """Return what gives a minute by its number, drawn from some that were made up before."""
    rng = np.random.default_rng(1)
    pool = [period(rng) for _ in range(4 * count)]
    minutes = [minute(pool, rng, cameras) for _ in range(count)]
    return lambda number: minutes[number * 7919 % count]


async def live(storage: Storage, clock: WallClock, days: int, cameras: int = CAMERAS) -> None:
    """Have a box's minutes recorded, an hour in each transaction, and tidied up once a day."""
    of = made_up_minutes(50, cameras)
    for _ in range(days):
        for _ in range(24):
            begin = clock.ms // 60_000
            storage.history.record_minutes({n: of(n) for n in range(begin, begin + 60)})
            clock.ms += 3_600_000
            assert await storage.flush()
        await storage.tidy(by_age=True)


def size_bytes(path: Path) -> int:
    """Return what the file and its log take."""
    return sum(
        file.stat().st_size for file in (path, path.with_name(path.name + "-wal")) if file.exists()
    )


async def count(storage: Storage, table: str) -> int:
    ((number,),) = await storage._writer.execute(f"SELECT count(*) FROM {table}")
    return int(number)


async def test_a_month_of_sixteen_cameras(tmp_path: Path) -> None:
    """Every minute of 16 cameras and the box at 10 frames/s, as the box writes them.

    Every day adds the same rows to the file, and the log does not grow: three days tell of thirty.
    """
    path, clock = tmp_path / "box.sqlite3", WallClock(T)
    storage = await Storage.open(path, now_ms=clock, buffer_rows_max=50_000)
    await live(storage, clock, 3)
    log_bytes = size_bytes(path) - path.stat().st_size
    month = 10 * path.stat().st_size + log_bytes
    print(f"30 days of {CAMERAS} cameras: {month / 1e6:.0f} MB")
    try:
        assert await count(storage, "history_minute") == 3 * DAY * (CAMERAS + 1)
        assert await count(storage, "history_hour") == 3 * 24 * (CAMERAS + 1)
        assert 150e6 < month < 330e6
        chart = json.loads(await storage.history.chart(GATE, clock.ms - 3 * DAY_MS, clock.ms, 300))
        assert sum(n or 0 for n in chart["captured"]) == 3 * DAY * 600
    finally:
        await storage.close()


async def test_age_takes_minutes_then_hours_and_the_file_shrinks(tmp_path: Path) -> None:
    path, clock = tmp_path / "box.sqlite3", WallClock(T)
    storage = await Storage.open(path, limits=Limits(minute_days=1, hour_days=3), now_ms=clock)
    try:
        await live(storage, clock, 2, cameras=5)
        two_days_bytes = size_bytes(path)
        await live(storage, clock, 3, cameras=5)
        minutes = await storage.history.periods(MINUTE, GATE)
        assert clock.ms // 60_000 - min(minutes) == DAY
        hours = await storage.history.periods(HOUR, GATE)
        assert clock.ms // 3_600_000 - min(hours) == 72
        assert size_bytes(path) < 1.5 * two_days_bytes, "what is freed is used again"
        clock.ms += 2 * DAY_MS
        await storage.tidy(by_age=True)
        await storage.tidy(by_age=True)
        assert await storage.history.periods(MINUTE, GATE) == {}
        assert size_bytes(path) < 0.4 * two_days_bytes, "and given back"
        clock.ms += 30 * DAY_MS
        for _ in range(4):
            await storage.tidy(by_age=True)
        assert await count(storage, "history_names") == 1, "of the box"
    finally:
        await storage.close()


async def test_a_clock_that_is_wrong_for_an_hour_costs_a_day_not_all(tmp_path: Path) -> None:
    clock = WallClock(T)
    storage = await Storage.open(tmp_path / "box.sqlite3", limits=Limits(), now_ms=clock)
    try:
        for day in range(3):
            storage.record_event("info", f"day {day}")
            await live(storage, clock, 1, cameras=1)
        clock.ms += 20_000 * DAY_MS
        await storage.tidy(by_age=True)
        assert len(await storage.history.periods(MINUTE, GATE)) == 2 * DAY
        assert [event.text for event in await storage.events(9)] == ["day 2", "day 1"]
    finally:
        await storage.close()


async def test_the_file_stays_below_its_limit_and_the_finest_goes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Few enough that hours would be deleted if they came first.
    monkeypatch.setattr("edgebox.storage.retention._SLICE_ROWS", 300)
    path, clock = tmp_path / "box.sqlite3", WallClock(T)
    limits = Limits(size_max_bytes=16_000_000)
    storage = await Storage.open(path, limits=limits, now_ms=clock)
    try:
        for _ in range(4):
            await live(storage, clock, 1, cameras=8)
            assert size_bytes(path) <= limits.size_max_bytes
        minutes = await storage.history.periods(MINUTE, GATE)
        assert 0 < len(minutes) < 3 * DAY
        assert max(minutes) == clock.ms // 60_000 - 1, "the newest are there"
        assert len(await storage.history.periods(HOUR, GATE)) == 4 * 24, "all hours are"
    finally:
        await storage.close()


async def test_endless_names_do_not_grow_the_file(tmp_path: Path) -> None:
    """A client that comes under a new name every 0.6 s, for half a day: 72,000 names.

    Hellos and events come with each; of history, 128 names an hour, as `Rollup` lets through.
    """
    path, clock = tmp_path / "box.sqlite3", WallClock(T)
    limits = Limits(size_max_bytes=32_000_000)
    storage = await Storage.open(path, limits=limits, now_ms=clock, buffer_rows_max=50_000)
    short = Period(covered_ms=100, connected_ms=100, captured=1, on_time=1)
    hello = {"app": "x" * 64, "family": "street", "slo_ms": 300, "agent": "y" * 64}
    try:
        storage.history.record_minutes({T // 60_000: {GATE: short}})
        for hour in range(12):
            names = [CameraId(f"camera-{hour}-{number}") for number in range(6_000)]
            # Apart, for rows of one kind that follow each other are written at once.
            for name in names:
                storage.record_camera(name, hello)
            for name in names:
                storage.record_event("info", f"{name} connected from 10.0.0.9", name)
            assert await storage.flush()
            await storage.tidy(by_age=False)
            assert size_bytes(path) <= limits.size_max_bytes
            storage.history.record_minutes(
                {clock.ms // 60_000 + at: {name: short} for at, name in enumerate(names[:128])}
            )
            clock.ms += 3_600_000
        assert await storage.flush()
        await storage.tidy(by_age=True)
        assert storage.lost_rows == 0
        assert await count(storage, "events") <= EVENTS_MAX
        assert await count(storage, "cameras") <= CAMERAS_MAX
        assert len(await storage.history.periods(HOUR, GATE)) == 1, "others' history is there"
    finally:
        await storage.close()


@pytest.mark.parametrize("by_size", [False, True])
async def test_cameras_that_are_set_fetched_or_connected_are_not_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_size: bool
) -> None:
    clock = WallClock(T)
    limits = Limits(size_max_bytes=1) if by_size else Limits()
    storage = await Storage.open(tmp_path / "box.sqlite3", now_ms=clock)
    storage._retention = Retention(storage._writer, limits)
    monkeypatch.setattr("edgebox.storage.retention._SLICE_ROWS", 7)
    monkeypatch.setattr("edgebox.storage.retention.CAMERAS_MAX", 4)
    try:
        for name in ("set", "cleared", "fetched", "connected"):
            storage.record_camera(CameraId(name), {})
        storage.set_camera(CameraId("set"), {"slo_ms": 700, "app": None})
        storage.set_camera(CameraId("cleared"), {"slo_ms": None})
        storage.sources.record(CameraId("fetched"), {"url": "rtsp://x/y"})
        for number in range(9):
            clock.ms += 60_000
            storage.record_camera(CameraId(f"new-{number}"), {})
        clock.ms += 60_000
        storage.see_cameras([CameraId("connected")])
        assert await storage.flush()
        await storage.tidy(by_age=False)
        left = {str(each.camera) for each in await storage.cameras()}
        assert {"set", "fetched"} <= left
        assert by_size or left == {"set", "fetched", "connected", "new-8"}
    finally:
        await storage.close()


async def test_seconds_are_kept_for_their_time_and_not_ahead_of_it(tmp_path: Path) -> None:
    clock = WallClock(T)
    storage = await Storage.open(
        tmp_path / "box.sqlite3", limits=Limits(second_minutes=1), now_ms=clock
    )
    try:
        for at_ms in (T - 90_000, T - 30_000, T + 30_000, T + 3_600_000):
            storage.history.record_second(at_ms // 1000, {BOX: Period(1_000)})
        await storage.flush()
        await storage.tidy(by_age=False)
        seconds = await storage.history.periods(SECOND, BOX)
        assert [at * 1000 - T for at in seconds] == [-30_000, 30_000]
    finally:
        await storage.close()


async def test_a_file_of_an_earlier_release_shrinks_as_well(tmp_path: Path) -> None:
    path, clock = tmp_path / "box.sqlite3", WallClock(T)
    await (await Storage.open(path, now_ms=clock)).close()
    with sqlite3.connect(path, isolation_level=None) as raw:
        raw.execute("PRAGMA journal_mode = DELETE")
        raw.execute("PRAGMA auto_vacuum = NONE")
        raw.execute("VACUUM")
        assert raw.execute("PRAGMA auto_vacuum").fetchone() == (0,)
    raw.close()
    storage = await Storage.open(path, now_ms=clock)
    try:
        assert [tuple(r) for r in await storage._writer.execute("PRAGMA auto_vacuum")] == [(2,)]
    finally:
        await storage.close()


async def test_events_stay_within_their_number_between_two_looks(tmp_path: Path) -> None:
    storage = await Storage.open(tmp_path / "box.sqlite3", buffer_rows_max=200_000)
    try:
        for number in range(EVENTS_MAX + 3 * EVENTS_SLACK):
            storage.record_event("warning", f"boo {number}", GATE)
            if number % 10_000 == 0:
                assert await storage.flush()
        assert await storage.flush()
        assert EVENTS_MAX - EVENTS_SLACK <= await count(storage, "events") <= EVENTS_MAX
        (newest,) = await storage.events(1)
        assert newest.text == f"boo {EVENTS_MAX + 3 * EVENTS_SLACK - 1}"
    finally:
        await storage.close()
