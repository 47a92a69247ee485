"""Posts events to one address in order, and retries each until it is accepted.

An event that the receiver refuses for good (400, 410, 413, 415, 422) is dropped. After any other
failure the same event is retried with doubling waits until it is too old. So events arrive in
order, some perhaps twice. Queued events are lost when the box stops.
"""

import asyncio
import contextlib
import logging
import random
import ssl
import time

import aiohttp

from edgebox import __version__
from edgebox.config.notification_sections import WebhookParameters
from edgebox.config.secret_values import secret
from edgebox.domain.errors import ConfigError
from edgebox.domain.notifications import Notification
from edgebox.link.backoff import Backoff
from edgebox.notifications.credentials import trusted
from edgebox.notifications.destination_health import Health, Note
from edgebox.notifications.event_detector import matches
from edgebox.notifications.event_queue import EventQueue
from edgebox.notifications.notification_document import Event
from edgebox.notifications.signature import headers, key_bytes
from edgebox.runtime.destinations import Destination

_log = logging.getLogger(__name__)

_WAIT_MAX_S = 60.0
_RETRY_AFTER_MAX_S = 300.0
_NEVER_TAKEN = frozenset({400, 410, 413, 415, 422})


class Webhook:
    """One address, its queue and the task that posts."""

    def __init__(self, section: str, parameters: WebhookParameters, note: Note) -> None:
        """Read the secret; nothing is sent before `start`.

        Args:
            section: its section in the configuration, for errors ("webhooks[0]").
            parameters: the keys of this section.
            note: called with what people should know of.

        Raises:
            ConfigError: the secret or the certificates cannot be read.
        """
        self._parameters = parameters
        self._key = _key(section, parameters)
        self._tls: ssl.SSLContext | bool = True
        if parameters.ca_file:
            self._tls = trusted(f"{section}.ca_file", parameters.ca_file)
        self.destination = Destination("webhook", parameters.shown_name)
        self._health = Health(self.destination, note)
        self._queue = EventQueue(self._health, parameters.queue_max, parameters.overflow)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to send."""
        self._task = asyncio.create_task(self._run(), name="webhook")

    def put(self, event: Event) -> None:
        """Queue an event if this address wants its type."""
        if self._wants(event.notification):
            self._queue.put(event)

    def _wants(self, notification: Notification) -> bool:
        wanted = self._parameters
        if wanted.events and notification.kind not in wanted.events:
            return False
        if notification.camera is not None and not matches(notification.camera, wanted.cameras):
            return False
        return (
            notification.label is None or not wanted.classes or notification.label in wanted.classes
        )

    async def stop(self, patience_s: float) -> None:
        """Try to send queued events at once, then end."""
        if self._task is None:
            return
        if self.destination.connected is not False:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._queue.idle.wait(), patience_s)
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    # -- the task -----------------------------------------------------------------------------

    async def _run(self) -> None:
        timeout = aiohttp.ClientTimeout(total=self._parameters.timeout_s)
        agent = {"User-Agent": f"edgebox/{__version__}", "Content-Type": "application/json"}
        async with aiohttp.ClientSession(timeout=timeout, headers=agent) as session:
            while True:
                event = self._queue.head()
                if event is None:
                    self._queue.wake.clear()
                    await self._queue.wake.wait()
                else:
                    await self._deliver(session, event)

    async def _deliver(self, session: aiohttp.ClientSession, event: Event) -> None:
        """Retry until the event is accepted, refused or too old."""
        backoff = Backoff(random.Random(), _WAIT_MAX_S)
        while True:
            why, wait_s = await self._attempt(session, event)
            if why is None:
                self._health.worked()
                self._queue.done(sent=True)
                return
            if wait_s is None:
                self._health.worked()
                self._health.lost("refused", why)
                self._queue.done(sent=False)
                return
            self._health.failed(why)
            age_s = time.monotonic() - event.notification.at_ns / 1e9
            if age_s > self._parameters.give_up_s:
                self._health.lost("expired", f"it waited for {age_s:.0f} s: {why}")
                self._queue.done(sent=False)
                return
            await asyncio.sleep(max(wait_s, backoff.wait_s()))

    async def _attempt(
        self, session: aiohttp.ClientSession, event: Event
    ) -> tuple[str | None, float | None]:
        """Post once.

        Returns:
            The error, None on success; the shortest wait before a retry, None: no retry.
        """
        signed = headers(self._key, event.id, int(time.time()), event.body)
        try:
            async with session.post(
                self._parameters.url,
                data=event.body,
                headers=signed,
                allow_redirects=False,
                ssl=self._tls,
            ) as response:
                if 200 <= response.status < 300:
                    return None, 0.0
                why = f"it answers {response.status} {response.reason or ''}".rstrip()
                if response.status in _NEVER_TAKEN:
                    return why, None
                return why, _retry_after_s(response.headers.get("Retry-After", ""))
        except TimeoutError:
            return f"no answer within {self._parameters.timeout_s:g} s", 0.0
        except (aiohttp.ClientError, OSError) as error:
            return _why(error), 0.0
        except Exception as error:
            _log.exception("posting to the webhook %s failed", self.destination.name)
            return type(error).__name__, 0.0


def _key(section: str, parameters: WebhookParameters) -> bytes | None:
    key = f"{section}.secret"
    found = secret(key, parameters.secret_file, parameters.secret_env)
    try:
        return None if found is None else key_bytes(found)
    except ValueError as error:
        given = "file" if parameters.secret_file else "env"
        raise ConfigError(f"{key}_{given}: {error}") from None


def _why(error: Exception) -> str:
    """Describe an error without the URL, which may contain a token."""
    if isinstance(error, aiohttp.ClientResponseError):
        return f"its answer is no HTTP: {error.message}"
    if isinstance(error, aiohttp.InvalidURL):
        return "its URL is not valid"
    return str(error) or type(error).__name__


def _retry_after_s(value: str) -> float:
    """Return the seconds in Retry-After; a date is ignored in favour of the doubling waits."""
    return min(float(value), _RETRY_AFTER_MAX_S) if value.isdecimal() else 0.0
