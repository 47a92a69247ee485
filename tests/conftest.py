"""What all tests share: this machine is measured once, so that boxes start at once; patience."""

import asyncio
import fcntl
import gc
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hypothesis
import pytest

from edgebox.app.composition import App
from edgebox.config.config_file import load
from edgebox.inference.family import MANIFEST
from edgebox.inference.zoo import bundled_folders
from edgebox.storage.database import Storage

PROFILE_S = 1.0
BUNDLED_FOLDERS = "edgebox.app.family_folders.bundled_folders"
PATIENCE_S = 180.0
"""How long a test waits for what must come: on cores that are busy with other things, too."""

# How long a generated case takes says how busy the machine is, and nothing about what is tested.
hypothesis.settings.register_profile(
    "any machine",
    parent=hypothesis.settings(),
    deadline=None,
    suppress_health_check=[
        *hypothesis.settings().suppress_health_check,
        hypothesis.HealthCheck.too_slow,
    ],
)
hypothesis.settings.load_profile("any machine")


def pytest_configure(config: pytest.Config) -> None:
    """Keep out of the tests what the user of this machine has imported and configured."""
    folder = TemporaryDirectory(prefix="edgebox-tests-")
    config.add_cleanup(folder.cleanup)
    os.environ["XDG_DATA_HOME"] = folder.name
    for name in ("EDGEBOX_CONFIG", "EDGEBOX_TOKEN"):
        os.environ.pop(name, None)


def pytest_collection() -> None:
    """Look for no garbage while modules are imported and tests are made: all of it stays."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Keep the thousands of tests out of every full collection of garbage, and look less often.

    What collecting them left behind is too little to look for.
    """
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
    gc.enable()


def settings(database: Path, **overrides: Any) -> dict[str, Any]:
    """Return the configuration of a test's box: any free port, CPU only, a database of its own.

    As many frames may wait as arrive while a busy machine gives the box no time.
    """
    return {
        "server.port": 0,
        "access.open_to": "everybody",
        "storage.path": str(database),
        "inference.models": str(database.parent / "models"),
        "executors": [{"device": "cpu"}],
        "inference.profile_s": PROFILE_S,
        "limits.pending_per_camera_max": 1000,
        "limits.pending_max": 10_000,
        **overrides,
    }


@pytest.fixture(scope="session")
def small_families(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return copies of the bundled families that have their three smallest sizes only."""
    root = tmp_path_factory.mktemp("bundled")
    folders = [shutil.copytree(bundled, root / bundled.name) for bundled in bundled_folders()]
    for folder in folders:
        head, *variants = (folder / MANIFEST).read_text().split("[[variants]]")
        (folder / MANIFEST).write_text("[[variants]]".join([head, *variants[:3]]))
    return folders


@pytest.fixture(scope="session")
def measured(tmp_path_factory: pytest.TempPathFactory, small_families: list[Path]) -> Path:
    """Return a database that has this machine's profiles; copy it, do not use it.

    The processes of a run share it: the first that needs it measures. Families of few sizes are
    also measured on two executors beside each other.
    """
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "profiles"
    folder.mkdir(exist_ok=True)
    database, done = folder / "edgebox.sqlite3", folder / "done"

    async def measure(**options: Any) -> None:
        app = App(load(None, settings(database, **options)))
        await app.start()
        await app.stop()

    async def measure_all() -> None:
        await measure()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(BUNDLED_FOLDERS, lambda: small_families)
            await measure()
            await measure(executors=[{"device": "cpu", "streams": 2, "threads": 1}])

    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            asyncio.run(measure_all())
            done.touch()
    return database


def copied(database: Path, folder: Path) -> Path:
    """Copy a database that no box uses into a folder; return the copy."""
    for file in database.parent.glob(f"{database.name}*"):  # the write-ahead log, too
        shutil.copy(file, folder / file.name)
    return folder / database.name


@pytest.fixture
def database(measured: Path, tmp_path: Path) -> Path:
    """Return a test's own database, in which this machine is measured already."""
    return copied(measured, tmp_path)


class WallClock:
    """A wall clock that stands still until it is moved."""

    def __init__(self, ms: int = 1_790_000_000_000) -> None:
        self.ms = ms

    def __call__(self) -> int:
        return self.ms


@pytest.fixture
def clock() -> WallClock:
    return WallClock()


@pytest.fixture
async def storage(tmp_path: Path, clock: WallClock) -> AsyncIterator[Storage]:
    """Return an empty database in a file, "box.sqlite3", that goes by the wall clock."""
    opened = await Storage.open(tmp_path / "box.sqlite3", now_ms=clock)
    yield opened
    await opened.close()
