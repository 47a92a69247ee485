"""Folders that killed processes left behind, and those that are in use."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from edgebox.web.private_folder import PrivateFolder

PREFIX = "edgebox-test-"
KILLED = """
import os, signal
from edgebox.web.private_folder import PrivateFolder
folder = PrivateFolder("edgebox-test-")
(folder.path / "socket").touch()
print(folder.path, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def test_the_folder_of_a_process_that_was_killed_is_removed_and_others_stay(
    temporary: Path,
) -> None:
    used = PrivateFolder(PREFIX)
    (used.path / "socket").touch()
    (target := temporary / "target").mkdir()
    (target / "kept").touch()
    (link := temporary / f"{PREFIX}link").symlink_to(target)
    (new := temporary / f"{PREFIX}new").mkdir()
    ended = subprocess.run(
        [sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True, check=False
    )
    left = Path(ended.stdout.strip())
    assert left.parent == temporary and (left / "socket").exists()

    made = PrivateFolder(PREFIX)
    assert not left.exists()
    assert set(temporary.iterdir()) == {used.path, target, link, new, made.path}
    assert (used.path / "socket").exists() and (target / "kept").exists()
    assert made.path.stat().st_mode & 0o777 == 0o700
    for folder in (made, used):
        folder.remove()
        assert not folder.path.exists()


def test_a_folder_that_cannot_be_made_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    with pytest.raises(OSError):
        PrivateFolder(PREFIX)
