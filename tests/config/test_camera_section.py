"""Cameras that the box fetches, in the configuration: nothing of it shows a password."""

from pathlib import Path

import orjson
import pytest

from edgebox.config.config_file import load
from edgebox.domain.errors import ConfigError
from edgebox.domain.source_address import Credentials
from edgebox.ingest.source_fields import configured, read_settings, written
from edgebox.web.configuration import shown


def written_file(folder: Path, text: str) -> Path:
    path = folder / "box.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_an_address_with_a_password_is_split_and_shown_by_its_host_only(tmp_path: Path) -> None:
    path = written_file(
        tmp_path, '[[cameras]]\nname = "gate"\nurl = "rtsp://annie:s3c/ret@cam:8554/token=4b7"\n'
    )
    config = load(path)
    settings = configured(config.cameras[0], 0)
    assert settings.address.text == "rtsp://cam:8554/token=4b7"
    assert settings.credentials == Credentials("annie", "s3c/ret")
    document = orjson.dumps([each for each in shown(config) if each["key"].startswith("cameras")])
    for secret in (b"annie", b"s3c", b"4b7"):
        assert secret not in document
    assert b"rtsp://cam:8554" in document


def test_the_password_may_be_in_a_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / "gate.password").write_text("secret\n", encoding="utf-8")
    path = written_file(
        tmp_path,
        '[[cameras]]\nname = "gate"\nurl = "http://cam/"\nusername = "ann"\n'
        'password_file = "gate.password"\n',
    )
    settings = configured(load(path).cameras[0], 0)
    assert settings.credentials == Credentials("ann", "secret")
    assert settings == read_settings(
        settings.camera,
        {**written(settings), "username": "ann", "password": "secret"},
    )


def test_what_is_wrong_is_named_without_secrets(tmp_path: Path) -> None:
    path = written_file(
        tmp_path,
        """
        [[cameras]]
        url = "rtsp://ann:secret@cam/"
        username = "bob"
        [[cameras]]
        name = "gate"
        url = "gopher://ann:secret@cam/"
        password = "secret"
        [[cameras]]
        name = "gate"
        url = "rtsp://cam/"
        username = "ann"
        password = "secret"
        password_env = "SECRET"
        """,
    )
    with pytest.raises(ConfigError) as failed:
        load(path)
    lines = [line.strip() for line in str(failed.value).splitlines()[1:]]
    assert [line.split(":")[0] for line in lines] == [
        "cameras[0].name", "cameras[0].url", "cameras[1].url", "cameras[1].username",
        "cameras[2].name", "cameras[2].password_env",
    ]  # fmt: skip
    assert "secret" not in str(failed.value)


def test_a_least_rate_above_the_rate_is_refused_as_in_a_hello(tmp_path: Path) -> None:
    path = written_file(
        tmp_path,
        """
        [[cameras]]
        name = "gate"
        url = "rtsp://cam/"
        rate_hz = 5
        min_rate_hz = 7.5
        """,
    )
    with pytest.raises(
        ConfigError, match=r"\.min_rate_hz: must not be above rate_hz \(5\), not 7.5"
    ):
        load(path)
