"""Options that many commands have."""

from collections.abc import Collection
from pathlib import Path

import click

from edgebox.domain.errors import FileAccessError, InvalidInputError

CONFIG = click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path, dir_okay=False),
    envvar="EDGEBOX_CONFIG",
    help="A TOML file; config.example.toml has every key.  [env: EDGEBOX_CONFIG]",
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


def policy_names(text: str, known: Collection[str]) -> list[str]:
    """Return the policies that `--policy` names with commas, each once; "all": all known ones.

    A comma with nothing behind or before it means nothing.

    Raises:
        InvalidInputError: one of them is not known, or none is named.
    """
    if text == "all":
        return list(known)
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    there_are = f"(there are: {', '.join(known)})"
    if not names:
        raise InvalidInputError(f"--policy names no policy {there_are}")
    for name in names:
        if name not in known:
            raise InvalidInputError(f"--policy: there is no policy {name!r} {there_are}")
    return names


def read_text(path: Path, option: str = "", no_text: str = "is not a text file in UTF-8") -> str:
    """Return the text of a file.

    Args:
        path: the file.
        option: that names it; empty: an argument does.
        no_text: what is said of one that is no text.

    Raises:
        FileAccessError: it cannot be read, in one line.
        InvalidInputError: it is no text.
    """
    file = f"{option} {path}".lstrip()
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        raise FileAccessError(f"{file}: there is no such file") from None
    except UnicodeDecodeError:
        raise InvalidInputError(f"{file}: {no_text}") from None
    except OSError as error:
        raise FileAccessError(f"{file}: cannot be read: {error.strerror}") from None
