"""What was learned against real SQLite files: round trips, age, bounds, damage, migration."""

import logging
import math
import sqlite3
import struct
from pathlib import Path

import aiosqlite
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.learned import LearnedDrift, LearnedWork
from edgebox.domain.model_family import ExecutorId, VariantName
from edgebox.storage import learned_times as learned_module
from edgebox.storage.database import IN_MEMORY, Storage
from edgebox.storage.schema import MIGRATIONS, migrate
from tests.conftest import WallClock

HOUR_NS = 3_600_000_000_000
V256 = VariantName("street-256")
V608 = VariantName("street-608")
CPU = ExecutorId("cpu/0")


def work(app: str, *values: float, variant: VariantName = V256, age_h: float = 0) -> LearnedWork:
    return LearnedWork(variant, app, values, round(age_h * HOUR_NS))


def drift(factor: float, *, variant: VariantName = V256, age_h: float = 0) -> LearnedDrift:
    return LearnedDrift(CPU, variant, factor, round(age_h * HOUR_NS))


def packed(*values: float) -> bytes:
    """Return values as they are kept."""
    return struct.pack(f"<{len(values)}f", *values)


async def test_work_comes_back_with_its_age(storage: Storage, clock: WallClock) -> None:
    storage.learned.record_work("street 1", work("gate", 0.5, 1.25, age_h=1))
    storage.learned.record_work("street 1", work("yard", 2.0))
    await storage.flush()
    clock.ms += 3_600_000
    assert await storage.learned.load_work({V256: "street 1"}) == [
        work("gate", 0.5, 1.25, age_h=2),
        work("yard", 2.0, age_h=1),
    ]


async def test_work_of_another_model_is_nobodys(storage: Storage) -> None:
    storage.learned.record_work("street 1", work("gate", 1.0))
    storage.learned.record_work("street 1", work("gate", 2.0, variant=V608))
    await storage.flush()
    assert await storage.learned.load_work({V256: "street 2", V608: "street 1"}) == [
        work("gate", 2.0, variant=V608)
    ]


async def test_what_is_learned_anew_replaces_the_old(storage: Storage, clock: WallClock) -> None:
    storage.learned.record_work("street 1", work("gate", 1.0))
    storage.learned.record_drift("box", drift(1.5))
    clock.ms += 1_000
    storage.learned.record_work("street 1", work("gate", 3.0))
    storage.learned.record_drift("box", drift(2.0))
    await storage.flush()
    assert await storage.learned.load_work({V256: "street 1"}) == [work("gate", 3.0)]
    assert await storage.learned.load_drifts({(CPU, V256): "box"}) == [drift(2.0)]


async def test_an_application_that_is_hardly_any_work_is_kept(storage: Storage) -> None:
    quick = work("gate", -0.75, -0.5, 0.0)
    storage.learned.record_work("street 1", quick)
    await storage.flush()
    assert await storage.learned.load_work({V256: "street 1"}) == [quick]


async def test_drift_that_is_over_leaves_no_row(storage: Storage) -> None:
    storage.learned.record_drift("box", drift(1.5))
    storage.learned.record_drift("box", drift(1.0))
    await storage.flush()
    assert await storage.learned.load_drifts({(CPU, V256): "box"}) == []
    assert (await storage.sizes()).rows["learned_drift"] == 0


async def test_drift_is_that_of_one_executor_on_one_machine(storage: Storage) -> None:
    storage.learned.record_drift("box", drift(1.5))
    await storage.flush()
    assert await storage.learned.load_drifts({(ExecutorId("cpu/1"), V256): "box"}) == []
    assert await storage.learned.load_drifts({(CPU, V256): "another box"}) == []


async def test_a_clock_that_was_set_back_makes_nothing_older_than_new(
    storage: Storage, clock: WallClock
) -> None:
    storage.learned.record_work("street 1", work("gate", 1.0))
    await storage.flush()
    clock.ms -= 3_600_000
    (found,) = await storage.learned.load_work({V256: "street 1"})
    assert found.age_ns == 0


