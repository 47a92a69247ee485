"""Certificates that destinations of events are checked with."""

import ssl

from edgebox.domain.errors import ConfigError


def trusted(key: str, file: str) -> ssl.SSLContext:
    """Return a TLS context with the certificates in a file, or the system's.

    Raises:
        ConfigError: the file cannot be used.
    """
    try:
        return ssl.create_default_context(cafile=file or None)
    except OSError as error:  # includes SSLError
        raise ConfigError(f"{key}: {file} cannot be used: {error.strerror or error}") from None
