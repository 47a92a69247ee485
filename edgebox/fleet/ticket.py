"""Decides who belongs to a fleet: texts that are signed with the secret which its boxes share.

A camera that is sent to another box shows it a ticket in place of a token, and a box that asks
another one for its report shows one as well. A ticket names who has it and when it ends; the
secret itself is never sent. The wall clocks of the boxes must agree within minutes.

A camera's ticket names the login that it descends from, and so do those that the camera is given
in its place: they end with the token, once a box knows that it was revoked, and in any case
`LOGIN_S` after it was shown. Pure.
"""

import hashlib
import hmac
from typing import NamedTuple

from edgebox.domain.access import Login

PREFIX = "edgebox-fleet."
CAMERA_TICKET_S = 86_400
"""For how long a camera's ticket is valid; it gets a new one every minute."""
LOGIN_S = 29 * 86_400
"""For how long after its login a camera is given tickets. Boxes remember for a day longer
(`TOMBSTONE_MS`) that a token was revoked."""
BOX_TICKET_S = 600
"""For how long a box's ticket is valid: clocks differ."""
_LOGIN, _BOX = "login", "box"
"""Kinds of tickets. A camera's was once `camera`, and named no login: where one part means another
thing than before, the kind is new, so that boxes of two versions refuse each other's."""


class CameraTicket(NamedTuple):
    """What a camera's ticket says."""

    camera: str
    login: Login


def has_ended(login: Login, now_s: float) -> bool:
    """Say whether a login is so long ago that nothing descends from it any more."""
    return now_s >= login.at_s + LOGIN_S


def camera_ticket(secret: str, camera: str, login: Login, now_s: float) -> str:
    """Return the ticket of a camera, from this instant of the wall clock on."""
    until_s = min(round(now_s) + CAMERA_TICKET_S, login.at_s + LOGIN_S)
    token = login.token.encode().hex()
    return _signed(secret, f"{_LOGIN}.{until_s}.{login.at_s}.{token}.{camera}")


def box_ticket(secret: str, box: str, now_s: float) -> str:
    """Return the ticket of a box."""
    return _signed(secret, f"{_BOX}.{round(now_s) + BOX_TICKET_S}.{box.encode().hex()}")


def read_camera_ticket(secret: str, ticket: str, now_s: float) -> CameraTicket | None:
    """Return what a camera's ticket says; None: it is no camera's, or has ended."""
    said = _who(secret, ticket, _LOGIN, now_s)
    if said is None:
        return None
    try:
        at_s, token, camera = said.split(".", 2)
        return CameraTicket(camera, Login(bytes.fromhex(token).decode(), int(at_s)))
    except ValueError:  # of another release
        return None


def is_box_ticket(secret: str, ticket: str, now_s: float) -> bool:
    """Say whether it is a box's, and valid."""
    return _who(secret, ticket, _BOX, now_s) is not None


def answer_signature(secret: str, ticket: str, body: bytes) -> str:
    """Return what proves that a report answers the request with this ticket."""
    return hmac.new(_key(secret), ticket.encode() + b"\n" + body, hashlib.sha256).hexdigest()


def same(one: str, other: str) -> bool:
    """Compare two signatures, in the same time however much of them is alike."""
    return hmac.compare_digest(one.encode(), other.encode())


def _key(secret: str) -> bytes:
    return secret.encode()


def _signed(secret: str, text: str) -> str:
    return f"{PREFIX}{_signature(secret, text)}.{text}"


def _signature(secret: str, text: str) -> str:
    return hmac.new(_key(secret), text.encode(), hashlib.sha256).hexdigest()


def _who(secret: str, ticket: str, kind: str, now_s: float) -> str | None:
    if not ticket.startswith(PREFIX) or not ticket.isascii():
        return None
    signature, _, text = ticket.removeprefix(PREFIX).partition(".")
    if not same(signature, _signature(secret, text)):
        return None
    said, _, rest = text.partition(".")
    until_s, _, who = rest.partition(".")
    return who if said == kind and int(until_s) > now_s else None