async def test_only_so_many_rows_are_kept_the_newest(
    storage: Storage, clock: WallClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learned_module, "WORK_ROWS_MAX", 3)
    for at in range(6):
        clock.ms += 1_000
        storage.learned.record_work("street 1", work(f"app-{at}", 1.0))
    storage.learned.forget_surplus()
    await storage.flush()
    kept = {row.app for row in await storage.learned.load_work({V256: "street 1"})}
    assert kept == {"app-3", "app-4", "app-5"}


@pytest.mark.parametrize(
    "blob",
    [b"", b"abc", "text", 7, bytes(4 * 1_001), packed(math.nan), packed(1, math.nan, 2),
     packed(-1.1), packed(-2, 1), packed(1, 1.1e3), packed(1, 0.5)],
)  # fmt: skip
async def test_a_damaged_row_is_ignored_and_told_once(
    tmp_path: Path, blob: object, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "box.sqlite3"
    storage = await Storage.open(path)
    for app in ("gate", "yard", "door"):
        storage.learned.record_work("street 1", work(app, 1.0, 2.0))
    await storage.close()
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE learned_work SET work = ? WHERE app != 'yard'", (blob,))
    storage = await Storage.open(path)
    with caplog.at_level(logging.WARNING):
        found = await storage.learned.load_work({V256: "street 1"})
    await storage.close()
    assert [row.app for row in found] == ["yard"]
    (message,) = caplog.messages
    assert message.startswith("2 damaged rows of learned execution times are ignored")


@pytest.mark.parametrize("factor", [0.0, -1.0, math.inf, "much", 1e5])
async def test_a_damaged_factor_is_ignored(
    storage: Storage, factor: object, caplog: pytest.LogCaptureFixture
) -> None:
    storage.learned.record_drift("box", LearnedDrift(CPU, V256, factor, 0))  # type: ignore[arg-type]
    await storage.flush()
    with caplog.at_level(logging.WARNING):
        assert await storage.learned.load_drifts({(CPU, V256): "box"}) == []
    assert len(caplog.messages) == 1


async def test_databases_of_earlier_releases_get_the_tables(
    tmp_path: Path, clock: WallClock
) -> None:
    path = tmp_path / "old.sqlite3"
    async with aiosqlite.connect(path, isolation_level=None) as connection:
        await migrate(connection, MIGRATIONS[:4])
        await connection.execute("INSERT INTO cameras VALUES ('gate', '{}', 1, 2, '{}')")
    storage = await Storage.open(path, now_ms=clock)
    storage.learned.record_work("street 1", work("gate", 1.0))
    await storage.flush()
    cameras = [camera.camera for camera in await storage.cameras()]
    kept = await storage.learned.load_work({V256: "street 1"})
    await storage.close()
    assert cameras == ["gate"]
    assert kept == [work("gate", 1.0)]


@given(st.lists(st.floats(0.125, 1e3, width=32), min_size=1, max_size=100))
async def test_any_amounts_come_back(values: list[float]) -> None:
    storage = await Storage.open(IN_MEMORY)
    storage.learned.record_work("street 1", work("gate", *sorted(values)))
    await storage.flush()
    (found,) = await storage.learned.load_work({V256: "street 1"})
    await storage.close()
    assert list(found.work) == sorted(values)


async def test_a_name_that_is_no_utf8_costs_one_row_and_any_age_is_bounded(
    storage: Storage, tmp_path: Path
) -> None:
    for app in ("gate", "yard"):
        storage.learned.record_work("street 1", work(app, 1.0))
    await storage.flush()
    with sqlite3.connect(tmp_path / "box.sqlite3") as raw:
        raw.execute("UPDATE learned_work SET app = cast(x'ff80' AS TEXT) WHERE app = 'gate'")
        raw.execute("UPDATE learned_work SET learned_at_ms = -9223372036854775807")
    (found,) = await storage.learned.load_work({V256: "street 1"})
    assert found.app == "yard"
    assert found.age_ns < 1 << 62
