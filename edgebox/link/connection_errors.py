"""Says why a connection failed, in plain words."""

import os
import ssl


def explained(error: BaseException) -> str:
    """Return why a server gave no answer, in lower case.

    Args:
        error: of a socket, or of a library that connects: such an error has the system's number.
    """
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ssl.SSLError) or not isinstance(error, OSError) or error.errno is None:
        said = getattr(error, "strerror", None) or str(error)
        return said or type(error).__name__
    # Libraries put addresses into the system's text; of names that are not found there is no other.
    return (os.strerror(error.errno) if error.errno > 0 else str(error.strerror)).lower()
