"""Expands `~` in paths, and says what to set where there is no home folder."""

from os import PathLike, fspath
from pathlib import Path

from edgebox.domain.errors import ConfigError, InvalidInputError


def expanded(path: str | Path) -> Path:
    """Return a path of the configuration with its `~` expanded.

    Raises:
        ConfigError: it begins with one, and there is no such home folder.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise ConfigError(
            f"{_missing(str(path))}, or for what edgebox keeps by itself XDG_DATA_HOME and "
            "XDG_CACHE_HOME"
        ) from None


def given_path(path: str | PathLike[str]) -> Path:
    """Return a path that somebody named just now with its `~` expanded.

    Raises:
        InvalidInputError: it begins with one, and there is no such home folder.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise InvalidInputError(_missing(fspath(path))) from None


def _missing(path: str) -> str:
    user = path.partition("/")[0].removeprefix("~")
    if user:
        return f"{path}: there is no user {user!r} with a home folder; name one, or set HOME"
    return f"{path}: this user has no home folder: set HOME"
