"""Tells one MQTT broker: events in order, states as retained messages of which the last counts.

The only importer of aiomqtt. While the broker is away events wait, and of states only the newest is
kept; when it is back it is told all of them. Events may arrive twice, never out of order.
"""

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Callable

import aiomqtt

from edgebox.config.notification_sections import MqttParameters
from edgebox.domain.notifications import NotificationType
from edgebox.link.backoff import Backoff
from edgebox.notifications.credentials import secret, trusted
from edgebox.notifications.destination_health import Health, Note
from edgebox.notifications.event_queue import EventQueue
from edgebox.notifications.notification_document import Event
from edgebox.notifications.topics import OFFLINE, ONLINE, Topics
from edgebox.runtime.destinations import Destination

_log = logging.getLogger(__name__)
_client_log = logging.getLogger(f"{__name__}.client")
_client_log.setLevel(logging.CRITICAL)  # it tells of every attempt; people are told of changes

_WAIT_MAX_S = 30.0
_STEADY_S = 30.0
"""A connection that held so long was a good one: the next wait is short again."""
_ANSWER_S = 5.0
_KEEPALIVE_S = 20
_END_S = 1.0

OnLeftover = Callable[[str], None]
"""Told each topic under which an earlier run of this box has left a retained message."""


class MqttBroker:
    """One broker, with what it should know and the task that tells it."""

    def __init__(self, parameters: MqttParameters, note: Note, on_leftover: OnLeftover) -> None:
        """Read the password; nothing is connected before `start`.

        Raises:
            ConfigError: the password or the certificates cannot be read.
        """
        self.topics = Topics(parameters.topic)
        self._parameters = parameters
        self._password = secret("mqtt.password", parameters.password_file, parameters.password_env)
        self._tls = trusted("mqtt.ca_file", parameters.ca_file) if parameters.tls else None
        self._on_leftover = on_leftover
        self.destination = Destination("mqtt", f"{parameters.host}:{parameters.port}")
        self._health = Health(self.destination, note)
        self._queue = EventQueue(self._health, parameters.queue_max, parameters.overflow)
        self._retained: dict[str, bytes] = {}
        """What the broker should keep, by topic."""
        self._untold: dict[str, bytes] = {}
        """Of that, what it was not told yet; empty payloads take messages back."""
        self._known: set[str] = set()
        """Topics under which it may keep something."""
        self._all_told = asyncio.Event()
        """Set when there is nothing left to tell."""
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to connect and to tell."""
        self._task = asyncio.create_task(self._run(), name="mqtt")

    def put(self, event: Event) -> None:
        """Let an event go out; that the box comes and goes `availability` tells."""
        if event.notification.kind not in (
            NotificationType.BOX_ONLINE,
            NotificationType.BOX_OFFLINE,
        ):
            self._queue.put(event)

    def retain(self, topic: str, payload: str | bytes) -> None:
        """Have the broker keep this message, until it is replaced or released."""
        payload = payload.encode() if isinstance(payload, str) else payload
        if self._retained.get(topic) != payload:
            self._retained[topic] = self._untold[topic] = payload
            self._queue.wake.set()

    def kept(self) -> list[str]:
        """Return the topics under which the broker keeps something."""
        return list(self._retained)

    def may_keep(self, topic: str) -> None:
        """Reckon with something that an earlier run has left under a topic."""
        self._known.add(topic)

    def release(self, topic: str) -> None:
        """Have the broker forget what it keeps under a topic."""
        self._retained.pop(topic, None)
        self._untold.pop(topic, None)
        if topic in self._known:
            self._untold[topic] = b""
            self._queue.wake.set()

    async def stop(self, patience_s: float) -> None:
        """Say goodbye if the broker is there, and end."""
        if self._task is None:
            return
        self.retain(self.topics.availability, OFFLINE)
        self._all_told.clear()
        if self.destination.connected:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._all_told.wait(), patience_s)
        self._task.cancel()
        # Not for ever: the last words may be stuck in a socket that nobody reads.
        await asyncio.wait({self._task}, timeout=_END_S)

    # -- the task -----------------------------------------------------------------------------

    async def _run(self) -> None:
        backoff = Backoff(random.Random(), _WAIT_MAX_S)
        while True:
            began_s = time.monotonic()
            try:
                await self._connection()
            except* aiomqtt.MqttError as group:
                self._health.failed(str(_first(group)))
            except* Exception as group:
                _log.error("telling the MQTT broker failed", exc_info=_first(group))
                self._health.failed(type(_first(group)).__name__)
            if time.monotonic() - began_s > _STEADY_S:
                backoff.reset()
            await asyncio.sleep(backoff.wait_s())

    async def _connection(self) -> None:
        """Connect, and tell what there is to tell until the connection is lost."""
        async with self._client() as client:
            # Before the first word, whose echo then says that everything retained has come.
            await client.subscribe([(self.topics.cameras, 1), (self.topics.availability, 1)])
            self._untold = {**self._retained, **self._untold}
            self._retained.pop(self.topics.availability, None)
            self._untold.pop(self.topics.availability, None)
            # Last: whoever sees the box come back finds states that are true.
            self.retain(self.topics.availability, ONLINE)
            self._health.worked()
            async with asyncio.TaskGroup() as both:
                both.create_task(self._listen(client))
                both.create_task(self._tell(client))

    def _client(self) -> aiomqtt.Client:
        parameters = self._parameters
        return aiomqtt.Client(
            parameters.host,
            parameters.port,
            # Always the same: where the broker still holds a dead connection of this box, it ends
            # that first, and its last will does not come after the new connection's first word.
            identifier=self.topics.client,
            username=parameters.username or None,
            password=self._password,
            will=aiomqtt.Will(self.topics.availability, OFFLINE, qos=1, retain=True),
            tls_context=self._tls,
            logger=_client_log,
            timeout=_ANSWER_S,
            keepalive=_KEEPALIVE_S,
        )

    async def _listen(self, client: aiomqtt.Client) -> None:
        """Hear what earlier runs have left with the broker, and when the connection is lost.

        A broker sends what it has retained before the box's own word comes back to it; then there
        is nothing more to hear but the last will of a dead connection, should that come late. A
        broker that lets the box read nothing is fine, too.
        """
        availability = self.topics.availability
        async for message in client.messages:
            topic = str(message.topic)
            if topic != availability:
                if message.retain and message.payload and topic not in self._retained:
                    self.may_keep(topic)
                    self._on_leftover(topic)
            elif not message.retain and message.payload == ONLINE.encode():
                await client.unsubscribe(self.topics.cameras)
            elif not message.retain and self._retained.get(availability) == ONLINE.encode():
                self._untold[availability] = ONLINE.encode()
                self._queue.wake.set()

    async def _tell(self, client: aiomqtt.Client) -> None:
        while True:
            self._queue.wake.clear()
            while self._untold or self._queue.head() is not None:
                await self._tell_states(client)
                event = self._queue.head()
                if event is not None:
                    camera = event.notification.camera
                    topic = self.topics.box_event if camera is None else self.topics.event(camera)
                    await client.publish(topic, event.body, qos=1)
                    self._queue.done(sent=True)
            self._all_told.set()
            await self._queue.wake.wait()

    async def _tell_states(self, client: aiomqtt.Client) -> None:
        while self._untold:
            topic, payload = next(iter(self._untold.items()))
            self._known.add(topic)
            await client.publish(topic, payload, qos=1, retain=True)
            if not payload:
                self._known.discard(topic)
            # Meanwhile there may be something newer to tell.
            if self._untold.get(topic) == payload:
                del self._untold[topic]


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return one of the errors that came together."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
