"""Says whether the box of this machine lives, with TLS or without: the health check of the images.

`python -m edgebox.healthcheck` ends with status 0 or 1. It runs every few seconds, so it imports
nothing but the standard library.
"""

import ssl
import sys
from http.client import HTTPConnection, HTTPException, HTTPSConnection

PORT = 8787
_TIMEOUT_S = 2.0


def lives(port: int = PORT) -> bool:
    """Return whether a box on this machine answers. Its certificate is not checked."""
    unchecked = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
    at = "127.0.0.1", port
    return any(
        _answers(connection)
        for connection in (
            HTTPConnection(*at, timeout=_TIMEOUT_S),
            HTTPSConnection(*at, timeout=_TIMEOUT_S, context=unchecked),
        )
    )


def _answers(connection: HTTPConnection) -> bool:
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    if not lives():
        sys.exit(f"the box does not answer on port {PORT}")
