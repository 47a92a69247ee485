"""Storage against real SQLite files: round trips, retention, refusals, and a disk that is full."""

import asyncio
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from edgebox.domain.core_factors import MeasuredCoreFactor
from edgebox.domain.errors import StorageError
from edgebox.domain.interference import MeasuredInterference
from edgebox.domain.model_family import (
    QUANTILES,
    AccuracyReport,
    ExecutorId,
    FamilyName,
    LatencyProfile,
    VariantName,
)
from edgebox.domain.requests import CameraId
from edgebox.storage.database import IN_MEMORY, Limits, Storage
from edgebox.storage.levels import HOUR, MINUTE, SECOND
from edgebox.storage.periods import Period
from edgebox.storage.rows import NEVER_SEEN_MS, CameraRecord, StoredEvent
from edgebox.storage.schema import MIGRATIONS
from tests.conftest import PATIENCE_S, WallClock

GATE = CameraId("gate-2")
DAY_MS = 86_400_000


def profile(variant: str, base_ns: int, sizes: tuple[int, ...] = (1, 2)) -> LatencyProfile:
    rows = {s: tuple(base_ns * s + i for i in range(len(QUANTILES))) for s in sizes}
    return LatencyProfile(VariantName(variant), ExecutorId("cpu/0"), rows)


async def until(condition: Callable[[], bool]) -> None:
    """Let the writer run until something is so."""
    while not condition():  # noqa: ASYNC110 - the storage tells nobody, so look
        await asyncio.sleep(0)


async def test_profiles_come_back_under_their_fingerprint_only(storage: Storage) -> None:
    profiles = [profile("street-128", 1_000_000), profile("street-256", 4_000_000, (1, 2, 4))]
    storage.save_profiles("one machine", profiles)
    assert await storage.flush()
    loaded = await storage.load_profiles("one machine")
    assert loaded == profiles
    assert await storage.load_profiles("another machine") == []


async def test_measuring_again_replaces_every_batch_size(storage: Storage) -> None:
    storage.save_profiles("m", [profile("street-128", 1_000_000, (1, 2, 4))])
    storage.save_profiles("m", [profile("street-128", 2_000_000, (1, 2))])
    await storage.flush()
    assert await storage.load_profiles("m") == [profile("street-128", 2_000_000, (1, 2))]


async def test_the_newest_profiles_are_found_by_how_their_fingerprint_ends(
    storage: Storage, clock: WallClock
) -> None:
    storage.save_profiles("old machine | street 1", [profile("street-128", 3_000_000)])
    clock.ms += 1
    storage.save_profiles("new machine | street 1", [profile("street-128", 1_000_000)])
    clock.ms += 1
    storage.save_profiles("new machine | street 11", [profile("street-128", 9_000_000)])
    await storage.flush()
    assert await storage.load_newest_profiles("| street 1") == [profile("street-128", 1_000_000)]
    assert await storage.load_newest_profiles("street 2") == []


async def test_accuracy_reports_are_kept_for_the_same_files_only(storage: Storage) -> None:
    street = FamilyName("street")
    small, large = VariantName("street-128"), VariantName("street-608")
    good = AccuracyReport(
        "mAP", 0.61, 0.004, "yard/val", 500, 1_790_000_000_000, "", {"mAP50": 0.8}
    )
    bad = AccuracyReport("F1", 0.2, 0.1, "camera gate-2", 30, 1_790_000_000_001, "no better", {})
    storage.save_accuracy_reports(street, "a1", {small: bad, large: good})
    await storage.flush()
    assert await storage.load_accuracy_reports(street, "a1") == {small: bad, large: good}
    assert await storage.load_accuracy_reports(street, "b2") == {}
    assert await storage.load_accuracy_reports(FamilyName("yard"), "a1") == {}
    storage.save_accuracy_reports(street, "b2", {small: good})
    await storage.flush()
    assert await storage.load_accuracy_reports(street, "a1") == {}
    assert await storage.load_accuracy_reports(street, "b2") == {small: good}


async def test_profiles_with_other_quantiles_are_not_believed(
    storage: Storage, tmp_path: Path
) -> None:
    storage.save_profiles("m", [profile("street-128", 1_000_000)])
    await storage.flush()
    with sqlite3.connect(tmp_path / "box.sqlite3") as other:
        other.execute("UPDATE profiles SET quantiles_ns = '[1,2,3]' WHERE batch_size = 2")
    (loaded,) = await storage.load_profiles("m")
    assert loaded.batch_sizes == (1,)


