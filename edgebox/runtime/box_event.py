"""What happens on a running box and is told to people. Pure."""

from dataclasses import dataclass

from edgebox.storage.rows import Level


@dataclass(frozen=True, slots=True)
class BoxEvent:
    """A notice for people."""

    at_ms: int
    level: Level
    camera: str | None
    text: str
