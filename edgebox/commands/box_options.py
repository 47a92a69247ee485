"""Options of the commands that use a box over the network: its token and its certificate."""

import os
from pathlib import Path

import click

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


def given_token(file: Path | None) -> str | None:
    """Return the token of `--token-file` or the environment; None: there is none.

    Raises:
        InvalidInputError: the file cannot be read.
    """
    if file is None:
        return os.environ.get(_VARIABLE) or None
    return _read(file)


def _read(file: Path) -> str:
    """Return what stands in the file.

    Raises:
        InvalidInputError: the file cannot be read.
    """
    try:
        return file.read_text("utf-8").strip()
    except FileNotFoundError:
        raise InvalidInputError(f"--token-file {file}: there is no such file") from None
    except UnicodeDecodeError:
        raise InvalidInputError(f"--token-file {file}: is no text") from None
    except OSError as error:
        raise InvalidInputError(f"--token-file {file}: cannot be read: {error.strerror}") from None
