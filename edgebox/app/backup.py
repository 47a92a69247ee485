"""Backs a box up into one file, while it runs or not. Everything here blocks.

The file has what a box keeps: the database, tokens, its own certificate, its configuration, and if
wanted its imported models and its secrets. It is written beside its place, read back and checked,
and renamed only then.
"""

import os
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgebox import __version__
from edgebox.config.config_file import Config
from edgebox.config.default_family import FILE_NAME as DEFAULT_FAMILY
from edgebox.domain.errors import InvalidInputError
from edgebox.domain.home_folder import expanded
from edgebox.inference.cascade_file import SUFFIX as CASCADE_SUFFIX
from edgebox.inference.zoo import imported_folders
from edgebox.storage.access_store import access_file
from edgebox.storage.backup_archive import (
    ACCESS,
    CERTIFICATE,
    CERTIFICATE_KEY,
    CONFIGURATION,
    CREDENTIALS,
    DATABASE,
    MODELS,
    BackupError,
    verify,
    write_archive,
)
from edgebox.storage.connecting import IN_MEMORY
from edgebox.storage.credential_file import credential_file
from edgebox.storage.snapshots import snapshot
from edgebox.storage.unfinished_folder import unfinished_folder
from edgebox.storage.wall_clock import wall_clock_ms

SECRETS = {
    CREDENTIALS: "passwords of cameras",
    CERTIFICATE_KEY: "the key of its own certificate",
}
"""Files that are in a backup only if that is wanted, and what they have."""
_DATABASES = (DATABASE, ACCESS)
_SUFFIX = ".tar.gz"


@dataclass(frozen=True, slots=True)
class BackupMade:
    """A backup that was written and checked."""

    file: Path
    size_bytes: int
    manifest: Mapping[str, Any]
    left_out: tuple[str, ...]
    """What this box has and the backup has not."""


def places(config: Config) -> dict[str, Path]:
    """Return where a box keeps what, by the names in a backup.

    Raises:
        InvalidInputError: it keeps nothing.
    """
    if config.storage.file == IN_MEMORY:
        raise InvalidInputError("this configuration keeps nothing (storage.path)")
    database = expanded(config.storage.file)
    credentials = credential_file(str(database))
    assert credentials is not None
    return {
        DATABASE: database,
        ACCESS: Path(access_file(str(database))),
        CREDENTIALS: credentials,
        CERTIFICATE: config.storage.folder / CERTIFICATE,
        CERTIFICATE_KEY: config.storage.folder / CERTIFICATE_KEY,
        MODELS: expanded(config.inference.models_folder),
    }


def back_up(
    config: Config, config_file: Path | None, to: Path, *, models: bool, secrets: bool
) -> BackupMade:
    """Back up the box with this configuration.

    Args:
        config: of the box.
        config_file: where it was read, to be backed up too.
        to: the backup's file, which ends in `.gz` and must not exist; or a folder, in which it gets
            a name with the time. A folder that is not there is made.
        models: whether imported models are backed up.
        secrets: whether `SECRETS` are.

    Raises:
        BackupError: it cannot be written.
        InvalidInputError: the configuration keeps nothing, or the file exists.
        StorageError: the database cannot be read.
    """
    place = places(config)
    if not place[DATABASE].exists():
        raise InvalidInputError(
            f"there is no database {place[DATABASE]}: is --config the box's, and are you its user?"
        )
    if to.is_dir() or not (to.exists() or to.suffix == ".gz"):
        to /= time.strftime("edgebox-%Y%m%d-%H%M%S") + _SUFFIX
    if to.exists():
        raise InvalidInputError(f"{to} exists: name another file")
    if config_file is not None:
        place[CONFIGURATION] = config_file
    left_out = []
    if not models and any(_of_models(place[MODELS])):
        left_out.append("imported models (--models)")
    for name, what in SECRETS.items():
        if not secrets and place[name].exists():
            left_out.append(f"{what} (--secrets)")
    wanted = {
        name: file
        for name, file in place.items()
        if file.exists() and (secrets or name not in SECRETS) and name != MODELS
    }
    if CERTIFICATE in wanted and CERTIFICATE_KEY not in wanted:
        del wanted[CERTIFICATE]  # without its key it is of no use
    try:
        to.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with unfinished_folder(to.parent, ".edgebox-backup-") as folder:
            files = dict(_copied(wanted, folder))
            if models:
                files |= _of_models(place[MODELS])
            archive = folder / "archive"
            write_archive(archive, files, {"edgebox": __version__, "made_ms": wall_clock_ms()})
            manifest = verify(archive)
            archive.rename(to)
            sync_folder(to.parent)
    except OSError as error:
        raise BackupError(f"{to}: cannot be written ({error})") from error
    return BackupMade(to, to.stat().st_size, manifest, tuple(left_out))


def _copied(files: Mapping[str, Path], folder: Path) -> Iterator[tuple[str, Path]]:
    """Copy files, so that they do not change while they are read; databases as at one moment."""
    for name, file in files.items():
        if name in _DATABASES:
            snapshot(file, folder / name)
        else:
            shutil.copy(file, folder / name)
        yield name, folder / name


def _of_models(root: Path) -> Iterator[tuple[str, Path]]:
    """Yield the files of imported families, of cascades, and that with the default family."""
    for file in (*sorted(root.glob(f"*{CASCADE_SUFFIX}")), root / DEFAULT_FAMILY):
        if file.is_file():
            yield f"{MODELS}/{file.name}", file
    for family in imported_folders(root):
        for file in sorted(each for each in family.rglob("*") if each.is_file()):
            yield f"{MODELS}/{file.relative_to(root).as_posix()}", file


def sync_folder(folder: Path) -> None:
    """Let the names in a folder reach the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
