"""Says why a connection failed, in plain words."""

import errno
import os
import ssl

_ENDED = {
    BrokenPipeError: errno.EPIPE,
    ConnectionAbortedError: errno.ECONNABORTED,
    ConnectionRefusedError: errno.ECONNREFUSED,
    ConnectionResetError: errno.ECONNRESET,
}
"""The system's numbers of what libraries also raise without one, in words of their own."""


def explained(error: BaseException) -> str:
    """Return why a server gave no answer, in lower case.

    Args:
        error: of a socket, or of a library that connects: such an error has the system's number.
    """
    if isinstance(error, TimeoutError):
        return "no answer in time"
    number = None
    if isinstance(error, OSError) and not isinstance(error, ssl.SSLError):
        of_its_kind = (each for kind, each in _ENDED.items() if isinstance(error, kind))
        number = error.errno or next(of_its_kind, None)
    if number is None:
        said = getattr(error, "strerror", None) or str(error)
        return said or type(error).__name__
    # Libraries put addresses into the system's text; of names that are not found there is no other.
    return (os.strerror(number) if number > 0 else str(getattr(error, "strerror", ""))).lower()
