"""Restores a box from a backup. Everything here blocks.

Everything is checked and lies beside its place before anything is replaced. What was there is kept
under another name, and comes back if a step fails.
"""

import contextlib
import os
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edgebox.app.backup import places, sync_folder
from edgebox.config.config_file import Config, load
from edgebox.domain.errors import ConfigError, InvalidInputError
from edgebox.storage.backup_archive import (
    ACCESS,
    CERTIFICATE,
    CERTIFICATE_KEY,
    CONFIGURATION,
    CREDENTIALS,
    DATABASE,
    MODELS,
    BackupError,
    extract,
    extract_one,
    read_manifest,
)
from edgebox.storage.box_lock import lock_for_box
from edgebox.storage.connecting import PARTS
from edgebox.storage.schema import MIGRATIONS
from edgebox.storage.snapshots import check, unused
from edgebox.storage.unfinished_folder import unfinished_folder

_STOP = ", as with `systemctl stop edgebox`, and restore then"
"""What helps while a box serves with the database that is to be replaced."""
_UNFINISHED = ".edgebox-restore-"
_ORDER = (CREDENTIALS, CERTIFICATE, CERTIFICATE_KEY, MODELS, CONFIGURATION, ACCESS, DATABASE)
"""Names of a backup in the order in which they are put in place."""


@dataclass(frozen=True, slots=True)
class Restored:
    """What was restored."""

    manifest: dict[str, Any]
    files: tuple[Path, ...]
    """What was put in place."""
    kept: tuple[Path, ...]
    """What was there before, under its new name."""


@dataclass(slots=True)
class _Replacement:
    """Renames files, and undoes it if told."""

    placed: list[Path] = field(default_factory=list)
    kept: list[tuple[Path, Path]] = field(default_factory=list)
    """Where what was there before was, and its new name."""
    _stamp: str = field(default_factory=lambda: time.strftime("%Y%m%d-%H%M%S"))

    def place(self, new: Path, place: Path) -> None:
        """Put a file or a folder in its place; what was there gets another name."""
        parts = PARTS if new.is_file() else PARTS[:1]
        if any(os.path.lexists(_with_part(place, part)) for part in parts):
            aside = self._unused_name(place)
            for part in reversed(parts):  # a log must never lie beside another database
                self._rename(_with_part(place, part), _with_part(aside, part))
        new.rename(place)
        self.placed.append(place)
        sync_folder(place.parent)

    def _unused_name(self, place: Path) -> Path:
        endings = (f"{self._stamp}{more}" for more in ("", *(f"-{n}" for n in range(2, 99))))
        names = (place.with_name(f"{place.name}.before-restore-{ending}") for ending in endings)
        return next(name for name in names if not os.path.lexists(name))

    def _rename(self, place: Path, aside: Path) -> None:
        if os.path.lexists(place):
            place.rename(aside)
            self.kept.append((place, aside))

    def undo(self) -> None:
        """Bring back what was there, as far as it can be."""
        for place in reversed(self.placed):
            with contextlib.suppress(OSError):
                shutil.rmtree(place) if place.is_dir() else place.unlink()
        for place, aside in reversed(self.kept):
            with contextlib.suppress(OSError):
                aside.rename(place)


def _with_part(file: Path, part: str) -> Path:
    return file.with_name(file.name + part)


