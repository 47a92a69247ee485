"""What must be right before a box starts: packages and secrets. Order of what is sent."""

import asyncio
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest

from edgebox.app.composition import App
from edgebox.config.config_file import load
from edgebox.domain.errors import ConfigError
from edgebox.domain.notifications import Notification, NotificationType
from edgebox.notifications.dispatcher import NotificationDispatcher
from edgebox.notifications.event_detector import EventDetector
from edgebox.notifications.mqtt import MqttBroker
from edgebox.notifications.notification_document import Event
from edgebox.notifications.states import CameraStates
from tests.end_to_end.program import configured, edgebox


def test_mqtt_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aiomqtt", None)
    monkeypatch.delitem(sys.modules, "edgebox.notifications.mqtt", raising=False)
    App(load(None))
    with pytest.raises(ConfigError, match=r"pip install 'edgebox\[mqtt\]'"):
        App(load(None, {"mqtt.host": "localhost"}))


async def test_a_missing_secret_is_said_and_nothing_starts(tmp_path: Path) -> None:
    lines = ("[mqtt]", 'host = "localhost"', 'username = "box"', 'password_file = "nowhere"')
    file = configured(tmp_path, tmp_path / "edgebox.sqlite3", *lines)
    ended = await edgebox(tmp_path, "serve", "--config", str(file))
    assert ended.code == 78
    words = " ".join(ended.err.split())
    assert "mqtt.password_file" in words
    assert "cannot be read: No such file or directory" in words
    assert not (tmp_path / "edgebox.sqlite3").exists()


async def test_what_was_seen_is_sent_before_figures_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames are answered and the box stops in between: nothing may overtake it or be lost."""
    sent: list[NotificationType] = []
    publishing = asyncio.Event()

    def put(broker: MqttBroker, event: Event) -> None:
        sent.append(event.notification.kind)

    async def publish_figures(states: CameraStates, box: object) -> None:
        publishing.set()
        await asyncio.Event().wait()

    async def stop(broker: MqttBroker, patience_s: float) -> None:
        pass

    ended = Notification(NotificationType.DETECTION_ENDED, 0)
    monkeypatch.setattr(MqttBroker, "start", lambda broker: None)
    monkeypatch.setattr(MqttBroker, "put", put)
    monkeypatch.setattr(MqttBroker, "stop", stop)
    monkeypatch.setattr(EventDetector, "look", lambda detector, facts, now_ns: [ended])
    monkeypatch.setattr(CameraStates, "update", lambda states, box, facts, now_ns: None)
    monkeypatch.setattr(CameraStates, "publish_figures", publish_figures)
    scheduler = SimpleNamespace(supervised={})
    supervisor = SimpleNamespace(last_losses={})
    driver = SimpleNamespace(clock_ns=lambda: 0, scheduler=scheduler, supervisor=supervisor)
    box = Mock(cameras={}, driver=driver)
    box.name = "barn"
    dispatcher = NotificationDispatcher(load(None, {"mqtt.host": "localhost"}))
    dispatcher.start(cast("Any", box))
    await publishing.wait()
    assert sent == ["box_online", "detection_ended"]
    await dispatcher.stop()
    assert sent == ["box_online", "detection_ended", "box_offline"]
