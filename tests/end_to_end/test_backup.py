"""Backing up a box that serves, and restoring it: whole, checked, private, never a running one."""

import asyncio
import contextlib
import gzip
import io
import os
import shutil
import sqlite3
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebox.app.backup import back_up
from edgebox.app.restore import restore
from edgebox.config.config_file import load
from edgebox.domain.access import Scope, Token
from edgebox.domain.errors import EdgeboxError, InvalidInputError, StorageError
from edgebox.domain.requests import CameraId
from edgebox.domain.source_address import Credentials
from edgebox.storage.access_store import AccessStore, access_file
from edgebox.storage.backup_archive import (
    CONFIGURATION,
    CREDENTIALS,
    DATABASE,
    MANIFEST,
    BackupError,
    verify,
)
from edgebox.storage.credential_file import CredentialFile, credential_file
from edgebox.storage.schema import MIGRATIONS
from tests.end_to_end.program import edgebox
from tests.end_to_end.running import CLOSED, new_token, running, unharmed_bystander


def written(tmp_path: Path, database: Path, *lines: str) -> Path:
    file = tmp_path / "box.toml"
    file.write_text(
        "\n".join(
            [
                "[storage]",
                f'path = "{database.name}"',
                "[inference]",
                'models = "models"',
                *lines,
            ]
        )
    )
    return file


def family_of(tmp_path: Path) -> Path:
    folder = tmp_path / "models" / "mine"
    folder.mkdir(parents=True)
    (folder / "family.toml").write_text("name = 'mine'")
    (folder / "mine.onnx").write_bytes(b"weights")
    (folder.parent / "mine-larger.cascade.json").write_text("{}")
    (folder.parent / "default-family").write_text("street")
    return folder


def leftovers(folder: Path) -> list[Path]:
    return list(folder.glob(".edgebox-*"))


async def test_a_box_that_serves_is_backed_up_and_restored_elsewhere(
    tmp_path: Path, database: Path
) -> None:
    config = written(tmp_path, database)
    backup = tmp_path / "backup.tar.gz"
    async with running(database, **CLOSED) as app:
        family_of(tmp_path)
        await new_token(app, Scope.VIEWER)
        async with unharmed_bystander(app):
            for event in range(2000):  # the copy must not begin anew with each write
                app.box.notices.publish("info", f"event {event}")
            made = await asyncio.to_thread(
                back_up, load(config), config, backup, models=True, secrets=True
            )
        with pytest.raises(StorageError, match=r"stop it first, as with .*restore then") as refused:
            await asyncio.to_thread(restore, backup, config, configuration=False)
        assert "storage.path" not in str(refused.value)
    assert backup.stat().st_mode & 0o777 == 0o600
    assert set(made.manifest["files"]) == {
        DATABASE, "access.sqlite3", "edgebox.toml", "models/mine/family.toml",
        "models/mine/mine.onnx", "models/mine-larger.cascade.json", "models/default-family",
    }  # fmt: skip
    assert leftovers(tmp_path) == []

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    place = elsewhere / "box.toml"
    restored = restore(backup, place, configuration=True)
    assert restored.kept == ()
    assert place.read_text() == config.read_text()
    assert (elsewhere / "models" / "mine" / "mine.onnx").read_bytes() == b"weights"
    assert (elsewhere / "models" / "default-family").read_text() == "street"
    for file in restored.files:
        assert file == place or not file.stat().st_mode & 0o077
    async with running(elsewhere / database.name, **CLOSED) as app:
        assert app._storage is not None
        assert [known.camera for known in await app._storage.cameras()] == ["bystander"]
        assert {token.scope for token in app.access.tokens} >= {Scope.VIEWER, Scope.CAMERA}
        assert not app.profiled  # its profiles are those of this machine


def test_what_is_replaced_is_kept_with_its_log(tmp_path: Path, database: Path) -> None:
    config = written(tmp_path, database)
    backup = back_up(load(config), config, tmp_path, models=False, secrets=True).file
    assert backup.parent == tmp_path
    with sqlite3.connect(database) as later:
        later.execute("INSERT INTO cameras VALUES ('later', '{}', 1, 2, '{}')")
    later.close()
    restored = restore(backup, config, configuration=False)
    with sqlite3.connect(database) as again:
        assert again.execute("SELECT count(*) FROM cameras").fetchone() == (0,)
    again.close()
    (kept,) = restored.kept  # its log is in it
    with sqlite3.connect(kept) as old:
        assert old.execute("SELECT camera FROM cameras").fetchall() == [("later",)]
    old.close()


