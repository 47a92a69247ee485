"""Options of the commands that use a box over the network: its token and its certificate."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import click

from edgebox.client import TokenNeededError
from edgebox.commands.shared_options import read_text
from edgebox.domain.errors import InvalidInputError

_VARIABLE = "EDGEBOX_TOKEN"

TOKEN_FILE = click.option(
    "--token-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A file with the token for the box.  [default: $EDGEBOX_TOKEN]",
)
"""A file or the environment: other users of this machine can see command lines."""
FINGERPRINT = click.option(
    "--fingerprint",
    metavar="SHA256",
    help="Accept only the certificate with this fingerprint, which serve prints.",
)


SERVER_OPTION = ("--server", "--box")
"""The names of the option for a box's address."""


def given_token(file: Path | None) -> str | None:
    """Return the token of `--token-file` or the environment; None: there is none.

    Raises:
        InvalidInputError: the file cannot be read.
    """
    if file is None:
        return os.environ.get(_VARIABLE) or None
    return read_text(file, "--token-file", "is no text").strip()


@contextlib.contextmanager
def naming_token_file() -> Iterator[None]:
    """Say how a command is given a token where a box needs one.

    Raises:
        InvalidInputError: it does.
    """
    try:
        yield
    except TokenNeededError:
        raise InvalidInputError(
            "the box needs a token, or does not know the one that was given: name a file that has "
            f"one with --token-file, or set ${_VARIABLE}; `edgebox tokens add` on the box makes one"
        ) from None
