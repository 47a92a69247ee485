"""What a real broker keeps of cameras, from one run of a box to the next."""

from pathlib import Path

import aiomqtt

from edgebox.config.notification_sections import MqttParameters
from edgebox.domain.requests import CameraId
from edgebox.link.bandwidth import EstimatorKind
from edgebox.notifications.attainment import AttainmentRule
from edgebox.notifications.event_detector import CameraFacts, DetectionRule, EventDetector
from edgebox.notifications.mqtt import MqttBroker
from edgebox.notifications.states import CameraStates
from edgebox.runtime.box import Box
from tests.end_to_end.broker import Broker, broker, listening
from tests.end_to_end.running import until

LEFT = {
    "edgebox/camera/old/connected": "ON",
    "edgebox/camera/old/on_time": "ON",
    "edgebox/camera/old/count/car": "2",
    "edgebox/camera/old/metrics": "{}",
    "homeassistant/device/edgebox/old/config": "{}",
}
SLO = AttainmentRule(30_000_000_000, 0.9, 0.95, 10)
GATE, OLD = CameraId("gate"), CameraId("old")
DEVICE = "homeassistant/device/edgebox/gate/config"


def box() -> Box:
    return Box(
        name="barn",
        version="0.1.0",
        cameras_max=4,
        unacknowledged_max=2,
        bandwidth=EstimatorKind.CAUTIOUS,
        on_event=lambda event: None,
        on_camera=lambda record: None,
    )


def states_of(to: Broker) -> tuple[MqttBroker, CameraStates]:
    """Return a box's side of a broker; the broker is not connected yet."""
    side = MqttBroker(
        MqttParameters(host="127.0.0.1", port=to.port),
        lambda level, text: None,
        lambda topic: states.left_over(topic),  # noqa: PLW0108 - it comes after this
    )
    states = CameraStates(
        side, EventDetector([DetectionRule(classes=("car",))], SLO), "homeassistant"
    )
    return side, states


async def leave(to: Broker, messages: dict[str, str]) -> None:
    """Be an earlier run of the box."""
    async with aiomqtt.Client("127.0.0.1", to.port) as client:
        for topic, payload in messages.items():
            await client.publish(topic, payload, qos=1, retain=True)


async def test_a_camera_that_does_not_return_is_taken_back(tmp_path: Path) -> None:
    async with broker(tmp_path) as mosquitto, listening(mosquitto) as received:
        await leave(mosquitto, LEFT)
        side, states = states_of(mosquitto)
        side.start()
        await received.says("edgebox/camera/old/connected", "OFF")
        await received.says("edgebox/camera/old/count/car", "0")
        await received.says("edgebox/camera/old/on_time", "")
        await received.says("edgebox/camera/old/metrics", "")
        states.update(box(), {}, 0)
        states.update(box(), {}, 599_000_000_000)
        assert "edgebox/camera/old/connected" in side.kept()
        states.update(box(), {}, 601_000_000_000)
        for topic in LEFT:
            await received.says(topic, "")
        await side.stop(1.0)


async def test_a_camera_that_returns_is_kept(tmp_path: Path) -> None:
    async with broker(tmp_path) as mosquitto, listening(mosquitto) as received:
        await leave(mosquitto, LEFT)
        side, states = states_of(mosquitto)
        side.start()
        await received.says("edgebox/camera/old/connected", "OFF")
        states.update(box(), {OLD: CameraFacts(True)}, 0)
        await received.says("edgebox/camera/old/connected", "ON")
        states.update(box(), {OLD: CameraFacts(True)}, 900_000_000_000)
        assert "edgebox/camera/old/connected" in side.kept()
        await side.stop(1.0)


async def test_a_broker_that_was_never_there_is_not_told_of_the_forgotten(tmp_path: Path) -> None:
    mosquitto = Broker(tmp_path)
    side, states = states_of(mosquitto)
    states.update(box(), {GATE: CameraFacts(True)}, 0)
    assert DEVICE in side.kept()
    states.update(box(), {}, 1)
    assert side.kept() == []
    await mosquitto.start()
    try:
        async with listening(mosquitto) as received:
            side.start()
            await received.says("edgebox/availability", "online")
            await until(lambda: side.destination.connected is True, "the connection")
            assert received.said(DEVICE) == []
            await side.stop(1.0)
            await received.says("edgebox/availability", "offline")
    finally:
        await mosquitto.kill()