def test_a_step_that_fails_brings_everything_back(
    tmp_path: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = written(tmp_path, database)
    family_of(tmp_path)
    backup = back_up(load(config), config, tmp_path, models=True, secrets=True).file
    weights = tmp_path / "models" / "mine" / "mine.onnx"
    weights.write_bytes(b"changed")
    with sqlite3.connect(database) as later:
        later.execute("INSERT INTO cameras VALUES ('later', '{}', 1, 2, '{}')")
    later.close()
    rename, faults = Path.rename, ["the last step"]

    def failing(self: Path, target: Path) -> Path:
        if target == database and faults:
            raise OSError(5, f"Input/output error in {faults.pop()}")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(BackupError, match="error in the last step"):
        restore(backup, config, configuration=True)
    assert weights.read_bytes() == b"changed"
    with sqlite3.connect(database) as same:
        assert same.execute("SELECT camera FROM cameras").fetchall() == [("later",)]
    same.close()
    assert not list(tmp_path.glob("*before-restore*"))
    assert leftovers(tmp_path) == []


def killed_while_writing(file: Path, *statements: str) -> None:
    """Write to a database in a process that ends without closing it, so that its log is hot."""
    program = f"""
import os, sqlite3
written = sqlite3.connect({str(file)!r}, isolation_level=None)
for statement in {statements!r}:
    written.execute(statement)
os._exit(9)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 9


def test_what_a_killed_box_had_in_its_log_is_backed_up_and_kept(
    tmp_path: Path, database: Path
) -> None:
    config = written(tmp_path, database)
    empty = back_up(load(config), config, tmp_path / "1.gz", models=False, secrets=False).file
    killed_while_writing(
        database, "PRAGMA journal_mode = WAL", "INSERT INTO cameras VALUES ('a', '{}', 1, 2, '{}')"
    )
    assert Path(f"{database}-wal").stat().st_size
    full = back_up(load(config), config, tmp_path / "2.gz", models=False, secrets=False).file

    def cameras(file: Path) -> list[tuple[str]]:
        with contextlib.closing(sqlite3.connect(file)) as opened:
            return opened.execute("SELECT camera FROM cameras").fetchall()

    (kept,) = restore(empty, config, configuration=False).kept
    assert cameras(kept) == [("a",)]
    assert cameras(database) == []
    restore(full, config, configuration=False)
    assert cameras(database) == [("a",)]


def test_an_unfinished_write_never_reaches_the_restored_tokens(
    tmp_path: Path, database: Path
) -> None:
    config = written(tmp_path, database)
    access = AccessStore(access_file(str(database)))
    access.add(Token("1", "first", Scope.ADMIN, None, "a" * 64, 1, None))
    backup = back_up(load(config), config, tmp_path, models=False, secrets=False).file
    killed_while_writing(
        Path(access_file(str(database))),
        "PRAGMA cache_size = 1", "PRAGMA cache_spill = 1", "BEGIN", "CREATE TABLE later (x)",
        *["INSERT INTO later VALUES (randomblob(20000))"] * 20,
    )  # fmt: skip
    assert list(tmp_path.glob("*-journal"))
    restore(backup, config, configuration=False)
    assert [token.name for token in access.load(0).tokens] == ["first"]
    assert not [file for file in tmp_path.glob("*-journal") if "before-restore" not in file.name]


def test_secrets_are_in_a_backup_only_if_that_is_said(tmp_path: Path, database: Path) -> None:
    config = written(tmp_path, database)
    credentials = CredentialFile(credential_file(str(database)))
    credentials.put(CameraId("gate"), Credentials("user", "hunter2"))
    for name in ("tls.pem", "tls-key.pem"):
        (tmp_path / name).write_text(name)
    family_of(tmp_path)
    without = back_up(load(config), config, tmp_path / "1.gz", models=False, secrets=False)
    assert set(without.manifest["files"]) == {DATABASE, CONFIGURATION}
    assert without.left_out == (
        "imported models (--models)",
        "passwords of cameras (--secrets)",
        "the key of its own certificate (--secrets)",
    )
    whole = back_up(load(config), config, tmp_path / "2.gz", models=True, secrets=True)
    assert whole.left_out == ()
    assert {CREDENTIALS, "tls.pem", "tls-key.pem"} < set(whole.manifest["files"])
    credentials.put(CameraId("gate"), None)
    restore(without.file, config, configuration=False)
    assert credentials.load() == {}
    restore(whole.file, config, configuration=False)
    assert credentials.load() == {CameraId("gate"): Credentials("user", "hunter2")}


def test_two_restores_within_a_second_keep_everything(tmp_path: Path, database: Path) -> None:
    config = written(tmp_path, database)
    backup = back_up(load(config), config, tmp_path, models=False, secrets=False).file
    kept = [restore(backup, config, configuration=False).kept for _ in range(3)]
    assert len({file for files in kept for file in files}) == 3
    assert all(file.exists() for files in kept for file in files)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to others")
def test_what_root_restores_belongs_to_the_user_of_the_box(tmp_path: Path, database: Path) -> None:
    config = written(tmp_path, database)
    family_of(tmp_path)
    os.chown(database, 4321, 4322)
    config.chmod(0o644)
    backup = back_up(load(config), config, tmp_path, models=True, secrets=False).file
    for file in restore(backup, config, configuration=True).files:
        owner = file.stat().st_uid, file.stat().st_gid
        assert owner == ((4321, 4322) if file == database else (0, 0))
    assert config.stat().st_mode & 0o777 == 0o644
    # Where nothing is yet, the folder tells whose box it is.
    os.chown(tmp_path / "models", 4321, 4322)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    os.chown(elsewhere, 4321, 4322)
    for place in restore(backup, elsewhere / "box.toml", configuration=True).files:
        for file in (place, *place.rglob("*")):
            assert (file.stat().st_uid, file.stat().st_gid) == (4321, 4322)


def repacked(backup: Path, to: Path, **files: bytes | None) -> Path:
    """Write a backup anew with other contents of some files; None: without it."""
    with tarfile.open(backup) as old, tarfile.open(to, "w:gz") as new:
        for member in old:
            content = old.extractfile(member)
            assert content is not None
            data = files.get(member.name, content.read())
            if data is not None:
                member.size = len(data)
                new.addfile(member, io.BytesIO(data))
    return to


def test_a_backup_that_is_not_whole_is_refused_and_changes_nothing(
    tmp_path: Path, database: Path
) -> None:
    config = written(tmp_path, database)
    backup = back_up(load(config), config, tmp_path, models=False, secrets=True).file
    manifest = verify(backup)
    stranger = {**manifest, "files": {**manifest["files"], "../x": {"bytes": 0, "sha256": ""}}}
    newer = {**manifest, "format": 99, "edgebox": "9.9"}
    whole = backup.read_bytes()
    bad = tmp_path / "bad.tar.gz"
    cases: list[tuple[bytes, str]] = [
        (whole[: len(whole) // 2], "damaged"),
        (whole[:3000] + bytes(100) + whole[3100:], "damaged"),
        (b"no archive", "damaged, or no backup"),
        *(
            (repacked(backup, bad, **files).read_bytes(), said)
            for files, said in (
                ({DATABASE: b"x"}, "edgebox.sqlite3 is damaged"),
                ({DATABASE: None}, "edgebox.sqlite3 is missing"),
                ({MANIFEST: None}, "is no backup"),
                ({MANIFEST: orjson.dumps(stranger)}, "'../x' does not belong"),
                ({MANIFEST: orjson.dumps(newer)}, r"another edgebox \(9.9\)"),
            )
        ),
    ]
    before = database.read_bytes()
    for content, said in cases:
        bad.write_bytes(content)
        with pytest.raises(BackupError, match=said):
            restore(bad, config, configuration=False)
    assert database.read_bytes() == before
    assert not list(tmp_path.glob("*.before-restore-*"))


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_a_changed_archive_is_refused_with_one_message(
    a_backup: bytes, scratch: Path, data: st.DataObject
) -> None:
    """Bytes inside the compression are changed, so that checks of gzip do not hide the reader."""
    plain = bytearray(gzip.decompress(a_backup))
    for _ in range(data.draw(st.integers(1, 4))):
        head = min(len(plain), 4096)  # where the headers of tar and the manifest are
        at = data.draw(st.integers(0, (head if data.draw(st.booleans()) else len(plain)) - 1))
        plain[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=4))
    bad = scratch / "bad.gz"
    bad.write_bytes(gzip.compress(bytes(plain), 1))
    with contextlib.suppress(BackupError):
        manifest = verify(bad)
        assert manifest["files"]  # only what no sum covers has changed, such as tar's dates


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("archives")


@pytest.fixture(scope="module")
def a_backup(measured: Path, scratch: Path) -> bytes:
    for file in measured.parent.glob(f"{measured.name}*"):
        shutil.copy(file, scratch / file.name)
    family_of(scratch)
    config = written(scratch, scratch / measured.name)
    return back_up(load(config), config, scratch, models=True, secrets=True).file.read_bytes()


def hostile(backup: Path, to: Path, **as_: Any) -> Path:
    """Write a backup anew with its last file as another kind of member."""
    with tarfile.open(backup) as old, tarfile.open(to, "w:gz") as new:
        members = list(old)
        for member in members:
            content = old.extractfile(member)
            assert content is not None
            if member is members[-1]:
                for key, value in as_.items():
                    setattr(member, key, value)
            new.addfile(member, content if member.type == tarfile.REGTYPE else None)
    return to


def test_an_archive_cannot_write_elsewhere(tmp_path: Path, database: Path) -> None:
    config = written(tmp_path, database)
    backup = back_up(load(config), config, tmp_path, models=False, secrets=False).file
    outside = tmp_path / "outside"
    for changed in (
        {"name": "../outside"},
        {"name": str(outside)},
        {"name": "models/../../outside"},
        {"type": tarfile.SYMTYPE, "linkname": str(outside), "size": 0},
        {"type": tarfile.LNKTYPE, "linkname": str(outside), "size": 0},
        {"type": tarfile.FIFOTYPE, "size": 0},
        {"type": tarfile.DIRTYPE, "size": 0},
    ):
        bad = hostile(backup, tmp_path / "bad.gz", **changed)
        with pytest.raises(BackupError, match="does not belong"):
            restore(bad, config, configuration=False)
        assert not os.path.lexists(outside)
        bad.unlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes a small disk")
def test_a_disk_that_is_too_small_is_named_and_nothing_changes(
    tmp_path: Path, database: Path
) -> None:
    config = written(tmp_path, database)
    backup = back_up(load(config), config, tmp_path, models=False, secrets=False).file
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", small], check=True)
    try:
        with pytest.raises(BackupError, match="No space left"):
            back_up(load(config), config, small, models=False, secrets=False)
        place = small / "box.toml"
        place.write_text(config.read_text())
        with pytest.raises(
            BackupError, match=r"needs 1[78] MB at .*small.*, where 0 MB are free: "
        ):
            restore(backup, place, configuration=False)
        assert list(small.iterdir()) == [place]
    finally:
        subprocess.run(["umount", small], check=True)


def test_a_database_of_a_newer_edgebox_is_not_restored(tmp_path: Path, database: Path) -> None:
    config = written(tmp_path, database)
    with sqlite3.connect(database) as newer:
        newer.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    newer.close()
    backup = back_up(load(config), config, tmp_path, models=False, secrets=True).file
    with pytest.raises(BackupError, match="written by a newer edgebox"):
        restore(backup, config, configuration=False)


def test_a_damaged_database_is_not_backed_up(tmp_path: Path, database: Path) -> None:
    config = written(tmp_path, database)
    content = bytearray(database.read_bytes())
    content[8192:] = b"\x55" * (len(content) - 8192)
    database.write_bytes(content)
    with pytest.raises(EdgeboxError, match=r"damaged|malformed"):
        back_up(load(config), config, tmp_path / "b.tar.gz", models=False, secrets=True)
    assert not (tmp_path / "b.tar.gz").exists()


def test_a_folder_that_is_not_there_is_made(tmp_path: Path, database: Path) -> None:
    config = written(tmp_path, database)
    to = tmp_path / "var" / "backups"
    backups = [
        back_up(load(config), config, to / name, models=False, secrets=False).file
        for name in ("", "mine.tar.gz")
    ]
    assert [backup.parent for backup in backups] == [to, to]
    assert backups[1].name == "mine.tar.gz"
    assert to.stat().st_mode & 0o777 == 0o700
    plain = tmp_path / "plain"
    plain.write_text("something else")
    with pytest.raises(InvalidInputError, match="plain exists: name another file"):
        back_up(load(config), config, plain, models=False, secrets=False)


def test_no_backup_replaces_another(tmp_path: Path, database: Path) -> None:
    config = written(tmp_path, database)
    backup = back_up(load(config), config, tmp_path, models=False, secrets=True).file
    with pytest.raises(InvalidInputError, match="exists"):
        back_up(load(config), config, backup, models=False, secrets=True)
    with pytest.raises(InvalidInputError, match="there is no database"):
        back_up(
            load(None, {"storage.path": str(tmp_path / "x")}),
            None,
            tmp_path,
            models=False,
            secrets=True,
        )


async def test_the_commands_say_what_they_did(tmp_path: Path, database: Path) -> None:
    config = written(tmp_path, database)
    made = await edgebox(tmp_path, "backup", str(tmp_path), "--config", str(config), "--json")
    backup = made.json()["file"]
    restored = await edgebox(tmp_path, "restore", backup, "--config", str(config))
    assert restored.code == 0, restored.err
    assert f"  {database}\n" in restored.err
    again = await edgebox(tmp_path, "backup", backup, "--config", str(config))
    assert again.code == 1
    assert again.err.count("\n") == 1
