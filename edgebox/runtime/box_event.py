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
    moves: int = 0
    """How many moves of the camera to another size it tells of, the last one in words; 0: none."""
    since_ms: int | None = None
    """When the first of these was; None: it tells of none."""
