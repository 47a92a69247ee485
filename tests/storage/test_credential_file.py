"""The file of cameras' passwords."""

import stat
from pathlib import Path

import pytest

from edgebox.domain.errors import KeptFileError
from edgebox.domain.requests import CameraId
from edgebox.domain.source_address import Credentials
from edgebox.storage.connecting import IN_MEMORY
from edgebox.storage.credential_file import CredentialFile, credential_file

GATE, YARD = CameraId("gate"), CameraId("yard")


def test_credentials_are_kept_for_the_boxs_user_alone(tmp_path: Path) -> None:
    path = credential_file(str(tmp_path / "new" / "box.sqlite3"))
    assert path == tmp_path / "new" / "box.credentials.json"
    kept = CredentialFile(path)
    assert kept.load() == {}
    kept.put(GATE, Credentials("ann", "secret"))
    kept.put(YARD, Credentials("bob"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert CredentialFile(path).load() == {
        GATE: Credentials("ann", "secret"), YARD: Credentials("bob"),
    }  # fmt: skip
    kept.put(GATE, None)
    assert CredentialFile(path).load() == {YARD: Credentials("bob")}
    assert b"secret" not in path.read_bytes()
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "box.credentials.json"
    path.write_text('{"gate": 3}', encoding="utf-8")
    with pytest.raises(KeptFileError, match="is damaged: delete it"):
        CredentialFile(path).load()


def test_one_that_cannot_be_read_for_a_while_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "box.credentials.json"
    CredentialFile(path).put(GATE, Credentials("ann", "secret"))
    kept = CredentialFile(path)

    def fail(file: Path) -> bytes:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as failing:
        failing.setattr(Path, "read_bytes", fail)
        for change in (kept.load, lambda: kept.put(YARD, Credentials("bob"))):
            with pytest.raises(KeptFileError, match="cannot be read: Input/output error"):
                change()
    kept.put(YARD, Credentials("bob"))
    assert CredentialFile(path).load() == {
        GATE: Credentials("ann", "secret"), YARD: Credentials("bob"),
    }  # fmt: skip


def test_a_damaged_one_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "box.credentials.json"
    path.write_text('{"gate": 3}', encoding="utf-8")
    with pytest.raises(KeptFileError, match="is damaged: delete it"):
        CredentialFile(path).put(YARD, Credentials("bob"))
    assert path.read_text(encoding="utf-8") == '{"gate": 3}'


def test_in_memory_nothing_is_written() -> None:
    kept = CredentialFile(credential_file(IN_MEMORY))
    kept.put(GATE, Credentials("ann"))
    assert kept.load() == {GATE: Credentials("ann")}
