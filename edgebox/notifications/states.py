"""Publishes every camera's state to an MQTT broker: presence, deadlines, counts and figures.

The messages are retained, so that new subscribers receive them at once. When the box forgets a
camera, they are deleted together with Home Assistant's device; so are those of an earlier run's
camera that does not return.
"""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

import orjson

from edgebox.domain.requests import CameraId
from edgebox.notifications.event_detector import CameraFacts, EventDetector
from edgebox.notifications.topics import OFF, ON, device
from edgebox.runtime.box import Box
from edgebox.runtime.camera_record import CameraRecord

if TYPE_CHECKING:  # aiomqtt is optional
    from edgebox.notifications.mqtt import MqttBroker

_QUANTILES = {"p50": 0.5, "p99": 0.99}
_RETURN_NS = 600_000_000_000
"""How long a camera of an earlier run may take to return: as long as the box remembers one."""


class CameraStates:
    """The retained states of all cameras."""

    def __init__(
        self, broker: "MqttBroker", watch: EventDetector, discovery: str, *, pictures: bool = False
    ) -> None:
        """Publish to `broker`.

        Args:
            broker: it.
            watch: tells counts and deadlines.
            discovery: Home Assistant's topic prefix; empty: none.
            pictures: whether somebody publishes the cameras' pictures.
        """
        self._pictures = pictures
        self._broker = broker
        self._topics = broker.topics
        self._watch = watch
        self._discovery = discovery
        self._labels: dict[CameraId, tuple[str, ...]] = {}
        """The published classes, by camera."""
        self._zones: dict[CameraId, frozenset[str]] = {}
        """The topics of zones and lines, by camera."""
        self._left_over: dict[CameraId, int | None] = {}
        """Cameras of an earlier run, with the instant they were first missed."""

    def update(self, box: Box, facts: Mapping[CameraId, CameraFacts], now_ns: int) -> None:
        """Publish changes; delete the states of forgotten cameras."""
        for camera in self._labels.keys() - facts.keys():
            self._forget(camera)
        for camera, fact in facts.items():
            counts = self._watch.counts(camera, now_ns)
            labels = tuple(sorted(counts))
            if self._labels.get(camera) != labels:
                self._labels[camera] = labels
                self._introduce(box, camera)
            self._broker.retain(self._topics.connected(camera), ON if fact.connected else OFF)
            on_time = OFF if self._watch.breached(camera) else ON
            self._broker.retain(self._topics.on_time(camera), on_time)
            for label, count in counts.items():
                self._broker.retain(self._topics.count(camera, label), str(count))
            self._update_zones(box, camera)
        self._miss(facts, now_ns)

    def _update_zones(self, box: Box, camera: CameraId) -> None:
        topics = self._topics
        now = {
            topics.zone(camera, name): counts
            for name, counts in box.tracking.zone_counts(camera).items()
        } | {topics.line(camera, name): of for name, of in box.tracking.crossings(camera).items()}
        for topic in self._zones.get(camera, frozenset()) - now.keys():
            self._broker.release(topic)
        self._zones[camera] = frozenset(now)
        for topic, figures in now.items():
            self._broker.retain(topic, orjson.dumps(figures))

    def _introduce(self, box: Box, camera: CameraId) -> None:
        if self._discovery:
            self._broker.retain(
                self._topics.discovery(self._discovery, camera),
                device(
                    self._topics,
                    camera,
                    self._labels[camera],
                    box.name,
                    box.version,
                    pictures=self._pictures,
                ),
            )

    def _forget(self, camera: CameraId) -> None:
        self._labels.pop(camera, None)
        self._zones.pop(camera, None)
        if self._discovery:
            self._broker.release(self._topics.discovery(self._discovery, camera))
        for topic in self._broker.kept():
            if self._topics.camera_of(topic) == camera:
                self._broker.release(topic)

    # -- what earlier runs have left ----------------------------------------------------------

    def left_over(self, topic: str) -> None:
        """Delete or correct retained messages of an earlier run."""
        camera = self._topics.camera_of(topic)
        if camera is None:
            return
        if self._discovery:
            self._broker.may_keep(self._topics.discovery(self._discovery, camera))
        if topic == self._topics.connected(camera):
            self._broker.retain(topic, OFF)
        elif topic.startswith(self._topics.count(camera, "")):
            self._broker.retain(topic, "0")
        else:
            self._broker.release(topic)
        self._left_over.setdefault(CameraId(camera), None)

    def _miss(self, facts: Mapping[CameraId, CameraFacts], now_ns: int) -> None:
        for camera, since_ns in list(self._left_over.items()):
            if camera in facts:
                del self._left_over[camera]
            elif since_ns is None:
                self._left_over[camera] = now_ns
            elif now_ns - since_ns > _RETURN_NS:
                del self._left_over[camera]
                self._forget(camera)

    # -- figures ------------------------------------------------------------------------------

    async def publish_figures(self, box: Box) -> None:
        """Publish every connected camera's figures, yielding to the loop after each."""
        for record in list(box.cameras.values()):
            if record.connected:
                figures = orjson.dumps(_figures(box, record))
                self._broker.retain(self._topics.metrics(record.camera.id), figures)
                await asyncio.sleep(0)


def _figures(box: Box, record: CameraRecord) -> dict[str, object]:
    metrics = box.metrics.of(record.camera.id)
    now_ns = box.driver.clock_ns()
    window = metrics.window(now_ns)
    ended = window.on_time + window.late + sum(window.dropped.values())
    latency = metrics.latency_ms(now_ns, _QUANTILES)
    return {
        "fps": round(metrics.frames_per_s(now_ns), 1),
        "latency_ms": {
            name: None if latency is None else round(latency[name]["total"], 1)
            for name in _QUANTILES
        },
        "on_time_percent": round(100 * window.on_time / ended, 1) if ended else None,
        "variant": record.advice.variant if record.advice else None,
    }
