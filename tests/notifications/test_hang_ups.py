"""A message that the broker hangs up on does not hold up the others."""

from pathlib import Path

import pytest

from edgebox.config.notification_sections import MqttParameters
from edgebox.domain.notifications import Notification, NotificationType
from edgebox.domain.requests import CameraId
from edgebox.link.backoff import Backoff
from edgebox.notifications.hang_ups import ATTEMPTS_MAX, GIVEN_UP_S, HangUps, InFlight
from edgebox.notifications.mqtt import MqttBroker
from edgebox.notifications.notification_document import Event
from tests.end_to_end.broker import broker, listening
from tests.end_to_end.running import until

PICTURE, COUNT = "edgebox/camera/gate/picture", "edgebox/camera/gate/count/car"
PACKET_MAX = 10_000


def end_connections(hang_ups: HangUps, message: InFlight, count: int) -> list[InFlight | None]:
    given_up = []
    for at in range(count):
        hang_ups.connected(at)
        hang_ups.publishing(message)
        given_up.append(hang_ups.disconnected(at))
    return given_up


def test_a_message_is_given_up_after_a_few_connections_in_a_row() -> None:
    hang_ups, picture = HangUps(), InFlight(PICTURE, 200_000, is_state=True)
    assert end_connections(hang_ups, picture, ATTEMPTS_MAX - 1) == [None] * (ATTEMPTS_MAX - 1)
    assert hang_ups.is_suspect(PICTURE)
    hang_ups.publishing(picture)
    hang_ups.published()
    assert not hang_ups.is_suspect(PICTURE)
    assert hang_ups.disconnected(3) is None, "it ended while nothing was published"
    assert end_connections(hang_ups, picture, ATTEMPTS_MAX)[-1] == picture
    assert not hang_ups.is_suspect(PICTURE)


def test_of_a_topic_that_was_given_up_only_smaller_states_are_sent() -> None:
    hang_ups = HangUps()
    end_connections(hang_ups, InFlight(PICTURE, 200_000, is_state=True), ATTEMPTS_MAX)
    assert hang_ups.is_given_up(PICTURE, 200_000)
    assert not hang_ups.is_given_up(PICTURE, 199_999)
    assert not hang_ups.is_given_up(COUNT, 200_000)
    hang_ups.connected(GIVEN_UP_S)
    assert hang_ups.is_given_up(PICTURE, 200_000)
    hang_ups.connected(GIVEN_UP_S + ATTEMPTS_MAX)
    assert not hang_ups.is_given_up(PICTURE, 200_000)


def test_of_events_each_is_tried() -> None:
    hang_ups = HangUps()
    end_connections(hang_ups, InFlight("edgebox/event", 200, is_state=False), ATTEMPTS_MAX)
    assert not hang_ups.is_given_up("edgebox/event", 200)


def event(number: int, size_bytes: int) -> Event:
    notification = Notification(NotificationType.CAMERA_UP, 0, CameraId("gate"))
    return Event(str(number), notification, b'{"type": "%0*d"}' % (size_bytes, number))


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
