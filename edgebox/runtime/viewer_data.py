"""Data that the running box shows to people: events and live frames. Pure."""

from dataclasses import dataclass

from edgebox.runtime.frames import Answer, PendingFrame
from edgebox.storage.rows import Level


@dataclass(frozen=True, slots=True)
class BoxEvent:
    """A notice for people."""

    at_ms: int
    level: Level
    camera: str | None
    text: str


@dataclass(slots=True)
class ShownFrame:
    """The latest answered frame of a camera, for viewers."""

    number: int
    frame: PendingFrame
    answer: Answer
    message: bytes | None = None
    """What viewers are sent; it is made for the first of them."""
