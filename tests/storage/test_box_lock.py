"""One box serves with a database at a time; its lock ends with it, however it ends."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgebox.app.backup import back_up
from edgebox.app.restore import restore
from edgebox.config.config_file import load
from edgebox.domain.requests import CameraId
from edgebox.storage.box_lock import DatabaseInUseError, lock_for_box
from edgebox.storage.database import IN_MEMORY, Limits, Storage

HOLDS_IT = """
import sys
from edgebox.storage.box_lock import lock_for_box
lock = lock_for_box(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""


async def box_with(file: Path | str) -> Storage:
    return await Storage.open(file, limits=Limits(), serving=True)


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process, which has the lock of `box.sqlite3`."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS_IT, str(tmp_path / "box.sqlite3")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


async def test_a_second_box_is_refused_until_the_first_has_ended(tmp_path: Path) -> None:
    file = tmp_path / "box.sqlite3"
    first = await box_with(file)
    with pytest.raises(
        DatabaseInUseError, match=r"another box serves .*: stop it first"
    ) as refused:
        await box_with(file)
    assert refused.value.exit_code == 75
    assert str(file) in str(refused.value)
    first.record_camera(CameraId("gate"), {})
    assert await first.flush()
    await first.close()
    second = await box_with(file)
    assert [known.camera for known in await second.cameras()] == ["gate"]
    await second.close()


async def test_commands_use_the_database_beside_a_box(tmp_path: Path) -> None:
    file = tmp_path / "box.sqlite3"
    box = await box_with(file)
    command = await Storage.open(file)
    command.record_event("info", "beside it")
    await command.close()
    assert [event.text for event in await box.events(1)] == ["beside it"]
    with pytest.raises(DatabaseInUseError):  # a command that ends does not take the lock along
        lock_for_box(file)
    await box.close()


async def test_one_that_cannot_open_the_database_does_not_keep_the_lock(tmp_path: Path) -> None:
    file = tmp_path / "box.sqlite3"
    file.mkdir()
    with pytest.raises(Exception, match="unable to open"):
        await box_with(file)
    lock_for_box(file).close()


def test_the_lock_dies_with_its_process(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    with pytest.raises(DatabaseInUseError):
        lock_for_box(tmp_path / "box.sqlite3")
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    lock = lock_for_box(tmp_path / "box.sqlite3")  # at once, as a service manager starts it again
    assert not lock.problem
    lock.close()


def test_who_has_it_is_said(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    file = tmp_path / "box.sqlite3"
    with pytest.raises(
        DatabaseInUseError, match=rf"first, or name .*; it is process {holder.pid}$"
    ):
        lock_for_box(file)
    kept = file.with_name("box.sqlite3.lock")
    kept.write_text(f"{holder.pid} elsewhere\n")
    with pytest.raises(DatabaseInUseError, match=rf"; it is process {holder.pid} on elsewhere$"):
        lock_for_box(file)
    kept.write_text("no process\n")
    with pytest.raises(DatabaseInUseError, match=r"XDG_DATA_HOME\)$"):
        lock_for_box(file)


def test_another_path_to_the_file_has_its_lock(tmp_path: Path) -> None:
    file, link = tmp_path / "box.sqlite3", tmp_path / "link"
    link.symlink_to(tmp_path)
    lock = lock_for_box(file)
    with pytest.raises(DatabaseInUseError):
        lock_for_box(link / "box.sqlite3")
    lock_for_box(tmp_path / "demo.sqlite3").close()  # beside it another box may serve
    lock.close()


def test_it_is_private_and_belongs_to_the_user_of_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "data"
    folder.mkdir(parents=True)
    root = os.geteuid() == 0
    if root:
        os.chown(folder, 1234, 1235)
    lock_for_box(folder / "box.sqlite3").close()
    (made,) = folder.iterdir()
    status = made.stat()
    assert status.st_mode & 0o777 == 0o600
    assert (status.st_uid, status.st_gid) == (folder.stat().st_uid, folder.stat().st_gid)


async def test_where_files_cannot_be_locked_a_box_serves_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(descriptor: int, how: int) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr("fcntl.flock", no_locks)
    box = await box_with(tmp_path / "box.sqlite3")
    assert box.unlocked == "No locks available"
    assert not box.last_error
    await box.close()


async def test_boxes_in_memory_do_not_exclude_each_other() -> None:
    boxes = [await box_with(IN_MEMORY) for _ in range(2)]
    assert [box.unlocked for box in boxes] == ["", ""]
    await asyncio.gather(*(box.close() for box in boxes))


async def test_nothing_is_restored_under_a_box_that_serves_from_memory(tmp_path: Path) -> None:
    """Its database, which it could not open, is not in use; its tokens and passwords are."""
    config = tmp_path / "box.toml"
    file = tmp_path / "box.sqlite3"
    config.write_text(f'[storage]\npath = "{file}"')
    await (await box_with(file)).close()
    backup = back_up(load(config), config, tmp_path, models=False, secrets=False).file
    file.write_bytes(b"no database" * 1000)
    box = await box_with(file)
    assert box.last_error
    with pytest.raises(DatabaseInUseError, match="stop it first"):
        await asyncio.to_thread(restore, backup, config, configuration=False)
    assert file.read_bytes() == b"no database" * 1000
    await box.close()
    assert file in restore(backup, config, configuration=False).files