async def test_a_camera_keeps_its_first_hour_and_its_last_hello(
    storage: Storage, clock: WallClock
) -> None:
    first_ms = clock.ms
    storage.record_camera(GATE, {"slo_ms": 300})
    clock.ms += 5000
    storage.record_camera(GATE, {"slo_ms": 200})
    await storage.flush()
    assert await storage.cameras() == [
        CameraRecord(GATE, {"slo_ms": 200}, first_seen_ms=first_ms, last_seen_ms=clock.ms)
    ]


async def test_one_camera_is_read_without_the_others(storage: Storage) -> None:
    for name in ("gate", "yard"):
        storage.record_camera(CameraId(name), {"app": name})
    await storage.flush()
    gate = await storage.camera(CameraId("gate"))
    assert gate is not None
    assert gate.hello == {"app": "gate"}
    assert gate in await storage.cameras()
    assert await storage.camera(CameraId("door")) is None


async def test_events_are_read_newest_first(storage: Storage, clock: WallClock) -> None:
    storage.record_event("info", "the box is ready")
    storage.record_event("warning", "gate-2 is slow", GATE)
    await storage.flush()
    assert await storage.events(10) == [
        StoredEvent(2, clock.ms, "warning", "gate-2 is slow", GATE),
        StoredEvent(1, clock.ms, "info", "the box is ready", None),
    ]
    assert [e.text for e in await storage.events(1)] == ["gate-2 is slow"]


async def test_old_events_are_deleted(tmp_path: Path, clock: WallClock) -> None:
    path = tmp_path / "box.sqlite3"
    box = await Storage.open(path, limits=Limits(event_days=1), now_ms=clock)
    box.record_event("info", "old")
    clock.ms += 2 * DAY_MS
    box.record_event("info", "new")
    await box.flush()
    await box.tidy(by_age=True)
    assert [e.text for e in await box.events(9)] == ["new"]
    clock.ms += 2 * DAY_MS
    await box.close()
    looked_up = await Storage.open(path, now_ms=clock)
    await looked_up.flush()
    assert len(await looked_up.events(9)) == 1, "who only looks deletes nothing"
    await looked_up.close()
    reopened = await Storage.open(path, limits=Limits(event_days=1), now_ms=clock)
    async with asyncio.timeout(PATIENCE_S):
        while await reopened.events(9):
            pass  # the storage does it by itself, and tells nobody
    await reopened.close()


async def test_closing_writes_what_waits(tmp_path: Path) -> None:
    path = tmp_path / "box.sqlite3"
    box = await Storage.open(path)
    box.record_event("info", "the last word")
    await box.close()
    await box.close()
    reopened = await Storage.open(path)
    assert [e.text for e in await reopened.events(9)] == ["the last word"]
    await reopened.close()


async def test_in_memory_works_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where a file called ":memory:" would appear
    box = await Storage.open(IN_MEMORY)
    box.record_event("info", "hello")
    await box.flush()
    assert len(await box.events(9)) == 1
    await box.close()
    assert os.listdir(tmp_path) == []  # noqa: PTH208 - blocking is fine here


async def test_the_writer_writes_without_being_asked(tmp_path: Path) -> None:
    box = await Storage.open(tmp_path / "box.sqlite3")
    box.record_event("info", "hello")
    async with asyncio.timeout(PATIENCE_S):
        await until(lambda: box.waiting_rows == 0)
    assert len(await box.events(1)) == 1
    await box.close()


async def test_a_missing_folder_is_made(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "box.sqlite3"
    box = await Storage.open(path)
    await box.close()
    assert path.is_file()


async def test_the_schema_is_versioned_and_reopening_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / "box.sqlite3"
    for _ in range(2):
        await (await Storage.open(path)).close()
    with sqlite3.connect(path) as raw:
        assert raw.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)


# What cannot be used is refused, with a way out.


