"""The file of a backup: a compressed tar archive with a manifest. Everything here blocks.

`manifest.json` comes first, with the size and SHA-256 of each other file. Nothing is trusted: an
archive may have been cut off, changed, or made by somebody else.
"""

import hashlib
import io
import math
import os
import shutil
import struct
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from edgebox.domain.errors import EdgeboxError

FORMAT = 1
MANIFEST = "manifest.json"
DATABASE = "edgebox.sqlite3"
ACCESS = "access.sqlite3"
CREDENTIALS = "credentials.json"
CONFIGURATION = "edgebox.toml"
CERTIFICATE, CERTIFICATE_KEY = "tls.pem", "tls-key.pem"
MODELS = "models"
_NAMES = {DATABASE, ACCESS, CREDENTIALS, CONFIGURATION, CERTIFICATE, CERTIFICATE_KEY}
_COMPRESSION = 1
"""Of gzip: a database shrinks to a third with the least effort."""
_CHUNK_BYTES = 1 << 20
_MANIFEST_BYTES_MAX = 16 << 20
_ROOM_BYTES = 16 << 20
"""What a disk must have left beside the files."""
_UNREADABLE = (
    EOFError, ValueError, KeyError, TypeError, AttributeError, OverflowError, MemoryError,
    RecursionError, struct.error, zlib.error, tarfile.TarError,
)  # fmt: skip
"""What reading an archive raises that was cut off or changed, beside OSError."""


class BackupError(EdgeboxError):
    """A backup cannot be made or used; the message says why."""

    code = "backup"
    title = "The backup cannot be made or used"


def write_archive(archive: Path, files: Mapping[str, Path], about: Mapping[str, Any]) -> None:
    """Write files that do not change meanwhile into a new archive, which only its user may read.

    Args:
        archive: does not exist yet.
        files: by their names in the archive.
        about: what else the manifest has.

    Raises:
        OSError: it cannot be written.
    """
    listed: dict[str, dict[str, Any]] = {
        name: {"bytes": file.stat().st_size, "sha256": _sum(file)} for name, file in files.items()
    }
    text = orjson.dumps({"format": FORMAT, **about, "files": listed}, option=orjson.OPT_INDENT_2)
    descriptor = os.open(archive, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "wb") as opened:
        with tarfile.open(
            fileobj=opened, mode="w:gz", compresslevel=_COMPRESSION, format=tarfile.PAX_FORMAT
        ) as tar:
            tar.addfile(_member(MANIFEST, len(text), 0o600), io.BytesIO(text))
            for name, file in files.items():
                mode = file.stat().st_mode & 0o777 if name == CONFIGURATION else 0o600
                with file.open("rb") as content:
                    tar.addfile(_member(name, listed[name]["bytes"], mode), content)
        opened.flush()
        os.fsync(opened.fileno())


