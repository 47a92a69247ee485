"""Reads the secrets that the configuration names. They are never logged or shown."""

import os
from pathlib import Path

from edgebox.domain.errors import ConfigError


def secret(key: str, file: str, variable: str) -> str | None:
    """Return a secret; None: the configuration names none.

    Args:
        key: name in the configuration, for messages ("mqtt.password").
        file: file that holds it, or empty; trailing white space is ignored.
        variable: environment variable that holds it, or empty.

    Raises:
        ConfigError: it is missing or empty.
    """
    if file:
        try:
            found = Path(file).read_text(encoding="utf-8").rstrip()
        except OSError as error:
            raise ConfigError(f"{key}_file: {file} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise ConfigError(f"{key}_file: {file} is not a text file in UTF-8") from None
        if not found:
            raise ConfigError(f"{key}_file: {file} is empty")
        return found
    if variable:
        found = os.environ.get(variable, "")
        if not found:
            raise ConfigError(f"{key}_env: there is no environment variable {variable}")
        return found
    return None
