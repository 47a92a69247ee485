"""What all tests share: this machine is measured once, so that boxes start at once."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from edgebox.app import App
from edgebox.config import load

PROFILE_S = 1.0


def settings(database: Path, **overrides: Any) -> dict[str, Any]:
    """Return the configuration of a test's box: any free port, CPU only, a database of its own."""
    return {
        "server.port": 0,
        "storage.path": str(database),
        "inference.models": str(database.parent / "models"),
        "inference.providers": "cpu",
        "inference.profile_s": PROFILE_S,
        **overrides,
    }


@pytest.fixture(scope="session")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a database that has this machine's profiles; copy it, do not use it."""
    database = tmp_path_factory.mktemp("profiles") / "edgebox.sqlite3"

    async def measure() -> None:
        app = App(load(None, settings(database)))
        await app.start()
        await app.stop()

    asyncio.run(measure())
    return database


@pytest.fixture
def database(measured: Path, tmp_path: Path) -> Path:
    """Return a test's own database, in which this machine is measured already."""
    copy = tmp_path / "edgebox.sqlite3"
    for file in measured.parent.glob(f"{measured.name}*"):  # the write-ahead log, too
        shutil.copy(file, tmp_path / file.name)
    return copy
