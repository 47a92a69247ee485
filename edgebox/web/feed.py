"""Publishes frames' results to subscriptions; encodes each result once per format and filter.

Contains no sockets. Without subscriptions it costs nothing.
"""

import time
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from edgebox.domain.cascades import cascade_json
from edgebox.domain.errors import EdgeboxError, InvalidInputError
from edgebox.domain.requests import Camera, Outcome
from edgebox.link.placement_offer import placement_json
from edgebox.runtime.box import Box
from edgebox.runtime.camera_record import CameraRecord
from edgebox.runtime.frames import Answer, FrameResult, PendingFrame
from edgebox.runtime.stage_documents import best_rows, missing_json, staged_objects
from edgebox.vision.detections import Detections
from edgebox.web.detection_documents import timing_ms, zone_event
from edgebox.web.result_formats import coco_categories, in_format
from edgebox.web.stage_formats import add_stages
from edgebox.web.subscription import Filter, Subscription

SUBSCRIBERS_MAX = 64


class TooManySubscribersError(EdgeboxError):
    """The maximum number of programs is subscribed."""

    http_status = 503
    code = "too_many_subscribers"
    title = "Too many programs are subscribed to results"


class Feed:
    """All subscriptions to one box."""

    def __init__(self, box: Box) -> None:
        """Start without subscriptions."""
        self._box = box
        self._subscriptions: set[Subscription] = set()

    def join(self, wanted: Filter) -> Subscription:
        """Return a new subscription; its first message describes its filter.

        Raises:
            InvalidInputError: no result can match the filter.
            TooManySubscribersError: the maximum is reached.
        """
        subscription = Subscription(self.known(wanted))
        if len(self._subscriptions) >= SUBSCRIBERS_MAX:
            raise TooManySubscribersError(
                f"{SUBSCRIBERS_MAX} programs are subscribed to results, the most this box serves"
            )
        subscription.reply(self.subscribed(subscription))
        if not self._subscriptions:
            self._box.observers.add(self._publish)
        self._subscriptions.add(subscription)
        return subscription

    def leave(self, subscription: Subscription) -> None:
        """Remove a subscription."""
        self._subscriptions.discard(subscription)
        if not self._subscriptions:
            self._box.observers.remove(self._publish)

    def known(self, wanted: Filter) -> Filter:
        """Return a filter whose classes were checked.

        Raises:
            InvalidInputError: no family finds one of the classes.
        """
        labels = {label for family in self._box.families.values() for label in family.labels}
        unknown = [name for name in wanted.classes if name not in labels]
        if unknown:
            raise InvalidInputError(
                f"no model family finds {', '.join(unknown)}; they find {', '.join(sorted(labels))}"
            )
        return wanted

    def subscribed(self, subscription: Subscription) -> bytes:
        """Return the message that describes a subscription."""
        connected = sorted(
            camera
            for camera, record in self._box.cameras.items()
            if record.connected and subscription.covers(camera)
        )
        families = {
            family.name: {"labels": family.labels, "categories": coco_categories(family.labels)}
            for family in self._box.families.values()
        }
        document = {
            "type": "subscribed",
            **subscription.filter.to_json(),
            "connected": connected,
            "families": families,
        }
        return orjson.dumps(document)

    def _publish(self, record: CameraRecord, frame: PendingFrame, ending: FrameResult) -> None:
        """Publish a result to the subscriptions that want it, encoded once for equal filters."""
        camera, now_ns = record.camera, self._box.driver.clock_ns()
        outcome = ending.outcome if isinstance(ending, Answer) else Outcome.DROPPED
        written: dict[tuple[object, ...], bytes | None] = {}
        for subscription in self._subscriptions:
            if not subscription.wants(camera.id, outcome, now_ns):
                continue
            wanted = subscription.filter
            key = (wanted.format, wanted.classes, wanted.score_min, wanted.empty)
            if key not in written:
                written[key] = self._written(camera, frame, ending, wanted, now_ns)
            message = written[key]
            if message is not None:
                subscription.put(camera.id, message, now_ns)

    def _written(
        self, camera: Camera, frame: PendingFrame, ending: FrameResult, wanted: Filter, now_ns: int
    ) -> bytes | None:
        """Return the message about a frame; None: the filter leaves nothing."""
        ago_ns = now_ns - frame.request.captured_ns
        document: dict[str, Any] = {
            "type": "result",
            "camera": camera.id,
            "app": camera.app,
            "family": camera.family,
            "frame": frame.number,
            "captured_at_ms": round((time.time_ns() - ago_ns) / 1e6, 1),
        }
        if not isinstance(ending, Answer):
            document["type"] = "drop"
            document["outcome"] = Outcome.DROPPED
            document["reason"] = ending.reason
            document["message"] = ending.message
            return orjson.dumps(document)
        family = self._box.families[camera.family]
        labels = family.labels
        rows = _left(ending.detections, labels, wanted)
        found = ending.detections.select(rows)
        happened = ending.analysis is not None and ending.analysis.events
        if not len(found) and not wanted.empty and not happened:
            return None
        document["outcome"] = ending.outcome
        document["variant"] = ending.variant
        document["timing_ms"] = timing_ms(ending.timing)
        size_px = (frame.source_width_px, frame.source_height_px)
        document |= in_format(
            wanted.format,
            found,
            labels,
            size_px,
            image_id=frame.number,
            attribute_names=family.attribute_names,
        )
        staged = staged_objects(ending, frame.pipeline, self._box.families, wanted.score_min)
        add_stages(document, wanted.format, rows.tolist(), staged)
        document |= missing_json(ending.missing)
        document |= placement_json(ending.placement)
        document |= cascade_json(ending.cascade)
        if ending.analysis is not None:
            document["zones"] = ending.analysis.zones
            document["lines"] = ending.analysis.lines
            document["events"] = [zone_event(event) for event in ending.analysis.events]
        return orjson.dumps(document)


def _left(found: Detections, labels: tuple[str, ...], wanted: Filter) -> NDArray[np.intp]:
    """Return the rows of the detections that pass a filter, best first."""
    rows = best_rows(found, wanted.score_min)
    if not wanted.classes:
        return rows
    passes = [labels[label] in wanted.classes for label in found.labels[rows].tolist()]
    return rows[np.array(passes, np.bool_)]
