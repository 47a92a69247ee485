"""Files are there whole or not at all."""

import errno
import os
from pathlib import Path

import pytest

from edgebox.storage.whole_file import write_whole


def test_only_its_user_may_read_it(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    write_whole(file, b"one")
    write_whole(file, b"another")
    assert file.read_bytes() == b"another"
    assert file.stat().st_mode & 0o777 == 0o600


def test_what_was_there_stays_if_it_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    file = tmp_path / "kept"
    write_whole(file, b"before")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        write_whole(file, b"after")
    assert file.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [file]
