"""What the running box shows to people: events and live frames. Pure data."""

from dataclasses import dataclass

from edgebox.runtime.frames import Answer, FrameAtBox
from edgebox.storage.rows import Level


@dataclass(frozen=True, slots=True)
class BoxEvent:
    """Something a person would want to know."""

    at_ms: int
    level: Level
    camera: str | None
    text: str


@dataclass(frozen=True, slots=True)
class ShownFrame:
    """The latest answered frame of a camera, for viewers."""

    number: int
    frame: FrameAtBox
    answer: Answer
