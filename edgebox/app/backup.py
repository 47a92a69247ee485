"""Backs a box up into one file, while it runs or not. Everything here blocks.

The file is a tar archive: `manifest.json` with the size and SHA-256 of each other file, then these.
It has what a box keeps: the database, tokens, its own certificate, its configuration, and if wanted
its imported models. It is written beside its place and renamed once it was read back and checked.
"""

import hashlib
import io
import os
import shutil
import tarfile
import tempfile
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from edgebox import __version__
from edgebox.config.config_file import Config
from edgebox.domain.errors import EdgeboxError, InvalidInputError
from edgebox.inference.zoo import imported_folders
from edgebox.storage.access_store import access_file
from edgebox.storage.connecting import IN_MEMORY
from edgebox.storage.snapshots import snapshot
from edgebox.storage.wall_clock import wall_clock_ms

FORMAT = 1
MANIFEST = "manifest.json"
DATABASE = "edgebox.sqlite3"
ACCESS = "access.sqlite3"
CONFIGURATION = "edgebox.toml"
TLS = ("tls.pem", "tls-key.pem")
MODELS = "models"
_SUFFIX = ".tar.gz"
_COMPRESSION = 1
"""Of gzip: a database shrinks to a third with the least effort."""
_CHUNK_BYTES = 1 << 20
_UNREADABLE = (
    OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, tarfile.TarError,
    zlib.error,
)  # fmt: skip
"""What reading an archive raises that was cut off or changed."""


class BackupError(EdgeboxError):
    """A backup cannot be made or used; the message says why."""

    code = "backup"


@dataclass(frozen=True, slots=True)
class BackupMade:
    """A backup that was written and checked."""

    file: Path
    size_bytes: int
    manifest: Mapping[str, Any]


def back_up(config: Config, config_file: Path | None, to: Path, *, models: bool) -> BackupMade:
    """Back up the box with this configuration.

    Args:
        config: of the box.
        config_file: where it was read, to be backed up too.
        to: the backup's file, which must not exist; or a folder, in which it gets a name with the
            time.
        models: whether imported models are backed up.

    Raises:
        BackupError: it cannot be written.
        InvalidInputError: the configuration keeps nothing, or the file exists.
        StorageError: the database cannot be read.
    """
    if config.storage.file == IN_MEMORY:
        raise InvalidInputError("this configuration keeps nothing (storage.path)")
    if not Path(config.storage.file).expanduser().exists():
        raise InvalidInputError(
            f"there is no database {config.storage.file}: is --config the box's, and are you its "
            "user?"
        )
    if to.is_dir():
        to /= time.strftime("edgebox-%Y%m%d-%H%M%S") + _SUFFIX
    if to.exists():
        raise InvalidInputError(f"{to} exists: name another file")
    try:
        with tempfile.TemporaryDirectory(prefix=".edgebox-backup-", dir=to.parent) as name:
            folder = Path(name)
            files = _collected(config, config_file, folder, models=models)
            manifest = _manifest(files)
            archive = folder / "archive"
            _write(archive, manifest, files)
            verify(archive)
            archive.replace(to)
            _sync_folder(to.parent)
    except OSError as error:
        raise BackupError(f"{to}: cannot be written ({error})") from error
    return BackupMade(to, to.stat().st_size, manifest)


def _collected(
    config: Config, config_file: Path | None, folder: Path, *, models: bool
) -> dict[str, Path]:
    """Return the files to back up by their names in the archive; databases are copied first."""
    database = Path(config.storage.file).expanduser()
    files: dict[str, Path] = {}
    for name, file in ((DATABASE, database), (ACCESS, Path(access_file(str(database))))):
        if file.exists():
            snapshot(file, folder / name)
            files[name] = folder / name
    beside = {name: config.storage.folder / name for name in TLS}
    if config_file is not None:
        beside[CONFIGURATION] = config_file
    for name, file in beside.items():
        if file.exists():
            shutil.copyfile(file, folder / name)  # so that it does not change between sum and copy
            files[name] = folder / name
    if models:
        root = config.inference.models_folder
        for family in imported_folders(root):
            for file in sorted(each for each in family.rglob("*") if each.is_file()):
                files[f"{MODELS}/{file.relative_to(root).as_posix()}"] = file
    return files


