"""Functions that are called with each event of one kind."""

from collections.abc import Callable
from typing import Generic, ParamSpec

Event = ParamSpec("Event")


class Observers(Generic[Event]):
    """The observers of one kind of event, called in the order in which they were added."""

    def __init__(self) -> None:
        """Start without any."""
        self._observers: list[Callable[Event, None]] = []

    def add(self, observer: Callable[Event, None]) -> None:
        """Call this function from now on, too."""
        self._observers.append(observer)

    def remove(self, observer: Callable[Event, None]) -> None:
        """Call it no more."""
        self._observers.remove(observer)

    def notify(self, *args: Event.args, **kwargs: Event.kwargs) -> None:
        """Call all of them."""
        for observer in self._observers:
            observer(*args, **kwargs)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._observers)
