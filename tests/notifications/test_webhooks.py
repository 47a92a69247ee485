"""One webhook against a real receiver that fails, hangs, refuses and checks signatures."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from itertools import count, repeat
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from edgebox.config.notification_sections import WebhookParameters
from edgebox.domain.errors import ConfigError
from edgebox.domain.notifications import Notification, NotificationType
from edgebox.domain.requests import CameraId
from edgebox.notifications.notification_document import Event, written
from edgebox.notifications.webhooks import Webhook
from tests.end_to_end.running import until
from tests.notifications.receiver import HANG, SECRET, Receiver, receiving

Notes = list[tuple[str, str]]


def event(number: int, kind: NotificationType = NotificationType.DETECTION, **more: Any) -> Event:
    notification = Notification(kind, time.monotonic_ns(), **more)
    return written(notification, f"evt_{number}", "box", 1_790_000_000_000 + number)


@contextlib.asynccontextmanager
async def posting(
    receiver: Receiver, tmp_path: Path, **parameters: Any
) -> AsyncIterator[tuple[Webhook, Notes]]:
    notes: Notes = []
    secret = tmp_path / "secret"
    secret.write_text(f"{SECRET}\n", encoding="utf-8")
    webhook = Webhook(
        "webhooks[0]",
        WebhookParameters(url=receiver.url, secret_file=str(secret), **parameters),
        lambda level, text: notes.append((level, text)),
    )
    webhook.start()
    try:
        yield webhook, notes
    finally:
        await webhook.stop(0)


async def test_events_arrive_signed_and_in_order(tmp_path: Path) -> None:
    async with receiving() as receiver, posting(receiver, tmp_path) as (webhook, notes):
        for number in range(20):
            webhook.put(event(number, camera=CameraId("gate"), label="person"))
        await until(lambda: len(receiver.taken) == 20, "20 events")
        assert receiver.taken[3] == {
            "id": "evt_3",
            "type": "detection",
            "at_ms": 1_790_000_000_003,
            "box_name": "box",
            "camera": "gate",
            "label": "person",
        }
        assert [taken["id"] for taken in receiver.taken] == [f"evt_{n}" for n in range(20)]
        await until(lambda: webhook.destination.sent == 20, "the last answer")
        assert webhook.destination.queued == 0
        assert webhook.destination.connected
        assert not notes


async def test_what_fails_is_sent_again_and_nothing_overtakes_it(tmp_path: Path) -> None:
    async with receiving() as receiver, posting(receiver, tmp_path) as (webhook, notes):
        answers = iter((500, 503, *repeat(200, 10)))
        receiver.answer = lambda event: next(answers)
        for number in range(3):
            webhook.put(event(number))
        await until(lambda: len(receiver.taken) == 3, "all three")
        assert receiver.attempts == ["evt_0"] * 3 + ["evt_1", "evt_2"]
        stamps = [int(headers["webhook-timestamp"]) for headers in receiver.headers]
        assert stamps == sorted(stamps)
        await until(lambda: webhook.destination.sent == 3, "the last answer")
        # People are told once that it fails, and once that it works.
        assert [level for level, _ in notes] == ["warning", "info"]
        assert "500" in notes[0][1]
        assert webhook.destination.error == "it answers 503 Service Unavailable"


async def test_a_receiver_that_hangs_is_given_up_and_asked_again(tmp_path: Path) -> None:
    async with (
        receiving() as receiver,
        posting(receiver, tmp_path, timeout_s=0.2) as (webhook, _),
    ):
        answers = iter((HANG, 200))
        receiver.answer = lambda event: next(answers)
        webhook.put(event(1))
        await until(lambda: receiver.kinds() == ["detection"], "the event")
        assert receiver.attempts == ["evt_1", "evt_1"]
        assert webhook.destination.error == "no answer within 0.2 s"
        await until(lambda: receiver.open_now == 0, "the hanging request to be closed")


async def test_an_absent_receiver_gets_what_waited(tmp_path: Path) -> None:
    async with receiving() as receiver:
        port = int(receiver.url.split(":")[2].split("/")[0])
    async with posting(receiver, tmp_path) as (webhook, _):
        webhook.put(event(1))
        webhook.put(event(2))
        await until(lambda: webhook.destination.connected is False, "a failure")
        assert webhook.destination.queued == 2
        assert "Connect" in webhook.destination.error
        async with receiving(port) as receiver:
            await until(lambda: len(receiver.taken) == 2, "both events")


async def test_an_event_that_is_never_taken_does_not_hold_up_the_others(tmp_path: Path) -> None:
    async with receiving() as receiver, posting(receiver, tmp_path) as (webhook, notes):
        receiver.answer = lambda event: 422 if event["id"] == "evt_1" else 200
        for number in range(3):
            webhook.put(event(number))
        await until(lambda: webhook.destination.sent == 2, "the other two")
        assert receiver.attempts == ["evt_0", "evt_1", "evt_2"]
        assert webhook.destination.dropped == {"refused": 1}
        assert len(notes) == 1


async def test_an_event_is_given_up_when_it_is_too_old(tmp_path: Path) -> None:
    async with (
        receiving() as receiver,
        posting(receiver, tmp_path, give_up_s=1.0) as (webhook, _),
    ):
        receiver.answer = lambda event: 500 if event["id"] == "evt_0" else 200
        webhook.put(event(0))
        await until(lambda: webhook.destination.dropped["expired"] == 1, "it to be given up")
        webhook.put(event(1))
        await until(lambda: webhook.destination.sent == 1, "the next")
        assert [taken["id"] for taken in receiver.taken] == ["evt_1"]


@pytest.mark.parametrize(("overflow", "kept"), [("oldest", [0, 5, 6]), ("newest", [0, 1, 2])])
async def test_a_full_queue_drops_by_its_rule_and_says_so(
    tmp_path: Path, overflow: str, kept: list[int]
) -> None:
    async with (
        receiving() as receiver,
        posting(receiver, tmp_path, queue_max=2, overflow=overflow) as (webhook, notes),
    ):
        numbers = count()
        receiver.answer = lambda event: 500 if next(numbers) == 0 else 200
        webhook.put(event(0))
        await until(lambda: bool(receiver.attempts), "the first attempt")
        for number in range(1, 7):
            webhook.put(event(number))
        assert webhook.destination.dropped == {"overflow": 4}
        assert webhook.destination.queued == 3
        assert "wait" not in webhook.destination.error
        await until(lambda: webhook.destination.queued == 0, "the rest to arrive")
        assert [taken["id"] for taken in receiver.taken] == [f"evt_{n}" for n in kept]
        assert sum("is lost" in text for _, text in notes) == 1


async def test_a_receiver_may_ask_for_more_time(tmp_path: Path) -> None:
    async with receiving() as receiver, posting(receiver, tmp_path) as (webhook, _):
        times: list[float] = []

        def busy_once(event: dict[str, Any]) -> int | web.Response:
            times.append(time.monotonic())
            return 200 if len(times) > 1 else web.Response(status=429, headers={"Retry-After": "2"})

        receiver.answer = busy_once
        webhook.put(event(1))
        await until(lambda: len(times) == 2, "the second attempt")
        # Timers may fire a little early.
        assert times[1] - times[0] >= 1.95


async def test_a_webhook_gets_what_it_asked_for(tmp_path: Path) -> None:
    async with (
        receiving() as receiver,
        posting(
            receiver,
            tmp_path,
            events=("detection", "box_online"),
            cameras=("gate*",),
            classes=("person",),
        ) as (webhook, _),
    ):
        gate, yard = CameraId("gate-2"), CameraId("yard")
        webhook.put(event(0, camera=gate, label="person"))
        webhook.put(event(1, camera=yard, label="person"))
        webhook.put(event(2, camera=gate, label="car"))
        webhook.put(event(3, NotificationType.CAMERA_UP, camera=gate))
        webhook.put(event(4, NotificationType.BOX_ONLINE))
        await until(lambda: webhook.destination.sent == 2, "two events")
        assert [taken["id"] for taken in receiver.taken] == ["evt_0", "evt_4"]


async def test_the_secret_is_told_to_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    async with receiving() as receiver, posting(receiver, tmp_path) as (webhook, notes):
        receiver.secret = "another word"
        webhook.put(event(1))
        await until(lambda: webhook.destination.connected is False, "a refusal")
        assert webhook.destination.error == "it answers 401 Unauthorized"
        assert webhook.destination.queued == 1
    assert SECRET not in caplog.text + str(notes) + str(webhook.destination)


async def test_a_token_in_the_url_is_told_to_nobody(caplog: pytest.LogCaptureFixture) -> None:
    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"this is no HTTP\r\n\r\n")
        await writer.drain()
        writer.close()

    caplog.set_level("DEBUG")
    notes: Notes = []
    async with await asyncio.start_server(babble, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/sesame?key=sesame"
        webhook = Webhook(
            "webhooks[0]", WebhookParameters(url=url), lambda *note: notes.append(note)
        )
        webhook.start()
        try:
            webhook.put(event(1))
            await until(lambda: webhook.destination.connected is False, "a failure")
        finally:
            await webhook.stop(0)
    assert webhook.destination.error.startswith("its answer is no HTTP")
    assert "sesame" not in caplog.text + str(notes) + str(webhook.destination)


def test_secrets_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def made(**parameters: Any) -> Webhook:
        found = WebhookParameters(url="http://a.example/b", **parameters)
        return Webhook("webhooks[3]", found, print)

    empty = tmp_path / "empty"
    empty.write_text("\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"^webhooks\[3\]\.secret_file: .*nowhere cannot be read"):
        made(secret_file=str(tmp_path / "nowhere"))
    with pytest.raises(ConfigError, match="is empty"):
        made(secret_file=str(empty))
    with pytest.raises(ConfigError, match="no environment variable EDGEBOX_TEST_SECRET"):
        made(secret_env="EDGEBOX_TEST_SECRET")
    monkeypatch.setenv("EDGEBOX_TEST_SECRET", "whsec_?")
    base64 = r"^webhooks\[3\]\.secret_env: .*Base64"
    with pytest.raises(ConfigError, match=base64) as caught:
        made(secret_env="EDGEBOX_TEST_SECRET")
    assert "?" not in str(caught.value)
    with pytest.raises(ConfigError, match=r"^webhooks\[3\]\.ca_file: .*empty cannot be used"):
        made(ca_file=str(empty))
