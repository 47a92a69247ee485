"""Waits for what the core decides: conditions on its state that are looked at after its calls."""

import asyncio
from collections.abc import Callable

Condition = Callable[[], bool]


class Conditions:
    """The conditions that somebody waits for. All on the event loop."""

    def __init__(self) -> None:
        """Start with nobody who waits."""
        self._awaited: dict[asyncio.Future[None], Condition] = {}

    async def until(self, holds: Condition) -> None:
        """Return once a condition holds; it does when this returns."""
        while not holds():
            changed = asyncio.get_running_loop().create_future()
            self._awaited[changed] = holds
            try:
                await changed
            finally:
                del self._awaited[changed]

    def look(self) -> None:
        """Wake those whose condition holds now."""
        for changed, holds in self._awaited.items():
            if not changed.done() and holds():
                changed.set_result(None)
