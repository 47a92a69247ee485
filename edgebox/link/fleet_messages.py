"""Owns what a box of a fleet tells a camera of the others: a redirect, and where they are.

Only cameras whose hello has `redirects` are sent these. Pure: no clock, no I/O.
"""

from dataclasses import dataclass
from typing import ClassVar, Self

import orjson

from edgebox.domain.field_reader import FieldReader
from edgebox.link.failover import BOXES_MAX

ADDRESS_LENGTH_MAX = 256
TICKET_LENGTH_MAX = 512


@dataclass(frozen=True, slots=True)
class BoxPlace:
    """Where a box is."""

    address: str
    """"http://192.168.1.5:8787"."""
    fingerprint: str | None = None
    """SHA-256 of its certificate, in hexadecimal, if nobody else has signed it."""

    def to_json(self) -> dict[str, str]:
        """Return it as JSON."""
        told = {} if self.fingerprint is None else {"fingerprint": self.fingerprint}
        return {"address": self.address, **told}

    @classmethod
    def read(cls, read: FieldReader) -> Self:
        """Read it from a message's fields."""
        return cls(
            read.text("address", length_min=1, length_max=ADDRESS_LENGTH_MAX),
            read.text("fingerprint", "", length_max=128) or None,
        )


@dataclass(frozen=True, slots=True)
class Redirect:
    """Another box is to serve this camera, at once; the connection closes."""

    TYPE: ClassVar = "redirect"
    place: BoxPlace
    ticket: str
    """What it shows there in place of a token."""
    reason: str = ""
    """One sentence for a person."""

    def encode(self) -> bytes:
        """Return the message as JSON."""
        fields = {"type": self.TYPE, **self.place.to_json()}
        return orjson.dumps({**fields, "ticket": self.ticket, "reason": self.reason})

    @classmethod
    def decode(cls, fields: dict[str, object]) -> Self:
        """Read the message from its parsed JSON; raises InvalidInputError."""
        read = FieldReader("redirect", fields)
        redirect = cls(
            BoxPlace.read(read),
            read.text("ticket", "", length_max=TICKET_LENGTH_MAX),
            read.text("reason", "", length_max=1024),
        )
        read.finish()
        return redirect


@dataclass(frozen=True, slots=True)
class OtherBoxes:
    """Where a camera may go if it loses this box."""

    TYPE: ClassVar = "boxes"
    places: tuple[BoxPlace, ...]
    ticket: str
    """What it shows there in place of a token; a new one comes before it ends."""

    def encode(self) -> bytes:
        """Return the message as JSON."""
        places = [place.to_json() for place in self.places]
        return orjson.dumps({"type": self.TYPE, "boxes": places, "ticket": self.ticket})

    @classmethod
    def decode(cls, fields: dict[str, object]) -> Self:
        """Read the message from its parsed JSON; raises InvalidInputError."""
        read = FieldReader("boxes", fields)
        places = tuple(BoxPlace.read(each) for each in read.objects("boxes", BOXES_MAX))
        others = cls(places, read.text("ticket", "", length_max=TICKET_LENGTH_MAX))
        read.finish()
        return others
