"""Expands `~` in paths, and says what to set where there is no home folder."""

from pathlib import Path

from edgebox.domain.errors import ConfigError


def expanded(path: str | Path) -> Path:
    """Return a path with its `~` expanded.

    Raises:
        ConfigError: it begins with one, and this user has no home folder.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise ConfigError(
            f"{path}: this user has no home folder: set HOME, or for what edgebox keeps by itself "
            "XDG_DATA_HOME and XDG_CACHE_HOME"
        ) from None
