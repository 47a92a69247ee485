"""Publishes the best picture of each camera's latest sighting to the MQTT broker, retained.

A picture waits until it is drawn, and a better one takes its place: one per camera at most.
"""

import asyncio
import logging
from typing import TYPE_CHECKING

from edgebox.domain.errors import InvalidInputError
from edgebox.domain.requests import CameraId
from edgebox.notifications.event_detector import EventDetector
from edgebox.runtime.box import Box
from edgebox.runtime.camera_record import CameraRecord
from edgebox.runtime.drawn_picture import AnsweredPicture
from edgebox.runtime.frames import Answer, PendingFrame

if TYPE_CHECKING:  # aiomqtt is optional
    from edgebox.notifications.mqtt import MqttBroker

_log = logging.getLogger(__name__)
_PERIOD_S = 1.0


class BestPictures:
    """The best pictures of all cameras."""

    def __init__(self, broker: "MqttBroker", watch: EventDetector) -> None:
        """Publish to `broker` what `watch` says is the best."""
        self._broker = broker
        self._watch = watch
        self._waiting: dict[CameraId, AnsweredPicture] = {}

    def answered(
        self, record: CameraRecord, frame: PendingFrame, answer: Answer, labels: tuple[str, ...]
    ) -> None:
        """Take the picture of an answered frame that the detector has seen, if it is the best."""
        camera = record.camera.id
        rule = self._watch.rule(camera)
        if rule is None or not self._watch.take_best(camera):
            return
        picture = AnsweredPicture.of(frame, answer, labels, rule.score_min)
        if picture is not None:
            self._waiting[camera] = picture

    async def run(self, box: Box) -> None:
        """Draw and publish what waits, once a second, until cancelled."""
        while True:
            for camera in list(self._waiting):
                picture = self._waiting.pop(camera)
                try:
                    drawn = await asyncio.to_thread(picture.drawn)
                except InvalidInputError as error:
                    _log.warning("the best picture of %s cannot be drawn: %s", camera, error)
                    continue
                except Exception:  # a defect costs this picture, and not those of all cameras
                    _log.exception("the best picture of %s cannot be drawn", camera)
                    continue
                if camera in box.cameras:  # it may have been forgotten meanwhile
                    self._broker.retain(self._broker.topics.picture(camera), drawn)
            await asyncio.sleep(_PERIOD_S)
