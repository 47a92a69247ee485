"""The documents of events, and the page that specifies them."""

import json
import re
from pathlib import Path

from edgebox.domain.notifications import Notification, NotificationType
from edgebox.domain.requests import CameraId
from edgebox.notifications.notification_document import written
from edgebox.notifications.topics import Topics

_FILE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "events.md"
PAGE = _FILE.read_text(encoding="utf-8")


def test_the_example_of_the_page_is_what_is_written() -> None:
    (text,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    example = json.loads(text)
    details = {key: example[key] for key in ("count", "score", "box")}
    notification = Notification(
        NotificationType.DETECTION, 0, CameraId("gate-2"), "person", details
    )
    event = written(notification, example["id"], "edgebox", example["at_ms"])
    assert list(json.loads(event.body).items()) == list(example.items())


def test_an_event_of_the_box_names_no_camera() -> None:
    body = json.loads(written(Notification(NotificationType.BOX_ONLINE, 0), "evt_1", "box", 5).body)
    assert body == {"id": "evt_1", "type": "box_online", "at_ms": 5, "box_name": "box"}


def test_the_page_names_every_kind_and_every_topic() -> None:
    topics = Topics("edgebox")
    names = [
        *NotificationType,
        topics.availability,
        topics.event("gate-2"),
        topics.connected("gate-2"),
        topics.on_time("gate-2"),
        topics.metrics("gate-2"),
        topics.count("gate-2", "person"),
    ]
    missing = [name for name in names if f"`{name}`" not in PAGE]
    assert not missing
