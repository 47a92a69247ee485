"""What cascades learned against real SQLite files: round trips, bounds, damage, migration."""

import logging
import math
import sqlite3
import struct
from pathlib import Path

import aiosqlite
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.cascades import CascadeEvidence
from edgebox.domain.requests import CameraId
from edgebox.storage import cascade_evidence as evidence_module
from edgebox.storage.database import IN_MEMORY, Storage
from edgebox.storage.schema import MIGRATIONS, migrate
from tests.conftest import WallClock

GATE, YARD = CameraId("gate"), CameraId("yard")
LOGITS = st.floats(-1e3, 1e3, width=32)
PAIRS = st.lists(st.tuples(LOGITS, st.floats(0, 1, width=32)), max_size=128)
SOME = CascadeEvidence(((0.5, 0.25),), ((-2.0, 0.0), (-1.0, 1.0)), (0.5, -2.0, -1.0))


@given(PAIRS, PAIRS, st.lists(LOGITS, max_size=512))
async def test_any_evidence_comes_back(
    hard: list[tuple[float, float]], easy: list[tuple[float, float]], logits: list[float]
) -> None:
    evidence = CascadeEvidence(tuple(hard), tuple(easy), tuple(logits))
    storage = await Storage.open(IN_MEMORY)
    storage.cascade_evidence.record(GATE, "fit 1", SOME)
    storage.cascade_evidence.record(GATE, "fit 2", evidence)
    await storage.flush()
    found = await storage.cascade_evidence.load()
    await storage.close()
    assert found == {GATE: ("fit 2", evidence)}


async def test_only_so_many_rows_are_kept_the_newest(
    storage: Storage, clock: WallClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence_module, "ROWS_MAX", 3)
    for at in (0, 4, 1, 2, 3, 0):
        clock.ms += 1_000
        storage.cascade_evidence.record(CameraId(f"gate-{at}"), "fit", SOME)
    storage.cascade_evidence.forget_surplus()
    await storage.flush()
    assert set(await storage.cascade_evidence.load()) == {"gate-2", "gate-3", "gate-0"}


async def test_a_camera_is_forgotten_with_what_it_taught(storage: Storage) -> None:
    storage.cascade_evidence.record(GATE, "fit", SOME)
    storage.cascade_evidence.record(YARD, "fit", SOME)
    storage.forget_camera(GATE)
    await storage.flush()
    assert set(await storage.cascade_evidence.load()) == {YARD}


def packed(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


@pytest.mark.parametrize(
    ("column", "blob"),
    [
        ("hard", b"abc"), ("hard", "text"), ("easy", 7), ("hard", packed(1)),
        ("hard", packed(1, 1.5)), ("easy", packed(1, -0.5)), ("easy", packed(math.nan, 0)),
        ("logits", packed(math.inf)), ("logits", packed(math.nan)), ("logits", bytes(4 * 2_001)),
        ("decider", b"\xff"),
    ],
)  # fmt: skip
async def test_a_damaged_row_is_ignored_and_told(
    tmp_path: Path, column: str, blob: object, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "box.sqlite3"
    storage = await Storage.open(path)
    for camera in (GATE, YARD):
        storage.cascade_evidence.record(camera, "fit", SOME)
    await storage.close()
    with sqlite3.connect(path) as raw:
        raw.execute(f"UPDATE cascade_evidence SET {column} = ? WHERE camera = 'gate'", (blob,))
    storage = await Storage.open(path)
    with caplog.at_level(logging.WARNING):
        found = await storage.cascade_evidence.load()
    await storage.close()
    assert found == {YARD: ("fit", SOME)}
    (message,) = caplog.messages
    assert message.startswith("1 damaged rows of what cascades learned are ignored")


async def test_databases_of_earlier_releases_get_the_table(tmp_path: Path) -> None:
    path = tmp_path / "old.sqlite3"
    async with aiosqlite.connect(path, isolation_level=None) as connection:
        await migrate(connection, MIGRATIONS[:10])
    storage = await Storage.open(path)
    storage.cascade_evidence.record(GATE, "fit", SOME)
    await storage.flush()
    found = await storage.cascade_evidence.load()
    await storage.close()
    assert found == {GATE: ("fit", SOME)}