async def refusal(path: Path) -> str:
    with pytest.raises(StorageError) as caught:
        await Storage.open(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


async def test_only_the_databases_own_files_become_private(tmp_path: Path) -> None:
    own = [tmp_path / name for name in ("box", "box.corrupt-20260101-000000")]
    others = [tmp_path / "box-web", tmp_path / "boxes.txt"]
    others[0].mkdir()
    for file in (*own, others[1]):
        file.touch()
    for path in (*own, *others):
        path.chmod(0o755)
    await (await Storage.open(tmp_path / "box")).close()
    assert [path.stat().st_mode & 0o077 for path in own] == [0, 0]
    assert [path.stat().st_mode & 0o777 for path in others] == [0o755, 0o755]


async def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("these are notes, not a database, and they are long enough\n" * 20)
    assert "move it away" in await refusal(path)
    assert path.read_text().startswith("these are notes")


async def test_a_database_of_another_program(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite3"
    with sqlite3.connect(path) as raw:
        raw.execute("CREATE TABLE theirs (x)")
    assert "another program" in await refusal(path)


async def test_a_database_of_a_newer_edgebox(tmp_path: Path) -> None:
    path = tmp_path / "box.sqlite3"
    await (await Storage.open(path)).close()
    with sqlite3.connect(path) as raw:
        raw.execute("PRAGMA user_version = 99")
    assert "upgrade edgebox" in await refusal(path)


async def test_a_folder_in_the_files_place(tmp_path: Path) -> None:
    path = tmp_path / "folder"
    path.mkdir()
    assert "storage.path" in await refusal(path)


async def test_a_file_in_a_folders_place(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert "folder cannot be made" in await refusal(tmp_path / "file" / "box.sqlite3")


async def test_a_database_with_damaged_pages(tmp_path: Path) -> None:
    path = tmp_path / "box.sqlite3"
    await (await Storage.open(path)).close()
    content = path.read_bytes()
    with sqlite3.connect(path) as raw:
        schema = raw.execute(
            "SELECT pageno FROM dbstat WHERE name = 'sqlite_schema' ORDER BY pageno"
        ).fetchall()
    raw.close()
    intact = {number for (number,) in schema} | {2}  # the second says where pages belong
    pages = [content[at : at + 4096] for at in range(0, len(content), 4096)]
    path.write_bytes(
        b"".join(p if n in intact else b"\xff" * 4096 for n, p in enumerate(pages, start=1))
    )
    # SQLite only reads the pages it needs: the damage shows in use, and is reported there.
    box = await Storage.open(path, retry_s=3600.0)
    box.history.record_minutes({0: {GATE: Period(captured=1)}})
    assert not await box.flush()
    assert "malformed" in box.last_error
    with pytest.raises(StorageError, match="malformed"):
        await box.history.periods(MINUTE, GATE)
    with pytest.raises(StorageError, match="malformed"):
        await box.history.chart(GATE, 0, 60_000, 10)
    await box.close()


async def test_a_row_the_database_refuses_does_not_hold_back_the_others(storage: Storage) -> None:
    storage.record_event("info", "before")
    storage.record_event("loud", None)  # type: ignore[arg-type]  # NOT NULL
    storage.history.record_minutes({1: {GATE: Period(captured=1 << 70)}})  # no SQLite integer
    storage.record_event("info", "after")
    assert await storage.flush()
    assert [e.text for e in await storage.events(9)] == ["after", "before"]
    assert await storage.history.periods(MINUTE, GATE) == {}
    assert storage.lost_rows == 3, "the event, the minute and its part of the hour"
    assert storage.failures == 3


async def test_reading_a_closed_storage_is_a_clear_error(tmp_path: Path) -> None:
    box = await Storage.open(tmp_path / "box.sqlite3")
    await box.close()
    with pytest.raises(StorageError, match="cannot be read"):
        await box.events(1)


async def test_what_was_set_for_a_camera_stays_when_it_says_hello_again(storage: Storage) -> None:
    storage.record_overrides(GATE, {"slo_ms": 1})  # of a camera nobody has met: nothing
    storage.record_camera(GATE, {"slo_ms": 300})
    storage.record_overrides(GATE, {"slo_ms": 200})
    storage.record_camera(GATE, {"slo_ms": 400})
    await storage.flush()
    (known,) = await storage.cameras()
    assert (known.hello, known.overrides) == ({"slo_ms": 400}, {"slo_ms": 200})


async def test_what_was_set_for_a_camera_that_nobody_has_met_is_there_when_it_comes(
    storage: Storage,
) -> None:
    storage.set_camera(GATE, {"slo_ms": 700, "app": None})
    await storage.flush()
    (known,) = await storage.cameras()
    assert (known.first_seen_ms, known.last_seen_ms) == (NEVER_SEEN_MS, NEVER_SEEN_MS)
    assert (known.hello, known.overrides) == ({}, {"slo_ms": 700})
    storage.record_camera(GATE, {"slo_ms": 300})
    storage.set_camera(GATE, {"slo_ms": 800})
    await storage.flush()
    (known,) = await storage.cameras()
    assert known.first_seen_ms == known.last_seen_ms > NEVER_SEEN_MS
    assert (known.hello, known.overrides) == ({"slo_ms": 300}, {"slo_ms": 800})


async def test_a_forgotten_camera_leaves_nothing_and_the_others_everything(
    storage: Storage,
) -> None:
    other = CameraId("gate-3")
    for camera in (GATE, other):
        storage.record_camera(camera, {})
        storage.history.record_minutes({1: {camera: Period(captured=1)}})
        storage.history.record_second(60, {camera: Period(captured=1)})
        storage.record_event("info", "came", camera)
    storage.forget_camera(GATE)
    await storage.flush()
    assert [known.camera for known in await storage.cameras()] == [other]
    for level in (SECOND, MINUTE, HOUR):
        assert await storage.history.periods(level, GATE) == {}
        assert len(await storage.history.periods(level, other)) == 1
    assert [event.camera for event in await storage.events(9)] == [other]


async def test_events_are_read_page_by_page_and_by_what_they_are(storage: Storage) -> None:
    for number in range(6):
        storage.record_event("warning" if number % 2 else "info", str(number), GATE)
    storage.record_event("warning", "of the box")
    await storage.flush()
    first = await storage.events(3)
    assert [event.text for event in first] == ["of the box", "5", "4"]
    assert [event.text for event in await storage.events(9, before=first[-1].id)] == [
        "3", "2", "1", "0",
    ]  # fmt: skip
    warnings = await storage.events(2, camera=GATE, level="warning")
    assert [event.text for event in warnings] == ["5", "3"]


async def test_sizes_count_every_table(storage: Storage) -> None:
    storage.record_event("info", "one")
    storage.history.record_minutes({1: {GATE: Period()}, 2: {GATE: Period()}})
    await storage.flush()
    sizes = await storage.sizes()
    assert (sizes.rows["events"], sizes.rows["history_minute"], sizes.rows["cameras"]) == (1, 2, 0)
    assert sizes.database_bytes >= 4096


async def test_interference_is_known_only_beside_the_same_others() -> None:
    storage = await Storage.open(":memory:")
    small, large = VariantName("street-128"), VariantName("street-416")
    on = ExecutorId("cpu/0")
    street, vehicles = FamilyName("street"), FamilyName("vehicles")
    found = [
        MeasuredInterference(small, street, 1, 1.25),
        MeasuredInterference(small, vehicles, 1, 1.1),
        MeasuredInterference(large, street, 1, 1.5),
    ]
    storage.save_interference("m", on, "cpu/1", found)
    storage.save_interference(
        "m", ExecutorId("cpu/1"), "cpu/0", [MeasuredInterference(small, street, 1, 1.75)]
    )
    await storage.flush()
    loaded = await storage.load_interference("m", on, "cpu/1")
    assert set(loaded) == set(found) and len(loaded) == 3
    assert await storage.load_interference("m", on, "cpu/1 | cpu/2") == []
    assert await storage.load_interference("another", on, "cpu/1") == []
    found = [
        MeasuredInterference(of, street, n, 1 + n / 10) for of in (small, large) for n in (1, 2)
    ]
    storage.save_interference("m", on, "cpu/1 | cpu/2", found)
    await storage.flush()
    assert await storage.load_interference("m", on, "cpu/1") == []
    assert set(await storage.load_interference("m", on, "cpu/1 | cpu/2")) == set(found)
    await storage.close()


async def test_factors_of_thread_counts_are_replaced_by_variant() -> None:
    storage = await Storage.open(":memory:")
    small, large = VariantName("street-128"), VariantName("street-416")
    on = ExecutorId("cpu/0")
    found = [MeasuredCoreFactor(of, n, 1, 1.5 + n) for of in (small, large) for n in (1, 4)]
    storage.save_core_factors("m", on, found)
    await storage.flush()
    assert set(await storage.load_core_factors("m", on)) == set(found)
    assert await storage.load_core_factors("m", ExecutorId("cpu/1")) == []
    assert await storage.load_core_factors("another", on) == []
    again = [MeasuredCoreFactor(small, 2, 1, 2.0)]
    storage.save_core_factors("m", on, again)
    await storage.flush()
    assert set(await storage.load_core_factors("m", on)) == {*again, *found[2:]}
    await storage.close()


async def test_a_damaged_profile_and_camera_are_left_out(storage: Storage, tmp_path: Path) -> None:
    storage.save_profiles("m", [profile("street-128", 1_000_000)])
    storage.record_camera(GATE, {})
    await storage.flush()
    with sqlite3.connect(tmp_path / "box.sqlite3") as other:
        other.execute("UPDATE profiles SET quantiles_ns = '[1,2' WHERE batch_size = 2")
        other.execute("UPDATE cameras SET hello = cast(x'7bff80' AS TEXT)")
    assert await storage.load_profiles("m") == []
    assert await storage.cameras() == []