def _manifest(files: Mapping[str, Path]) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "edgebox": __version__,
        "made_ms": wall_clock_ms(),
        "files": {
            name: {"bytes": file.stat().st_size, "sha256": _sum(file)}
            for name, file in files.items()
        },
    }


def _sum(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _write(archive: Path, manifest: Mapping[str, Any], files: Mapping[str, Path]) -> None:
    descriptor = os.open(archive, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "wb") as opened:
        with tarfile.open(
            fileobj=opened, mode="w:gz", compresslevel=_COMPRESSION, format=tarfile.PAX_FORMAT
        ) as tar:
            text = orjson.dumps(manifest, option=orjson.OPT_INDENT_2)
            tar.addfile(_member(MANIFEST, len(text), manifest), io.BytesIO(text))
            for name, file in files.items():
                about = _member(name, manifest["files"][name]["bytes"], manifest)
                with file.open("rb") as content:
                    tar.addfile(about, content)
        opened.flush()
        os.fsync(opened.fileno())


def _member(name: str, size: int, manifest: Mapping[str, Any]) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = size, 0o600, manifest["made_ms"] // 1000
    return member


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def verify(archive: Path, to: Path | None = None) -> dict[str, Any]:
    """Check every file of a backup against its manifest, which is returned.

    Args:
        archive: the backup.
        to: folder that gets the files; None: they are only checked.

    Raises:
        BackupError: it is no backup, damaged, or of a newer edgebox.
    """
    try:
        with tarfile.open(archive, "r:gz") as tar:
            first = tar.next()
            if first is None or first.name != MANIFEST:
                raise BackupError(f"{archive}: is no backup of edgebox")
            manifest = _read_manifest(archive, tar, first)
            left = dict(manifest["files"])
            while (member := tar.next()) is not None:
                about = left.pop(member.name, None)
                content = tar.extractfile(member) if member.isreg() else None
                if about is None or content is None:
                    raise BackupError(f"{archive}: {member.name!r} does not belong into a backup")
                if _taken(content, to and to / member.name) != (about["bytes"], about["sha256"]):
                    raise BackupError(f"{archive}: {member.name} is damaged")
    except _UNREADABLE as error:
        raise BackupError(f"{archive}: is damaged, or no backup ({error})") from error
    if left:
        raise BackupError(f"{archive}: {', '.join(sorted(left))} is missing")
    return manifest


def _read_manifest(archive: Path, tar: tarfile.TarFile, member: tarfile.TarInfo) -> dict[str, Any]:
    content = tar.extractfile(member)
    assert content is not None
    manifest: dict[str, Any] = orjson.loads(content.read(_CHUNK_BYTES))
    if manifest["format"] > FORMAT:
        raise BackupError(
            f"{archive}: was made by a newer edgebox ({manifest['edgebox']}): upgrade edgebox"
        )
    for name in manifest["files"]:
        if not _is_known(name):
            raise BackupError(f"{archive}: {name!r} does not belong into a backup")
    if DATABASE not in manifest["files"]:
        raise BackupError(f"{archive}: has no database")
    return manifest


def _is_known(name: str) -> bool:
    """Return whether a backup may have a file of this name."""
    if name in {DATABASE, ACCESS, CONFIGURATION, *TLS}:
        return True
    root, *parts = name.split("/")
    return root == MODELS and len(parts) > 1 and not {"", ".", ".."} & set(parts)


def _taken(content: Any, to: Path | None) -> tuple[int, str]:
    """Read a file to its end, and write it if wanted; return its size and SHA-256."""
    found, size = hashlib.sha256(), 0
    if to is not None:
        to.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(
        os.devnull if to is None else to,
        os.O_WRONLY | (0 if to is None else os.O_CREAT | os.O_EXCL),
        0o600,
    )
    with os.fdopen(descriptor, "wb") as out:
        while chunk := content.read(_CHUNK_BYTES):
            found.update(chunk)
            size += len(chunk)
            out.write(chunk)
        out.flush()
        if to is not None:
            os.fsync(out.fileno())
    return size, found.hexdigest()