def _sum(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _member(name: str, size: int, mode: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, mode
    return member


def read_manifest(archive: Path) -> dict[str, Any]:
    """Return what an archive says of itself, its names and sizes checked.

    Raises:
        BackupError: it is no backup, damaged, or of a newer edgebox.
    """
    with _opened(archive) as tar:
        return _manifest_of(archive, tar)


def verify(archive: Path) -> dict[str, Any]:
    """Check every file of a backup against its manifest, which is returned.

    Raises:
        BackupError: it is no backup, damaged, or of a newer edgebox.
    """
    return _taken(archive, None)


def extract(archive: Path, to: Path) -> dict[str, Any]:
    """Write all files of a backup into a folder, and check them; return the manifest.

    Raises:
        BackupError: it is no backup, damaged, or of a newer edgebox; or there is no room.
        OSError: the files cannot be written.
    """
    contents = sum(about["bytes"] for about in read_manifest(archive)["files"].values())
    needed, free = contents + _ROOM_BYTES, shutil.disk_usage(to).free
    if needed > free:
        raise BackupError(
            f"{archive}: needs {math.ceil(needed / 1e6)} MB at {to.parent}, where "
            f"{math.floor(free / 1e6)} MB are free: make room"
        )
    return _taken(archive, to)


def extract_one(archive: Path, name: str, to: Path) -> None:
    """Write one file of a backup to a new place, unchecked; BackupError if it has none."""
    with _opened(archive) as tar:
        about = _manifest_of(archive, tar)["files"].get(name)
        while about is not None and (member := tar.next()) is not None:
            if member.name == name:
                _take(tar, member, about, to)
                return
    raise BackupError(f"{archive}: has no {name}")


def _taken(archive: Path, to: Path | None) -> dict[str, Any]:
    with _opened(archive) as tar:
        manifest = _manifest_of(archive, tar)
        left = dict(manifest["files"])
        while (member := tar.next()) is not None:
            about = left.pop(member.name, None)
            if about is None or member.type != tarfile.REGTYPE:
                raise BackupError(f"{archive}: {member.name!r} does not belong into a backup")
            place = None if to is None else to / member.name
            if member.size != about["bytes"] or _take(tar, member, about, place) != about["sha256"]:
                raise BackupError(f"{archive}: {member.name} is damaged")
    if left:
        raise BackupError(f"{archive}: {', '.join(sorted(left))} is missing")
    return manifest


@contextmanager
def _opened(archive: Path) -> Iterator[tarfile.TarFile]:
    """Give an archive; what reading it raises becomes a BackupError."""
    try:
        with archive.open("rb") as file:
            try:
                with tarfile.open(fileobj=file, mode="r:gz") as tar:
                    yield tar
            except _UNREADABLE as error:
                raise BackupError(f"{archive}: is damaged, or no backup ({error})") from error
            except OSError as error:
                if error.errno is not None:
                    raise  # of the system, as a full disk
                raise BackupError(f"{archive}: is damaged, or no backup ({error})") from error
    except OSError as error:
        if error.filename == str(archive):
            raise BackupError(f"{archive}: cannot be read ({error.strerror})") from error
        raise


def _manifest_of(archive: Path, tar: tarfile.TarFile) -> dict[str, Any]:
    member = tar.next()
    content = tar.extractfile(member) if member is not None and member.isreg() else None
    if member is None or member.name != MANIFEST or content is None:
        raise BackupError(f"{archive}: is no backup of edgebox")
    manifest: dict[str, Any] = orjson.loads(content.read(_MANIFEST_BYTES_MAX))
    if manifest["format"] != FORMAT:
        raise BackupError(
            f"{archive}: was made by another edgebox ({manifest['edgebox']}), whose backups this "
            "one does not know: install that one, or a newer one"
        )
    for name, about in manifest["files"].items():
        if not _is_known(name):
            raise BackupError(f"{archive}: {name!r} does not belong into a backup")
        if type(about["bytes"]) is not int or about["bytes"] < 0:
            raise ValueError(f"{name} has {about['bytes']!r} bytes")
    if DATABASE not in manifest["files"]:
        raise BackupError(f"{archive}: has no database")
    str(manifest["edgebox"]), int(manifest["made_ms"])
    return manifest


def _is_known(name: str) -> bool:
    """Return whether a backup may have a file of this name."""
    if name in _NAMES:
        return True
    root, *parts = name.split("/")
    return root == MODELS and bool(parts) and not {"", ".", ".."} & set(parts)


def _take(
    tar: tarfile.TarFile, member: tarfile.TarInfo, about: Mapping[str, Any], to: Path | None
) -> str:
    """Read a file to its end, and write it if wanted; return its SHA-256."""
    content = tar.extractfile(member)
    assert content is not None
    found, left = hashlib.sha256(), about["bytes"]
    with _new(to, member.mode) as out:
        while left and (chunk := content.read(min(left, _CHUNK_BYTES))):
            found.update(chunk)
            left -= len(chunk)
            if out is not None:
                out.write(chunk)
    return found.hexdigest()


@contextmanager
def _new(file: Path | None, mode: int) -> Iterator[BinaryIO | None]:
    """Give a new file that its user alone may write; None: none."""
    if file is None:
        yield None
        return
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        yield out
        out.flush()
        os.fchmod(out.fileno(), 0o600 | (mode & 0o044))
        os.fsync(out.fileno())
