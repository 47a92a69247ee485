"""Rows that are not as they were written: they count for nothing, and one line says so."""

import logging
import sqlite3
from pathlib import Path

import pytest

from edgebox.domain.core_factors import MeasuredCoreFactor
from edgebox.domain.errors import StorageError
from edgebox.domain.interference import MeasuredInterference
from edgebox.domain.model_family import AccuracyReport, ExecutorId, FamilyName, VariantName
from edgebox.domain.requests import CameraId
from edgebox.storage.database import Storage
from edgebox.storage.levels import HOUR, MINUTE
from edgebox.storage.periods import Period
from tests.conftest import WallClock
from tests.scheduling.scene import profile

SMALL, LARGE = VariantName("street-128"), VariantName("street-256")
STREET = FamilyName("street")
CPU = ExecutorId("cpu/0")


def damage(folder: Path, statement: str, *values: object) -> None:
    with sqlite3.connect(folder / "box.sqlite3") as raw:
        raw.execute(statement, values)
    raw.close()


@pytest.mark.parametrize(
    "quantiles",
    ["", "[1,2", "{}", "7", "null", "[]", "[1,2,3,4,5,6,7,8,true]", "[1,2,3,4,5,6,7,8,9.5]",
     "[0,2,3,4,5,6,7,8,9]", "[-1,2,3,4,5,6,7,8,9]", "[1,2,3,4,5,6,7,8,3600000000001]",
     "[1,9,3,4,5,6,7,8,9]", b"\xff\x80", 3.5],
)  # fmt: skip
async def test_a_profile_with_damaged_quantiles_is_measured_again(
    storage: Storage, tmp_path: Path, caplog: pytest.LogCaptureFixture, quantiles: object
) -> None:
    storage.save_profiles("m", [profile(128), profile(256)])
    await storage.flush()
    statement = "UPDATE profiles SET quantiles_ns = ? WHERE variant = ? AND batch_size = 2"
    damage(tmp_path, statement, quantiles, SMALL)
    with caplog.at_level(logging.WARNING):
        assert await storage.load_profiles("m") == [profile(256)]
    (message,) = caplog.messages
    assert message.startswith(f"1 damaged rows of profiles are ignored (the first: {SMALL}: ")


@pytest.mark.parametrize("batch_size", [0, -1, (1 << 20) + 1, "two"])
async def test_a_profile_with_a_damaged_batch_size_is_measured_again(
    storage: Storage, tmp_path: Path, batch_size: object
) -> None:
    storage.save_profiles("m", [profile(128), profile(256)])
    await storage.flush()
    statement = "UPDATE profiles SET batch_size = ? WHERE variant = ? AND batch_size = 2"
    damage(tmp_path, statement, batch_size, SMALL)
    assert await storage.load_profiles("m") == [profile(256)]


@pytest.mark.parametrize(
    ("column", "value"),
    [("factor", 0.9), ("factor", 1e4), ("factor", float("inf")), ("factor", "much"),
     ("others", 0), ("others", "two")],
)  # fmt: skip
async def test_damaged_interference_is_measured_again(
    storage: Storage, tmp_path: Path, column: str, value: object
) -> None:
    street = FamilyName("street")
    small, large = (MeasuredInterference(of, street, 1, 1.5) for of in (SMALL, LARGE))
    storage.save_interference("m", CPU, "cpu/1", [small, large])
    await storage.flush()
    damage(tmp_path, f"UPDATE interference SET {column} = ? WHERE variant = ?", value, SMALL)
    assert await storage.load_interference("m", CPU, "cpu/1") == [large]


@pytest.mark.parametrize(
    ("column", "value"),
    [("factor", 0.9), ("factor", 1e4), ("factor", float("inf")), ("factor", "much"),
     ("threads", 0), ("threads", "two"), ("batch_size", 0), ("batch_size", 1.5)],
)  # fmt: skip
async def test_damaged_factors_of_thread_counts_are_measured_again(
    storage: Storage, tmp_path: Path, column: str, value: object
) -> None:
    small, large = (MeasuredCoreFactor(of, 1, 1, 1.5) for of in (SMALL, LARGE))
    storage.save_core_factors("m", CPU, [small, large])
    await storage.flush()
    damage(tmp_path, f"UPDATE core_factors SET {column} = ? WHERE variant = ?", value, SMALL)
    assert await storage.load_core_factors("m", CPU) == [large]


@pytest.mark.parametrize(
    ("column", "value"),
    [("accuracy", -0.1), ("accuracy", 1.5), ("accuracy", "good"), ("error", 2.0), ("details", "[]"),
     ("details", "{")],
)  # fmt: skip
async def test_a_damaged_accuracy_report_is_nobodys(
    storage: Storage, tmp_path: Path, column: str, value: object
) -> None:
    good = AccuracyReport("mAP", 0.61, 0.004, "yard/val", 500, 1_790_000_000_000, "", {})
    storage.save_accuracy_reports(STREET, "a1", {SMALL: good, LARGE: good})
    await storage.flush()
    damage(tmp_path, f"UPDATE accuracy_reports SET {column} = ? WHERE variant = ?", value, SMALL)
    assert await storage.load_accuracy_reports(STREET, "a1") == {LARGE: good}


@pytest.mark.parametrize("table", ["history_minute", "history_hour"])
@pytest.mark.parametrize(
    ("column", "value"),
    [("variants", "{"), ("tracked", "7"), ("classes", 3.5), ("latencies", b"x")],
)
async def test_a_damaged_row_of_history_holds_back_nothing_else(
    storage: Storage, tmp_path: Path, table: str, column: str, value: object
) -> None:
    gate, yard = CameraId("gate"), CameraId("yard")
    storage.history.record_minutes({0: {gate: Period(captured=1), yard: Period(captured=2)}})
    await storage.flush()
    name = "(SELECT id FROM history_names WHERE camera = 'gate')"
    damage(tmp_path, f"UPDATE {table} SET {column} = ? WHERE name = {name}", value)
    storage.history.record_minutes({0: {gate: Period(captured=4), yard: Period(captured=8)}})
    storage.record_event("info", "a train")
    assert await storage.flush()
    assert (storage.lost_rows, storage.waiting_rows) == (1, 0)
    for level in (MINUTE, HOUR):
        (row,) = (await storage.history.periods(level, yard)).values()
        assert row["captured"] == 10
    assert [event.text for event in await storage.events(2)] == ["a train"]


@pytest.mark.parametrize("variants", ["{", "7"])
async def test_a_chart_of_a_damaged_row_is_a_clear_error(
    storage: Storage, tmp_path: Path, clock: WallClock, variants: str
) -> None:
    minute = clock.ms // MINUTE.step_ms - 1
    storage.history.record_minutes({minute: {CameraId("gate"): Period(captured=1)}})
    await storage.flush()
    damage(tmp_path, "UPDATE history_minute SET variants = ?", variants)
    with pytest.raises(StorageError, match="the history of gate: "):
        await storage.history.chart(CameraId("gate"), clock.ms - 3_600_000, clock.ms, 100)


@pytest.mark.parametrize("version", [-1, 0])
async def test_a_database_of_no_version_is_damaged(tmp_path: Path, version: int) -> None:
    path = tmp_path / "box.sqlite3"
    await (await Storage.open(path)).close()
    damage(tmp_path, f"PRAGMA user_version = {version}")
    with pytest.raises(StorageError, match=r"damaged: there is no schema .*: move it away"):
        await Storage.open(path)
