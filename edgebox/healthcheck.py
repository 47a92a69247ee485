"""Says whether the box of this machine lives, with TLS or without: the health check of the images.

`python -m edgebox.healthcheck` ends with status 0 or 1, after `LIMIT_S` at most. It runs every few
seconds, so it imports nothing but the standard library.
"""

import signal
import ssl
import sys
from http.client import HTTPConnection, HTTPException, HTTPSConnection

PORT = 8787
LIMIT_S = 3.0
"""Time limit of the whole check, below that of the images, of which Python's start takes a part."""


def lives(port: int = PORT, limit_s: float = LIMIT_S) -> bool:
    """Return whether a box on this machine answers. Its certificate is not checked.

    A port that is silent for `limit_s` is asked once; who sends bytes now and then is listened to.
    """
    unchecked = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
    at = "127.0.0.1", port
    try:
        return any(
            _answers(connection)
            for connection in (
                HTTPConnection(*at, timeout=limit_s),
                HTTPSConnection(*at, timeout=limit_s, context=unchecked),
            )
        )
    except TimeoutError:
        return False


def _answers(connection: HTTPConnection) -> bool:
    """Return whether a box answers.

    Raises:
        TimeoutError: nothing was said.
    """
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except TimeoutError:
        raise
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def main(port: int = PORT, limit_s: float = LIMIT_S) -> None:
    """Check, and end the process with status 1 if no box answers within the limit."""
    failed = f"the box does not answer on port {port}"
    # Limits of single steps would add up.
    signal.signal(signal.SIGALRM, lambda *_: sys.exit(failed))
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    if not lives(port, limit_s):
        sys.exit(failed)


if __name__ == "__main__":
    main()
