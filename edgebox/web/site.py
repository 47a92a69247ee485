"""Owns what all routes answer from: the running box and the parts beside it."""

from dataclasses import dataclass, field
from typing import Protocol

from edgebox.config import Config
from edgebox.runtime.box import Box
from edgebox.runtime.journal import Journal
from edgebox.runtime.looplag import LoopLag
from edgebox.storage.database import Storage
from edgebox.web.state import StateCache


class Connection(Protocol):
    """A connection that outlives its request, to be closed when the box stops."""

    async def close(self) -> None:
        """Say goodbye and end it."""
        ...


@dataclass(slots=True)
class Site:
    """What the routes of one server answer from."""

    box: Box
    config: Config
    storage: Storage
    lag: LoopLag
    journal: Journal
    states: StateCache
    connections: set[Connection] = field(default_factory=set)
    """Open WebSockets; a route adds its own, and takes it away at its end."""
