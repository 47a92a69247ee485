"""A folder for temporary files of this process alone, removed at the latest by the next one.

A process that is killed leaves its folder. Each holds a lock on its own, which the system takes
back when the process ends however that was: a folder that can be locked is nobody's any more.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path


class PrivateFolder:
    """A folder of the folder for temporary files, of this user alone."""

    def __init__(self, prefix: str) -> None:
        """Make it, and remove those of the same prefix that were left behind.

        Raises:
            OSError: it cannot be made.
        """
        for left in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
            with contextlib.suppress(OSError):  # another user's or process's, or removed just now
                _remove_left(left)
        self.path = Path(tempfile.mkdtemp(prefix=prefix))
        self._lock = _locked(self.path)

    def remove(self) -> None:
        """Remove it and what is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def _locked(folder: Path) -> int:
    """Return the descriptor of a folder, which is locked until that is closed.

    Raises:
        OSError: it is no folder of this user, or another process has locked it.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            raise PermissionError(f"{folder} is another user's")
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _remove_left(folder: Path) -> None:
    """Remove a folder that no process uses.

    Raises:
        OSError: one does, or it cannot be removed.
    """
    if folder.is_symlink() or not any(folder.iterdir()):
        return  # an empty one may be new, and not yet locked
    lock = _locked(folder)
    try:
        shutil.rmtree(folder)
    finally:
        os.close(lock)
