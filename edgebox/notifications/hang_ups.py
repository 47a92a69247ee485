"""Finds messages that a broker hangs up on, so that one of them does not hold up all others.

A broker that does not accept a message, because of its size or its topic, closes the connection
(MQTT 3.1.1 has no other answer), as a network that fails does. Pure: instants are arguments.
"""

from collections import Counter
from collections.abc import Container
from dataclasses import dataclass

ATTEMPTS_MAX = 3
"""A message is given up when so many connections in a row ended while it was published."""
GIVEN_UP_S = 3600.0
"""So long afterwards a state is tried once more: the broker may have been mended."""


@dataclass(frozen=True, slots=True)
class InFlight:
    """A message that is being published."""

    topic: str
    size_bytes: int
    is_state: bool


class HangUps:
    """What is known of one broker."""

    def __init__(self, never: Container[str]) -> None:
        """Begin with nothing known; states of the topics `never` are never given up."""
        self._never = never
        self._in_flight: InFlight | None = None
        self._ended: Counter[str] = Counter()
        """Connections in a row that ended while a topic's message was published."""
        self._given_up: dict[str, tuple[int, float]] = {}
        """By the topics of states: the size that was given up, in bytes, and when, in s."""

    def wait_s(self, now_s: float) -> float | None:
        """Return the time until a state is to be tried once more; None: none was given up."""
        at_s = min((at_s for _, at_s in self._given_up.values()), default=None)
        return None if at_s is None else max(0.0, at_s + GIVEN_UP_S - now_s)

    def to_try_again(self, now_s: float) -> list[str]:
        """Return, once each, the topics whose states are to be tried once more.

        A connection that ends with one of them gives it up again: each costs what is connected.
        """
        topics = [
            topic for topic, (_, at_s) in self._given_up.items() if now_s - at_s >= GIVEN_UP_S
        ]
        for topic in topics:
            del self._given_up[topic]
            self._ended[topic] = ATTEMPTS_MAX - 1
        return topics

    def publishing(self, message: InFlight) -> None:
        """Note what is published now, until `published` or `disconnected`."""
        self._in_flight = message

    def published(self) -> None:
        """Note that the broker has acknowledged the message."""
        if self._in_flight is not None:
            del self._ended[self._in_flight.topic]
        self._in_flight = None

    def disconnected(self, now_s: float) -> InFlight | None:
        """Note that a connection has ended; return the message to be given up; None: none."""
        message, self._in_flight = self._in_flight, None
        if message is None:
            return None
        self._ended[message.topic] += 1
        is_needed = message.is_state and message.topic in self._never
        if is_needed or self._ended[message.topic] < ATTEMPTS_MAX:
            return None
        del self._ended[message.topic]
        if message.is_state:
            self._given_up[message.topic] = (message.size_bytes, now_s)
        return message

    def is_suspect(self, topic: str) -> bool:
        """Return whether the last message of a topic ended its connection: others go first."""
        return topic in self._ended

    def is_given_up(self, topic: str, size_bytes: int) -> bool:
        """Return whether a state of a topic is as large as one that was given up, or larger."""
        return topic in self._given_up and size_bytes >= self._given_up[topic][0]

    def forget(self, topic: str) -> None:
        """Forget a topic that has no state any more."""
        del self._ended[topic]
        self._given_up.pop(topic, None)
