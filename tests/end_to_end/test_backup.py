"""Backing up a box that serves, and restoring it: whole, checked, private, never a running one."""

import asyncio
import io
import os
import sqlite3
import tarfile
from pathlib import Path

import orjson
import pytest

from edgebox.app.backup import DATABASE, MANIFEST, BackupError, back_up, verify
from edgebox.app.restore import restore
from edgebox.config.config_file import load
from edgebox.domain.access import Scope
from edgebox.domain.errors import EdgeboxError, InvalidInputError, StorageError
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
    return folder


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
            made = await asyncio.to_thread(back_up, load(config), config, backup, models=True)
        with pytest.raises(StorageError, match="stop it first"):
            await asyncio.to_thread(restore, backup, config, configuration=False)
    assert backup.stat().st_mode & 0o777 == 0o600
    assert set(made.manifest["files"]) == {
        DATABASE, "access.sqlite3", "edgebox.toml", "models/mine/family.toml",
        "models/mine/mine.onnx",
    }  # fmt: skip
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".edgebox")]

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    place = elsewhere / "box.toml"
    restored = restore(backup, place, configuration=True)
    assert restored.kept == ()
    assert place.read_text() == config.read_text()
    assert (elsewhere / "models" / "mine" / "mine.onnx").read_bytes() == b"weights"
    for file in restored.files:
        assert not file.stat().st_mode & 0o077
    async with running(elsewhere / database.name, **CLOSED) as app:
        assert app._storage is not None
        assert [known.camera for known in await app._storage.cameras()] == ["bystander"]
        assert {token.scope for token in app.access.tokens()} >= {Scope.VIEWER, Scope.CAMERA}
        assert not app.profiled  # its profiles are those of this machine


def test_what_is_replaced_is_kept_with_its_log(tmp_path: Path, database: Path) -> None:
    config = written(tmp_path, database)
    backup = back_up(load(config), config, tmp_path, models=False).file
    assert backup.parent == tmp_path
    with sqlite3.connect(database) as later:
        later.execute("INSERT INTO cameras VALUES ('later', '{}', 1, 2, '{}')")
    later.close()
    restored = restore(backup, config, configuration=False)
    assert len(restored.kept) >= 1
    with sqlite3.connect(database) as again:
        assert again.execute("SELECT count(*) FROM cameras").fetchone() == (0,)
    again.close()
    (kept,) = (file for file in restored.kept if file.name.startswith(f"{database.name}.before"))
    with sqlite3.connect(kept) as old:
        assert old.execute("SELECT camera FROM cameras").fetchall() == [("later",)]
    old.close()


def test_a_step_that_fails_brings_everything_back(
    tmp_path: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = written(tmp_path, database)
    family_of(tmp_path)
    backup = back_up(load(config), config, tmp_path, models=True).file
    (tmp_path / "models" / "mine" / "mine.onnx").write_bytes(b"changed")
    contents = database.read_bytes()
    rename = Path.rename

    def full(self: Path, target: Path) -> Path:
        if target == tmp_path / "models":
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", full)
    with pytest.raises(BackupError, match="No space left"):
        restore(backup, config, configuration=False)
    monkeypatch.undo()
    assert database.read_bytes() == contents
    # The old models were renamed first, and could not be named back while the fault lasted.
    (aside,) = tmp_path.glob("models.before-restore-*")
    assert (aside / "mine" / "mine.onnx").read_bytes() == b"changed"


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
    backup = back_up(load(config), config, tmp_path, models=False).file
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
            (repacked(backup, bad, **files).read_bytes(), said)  # type: ignore[arg-type]
            for files, said in (
                ({DATABASE: b"x"}, "edgebox.sqlite3 is damaged"),
                ({DATABASE: None}, "edgebox.sqlite3 is missing"),
                ({MANIFEST: None}, "is no backup"),
                ({MANIFEST: orjson.dumps(stranger)}, "'../x' does not belong"),
                ({MANIFEST: orjson.dumps(newer)}, r"newer edgebox \(9.9\): upgrade"),
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


def test_a_database_of_a_newer_edgebox_is_not_restored(tmp_path: Path, database: Path) -> None:
    config = written(tmp_path, database)
    with sqlite3.connect(database) as newer:
        newer.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    newer.close()
    backup = back_up(load(config), config, tmp_path, models=False).file
    with pytest.raises(BackupError, match="written by a newer edgebox"):
        restore(backup, config, configuration=False)


def test_a_damaged_database_is_not_backed_up(tmp_path: Path, database: Path) -> None:
    config = written(tmp_path, database)
    content = bytearray(database.read_bytes())
    content[8192:] = b"\x55" * (len(content) - 8192)
    database.write_bytes(content)
    with pytest.raises(EdgeboxError, match=r"damaged|malformed"):
        back_up(load(config), config, tmp_path / "b.tar.gz", models=False)
    assert not (tmp_path / "b.tar.gz").exists()


def test_no_backup_replaces_another(tmp_path: Path, database: Path) -> None:
    config = written(tmp_path, database)
    backup = back_up(load(config), config, tmp_path, models=False).file
    with pytest.raises(InvalidInputError, match="exists"):
        back_up(load(config), config, backup, models=False)
    with pytest.raises(InvalidInputError, match="there is no database"):
        back_up(load(None, {"storage.path": str(tmp_path / "x")}), None, tmp_path, models=False)


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
