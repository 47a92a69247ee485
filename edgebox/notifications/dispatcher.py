"""Sends a box's notifications: watches its cameras, and passes events to destinations.

Without a configured destination nothing is watched and no task runs. On the path of a frame it only
reads the detections of answered frames; each destination sends in a task of its own.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from edgebox.config.config_file import Config
from edgebox.config.notification_sections import (
    DetectionParameters,
    EventParameters,
    MqttParameters,
)
from edgebox.domain.errors import ConfigError
from edgebox.domain.model_family import ExecutorId
from edgebox.domain.notifications import Notification, NotificationType
from edgebox.domain.requests import CameraId
from edgebox.notifications.attainment import AttainmentRule
from edgebox.notifications.best_pictures import BestPictures
from edgebox.notifications.destination_health import Note
from edgebox.notifications.event_detector import (
    CameraFacts,
    DetectionRule,
    EventDetector,
    ExecutorFacts,
)
from edgebox.notifications.notification_document import Event, written
from edgebox.notifications.states import CameraStates
from edgebox.notifications.webhooks import Webhook
from edgebox.runtime.box import Box
from edgebox.runtime.camera_record import CameraRecord
from edgebox.runtime.destinations import Destination
from edgebox.runtime.frames import Answer, FrameResult, PendingFrame
from edgebox.runtime.stage_documents import staged_objects
from edgebox.storage.rows import Level
from edgebox.storage.wall_clock import wall_clock_ms

if TYPE_CHECKING:
    from edgebox.notifications.mqtt import MqttBroker

_log = logging.getLogger(__name__)

_WATCH_PERIOD_S = 0.5
_END_S = 2.0


class Sender(Protocol):
    """A destination of notifications."""

    destination: Destination

    def start(self) -> None:
        """Begin to send."""
        ...

    def put(self, event: Event) -> None:
        """Queue an event if this destination wants it."""
        ...

    async def stop(self, patience_s: float) -> None:
        """Try to send queued events within a limit, then end."""
        ...


class NotificationDispatcher:
    """All destinations of one box."""

    def __init__(self, config: Config) -> None:
        """Read the secrets; nothing is sent before `start`.

        Raises:
            ConfigError: a secret or a certificate cannot be read, or a package is missing.
        """
        self._watch = EventDetector(
            [_rule(parameters) for parameters in config.detections or (DetectionParameters(),)],
            _attainment(config.events),
        )
        self._senders: list[Sender] = [
            Webhook(f"webhooks[{number}]", found, self._note)
            for number, found in enumerate(config.webhooks)
        ]
        self._states: CameraStates | None = None
        self._pictures: BestPictures | None = None
        self._metrics_s = config.mqtt.metrics_s
        if config.mqtt.host:
            broker = _broker(config.mqtt, self._note, self._left_over)
            self._senders.append(broker)
            pictures = config.mqtt.pictures
            self._states = CameraStates(
                broker, self._watch, config.mqtt.discovery, pictures=pictures
            )
            self._pictures = BestPictures(broker, self._watch) if pictures else None
        self._box: Box | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._run_id = secrets.token_hex(6)
        self._events = 0

    def start(self, box: Box) -> None:
        """Begin to watch a box that is ready, and to send its notifications."""
        if not self._senders:
            return
        self._box = box
        for sender in self._senders:
            box.add_destination(sender.destination)
            sender.start()
        box.observers.add(self._frame_ended)
        box.tracking.observers.add(self._zone_events)
        self._send([Notification(NotificationType.BOX_ONLINE, box.driver.clock_ns())])
        self._tasks = [asyncio.create_task(self._watch_box(), name="events")]
        if self._pictures is not None:
            self._tasks.append(asyncio.create_task(self._pictures.run(box), name="pictures"))

    async def stop(self) -> None:
        """Try to send that what is seen has ended, and that the box goes offline. Idempotent."""
        if self._box is None or not self._tasks:
            return
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        self._box.observers.remove(self._frame_ended)
        self._box.tracking.observers.remove(self._zone_events)
        now_ns = time.monotonic_ns()
        offline = Notification(NotificationType.BOX_OFFLINE, now_ns)
        self._send([*self._watch.end(now_ns), offline])
        await asyncio.gather(*(sender.stop(_END_S) for sender in self._senders))

    def _note(self, level: Level, text: str) -> None:
        if self._box is not None:
            self._box.notices.publish(level, text)

    def _left_over(self, topic: str) -> None:
        if self._states is not None:
            self._states.left_over(topic)

    # -- what happens -------------------------------------------------------------------------

    def _frame_ended(self, record: CameraRecord, frame: PendingFrame, ending: FrameResult) -> None:
        if not isinstance(ending, Answer):
            return
        if not len(ending.detections):
            return
        box = self._box
        assert box is not None
        labels = box.families[record.camera.family].labels
        happened = self._watch.answered(
            record.camera.id,
            ending.detections,
            labels,
            frame.request.captured_ns,
            box.driver.clock_ns(),
            attributes=_attributes(box, frame, ending),
        )
        if happened:
            self._send(happened)
        if self._pictures is not None:
            self._pictures.answered(record, frame, ending, labels)

    def _zone_events(self, camera: CameraId, events: Sequence[Notification]) -> None:
        self._send(list(events))

    async def _watch_box(self) -> None:
        box = self._box
        assert box is not None
        figures_s = 0.0
        try:
            while True:
                now_ns = box.driver.clock_ns()
                facts = {camera: _facts(box, record) for camera, record in box.cameras.items()}
                happened = self._watch.look(facts, now_ns)
                happened += self._watch.detect_executors(_executors(box), now_ns)
                if self._states is not None:
                    self._states.update(box, facts, now_ns)
                self._send(happened)  # before frames are answered again, or the box stops
                if self._states is not None and now_ns / 1e9 >= figures_s:
                    figures_s = now_ns / 1e9 + self._metrics_s
                    await self._states.publish_figures(box)
                await asyncio.sleep(_WATCH_PERIOD_S)
        except Exception:
            _log.exception("watching for events failed")
            box.notices.publish(
                "error", "notifications have stopped because of a defect of edgebox; see its log"
            )

    def _send(self, happened: list[Notification]) -> None:
        box = self._box
        assert box is not None
        for notification in happened:
            self._events += 1
            ago_ms = (time.monotonic_ns() - notification.at_ns) // 1_000_000
            event = written(
                notification,
                f"evt_{self._run_id}_{self._events}",
                box.name,
                wall_clock_ms() - ago_ms,
            )
            for sender in self._senders:
                sender.put(event)


def _facts(box: Box, record: CameraRecord) -> CameraFacts:
    counts = box.metrics.of(CameraId(record.camera.id)).counts
    return CameraFacts(
        connected=record.connected,
        left_because=record.left_because,
        on_time=counts.on_time,
        due=counts.due,
        slo_ms=round(record.camera.slo_ns / 1e6, 1),
    )


def _executors(box: Box) -> dict[ExecutorId, ExecutorFacts]:
    last_losses = box.driver.supervisor.last_losses
    return {
        executor: ExecutorFacts(of.losses.total(), of.restarts, last_losses.get(executor, ""))
        for executor, of in box.driver.scheduler.supervised.items()
    }


def _rule(parameters: DetectionParameters) -> DetectionRule:
    return DetectionRule(
        parameters.cameras,
        parameters.classes,
        parameters.score_min,
        hold_ns=round(parameters.hold_s * 1e9),
        interval_ns=round(parameters.interval_s * 1e9),
    )


def _attainment(parameters: EventParameters) -> AttainmentRule:
    return AttainmentRule(
        round(parameters.slo_window_s * 1e9),
        parameters.slo_breached_below,
        min(1.0, parameters.slo_breached_below + parameters.slo_margin),
        parameters.slo_frames_min,
    )


def _broker(
    parameters: MqttParameters, note: Note, on_leftover: Callable[[str], None]
) -> "MqttBroker":
    try:
        from edgebox.notifications.mqtt import MqttBroker  # noqa: PLC0415 - needs an extra
    except ImportError:
        raise ConfigError(
            "mqtt.host: MQTT needs aiomqtt, which is not installed: pip install 'edgebox[mqtt]'"
        ) from None
    return MqttBroker(parameters, note, on_leftover)


def _attributes(
    box: Box, frame: PendingFrame, answer: Answer
) -> Mapping[int, Mapping[str, Mapping[str, object]]]:
    """Return what classifiers say of a frame's objects, by row."""
    return staged_objects(answer, frame.pipeline, box.families, 0.0, embeddings=False).attributes
