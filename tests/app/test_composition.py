"""The end of a box in which something goes wrong while it stops."""

import asyncio
import threading
from pathlib import Path

import pytest

from edgebox.app.composition import App
from edgebox.config.config_file import load
from edgebox.runtime.box import Box
from edgebox.storage.database import Storage
from tests.conftest import PATIENCE_S, settings


async def test_the_database_is_closed_whatever_goes_wrong_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    before = set(threading.enumerate())
    app = App(load(None, settings(tmp_path / "box.sqlite3")))
    await app.listen()
    app.machine.stop()
    monkeypatch.setattr(app.machine, "stop", fail)
    with pytest.raises(ZeroDivisionError):
        await app.stop()
    left = [each for each in set(threading.enumerate()) - before if "asyncio" not in each.name]
    for each in left:
        await asyncio.to_thread(each.join, PATIENCE_S)
    assert not any(each.is_alive() for each in left)


async def test_that_no_camera_is_connected_at_times_does_not_delay_that_others_are_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = App(load(None, settings(tmp_path / "box.sqlite3")))
    await app.listen()
    seen: list[list[object]] = []
    monkeypatch.setattr(Storage, "see_cameras", lambda _, cameras: seen.append(list(cameras)))
    monkeypatch.setattr(Box, "end_minute", lambda _: None)
    try:
        for now in [1, 0] * 5:
            monkeypatch.setattr(Box, "connected", now)
            app._every_minute()
    finally:
        await app.stop()
    assert seen == [[]]
