"""A folder for what is not finished yet. One that a killed process left is removed by the next."""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_FORGOTTEN_S = 3600.0
"""What is of this age, and held by nobody, is of a process that was killed."""


def is_forgotten(path: Path) -> bool:
    """Return whether unfinished work is so old that its process was killed; OSError: it is gone."""
    return time.time() - path.stat().st_mtime > _FORGOTTEN_S


@contextmanager
def unfinished_folder(beside: Path, prefix: str) -> Iterator[Path]:
    """Make a temporary folder in another one, which exists; it is deleted at the end. Blocks.

    Args:
        beside: where it is made, and where forgotten folders of the same prefix are removed.
        prefix: how its name begins; one for each kind of work.

    Raises:
        OSError: it cannot be made.
    """
    for folder in beside.glob(f"{prefix}*"):
        with suppress(OSError):  # its owner holds it, or is done with it just now
            if is_forgotten(folder):
                with _held(folder):
                    shutil.rmtree(folder, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=beside))
    try:
        with _held(folder, needed=False):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _held(folder: Path, *, needed: bool = True) -> Iterator[None]:
    """Lock a folder while this process lives; OSError: another process holds it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # or the file system has no locks
            if needed:
                raise
        yield
    finally:
        os.close(descriptor)
