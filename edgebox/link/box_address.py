"""Owns how clients write a box's address, token and certificate. Pure."""

import re
from urllib.parse import urlsplit

from edgebox.domain.errors import InvalidInputError

_PATH = re.compile(r"(/[!-~]*)?")
"""Path of an address, as in a request line."""
_SCHEMES = {"ws": "ws", "http": "ws", "wss": "wss", "https": "wss"}
_PORT = 8787


def stream_url(server: str) -> str:
    """Return the address of a box's camera WebSocket.

    A path is a proxy's prefix.

    Raises:
        InvalidInputError: not an address.
    """
    address = server if "://" in server else f"ws://{server}"
    try:
        parts = urlsplit(address)
        port = parts.port or (443 if parts.scheme in ("wss", "https") else _PORT)
    except ValueError:
        parts, port = urlsplit(""), 0
    ends_well = _PATH.fullmatch(parts.path) and not parts.query and not parts.fragment
    if not parts.hostname or parts.scheme not in _SCHEMES or not port or not ends_well:
        raise InvalidInputError(f"the server must be an address like ws://box:8787, not {server!r}")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{_SCHEMES[parts.scheme]}://{host}:{port}{parts.path.rstrip('/')}/v1/stream"


def http_url(stream: str, path: str) -> str:
    """Return the address of another route of the box, such as "pair", for `stream_url`'s."""
    return re.sub(r"^ws", "http", stream).removesuffix("stream") + path


def authorization(token: str | None) -> dict[str, str]:
    """Return the HTTP headers that carry a token; None: no token.

    Raises:
        InvalidInputError: no header can carry it.
    """
    if token is None:
        return {}
    if not token.isascii() or not token.isprintable() or not token or " " in token:
        raise InvalidInputError("a token is one word of printable letters, like edgebox_Zk3...")
    return {"Authorization": f"Bearer {token}"}


OTHER_CERTIFICATE = (
    "the box has another certificate than the one of this fingerprint: it has made a new one, then "
    "`edgebox serve` prints its fingerprint, or something else answers in its place"
)


UNKNOWN_CERTIFICATE = (
    "nobody whom this machine trusts has signed the box's certificate. If the box signs its own, "
    "give its fingerprint, which `edgebox serve` prints (--fingerprint)"
)


def fingerprint_of(text: str) -> bytes:
    """Return the SHA-256 fingerprint of a certificate that a text has in hexadecimal digits.

    Raises:
        InvalidInputError: it has none.
    """
    digits = text.removeprefix("sha256:").replace(":", "").strip()
    if not re.fullmatch(r"[0-9A-Fa-f]{64}", digits):
        raise InvalidInputError(
            "a certificate's fingerprint has 64 hexadecimal digits, as `edgebox serve` prints it, "
            f"not {text[:80]!r}"
        )
    return bytes.fromhex(digits)
