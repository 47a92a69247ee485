"""What a real broker, and whoever listens there, is told by a real box with real cameras."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiomqtt
import pytest

from edgebox.app.composition import App
from edgebox.camera.daemon import Camera
from edgebox.config.config_file import load
from edgebox.domain.requests import CameraId
from edgebox.media.jpeg import decode
from edgebox.media.sources import PictureSource
from edgebox.notifications.mqtt import MqttBroker
from tests.conftest import PATIENCE_S, settings
from tests.end_to_end.broker import Broker, broker, listening
from tests.end_to_end.program import configured, serving
from tests.end_to_end.running import (
    PICTURE,
    SIZE_PX,
    get_json,
    gone,
    streaming,
    texts,
    unharmed_bystander,
    until,
)
from tests.end_to_end.streets import street_source

pytestmark = pytest.mark.usefixtures("few_sizes")

QUICK = """
[[detections]]
classes = ["car", "person"]
score_min = 0.3
hold_s = 0.5
interval_s = 0
[events]
slo_window_s = 1
"""
CALM = """
[[detections]]
classes = ["nothing"]
[events]
slo_breached_below = 0
"""
"""Nothing but cameras that come and go makes an event."""
DEVICE = "homeassistant/device/edgebox/gate/config"


def figures(last: dict[str, str]) -> Any:
    return json.loads(last.get("edgebox/camera/gate/metrics") or "{}")


def street() -> dict[str, Any]:
    """Return the options of a camera in a street; there are cars from the first picture on."""
    return {"source": street_source(1, 5.0), "rate_hz": 5.0}


@contextlib.asynccontextmanager
async def telling(
    database: Path, to: Broker, more: str = "", sections: str = QUICK
) -> AsyncIterator[App]:
    """Run a box that tells a broker; `more` goes into its section [mqtt]."""
    file = database.parent / "edgebox.toml"
    host = "" if "host = " in more else 'host = "127.0.0.1"'
    mqtt = f"[mqtt]\n{host}\nport = {to.port}\nmetrics_s = 1\n{more}\n"
    file.write_text(mqtt + sections, encoding="utf-8")
    app = App(load(file, settings(database)))
    await app.start()
    try:
        yield app
    finally:
        await app.stop()


async def test_the_best_picture_of_a_sighting_is_kept_there(database: Path, tmp_path: Path) -> None:
    topic = "edgebox/camera/gate/picture"
    async with (
        broker(tmp_path) as mosquitto,
        telling(database, mosquitto, "pictures = true") as app,
    ):
        async with listening(mosquitto) as received, streaming(app, "gate", **street()):
            await received.tells("gate", "detection")
            await until(
                lambda: {topic, DEVICE} <= received.last.keys(), "a picture, and its entity"
            )
            entity = json.loads(received.last[DEVICE])["components"]["picture"]
            assert (entity["platform"], entity["image_topic"]) == ("image", topic)
        async with listening(mosquitto) as late:  # the broker has kept it
            await until(lambda: topic in late.last, "the kept picture")
    picture = decode(late.last[topic].encode(errors="surrogateescape"))
    assert picture.shape[1] > picture.shape[0] > 100


async def test_without_the_setting_no_picture_leaves_the_box(
    database: Path, tmp_path: Path
) -> None:
    async with (
        broker(tmp_path) as mosquitto,
        listening(mosquitto) as received,
        telling(database, mosquitto) as app,
        streaming(app, "gate", **street()),
    ):
        await received.tells("gate", "detection")
        await until(lambda: figures(received.last) != {}, "figures, a second later")
        assert "edgebox/camera/gate/picture" not in received.last
        assert "picture" not in json.loads(received.last[DEVICE])["components"]


async def test_what_a_camera_sees_and_how_it_is(database: Path, tmp_path: Path) -> None:
    async with broker(tmp_path) as mosquitto, listening(mosquitto) as received:
        async with telling(database, mosquitto) as app:
            await received.says("edgebox/availability", "online")
            before_ms = time.time() * 1e3
            async with streaming(app, "gate", **street()):
                up = await received.tells("gate", "camera_up")
                assert set(up) == {"id", "type", "at_ms", "box_name", "camera"}
                seen = await received.tells("gate", "detection")
                assert seen["label"] in ("car", "person")
                assert seen["camera"] == "gate"
                assert seen["box_name"] == "edgebox"
                assert before_ms - 1 <= seen["at_ms"] <= time.time() * 1e3 + 1
                assert seen["count"] >= 1
                assert 0.3 <= seen["score"] <= 1
                left, top, right, bottom = seen["box"]
                assert left < right
                assert top < bottom
                await received.says("edgebox/camera/gate/connected", "ON")
                await received.says("edgebox/camera/gate/on_time", "ON")
                count = f"edgebox/camera/gate/count/{seen['label']}"
                await until(lambda: int(received.last.get(count, "0")) >= 1, "a count")
                updates: dict[str, Any] = {}

                def has_updates() -> bool:
                    updates.update(figures(received.last))
                    return updates.get("fps", 0) > 0 and updates["on_time_percent"] is not None

                await until(has_updates, "figures")
                assert updates["latency_ms"]["p50"] > 0
                assert updates["on_time_percent"] > 0
                assert updates["variant"].startswith("street-")
            down = await received.tells("gate", "camera_down")
            assert down["reason"] == "it has finished"
            await received.says("edgebox/camera/gate/connected", "OFF")
            ended = await received.tells("gate", "detection_ended")
            assert ended["count_max"] >= 1
            await received.says(count, "0")
            told_of = app.box.destinations[0]
            await until(lambda: told_of.sent >= len(received.events("gate")), "the last answer")
            _, state = await get_json(app, "/v1/state")
            (destination,) = state["box"]["destinations"]
            assert destination["kind"] == "mqtt"
            assert destination["connected"]
            assert destination["dropped"] == {}
            assert destination["last_error"] is None
            assert destination["sent"] >= len(received.events("gate"))
        await received.says("edgebox/availability", "offline")


WATCHED = """
[[zones]]
camera = "gate"
name = "yard"
points = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]
"""


async def test_zones_over_mqtt_say_what_the_state_says(database: Path, tmp_path: Path) -> None:
    async with (
        broker(tmp_path) as mosquitto,
        listening(mosquitto) as received,
        telling(database, mosquitto, sections=CALM + WATCHED) as app,
    ):
        topic = "edgebox/camera/gate/zone/yard"
        async with streaming(app, "gate", **street()):
            entered = await received.tells("gate", "zone_dwell")
            assert (entered["zone"], entered["dwell_s"]) == ("yard", 0.0)
            assert entered["track"] > 0

            def agrees() -> bool:
                said = json.loads(received.last.get(topic) or "{}")
                inside = app.box.tracking.zone_counts(CameraId("gate")).get("yard", {})
                return bool(said) and said == inside

            await until(agrees, "the counts of the zone")
        left = await received.tells("gate", "zone_left")
        assert left["zone"] == "yard"
        await until(lambda: received.last.get(topic) in ("{}", ""), "an empty zone")


async def test_deadlines_breached_and_kept_again(database: Path, tmp_path: Path) -> None:
    async with (
        broker(tmp_path) as mosquitto,
        listening(mosquitto) as received,
        telling(database, mosquitto) as app,
    ):
        # Nothing can be answered within 2 ms: so much is set aside for the way back alone.
        hopeless = Camera(
            PictureSource(SIZE_PX, 15.0, lambda number: PICTURE), app.url, name="gate", slo_ms=2.0
        )
        run = asyncio.create_task(hopeless.run())
        breach = await received.tells("gate", "slo_breached")
        assert breach["on_time_share"] < 0.9
        assert breach["window_s"] == 1
        assert breach["slo_ms"] == 2
        await received.says("edgebox/camera/gate/on_time", "OFF")
        hopeless.stop()
        await run
        await gone(app, "gate")
        async with streaming(app, "gate", rate_hz=15.0):  # a window of 1 s needs enough of them
            recovery = await received.tells("gate", "slo_recovered")
            assert recovery["on_time_share"] >= 0.95
            await received.says("edgebox/camera/gate/on_time", "ON")


async def test_home_assistant_learns_of_a_camera_and_that_it_is_forgotten(
    database: Path, tmp_path: Path
) -> None:
    async with broker(tmp_path) as mosquitto, telling(database, mosquitto) as app:
        async with listening(mosquitto) as received:
            async with streaming(app, "gate"):
                await until(lambda: bool(figures(received.last)), "figures")
            await received.says("edgebox/camera/gate/connected", "OFF")
        async with listening(mosquitto) as received:
            # Retained: who comes later hears it, too.
            await until(lambda: DEVICE in received.last, "the device")
            await received.says("edgebox/availability", "online")
            # What changes only now, as what is seen no more, comes after what is retained.
            first: dict[str, bool] = {}
            for topic, _, retained in received.messages:
                first.setdefault(topic, retained)
            assert all(first.values())
            components = json.loads(received.last[DEVICE])["components"]
            assert {"connected", "on_time", "fps", "present_car", "present_person"} <= set(
                components
            )
            for entity in components.values():
                assert entity["state_topic"] in received.last
            # As if ten minutes had passed.
            record = app.box.cameras[CameraId("gate")]
            assert record.left_ns is not None
            record.left_ns -= 601_000_000_000
            app.box.forget_old_cameras()
            kept = [topic for topic in received.last if topic != "edgebox/availability"]
            for topic in kept:
                await received.says(topic, "")


async def test_a_broker_that_dies_and_comes_back_misses_nothing(
    database: Path,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    may_connect, waiting = asyncio.Event(), asyncio.Event()
    may_connect.set()
    connection = MqttBroker._connection

    async def connection_when_allowed(self: MqttBroker) -> None:
        if not may_connect.is_set():
            waiting.set()
        await may_connect.wait()
        await connection(self)

    monkeypatch.setattr(MqttBroker, "_connection", connection_when_allowed)
    async with broker(tmp_path) as mosquitto, telling(database, mosquitto, "", CALM) as app:
        destination = app.box.destinations[0]
        async with unharmed_bystander(app):
            async with listening(mosquitto) as received:
                await received.says("edgebox/camera/bystander/connected", "ON")
                await until(lambda: destination.sent == 1, "its event")
            await mosquitto.kill()
            await until(lambda: destination.connected is False, "the loss to be noticed")
            async with streaming(app, "gate"):
                await until(lambda: destination.queued == 1, "an event to wait")
            await until(lambda: destination.queued == 2, "two events to wait")
            failed_ms = destination.error_at_ms
            await until(lambda: destination.error_at_ms > failed_ms, "another attempt")
            # The listener shall be there before the box.
            may_connect.clear()
            await waiting.wait()
            await mosquitto.start()
            async with listening(mosquitto) as received:
                may_connect.set()
                await received.tells("gate", "camera_down")
                assert received.kinds("gate") == ["camera_up", "camera_down"]
                # The broker has kept nothing, so the box has told it everything again.
                await received.says("edgebox/availability", "online")
                await received.says("edgebox/camera/bystander/connected", "ON")
                await received.says("edgebox/camera/gate/connected", "OFF")
                assert DEVICE in received.last
            await until(lambda: destination.sent == 3, "the last answer")
        about = [text for text in texts(app) if "MQTT" in text]
        assert len(about) == 2
        assert "cannot be reached, events wait" in about[0]
        assert "accepts events again" in about[1]
        assert sum(record.name.startswith("mqtt") for record in caplog.records) == 0


async def test_a_box_that_dies_leaves_its_last_will(database: Path, tmp_path: Path) -> None:
    async with broker(tmp_path) as mosquitto, listening(mosquitto) as received:
        lines = ("[mqtt]", 'host = "127.0.0.1"', f"port = {mosquitto.port}")
        file = configured(tmp_path, database, *lines)
        async with serving(tmp_path, "--config", str(file)) as (process, _):
            await received.says("edgebox/availability", "online")
            process.kill()
            await process.wait()
            await received.says("edgebox/availability", "offline")


async def test_what_an_earlier_run_said_is_corrected(database: Path, tmp_path: Path) -> None:
    async with broker(tmp_path) as mosquitto:
        async with (
            listening(mosquitto) as received,
            telling(database, mosquitto) as app,
            streaming(app, "gate", **street()),
        ):
            await received.tells("gate", "detection")
            await received.says("edgebox/camera/gate/connected", "ON")
            await until(lambda: "edgebox/camera/gate/metrics" in received.last, "figures")
            await app.stop()
        async with listening(mosquitto) as received:
            await received.says("edgebox/camera/gate/connected", "ON")
            async with telling(database, mosquitto):
                await received.says("edgebox/availability", "online")
                await received.says("edgebox/camera/gate/connected", "OFF")
                await received.says("edgebox/camera/gate/count/car", "0")
                await received.says("edgebox/camera/gate/metrics", "")


async def test_passwords(database: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    word = tmp_path / "word"
    word.write_text("wrong-word\n", encoding="utf-8")
    more = f'username = "box"\npassword_file = "{word}"'
    async with broker(tmp_path, password="right-word") as mosquitto:
        async with telling(database, mosquitto, more) as app:
            destination = app.box.destinations[0]
            await until(lambda: destination.connected is False, "a refusal")
            assert "ot authori" in destination.error
            async with unharmed_bystander(app):
                await until(lambda: destination.queued >= 1, "events to wait")
            assert sum("MQTT" in text for text in texts(app)) == 1
        word.write_text("right-word\n", encoding="utf-8")
        async with (
            telling(database, mosquitto, more) as app,
            listening(mosquitto, "box", "right-word") as received,
            streaming(app, "gate"),
        ):
            await received.tells("gate", "camera_up")
        assert app.box.destinations[0].sent >= 1
    assert "wrong-word" not in caplog.text
    assert "right-word" not in caplog.text


async def test_tls(database: Path, tmp_path: Path) -> None:
    async with broker(tmp_path, tls=True) as mosquitto:
        named = 'host = "localhost"\ntls = true\n'
        async with telling(database, mosquitto, named) as app:
            destination = app.box.destinations[0]
            await until(lambda: destination.connected is False, "a refusal")
            assert "certificate verify failed" in destination.error
        trusting = f'{named}ca_file = "{mosquitto.certificate}"'
        async with telling(database, mosquitto, trusting) as app:
            await until(lambda: bool(app.box.destinations[0].connected), "a connection")


async def test_a_last_will_that_comes_late_is_answered(database: Path, tmp_path: Path) -> None:
    async with (
        broker(tmp_path) as mosquitto,
        listening(mosquitto) as received,
        telling(database, mosquitto),
    ):
        await received.says("edgebox/availability", "online")
        async with aiomqtt.Client("127.0.0.1", mosquitto.port) as client:
            await client.publish("edgebox/availability", "offline", qos=1, retain=True)
        await until(
            lambda: received.said("edgebox/availability") == ["online", "offline", "online"],
            "the box to contradict",
        )


async def test_a_broker_that_never_answers_harms_nobody(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patience_s = "edgebox.notifications.mqtt._ANSWER_S"
    monkeypatch.setattr(patience_s, 0.5)
    accepted: list[asyncio.StreamWriter] = []

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.append(writer)
        await reader.read()

    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    mute = Broker(tmp_path)
    mute.port = server.sockets[0].getsockname()[1]
    async with telling(database, mute) as app:
        async with unharmed_bystander(app):
            await until(lambda: app.box.destinations[0].connected is False, "it to be given up")
            # The next try has not ended when the box does, which does not wait for it.
            monkeypatch.setattr(patience_s, 10 * PATIENCE_S)
            tries = len(accepted)
            await until(lambda: len(accepted) > tries, "the next try")
        began_s = time.monotonic()
    assert time.monotonic() - began_s < PATIENCE_S
    for writer in accepted:
        writer.close()
    server.close()


async def test_a_box_without_destinations_watches_nothing(database: Path) -> None:
    app = App(load(None, settings(database)))
    await app.start()
    try:
        assert len(app.box.observers) == 0
        assert "events" not in {task.get_name() for task in asyncio.all_tasks()}
        _, state = await get_json(app, "/v1/state")
        assert state["box"]["destinations"] == []
    finally:
        await app.stop()
