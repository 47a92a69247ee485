"""Publishes to one MQTT broker: events in order, and states as retained messages.

The only importer of aiomqtt. While the broker is unreachable, events are queued and only the newest
states are kept; on reconnection all are sent. Events may arrive twice, never out of order. What
the broker hangs up on again and again is given up, so that the rest is sent.
"""

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Callable

import aiomqtt

from edgebox.config.notification_sections import MqttParameters
from edgebox.config.secret_values import secret
from edgebox.domain.notifications import NotificationType
from edgebox.link.backoff import Backoff
from edgebox.notifications.credentials import trusted
from edgebox.notifications.destination_health import Health, Note
from edgebox.notifications.event_queue import EventQueue
from edgebox.notifications.hang_ups import HangUps, InFlight
from edgebox.notifications.notification_document import Event
from edgebox.notifications.topics import OFFLINE, ONLINE, Topics
from edgebox.runtime.destinations import Destination

_log = logging.getLogger(__name__)
_client_log = logging.getLogger(f"{__name__}.client")
_client_log.setLevel(logging.CRITICAL)  # it logs every attempt; notices report changes only

_WAIT_MAX_S = 30.0
_STEADY_S = 30.0
"""A connection that lasted this long resets the backoff."""
_ANSWER_S = 5.0
_KEEPALIVE_S = 20
_END_S = 1.0

OnLeftover = Callable[[str], None]
"""Called with each topic that has a retained message of an earlier run."""


class MqttBroker:
    """One broker, its retained messages and the task that sends."""

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
        """Retained messages by topic."""
        self._untold: dict[str, bytes] = {}
        """Retained messages that are not sent yet; empty payloads delete."""
        self._hang_ups = HangUps(never=(self.topics.availability,))
        self._known: set[str] = set()
        """Topics under which the broker may have a retained message."""
        self._availability = ONLINE
        """What to say of the box, also when it connects again while it stops."""
        self._all_sent = asyncio.Event()
        """Set when everything is sent."""
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to connect and to send."""
        self._task = asyncio.create_task(self._run(), name="mqtt")

    def put(self, event: Event) -> None:
        """Queue an event; `availability` covers the start and stop of the box."""
        if event.notification.kind not in (
            NotificationType.BOX_ONLINE,
            NotificationType.BOX_OFFLINE,
        ):
            self._queue.put(event)

    def retain(self, topic: str, payload: str | bytes) -> None:
        """Retain this message at the broker until it is replaced or released."""
        payload = payload.encode() if isinstance(payload, str) else payload
        if self._retained.get(topic) != payload:
            self._retained[topic] = self._untold[topic] = payload
            self._queue.wake.set()

    def kept(self) -> list[str]:
        """Return the topics with retained messages."""
        return list(self._retained)

    def may_keep(self, topic: str) -> None:
        """Record that an earlier run has left a retained message under a topic."""
        self._known.add(topic)

    def release(self, topic: str) -> None:
        """Delete the retained message of a topic."""
        self._retained.pop(topic, None)
        self._untold.pop(topic, None)
        self._hang_ups.forget(topic)
        if topic in self._known:
            self._untold[topic] = b""
            self._queue.wake.set()

    async def stop(self, patience_s: float) -> None:
        """Send the last messages if the broker is reachable, and end."""
        if self._task is None:
            return
        self._availability = OFFLINE
        self.retain(self.topics.availability, OFFLINE)
        self._all_sent.clear()
        if self.destination.connected:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._all_sent.wait(), patience_s)
        self._task.cancel()
        # With a limit: the last messages may be stuck in a stalled socket.
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
                _log.error("publishing to the MQTT broker failed", exc_info=_first(group))
                self._health.failed(type(_first(group)).__name__)
            self._give_up_if_refused()
            if time.monotonic() - began_s > _STEADY_S:
                backoff.reset()
            await asyncio.sleep(backoff.wait_s())

    async def _connection(self) -> None:
        """Connect, and send until the connection is lost."""
        async with self._client() as client:
            # The echo of the first message marks the end of retained messages.
            await client.subscribe([(self.topics.cameras, 1), (self.topics.availability, 1)])
            self._untold = {**self._retained, **self._untold}
            self._retained.pop(self.topics.availability, None)
            self._untold.pop(self.topics.availability, None)
            # Last: subscribers that see the box online then find current states.
            self.retain(self.topics.availability, self._availability)
            self._health.worked()
            async with asyncio.TaskGroup() as both:
                both.create_task(self._listen(client))
                both.create_task(self._send(client))

    def _client(self) -> aiomqtt.Client:
        parameters = self._parameters
        return aiomqtt.Client(
            parameters.host,
            parameters.port,
            # Always the same id: a broker that still holds a dead connection of this box ends
            # it first, so its last will precedes the new connection's first message.
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
        """Read retained messages of earlier runs, and notice when the connection is lost.

        A broker sends retained messages before the echo of the box's own message. After that only
        the last will of a dead connection may follow. A broker may also deny reading.
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

    async def _send(self, client: aiomqtt.Client) -> None:
        while True:
            self._queue.wake.clear()
            self._try_again()
            while await self._send_next(client):
                pass
            self._all_sent.set()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._hang_ups.wait_s(time.monotonic())):
                    await self._queue.wake.wait()

    def _try_again(self) -> None:
        """Send states that were given up long ago, and deletions, once more."""
        for topic in self._hang_ups.to_try_again(time.monotonic()):
            if topic in self._retained:
                self._untold[topic] = self._retained[topic]
            elif topic in self._known:
                self._untold[topic] = b""

    async def _send_next(self, client: aiomqtt.Client) -> bool:
        """Send one message, those that the broker may hang up on last; False: there is none."""
        topic = next((it for it in self._untold if not self._hang_ups.is_suspect(it)), None)
        event = self._queue.head()
        if topic is not None:
            await self._send_state(client, topic)
        elif event is not None:
            camera = event.notification.camera
            to = self.topics.box_event if camera is None else self.topics.event(camera)
            await self._publish(client, to, event.body, is_state=False)
            self._queue.done(sent=True)
        elif self._untold:
            await self._send_state(client, next(iter(self._untold)))
        else:
            return False
        return True

    async def _send_state(self, client: aiomqtt.Client, topic: str) -> None:
        payload = self._untold[topic]
        if not self._hang_ups.is_given_up(topic, len(payload)):
            self._known.add(topic)
            await self._publish(client, topic, payload, is_state=True)
            if not payload:
                self._known.discard(topic)
        # Meanwhile a newer message may be queued.
        if self._untold.get(topic) == payload:
            del self._untold[topic]

    async def _publish(
        self, client: aiomqtt.Client, topic: str, payload: bytes, *, is_state: bool
    ) -> None:
        self._hang_ups.publishing(InFlight(topic, len(payload), is_state))
        await client.publish(topic, payload, qos=1, retain=is_state)
        self._hang_ups.published()

    def _give_up_if_refused(self) -> None:
        """Drop the message during which the connection ended, if it did so several times."""
        message = self._hang_ups.disconnected(time.monotonic())
        if message is None:
            return
        why = f"the broker hangs up on {message.topic} ({message.size_bytes:,} bytes)"
        if message.is_state:
            self._health.refused(why)
        else:
            self._health.lost("refused", why)
            self._queue.done(sent=False)


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first error of a group."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
