"""Reads secrets from where the configuration says they are. They are never logged or shown."""

import os
import ssl
from pathlib import Path

from edgebox.domain.errors import ConfigError


def secret(key: str, file: str, variable: str) -> str | None:
    """Return a secret; None: the configuration names none.

    Args:
        key: of the configuration, for messages ("mqtt.password").
        file: that holds it, or empty; white space at its end does not count.
        variable: of the environment that holds it, or empty.

    Raises:
        ConfigError: it is not there, or empty.
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


def trusted(key: str, file: str) -> ssl.SSLContext:
    """Return what checks servers' certificates: those in a file, or the system's.

    Raises:
        ConfigError: the file cannot be used.
    """
    try:
        return ssl.create_default_context(cafile=file or None)
    except OSError as error:  # SSLError is one
        raise ConfigError(f"{key}: {file} cannot be used: {error.strerror or error}") from None
