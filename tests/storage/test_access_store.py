"""The file of tokens: what is stored is there again, for several processes, for the user only."""

import contextlib
import errno
import os
import sqlite3
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from edgebox.domain.access import Scope, Token
from edgebox.domain.errors import KeptFileError
from edgebox.domain.requests import CameraId
from edgebox.storage import access_store
from edgebox.storage.access_store import (
    REVOKED_KEPT_MS,
    AccessStore,
    DamagedTokensError,
    Stored,
    StoredSession,
    access_file,
)
from edgebox.storage.connecting import DamagedError
from edgebox.storage.database import IN_MEMORY

ADMIN = Token("aaaaaaaa", "Ann", Scope.ADMIN, None, "1" * 64, 1000)
GATE = Token("bbbbbbbb", "gate", Scope.CAMERA, CameraId("gate"), "2" * 64, 2000)
SESSION = StoredSession("3" * 64, ADMIN.id, 5000)


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> AccessStore:
    return AccessStore(IN_MEMORY if request.param == "memory" else str(tmp_path / "deep" / "a.db"))


def test_nothing_is_stored_at_first(store: AccessStore) -> None:
    assert store.load(0) == Stored((), ())


def test_what_is_added_is_there_until_it_is_removed(store: AccessStore) -> None:
    store.add(GATE)
    store.add(ADMIN)
    store.add_session(SESSION, 0)
    assert store.load(0) == Stored((ADMIN, GATE), (SESSION,))
    store.used({ADMIN.id: 1500})
    assert [token.last_used_ms for token in store.load(0).tokens] == [1500, None]
    store.remove(ADMIN.id, 4000)  # its session ends with it
    assert store.load(0) == Stored((GATE,), (), {ADMIN.id: 4000})


def test_a_camera_has_one_token(store: AccessStore) -> None:
    store.add(GATE)
    other = Token("cccccccc", "gate", Scope.CAMERA, GATE.camera, "4" * 64, 3000)
    store.add(other)
    assert store.load(0).tokens == (other,)


def test_what_was_revoked_or_replaced_is_kept_for_so_long(store: AccessStore) -> None:
    store.add(GATE)
    store.add(ADMIN)
    store.remove(ADMIN.id, 2500)
    store.add(other := replace(GATE, id="cccccccc", sha256="4" * 64, created_ms=3000))
    assert store.load(0).revoked == {ADMIN.id: 2500, GATE.id: 3000}
    assert store.load(2500 + REVOKED_KEPT_MS).revoked == {GATE.id: 3000}
    store.remove(other.id, 3000 + REVOKED_KEPT_MS)
    assert store.load(0).revoked == {other.id: 3000 + REVOKED_KEPT_MS}


def test_what_is_revoked_while_the_clock_is_behind_counts_from_when_it_was_used_last(
    store: AccessStore,
) -> None:
    store.add(GATE)
    store.add(ADMIN)
    store.used({ADMIN.id: 10**12})
    store.used({ADMIN.id: 60_000})
    store.remove(ADMIN.id, 61_000)
    store.add(replace(GATE, id="cccccccc", sha256="4" * 64, created_ms=0))
    assert store.load(0).revoked == {ADMIN.id: 10**12, GATE.id: GATE.created_ms}


def test_what_is_revoked_by_a_clock_that_is_behind_is_kept_as_long(store: AccessStore) -> None:
    now_ms = 100 + REVOKED_KEPT_MS
    store.add(replace(GATE, created_ms=now_ms))
    store.add(replace(ADMIN, created_ms=50))
    store.used({ADMIN.id: now_ms + 7})
    for token in (GATE, ADMIN):
        store.remove(token.id, 60)
    assert store.load(now_ms + 8).revoked == {ADMIN.id: now_ms + 7, GATE.id: now_ms}


