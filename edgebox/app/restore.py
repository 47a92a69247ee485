"""Restores a box from a backup. Everything here blocks.

Everything is checked and lies beside its place before anything is replaced. What was there is kept
under another name, and comes back if a step fails.
"""

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edgebox.app.backup import (
    ACCESS,
    CONFIGURATION,
    DATABASE,
    MODELS,
    TLS,
    BackupError,
    verify,
)
from edgebox.config.config_file import Config, load
from edgebox.domain.errors import ConfigError, InvalidInputError
from edgebox.storage.access_store import access_file
from edgebox.storage.connecting import IN_MEMORY
from edgebox.storage.schema import MIGRATIONS
from edgebox.storage.snapshots import check, unused

_LOG_PARTS = ("-wal", "-shm")


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

    ending: str
    """Of the names that old files get."""
    placed: list[Path] = field(default_factory=list)
    _renamed: list[tuple[Path, Path]] = field(default_factory=list)

    def place(self, new: Path, place: Path) -> None:
        """Put a file or a folder in its place."""
        self.keep(place)
        new.rename(place)
        self.placed.append(place)

    def keep(self, place: Path) -> None:
        """Rename what is in a place, if anything is."""
        if place.exists():
            aside = place.with_name(place.name + self.ending)
            place.rename(aside)
            self._renamed.append((place, aside))

    @property
    def kept(self) -> tuple[Path, ...]:
        """The new names of what was there before."""
        return tuple(aside for _, aside in self._renamed)

    def undo(self) -> None:
        """Bring back what was there, as far as it can be."""
        for place in reversed(self.placed):
            with contextlib.suppress(OSError):
                shutil.rmtree(place) if place.is_dir() else place.unlink()
        for place, aside in reversed(self._renamed):
            with contextlib.suppress(OSError):
                aside.rename(place)


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
        with tempfile.TemporaryDirectory(prefix="edgebox-restore-") as name:
            files = Path(name)
            manifest = verify(archive, files)
            _check_databases(archive, files)
            new = _new_configuration(archive, files, config_file) if configuration else None
            config = _loaded(new or config_file, config_file)
            return _put_in_place(files, manifest, config, config_file if configuration else None)
    except OSError as error:
        raise BackupError(f"{archive}: cannot be restored ({error})") from error


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


def _new_configuration(archive: Path, files: Path, config_file: Path | None) -> Path:
    if config_file is None:
        raise InvalidInputError("say with --config where the configuration is to be restored")
    if not (files / CONFIGURATION).exists():
        raise InvalidInputError(f"{archive}: has no configuration")
    return files / CONFIGURATION


def _loaded(file: Path | None, place: Path | None) -> Config:
    """Return a configuration as it will mean in its place: paths are relative to its folder."""
    if file is None or place is None or file == place:
        return load(file)
    with tempfile.TemporaryDirectory(prefix=".edgebox-restore-", dir=place.parent) as name:
        # A folder deeper would change what relative paths mean, so the copy lies beside.
        beside = Path(name).with_suffix(".toml")
        shutil.copyfile(file, beside)
        try:
            return load(beside)
        except ConfigError as error:
            raise ConfigError(str(error).replace(str(beside), f"{CONFIGURATION}")) from None
        finally:
            beside.unlink()


def _put_in_place(
    files: Path, manifest: dict[str, Any], config: Config, config_file: Path | None
) -> Restored:
    if config.storage.file == IN_MEMORY:
        raise InvalidInputError("this configuration keeps nothing (storage.path)")
    database = Path(config.storage.file).expanduser()
    places = {
        DATABASE: database,
        ACCESS: Path(access_file(str(database))),
        **{name: database.parent / name for name in TLS},
        MODELS: config.inference.models_folder.expanduser(),
    }
    if config_file is not None:
        places[CONFIGURATION] = config_file
    places = {name: place for name, place in places.items() if (files / name).exists()}
    replacement = _Replacement(time.strftime(".before-restore-%Y%m%d-%H%M%S"))
    with unused(database), _staged(files, places) as staged:
        try:
            for part in _LOG_PARTS:  # first: a log must never lie beside another database
                replacement.keep(database.with_name(database.name + part))
            for name, place in places.items():
                replacement.place(staged[name], place)
        except BaseException:
            replacement.undo()
            raise
    return Restored(manifest, tuple(replacement.placed), replacement.kept)


@contextlib.contextmanager
def _staged(files: Path, places: dict[str, Path]) -> Iterator[dict[str, Path]]:
    """Give copies beside their places, so that putting them there is a rename and needs no room."""
    with contextlib.ExitStack() as stack:
        staged = {}
        for name, place in places.items():
            place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            folder = stack.enter_context(
                tempfile.TemporaryDirectory(prefix=".edgebox-restore-", dir=place.parent)
            )
            staged[name] = Path(folder) / place.name
            if (files / name).is_dir():
                shutil.copytree(files / name, staged[name])
                for each in (staged[name], *filter(Path.is_dir, staged[name].rglob("*"))):
                    each.chmod(0o700)
            else:
                shutil.copy2(files / name, staged[name])
            _sync(staged[name])
        yield staged


def _sync(path: Path) -> None:
    """Let what was copied reach the disk."""
    for file in path.rglob("*") if path.is_dir() else (path,):
        if file.is_file():
            with file.open("rb") as opened:
                os.fsync(opened.fileno())
