"""The tokens that cameras keep: none is lost for another."""

import fcntl
import os
from pathlib import Path

import pytest

from edgebox.camera.pairing import KeptTokens
from edgebox.domain.errors import StorageError


def test_tokens_that_cannot_be_read_are_not_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "tokens.json"
    kept = KeptTokens(file)
    kept.put("ws://box:8787", "gate", "one")

    def refuses(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_bytes", refuses)
        with pytest.raises(StorageError, match="the tokens in it cannot be read"):
            kept.put("ws://box:8787", "door", "other")
    kept.put("ws://box:8787", "door", "other")
    assert kept.get("ws://box:8787", "gate") == "one"
    assert kept.get("ws://box:8787", "door") == "other"


@pytest.mark.parametrize("damaged", [b"", b'{"box gate": "on', b"[]"])
def test_a_damaged_file_is_not_written_over(tmp_path: Path, damaged: bytes) -> None:
    file = tmp_path / "tokens.json"
    file.write_bytes(damaged)
    kept = KeptTokens(file)
    with pytest.raises(StorageError, match="the tokens in it cannot be read"):
        kept.prepare()
    with pytest.raises(StorageError, match="the tokens in it cannot be read"):
        kept.put("ws://box:8787", "door", "other")
    assert file.read_bytes() == damaged


def test_a_token_that_cannot_be_kept_leaves_no_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(path: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", refuses)
    with pytest.raises(StorageError, match="cannot be kept"):
        KeptTokens(tmp_path / "tokens.json").put("ws://box:8787", "gate", "secret")
    assert not list(tmp_path.iterdir())


def test_cameras_that_are_paired_at_once_keep_their_tokens_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)  # another camera's
    refused = []

    def other_camera_tries(path: Path, target: Path) -> Path:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            refused.append(path.name)
        path.rename(target)
        return target

    monkeypatch.setattr(Path, "replace", other_camera_tries)
    KeptTokens(tmp_path / "tokens.json").put("ws://box:8787", "gate", "one")
    assert len(refused) == 1
    fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)  # it is the other's turn
    os.close(folder)
