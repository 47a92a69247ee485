"""MQTT topics, and Home Assistant's discovery message of a camera.

Pure. Follows Home Assistant's MQTT device discovery (from version 2024.11 on): one retained message
per camera, which an empty one deletes.
"""

import re
import zlib
from collections.abc import Iterable
from typing import Any

import orjson

_NOT_IN_TOPICS = re.compile(r"[/+#\s\0]")
_NOT_IN_IDS = re.compile(r"[^A-Za-z0-9_-]")
ONLINE, OFFLINE = "online", "offline"
ON, OFF = "ON", "OFF"


class Topics:
    """The topics of one box."""

    def __init__(self, prefix: str) -> None:
        """Start all topics with `prefix`."""
        self.prefix = prefix
        self.availability = f"{prefix}/availability"
        self.cameras = f"{prefix}/camera/#"
        """Filter for all cameras' topics."""
        self.box_event = f"{prefix}/event"
        """Topic of the box's own events."""
        self.client = f"edgebox-{_id_of(prefix)}"
        """The box's client id."""

    def event(self, camera: str) -> str:
        """Return the topic of a camera's events."""
        return f"{self.prefix}/camera/{camera}/event"

    def connected(self, camera: str) -> str:
        """Return the topic of a camera's presence."""
        return f"{self.prefix}/camera/{camera}/connected"

    def on_time(self, camera: str) -> str:
        """Return the topic of a camera's deadline state."""
        return f"{self.prefix}/camera/{camera}/on_time"

    def metrics(self, camera: str) -> str:
        """Return the topic of a camera's figures."""
        return f"{self.prefix}/camera/{camera}/metrics"

    def count(self, camera: str, label: str) -> str:
        """Return the topic of a camera's count of a class."""
        return f"{self.prefix}/camera/{camera}/count/{_NOT_IN_TOPICS.sub('_', label)}"

    def zone(self, camera: str, zone: str) -> str:
        """Return the topic of the objects in a zone."""
        return f"{self.prefix}/camera/{camera}/zone/{zone}"

    def line(self, camera: str, line: str) -> str:
        """Return the topic of the crossings of a line."""
        return f"{self.prefix}/camera/{camera}/line/{line}"

    def picture(self, camera: str) -> str:
        """Return the topic of the best picture of a camera's latest sighting."""
        return f"{self.prefix}/camera/{camera}/picture"

    def camera_of(self, topic: str) -> str | None:
        """Return the camera of a topic; None: it belongs to none."""
        head = f"{self.prefix}/camera/"
        return topic[len(head) :].split("/", maxsplit=1)[0] if topic.startswith(head) else None

    def discovery(self, where: str, camera: str) -> str:
        """Return the discovery topic of a camera under Home Assistant's prefix `where`."""
        return f"{where}/device/{_id_of(self.prefix)}/{_id_of(camera)}/config"


def device(
    topics: Topics,
    camera: str,
    labels: Iterable[str],
    box: str,
    version: str,
    *,
    pictures: bool = False,
) -> bytes:
    """Return Home Assistant's discovery message of a camera.

    Args:
        topics: the box's topics.
        camera: the camera.
        labels: classes that get a sensor.
        box: name of the box.
        version: edgebox's version.
        pictures: whether there are pictures.
    """
    uid = f"{_id_of(topics.prefix)}_{_id_of(camera)}"
    components = _components(topics, camera, labels, pictures=pictures)
    for key, component in components.items():
        component["unique_id"] = f"{uid}_{key}"
    document = {
        "device": {
            "identifiers": [uid],
            "name": camera,
            "manufacturer": "edgebox",
            "model": f"camera of {box}",
            "sw_version": version,
        },
        "origin": {"name": "edgebox", "sw_version": version},
        "components": components,
        "qos": 1,
    }
    return orjson.dumps(document)


def _components(
    topics: Topics, camera: str, labels: Iterable[str], *, pictures: bool
) -> dict[str, dict[str, Any]]:
    connected = {
        "topic": topics.connected(camera),
        "payload_available": ON,
        "payload_not_available": OFF,
    }
    own = {"availability": [{"topic": topics.availability}, connected], "availability_mode": "all"}
    components: dict[str, dict[str, Any]] = {
        "connected": {
            "platform": "binary_sensor",
            "name": "Connected",
            "device_class": "connectivity",
            "entity_category": "diagnostic",
            "state_topic": topics.connected(camera),
            "availability": [{"topic": topics.availability}],
        },
        "on_time": {
            "platform": "binary_sensor",
            "name": "On time",
            "entity_category": "diagnostic",
            "state_topic": topics.on_time(camera),
            **own,
        },
    }
    for key, entity in _figures().items():
        components[key] = {**entity, "state_topic": topics.metrics(camera), **own}
    if pictures:
        components["picture"] = {
            "platform": "image",
            "name": "Last sighting",
            "image_topic": topics.picture(camera),
            "content_type": "image/jpeg",
            "availability": [{"topic": topics.availability}],
        }
    for label in labels:
        components |= _of_class(label, topics.count(camera, label), own)
    return components


def _figures() -> dict[str, dict[str, Any]]:
    def figure(name: str, value: str, unit: str | None, **more: Any) -> dict[str, Any]:
        found: dict[str, Any] = {
            "platform": "sensor",
            "name": name,
            "entity_category": "diagnostic",
            # None shows as "unknown" while a figure is unknown.
            "value_template": f"{{{{ value_json.{value} }}}}",
            **more,
        }
        if unit is not None:
            found |= {"unit_of_measurement": unit, "state_class": "measurement"}
        return found

    latency: dict[str, Any] = {"device_class": "duration", "suggested_display_precision": 0}
    return {
        "fps": figure("Frame rate", "fps", "frames/s", suggested_display_precision=1),
        "latency_p50": figure("Latency P50", "latency_ms.p50", "ms", **latency),
        "latency_p99": figure("Latency P99", "latency_ms.p99", "ms", **latency),
        "on_time_share": figure(
            "Frames on time", "on_time_percent", "%", suggested_display_precision=1
        ),
        "variant": figure("Variant", "variant", None),
    }


def _of_class(label: str, topic: str, own: dict[str, Any]) -> dict[str, dict[str, Any]]:
    name = label[:1].upper() + label[1:]
    return {
        f"present_{_id_of(label)}": {
            "platform": "binary_sensor",
            "name": name,
            "device_class": "occupancy",
            "state_topic": topic,
            "value_template": "{{ 'ON' if value | int(0) > 0 else 'OFF' }}",
            **own,
        },
        f"count_{_id_of(label)}": {
            "platform": "sensor",
            "name": f"{name} count",
            "state_class": "measurement",
            "state_topic": topic,
            **own,
        },
    }


def _id_of(name: str) -> str:
    """Return a name as a valid identifier; different names stay different."""
    plain = _NOT_IN_IDS.sub("_", name)
    return plain if plain == name else f"{plain}-{zlib.crc32(name.encode()):08x}"
