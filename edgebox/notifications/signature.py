"""Signs webhooks, so that receivers can verify sender and time. Pure.

Follows the Standard Webhooks specification (standardwebhooks.com, version 1.0.0), so that its
libraries check what edgebox sends: HMAC-SHA256 over id, timestamp and body. A key of theirs
("whsec_" and Base64) is decoded; any other text is used as it is.
"""

import base64
import binascii
import hashlib
import hmac

_PREFIX = "whsec_"


def key_bytes(secret: str) -> bytes:
    """Return the key that a secret stands for.

    Raises:
        ValueError: it has the prefix of a Base64 key but is not valid Base64.
    """
    if not secret.startswith(_PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except binascii.Error:
        raise ValueError("after whsec_ there must be Base64") from None


def headers(key: bytes | None, event: str, at_s: int, body: bytes) -> dict[str, str]:
    """Return the headers of one attempt.

    Args:
        key: the signing key; None: no signature.
        event: id of the event, the same in every attempt.
        at_s: Unix time of this attempt; receivers refuse old ones as replays.
        body: the body as sent.
    """
    found = {"webhook-id": event, "webhook-timestamp": str(at_s)}
    if key is not None:
        signed = b".".join((event.encode(), str(at_s).encode(), body))
        digest = hmac.new(key, signed, hashlib.sha256).digest()
        found["webhook-signature"] = f"v1,{base64.b64encode(digest).decode()}"
    return found
