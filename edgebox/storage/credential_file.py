"""The file with the user names and passwords of cameras that the box fetches from.

They are apart from everything else: in a file that only the box's user can read (mode 0600), not in
the database, which people copy. Every method blocks.
"""

from collections.abc import Mapping
from pathlib import Path

import orjson

from edgebox.domain.errors import KeptFileError
from edgebox.domain.home_folder import expanded
from edgebox.domain.requests import CameraId
from edgebox.domain.source_address import Credentials
from edgebox.storage.connecting import IN_MEMORY
from edgebox.storage.whole_file import write_whole


def credential_file(database: str) -> Path | None:
    """Return the file that belongs to a database's file; None: nothing is kept."""
    if database == IN_MEMORY:
        return None
    file = expanded(database)
    return file.with_name(f"{file.stem}.credentials.json")


class CredentialFile:
    """Credentials by camera; in memory only if there is no file."""

    def __init__(self, path: Path | None) -> None:
        """Use a file, which is made when something is first written."""
        self._path = path
        self._known: dict[CameraId, Credentials] = {}

    def load(self) -> Mapping[CameraId, Credentials]:
        """Read all credentials.

        Raises:
            StorageError: the file cannot be read; the message says what to do.
        """
        if self._path is None:
            return dict(self._known)
        try:
            found = orjson.loads(self._path.read_bytes())
            self._known = {
                CameraId(camera): Credentials(str(of["username"]), str(of["password"]))
                for camera, of in found.items()
            }
        except FileNotFoundError:
            self._known = {}
        except OSError as error:
            raise KeptFileError(f"{self._path} cannot be read: {error.strerror}") from None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise KeptFileError(
                f"{self._path} is damaged: delete it, and enter the cameras' passwords again"
            ) from None
        return dict(self._known)

    def put(self, camera: CameraId, credentials: Credentials | None) -> None:
        """Keep a camera's credentials; None: forget them.

        The file is read again first: one that cannot be read is left as it is, with all others'.

        Raises:
            StorageError: they cannot be read or written.
        """
        before = self.load()
        if before.get(camera) == credentials:
            return
        known = {name: of for name, of in before.items() if name != camera}
        if credentials is not None:
            known[camera] = credentials
        self._write(known)
        self._known = known

    def _write(self, known: Mapping[CameraId, Credentials]) -> None:
        """Replace the file in one step, so that it is whole at any moment."""
        if self._path is None:
            return
        content = {
            camera: {"username": of.username, "password": of.password}
            for camera, of in known.items()
        }
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self._path, orjson.dumps(content, option=orjson.OPT_INDENT_2))
        except OSError as error:
            raise KeptFileError(f"{self._path} cannot be written: {error.strerror}") from None
