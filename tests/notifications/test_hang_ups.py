"""A message that the broker hangs up on does not hold up the others."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import aiomqtt
import pytest

from edgebox.config.notification_sections import MqttParameters
from edgebox.domain.notifications import Notification, NotificationType
from edgebox.domain.requests import CameraId
from edgebox.link.backoff import Backoff
from edgebox.notifications import hang_ups as hang_ups_module
from edgebox.notifications.hang_ups import ATTEMPTS_MAX, GIVEN_UP_S, HangUps, InFlight
from edgebox.notifications.mqtt import MqttBroker
from edgebox.notifications.notification_document import Event
from tests.end_to_end.broker import broker, listening
from tests.end_to_end.running import until

PICTURE, COUNT = "edgebox/camera/gate/picture", "edgebox/camera/gate/count/car"
ONLINE_TOPIC = "edgebox/availability"
PACKET_MAX = 10_000


def end_connections(hang_ups: HangUps, message: InFlight, count: int) -> list[InFlight | None]:
    given_up = []
    for at in range(count):
        hang_ups.publishing(message)
        given_up.append(hang_ups.disconnected(at))
    return given_up


def test_a_message_is_given_up_after_a_few_connections_in_a_row() -> None:
    hang_ups, picture = HangUps(never=()), InFlight(PICTURE, 200_000, is_state=True)
    assert end_connections(hang_ups, picture, ATTEMPTS_MAX - 1) == [None] * (ATTEMPTS_MAX - 1)
    assert hang_ups.is_suspect(PICTURE)
    hang_ups.publishing(picture)
    hang_ups.published()
    assert not hang_ups.is_suspect(PICTURE)
    assert hang_ups.disconnected(3) is None, "it ended while nothing was published"
    assert end_connections(hang_ups, picture, ATTEMPTS_MAX)[-1] == picture
    assert not hang_ups.is_suspect(PICTURE)


def test_of_a_topic_that_was_given_up_only_smaller_states_are_sent() -> None:
    hang_ups = HangUps(never=())
    end_connections(hang_ups, InFlight(PICTURE, 200_000, is_state=True), ATTEMPTS_MAX)
    assert hang_ups.is_given_up(PICTURE, 200_000)
    assert not hang_ups.is_given_up(PICTURE, 199_999)
    assert not hang_ups.is_given_up(COUNT, 200_000)
    assert hang_ups.to_try_again(GIVEN_UP_S) == []
    assert hang_ups.is_given_up(PICTURE, 200_000)
    assert hang_ups.to_try_again(GIVEN_UP_S + ATTEMPTS_MAX) == [PICTURE]
    assert not hang_ups.is_given_up(PICTURE, 200_000)


def test_what_was_given_up_is_tried_once_an_hour() -> None:
    hang_ups, picture = HangUps(never=()), InFlight(PICTURE, 200_000, is_state=True)
    assert hang_ups.wait_s(0) is None
    end_connections(hang_ups, picture, ATTEMPTS_MAX)
    now_s = ATTEMPTS_MAX - 1 + GIVEN_UP_S
    assert hang_ups.wait_s(now_s - 60) == 60
    assert hang_ups.wait_s(now_s + 60) == 0
    assert hang_ups.to_try_again(now_s) == [PICTURE]
    assert hang_ups.to_try_again(now_s) == []
    assert hang_ups.wait_s(now_s) is None
    assert hang_ups.is_suspect(PICTURE), "all others go first"
    hang_ups.publishing(picture)
    assert hang_ups.disconnected(now_s) == picture
    assert hang_ups.wait_s(now_s) == GIVEN_UP_S
    assert hang_ups.to_try_again(now_s + GIVEN_UP_S) == [PICTURE]
    hang_ups.publishing(picture)
    hang_ups.published()
    assert end_connections(hang_ups, picture, 1) == [None]


def test_a_state_that_others_need_is_never_given_up() -> None:
    hang_ups, online = HangUps(never=(ONLINE_TOPIC,)), InFlight(ONLINE_TOPIC, 6, is_state=True)
    ends = ATTEMPTS_MAX * 2
    assert end_connections(hang_ups, online, ends) == [None] * ends
    assert hang_ups.is_suspect(ONLINE_TOPIC)
    assert not hang_ups.is_given_up(ONLINE_TOPIC, 6)


def test_of_events_each_is_tried() -> None:
    hang_ups = HangUps(never=())
    end_connections(hang_ups, InFlight("edgebox/event", 200, is_state=False), ATTEMPTS_MAX)
    assert not hang_ups.is_given_up("edgebox/event", 200)


def event(number: int, size_bytes: int) -> Event:
    notification = Notification(NotificationType.CAMERA_UP, 0, CameraId("gate"))
    return Event(str(number), notification, b'{"type": "%0*d"}' % (size_bytes, number))


class PickyBroker:
    """Stands for aiomqtt's client of a broker that hangs up on some topics."""

    def __init__(self) -> None:
        self.hung_up_on: set[str] = set()
        self.connections = 0
        self.received: list[tuple[int, str, bytes]] = []
        """The number of the connection, the topic and the payload of each message."""

    async def __aenter__(self) -> "PickyBroker":
        self.connections += 1
        return self

    async def __aexit__(self, *_: object) -> None:
        """End."""

    async def subscribe(self, topics: object) -> None:
        """There is nothing to hear."""

    @property
    async def messages(self) -> AsyncIterator[object]:
        await asyncio.Event().wait()
        yield None

    async def publish(self, topic: str, payload: bytes, qos: int, retain: bool) -> None:
        if topic in self.hung_up_on:
            raise aiomqtt.MqttError("the connection was lost")
        self.received.append((self.connections, topic, payload))


