"""What must be right before a box starts: packages and secrets."""

import sys
from pathlib import Path

import pytest

from edgebox.app.composition import App
from edgebox.config.config_file import load
from edgebox.domain.errors import ConfigError
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
