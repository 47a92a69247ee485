"""The lock of the box that serves with a database: one at a time.

It is `flock` on a file beside the database, which stays there and names the last process that had
it. The kernel gives it back when that process ends, however it ends. It is not on the database
itself, whose locks are SQLite's: commands use the database beside a running box.
"""

import contextlib
import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

from edgebox.domain.errors import StorageError
from edgebox.storage.connecting import file_at

_SUFFIX = ".lock"
_HOLDER_BYTES_MAX = 512
_ANOTHER_FILE = (
    ", or name another file in storage.path (for a demo: another folder in XDG_DATA_HOME)"
)


class DatabaseInUseError(StorageError):
    """Another box serves with the database."""

    code = "database_in_use"
    title = "Another box serves with the database"
    exit_code = 75
    """EX_TEMPFAIL of sysexits.h: another start succeeds once the other box has ended."""


@dataclass(slots=True)
class BoxLock:
    """A lock, held until it is closed or the process ends."""

    descriptor: int | None = None
    problem: str = ""
    """Why there is no lock, where files cannot be locked or made; empty: it is held."""

    def close(self) -> None:
        """Let another box serve with the database. Idempotent."""
        descriptor, self.descriptor = self.descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def lock_for_box(database: Path | str, instead: str = _ANOTHER_FILE) -> BoxLock:
    """Take the lock of a database. Never waits for another box.

    Args:
        database: its file, which need not exist; symbolic links to one file share its lock.
        instead: what helps while another box has it, as the error says it.

    Raises:
        DatabaseInUseError: another box has it.
    """
    file = file_at(database)
    descriptor = None
    try:
        file = Path(os.path.realpath(file))
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = _opened(file.with_name(file.name + _SUFFIX))
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _name_holder(descriptor)
    except (OSError, ValueError) as error:
        holder = ""
        if descriptor is not None:
            holder = _holder(descriptor)
            os.close(descriptor)
        if not isinstance(error, BlockingIOError):
            return BoxLock(problem=getattr(error, "strerror", None) or str(error))
        raise DatabaseInUseError(
            f"{file}: another box serves with this database: stop it first{instead}{holder}"
        ) from error
    return BoxLock(descriptor)


def _name_holder(descriptor: int) -> None:
    with contextlib.suppress(OSError):  # a full disk: the lock is held all the same
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()} {os.uname().nodename}\n".encode(), 0)


def _holder(descriptor: int) -> str:
    """Return the process that has a lock, as the error says it; empty: it is not known.

    In another container it has a number of that container, whose name is that of its host.
    """
    try:
        process, host = os.pread(descriptor, _HOLDER_BYTES_MAX, 0).decode().split()
        elsewhere = "" if host == os.uname().nodename else f" on {host}"
        return f"; it is process {int(process)}{elsewhere}"
    except (OSError, ValueError):
        return ""


def _opened(file: Path) -> int:
    """Open the file of a lock for writing, which network file systems insist on.

    It is for its owner alone: whoever may read it could lock it, and keep the box from starting.
    """
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CLOEXEC)
        with contextlib.suppress(OSError):  # another user's
            os.fchmod(descriptor, 0o600)
        return descriptor
    except FileNotFoundError:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if os.geteuid() == 0:  # else the box, which is another user, could not open it
        folder = file.parent.stat()
        with contextlib.suppress(OSError):  # an image's or network's root may not give files away
            os.fchown(descriptor, folder.st_uid, folder.st_gid)
    return descriptor