def restore(archive: Path, config_file: Path | None, *, configuration: bool) -> Restored:
    """Restore a box, which must not run.

    Args:
        archive: the backup.
        config_file: the configuration, which says where the box keeps what; None: the defaults.
        configuration: whether the backup's configuration takes the place of `config_file`.

    Raises:
        BackupError: the backup is damaged or from a newer edgebox, or a file cannot be written.
        ConfigError: the configuration is wrong.
        InvalidInputError: there is no configuration to restore, or nowhere to.
        StorageError: a box runs.
    """
    try:
        names = read_manifest(archive)["files"]
        if configuration and config_file is None:
            raise InvalidInputError("say with --config where the configuration is to be restored")
        config = _restored_config(archive, config_file) if configuration else load(config_file)
        where = places(config)
        if configuration:
            assert config_file is not None
            where[CONFIGURATION] = config_file
        where = {
            name: where[name]
            for name in _ORDER
            if name in where and (name in names or (name == MODELS and _has_models(names)))
        }
        database = where[DATABASE]
        _make_folder(database.parent)
        with unfinished_folder(database.parent, _UNFINISHED) as files:
            manifest = extract(archive, files)
            _check_databases(archive, files)
            return _put_in_place(files, manifest, where)
    except OSError as error:
        raise BackupError(f"{archive}: cannot be restored ({error})") from error


def _has_models(names: dict[str, Any]) -> bool:
    return any(name.startswith(f"{MODELS}/") for name in names)


def _restored_config(archive: Path, place: Path | None) -> Config:
    """Return a backup's configuration as it will mean in its place.

    Paths in it are relative to its folder, so it is read there, under another name.
    """
    assert place is not None
    _make_folder(place.absolute().parent)
    beside = place.with_name(f"{_UNFINISHED}{os.getpid()}.toml")
    try:
        extract_one(archive, CONFIGURATION, beside)
        return load(beside)
    except ConfigError as error:
        raise ConfigError(str(error).replace(str(beside), f"{archive}: {CONFIGURATION}")) from None
    finally:
        beside.unlink(missing_ok=True)


def _check_databases(archive: Path, files: Path) -> None:
    about = check(files / DATABASE)
    if not about.is_edgeboxs:
        raise BackupError(f"{archive}: its database is not edgebox's")
    if about.schema > len(MIGRATIONS):
        raise BackupError(
            f"{archive}: its database was written by a newer edgebox (schema {about.schema}; this "
            f"one knows up to {len(MIGRATIONS)}): upgrade edgebox, or restore an older backup"
        )
    if (files / ACCESS).exists():
        check(files / ACCESS)


def _put_in_place(files: Path, manifest: dict[str, Any], where: dict[str, Path]) -> Restored:
    replacement = _Replacement()
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.closing(lock_for_box(where[DATABASE], _STOP)))
        for name in (DATABASE, ACCESS):
            if name in where:
                stack.enter_context(unused(where[name]))
        staged = {name: _staged(files / name, place, stack) for name, place in where.items()}
        try:
            for name, place in where.items():
                replacement.place(staged[name], place)
        except BaseException:
            replacement.undo()
            raise
    kept = tuple(aside for _, aside in replacement.kept)
    return Restored(manifest, tuple(replacement.placed), kept)


def _staged(file: Path, place: Path, stack: contextlib.ExitStack) -> Path:
    """Move a file or folder to the disk of its place, with the owner that it must have there."""
    _make_folder(place.parent)
    folder = stack.enter_context(unfinished_folder(place.parent, _UNFINISHED))
    staged = folder / place.name
    if file.stat().st_dev == folder.stat().st_dev:
        file.rename(staged)
    elif file.is_dir():
        shutil.copytree(file, staged)
    else:
        shutil.copy(file, staged)
    like = (place if place.exists() else place.parent).stat()
    if place.is_file() and file.name == CONFIGURATION:
        staged.chmod(like.st_mode & 0o777)
    for each in (staged, *staged.rglob("*")):
        if each.is_dir():
            each.chmod(0o700)
        if os.geteuid() == 0:  # else the box, which is another user, could not read it
            os.chown(each, like.st_uid, like.st_gid)
        if each.is_file():
            with each.open("rb") as opened:
                os.fsync(opened.fileno())
    return staged


def _make_folder(folder: Path) -> None:
    """Make a folder, for its user alone, with the owner of what it is in."""
    if folder.exists():
        return
    _make_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    if os.geteuid() == 0:
        like = folder.parent.stat()
        os.chown(folder, like.st_uid, like.st_gid)
