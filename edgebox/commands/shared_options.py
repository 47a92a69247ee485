"""Options that many commands have."""

from collections.abc import Collection
from pathlib import Path

import click

from edgebox.domain.errors import InvalidInputError

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