@contextlib.asynccontextmanager
async def picky(
    monkeypatch: pytest.MonkeyPatch, hung_up_on: str, note: Callable[[PickyBroker, str], None]
) -> AsyncIterator[tuple[MqttBroker, PickyBroker]]:
    monkeypatch.setattr(Backoff, "wait_s", lambda self: 0.0)
    monkeypatch.setattr(hang_ups_module, "GIVEN_UP_S", 0.2)
    client = PickyBroker()
    client.hung_up_on.add(hung_up_on)
    monkeypatch.setattr(MqttBroker, "_client", lambda side: client)
    side = MqttBroker(
        MqttParameters(host="127.0.0.1"), lambda level, text: note(client, text), lambda topic: None
    )
    side.retain(COUNT, "1")
    side.start()
    yield side, client
    await side.stop(1.0)


async def test_a_state_is_sent_on_the_same_connection_when_its_broker_is_mended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def mend(client: PickyBroker, text: str) -> None:
        if "not sent any more" in text:
            client.hung_up_on.clear()

    async with picky(monkeypatch, COUNT, mend) as (_, client):
        sent = (ATTEMPTS_MAX + 1, COUNT, b"1")
        await until(lambda: sent in client.received, "the state")
        assert (ATTEMPTS_MAX + 1, ONLINE_TOPIC, b"online") in client.received
        assert client.connections == ATTEMPTS_MAX + 1


async def test_a_deletion_is_sent_when_its_broker_is_mended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def mend(client: PickyBroker, text: str) -> None:
        if "not sent any more" in text:
            client.hung_up_on.clear()

    async with picky(monkeypatch, "", mend) as (side, client):
        await until(lambda: (1, COUNT, b"1") in client.received, "the state")
        client.hung_up_on.add(COUNT)
        side.release(COUNT)
        sent = (ATTEMPTS_MAX + 1, COUNT, b"")
        await until(lambda: sent in client.received, "the deletion")


async def test_a_box_is_online_when_a_broker_that_takes_nothing_is_mended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with picky(monkeypatch, ONLINE_TOPIC, lambda *_: None) as (_, client):
        await until(lambda: client.connections > ATTEMPTS_MAX * 2, "many attempts")
        assert (1, COUNT, b"1") in client.received
        client.hung_up_on.clear()
        await until(lambda: client.received[-1][1:] == (ONLINE_TOPIC, b"online"), "the box")


async def test_a_box_that_connects_again_while_it_stops_is_offline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def mend(client: PickyBroker, text: str) -> None:
        client.hung_up_on.clear()

    async with picky(monkeypatch, "", mend) as (_, client):
        await until(lambda: (1, ONLINE_TOPIC, b"online") in client.received, "the box")
        client.hung_up_on.add(ONLINE_TOPIC)
    assert client.received[-1] == (2, ONLINE_TOPIC, b"offline")
    assert (2, ONLINE_TOPIC, b"online") not in client.received


async def test_a_broker_with_a_limit_of_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Backoff, "wait_s", lambda self: 0.01)
    notices: list[str] = []
    async with (
        broker(tmp_path, packet_max=PACKET_MAX) as mosquitto,
        listening(mosquitto) as received,
    ):
        side = MqttBroker(
            MqttParameters(host="127.0.0.1", port=mosquitto.port),
            lambda level, text: notices.append(text),
            lambda topic: None,
        )
        side.retain(PICTURE, b"x" * 2 * PACKET_MAX)
        side.retain(COUNT, "1")
        side.put(event(1, 2 * PACKET_MAX))
        side.put(event(2, 10))
        side.start()
        await until(lambda: "0000000002" in received.kinds("gate"), "the event after the large one")
        await received.says(COUNT, "1")
        await until(lambda: any("not sent any more" in text for text in notices), "a notice")
        side.retain(PICTURE, b"y" * 2 * PACKET_MAX)
        side.retain(COUNT, "2")
        await received.says(COUNT, "2")
        side.retain(PICTURE, b"y")
        await received.says(PICTURE, "y")
        await side.stop(1.0)
    assert side.destination.dropped == {"refused": 1}
    lost = [text for text in notices if "hangs up" in text and "cannot be reached" not in text]
    assert len(lost) == 2, notices