def test_a_file_of_an_earlier_release_is_read_and_written(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    AccessStore(str(file)).add(GATE)
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("DROP TABLE revoked")
    store = AccessStore(str(file))
    assert store.load(0) == Stored((GATE,), ())
    store.remove(GATE.id, 2500)
    assert store.load(0) == Stored((), (), {GATE.id: 2500})


def test_sessions_expire(store: AccessStore) -> None:
    store.add(ADMIN)
    store.add_session(SESSION, 0)
    assert store.load(SESSION.expires_ms).sessions == ()
    store.remove_session(SESSION.sha256)
    assert store.load(0).sessions == ()


def test_other_processes_see_changes(tmp_path: Path) -> None:
    one, other = AccessStore(str(tmp_path / "a.db")), AccessStore(str(tmp_path / "a.db"))
    versions = [other.version()]
    one.add(ADMIN)
    versions.append(other.version())
    assert other.load(0).tokens == (ADMIN,)
    one.remove(ADMIN.id, 4000)
    versions.append(other.version())
    assert len(set(versions)) == 3


def test_only_the_user_can_read_it(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    AccessStore(str(file)).add(ADMIN)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert {each.name for each in tmp_path.iterdir()} == {"a.db"}


def test_it_can_be_read_where_nothing_can_be_written(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    AccessStore(str(file)).add(ADMIN)
    before = file.stat()
    assert AccessStore(str(file)).load(0).tokens == (ADMIN,)
    assert file.stat().st_mtime_ns == before.st_mtime_ns


@pytest.mark.parametrize("contents", [b"no database at all, but long enough" * 100, b"SQLite"])
def test_a_damaged_file_is_named_and_can_be_renamed(tmp_path: Path, contents: bytes) -> None:
    file = tmp_path / "a.db"
    file.write_bytes(contents)
    store = AccessStore(str(file))
    with pytest.raises(DamagedError, match=r"a\.db: file is not a database: move it away"):
        store.load(0)
    journal = tmp_path / "a.db-journal"
    journal.write_bytes(b"of a write that was cut off")
    aside = store.rename_damaged()
    assert aside.name.startswith("a.db.corrupt-")
    assert not journal.exists(), "it would belong to the next file"
    assert aside.read_bytes() == contents
    store.add(ADMIN)
    assert store.load(0).tokens == (ADMIN,)


@pytest.mark.parametrize("take_away", [Path.unlink, lambda file: file.write_bytes(b"")])
def test_a_file_that_was_taken_away_is_not_one_without_tokens(
    tmp_path: Path, take_away: Callable[[Path], object]
) -> None:
    file = tmp_path / "a.db"
    store = AccessStore(str(file))
    store.add(ADMIN)
    kept = file.read_bytes()
    take_away(file)
    with pytest.raises(
        KeptFileError, match=r"a\.db: the file of tokens was deleted or emptied: put"
    ):
        store.load(0)
    with pytest.raises(KeptFileError, match="was deleted or emptied"):
        store.used({ADMIN.id: 1500})
    assert not file.exists() or not file.stat().st_size, "no file without tokens takes its place"
    file.write_bytes(kept)
    assert store.load(0).tokens == (ADMIN,)
    take_away(file)
    AccessStore(str(file)).add(GATE)  # as `edgebox tokens add` does
    assert store.load(0).tokens == (GATE,)


def test_a_file_that_may_not_be_looked_at_was_not_taken_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.db"
    store = AccessStore(str(file))
    store.add(ADMIN)

    def refuse(self: Path) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "stat", refuse)
    monkeypatch.setattr(access_store, "_readable", lambda path: sqlite3.connect(tmp_path))
    with pytest.raises(KeptFileError, match=r"cannot be used .*: make it writable"):
        store.load(0)


def test_a_file_of_a_later_edgebox_is_refused(tmp_path: Path) -> None:
    import sqlite3

    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(DamagedError, match="version 99"):
        AccessStore(str(tmp_path / "a.db")).load(0)


@pytest.mark.parametrize(("column", "value"), [("scope", "owner"), ("created_ms", "yesterday")])
def test_a_damaged_token_counts_for_nothing(tmp_path: Path, column: str, value: str) -> None:
    import sqlite3

    store = AccessStore(str(tmp_path / "a.db"))
    store.add(ADMIN)
    store.add(replace(ADMIN, id="other", sha256="other"))
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute(f"UPDATE tokens SET {column} = ? WHERE id = 'other'", (value,))
    connection.close()
    assert store.load(0).tokens == (ADMIN,)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(KeptFileError, match="the file of tokens cannot be used"):
        AccessStore(str(tmp_path / "file" / "a.db")).add(ADMIN)


def test_a_full_disk_is_named_and_what_was_stored_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = AccessStore(str(tmp_path / "a.db"))
    store.add(ADMIN)
    prepare = access_store._prepare

    def prepare_full(connection: sqlite3.Connection) -> None:
        prepare(connection)
        connection.execute("PRAGMA max_page_count = 1")  # as many as there are

    monkeypatch.setattr(access_store, "_prepare", prepare_full)
    with pytest.raises(KeptFileError, match=r"disk is full.*: make room on its disk"):
        store.add(replace(GATE, name="gate " * 10_000))
    assert store.load(0).tokens == (ADMIN,)


def test_a_file_that_another_program_holds_is_named_as_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_store, "_BUSY_S", 0.0)
    store = AccessStore(str(tmp_path / "a.db"))
    store.add(ADMIN)
    with contextlib.closing(sqlite3.connect(tmp_path / "a.db")) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(KeptFileError, match="another program holds it; try again"):
            store.add(GATE)


def test_the_file_lies_beside_the_database() -> None:
    assert access_file("/data/box.sqlite3") == "/data/box.access.sqlite3"
    assert access_file(IN_MEMORY) == IN_MEMORY


def test_what_is_wrong_with_the_tokens_is_not_said_of_the_database() -> None:
    assert DamagedTokensError("a.db", "no file of tokens").title == KeptFileError.title
    assert KeptFileError.title == "A file with tokens or passwords cannot be used"
