"""Broken models, databases and ports: a clear error, and whatever can be served is."""

import hashlib
import socket
import sqlite3
from pathlib import Path

import pytest

from edgebox.app.composition import App
from edgebox.config.config_file import load
from edgebox.domain.errors import ConfigError, EdgeboxError, StorageError
from edgebox.domain.requests import CameraId
from tests.conftest import settings
from tests.end_to_end.program import configured, edgebox
from tests.end_to_end.running import running, texts, unharmed_bystander
from tests.end_to_end.wire import WireCamera
from tests.inference.tiny_onnx import FAILING_32, MERGING_32, YOLOX_32, write_family

pytestmark = pytest.mark.usefixtures("few_sizes")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (b"this is no model", "is not a model ONNX Runtime can open"),
        (YOLOX_32[: len(YOLOX_32) // 2], "is not a model ONNX Runtime can open"),
    ],
    ids=["garbage", "half"],
)
async def test_a_corrupt_family_is_left_out_and_the_others_served(
    database: Path, tmp_path: Path, model: bytes, message: str
) -> None:
    folder = write_family(tmp_path / "broken", model)
    async with running(database, inference__families=[str(folder)]) as app:
        assert list(app.box.families) == ["street"]
        assert any("left out" in text and message in text for text in texts(app, "error"))
        async with unharmed_bystander(app):
            camera = WireCamera(app, family="tiny")
            await camera.connect()
            await camera.text(camera.hello.encode())
            assert "no model family tiny" in (await camera.error("unknown_family")).message
            await camera.close()


async def test_a_file_that_is_not_the_manifests_is_left_out(database: Path, tmp_path: Path) -> None:
    folder = write_family(tmp_path / "other", YOLOX_32, sha256=hashlib.sha256(b"").hexdigest())
    async with running(database, inference__families=[str(folder)]) as app:
        assert any("sha256 does not match" in text for text in texts(app, "error"))
        assert list(app.box.families) == ["street"]


@pytest.mark.parametrize("model", [FAILING_32, MERGING_32], ids=["failing", "merging"])
async def test_a_family_that_opens_and_cannot_run_is_left_out(
    database: Path, tmp_path: Path, model: bytes
) -> None:
    folder = write_family(tmp_path / "failing", model)
    async with running(database, inference__families=[str(folder)]) as app:
        assert list(app.box.families) == ["street"]
        assert any("left out" in text and "tiny" in text for text in texts(app, "error"))
        async with unharmed_bystander(app):
            pass


async def test_a_second_box_with_the_same_database_ends_with_one_clear_error(
    database: Path, tmp_path: Path
) -> None:
    async with running(database) as app:
        config = configured(tmp_path, database)
        ended = await edgebox(tmp_path, "serve", "--config", str(config))
        assert ended.code == 75, "a service manager tries again, until the other box has ended"
        (line,) = ended.err.splitlines()
        assert f"{database}: another box serves with this database: stop it first" in line
        listed = await edgebox(tmp_path, "tokens", "list", "--config", str(config))
        assert listed.code == 0, listed.err
        async with unharmed_bystander(app):
            pass


async def test_a_default_family_that_is_not_there_ends_the_start(database: Path) -> None:
    app = App(load(None, settings(database, **{"inference.family": "cats"})))
    with pytest.raises(ConfigError, match=r"no model family 'cats' \(families: street\)"):
        await app.start()
    await app.stop()


async def test_without_any_family_the_start_ends_with_what_is_wrong(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_family(tmp_path / "tiny", b"this is no model")
    monkeypatch.setattr("edgebox.app.family_folders.bundled_folders", lambda: [folder])
    app = App(load(None, settings(database, **{"inference.family": "tiny"})))
    with pytest.raises(ConfigError, match=r"no model family can be served: .*tiny\.onnx"):
        await app.start()


async def test_a_file_that_is_no_database_is_left_as_it_is(tmp_path: Path) -> None:
    letter = tmp_path / "letter.txt"
    letter.write_text("Dear reader, " * 1000)
    async with running(letter, inference__profile_s=1) as app:
        (error,) = (text for text in texts(app, "error") if "letter.txt" in text)
        assert "not a database: it is left as it is; move it away and start edgebox again" in error
        async with unharmed_bystander(app):
            pass
    assert letter.read_text() == "Dear reader, " * 1000


@pytest.mark.parametrize("place", ["/proc/edgebox.sqlite3", "/proc/edgebox/edgebox.sqlite3"])
async def test_a_place_that_cannot_be_written_is_named(place: str) -> None:
    app = App(load(None, settings(Path(place))))
    with pytest.raises(StorageError, match="/proc"):
        await app.start()


async def test_a_database_in_a_file_instead_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    app = App(load(None, settings(tmp_path / "file" / "edgebox.sqlite3")))
    with pytest.raises(StorageError, match="file"):
        await app.start()


async def test_an_address_of_another_machine_is_told_from_a_port_in_use(database: Path) -> None:
    app = App(load(None, settings(database, **{"server.host": "203.0.113.1"})))
    with pytest.raises(EdgeboxError, match=r"203\.0\.113\.1:.*; --host takes an address of this"):
        await app.start()
    await app.stop()


async def test_a_port_in_use_is_named_and_everything_closed(database: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        app = App(load(None, settings(database, **{"server.port": port})))
        with pytest.raises(EdgeboxError, match=rf"cannot listen on 127\.0\.0\.1:{port}.*--port"):
            await app.start()
        await app.stop()
    async with running(database, server__port=port) as app:
        assert app.port == port


def of_a_newer_edgebox(path: Path) -> None:
    with sqlite3.connect(path) as raw:
        raw.execute("PRAGMA user_version = 999")
    raw.close()


def content_of(file: Path) -> bytes:
    return file.read_bytes()


async def test_a_program_older_than_its_database_says_so_and_ends(
    tmp_path: Path, database: Path
) -> None:
    of_a_newer_edgebox(database)
    before = content_of(database)
    ended = await edgebox(tmp_path, "serve", "--config", str(configured(tmp_path, database)))
    assert ended.code == 78  # systemd does not start it again and again
    (line,) = ended.err.splitlines()
    assert line.startswith(f"edgebox serve: {database}: ")
    assert "schema 999" in line
    assert "upgrade edgebox" in line
    assert "edgebox restore" in line
    assert content_of(database) == before


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("box\\u0000.sqlite3", "this is no name of a file"),
        ("box\\u0000.sqlite3/in/a/file", "its folder cannot be made"),
    ],
)
async def test_a_program_whose_database_has_no_name_of_a_file_says_so_and_ends(
    tmp_path: Path, path: str, message: str
) -> None:
    config = configured(tmp_path, Path(path))
    ended = await edgebox(tmp_path, "serve", "--config", str(config))
    assert ended.code == 1
    (line,) = ended.err.splitlines()
    assert "box\\x00.sqlite3" in line
    assert message in line
    assert "storage.path" in line


async def test_rows_that_are_no_utf8_are_ignored_with_one_line(
    database: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(database) as app:
        for camera in ("gate", "yard", "door"):
            app._storage.record_camera(CameraId(camera), {})  # type: ignore[union-attr]
    with sqlite3.connect(database) as raw:
        raw.execute("UPDATE cameras SET hello = cast(x'7bff7d' AS TEXT) WHERE camera != 'door'")
    raw.close()
    caplog.clear()
    async with running(database) as app:
        assert app.box.ready
        (warning,) = (message for message in caplog.messages if "damaged" in message)
        assert warning.startswith("2 damaged rows of cameras are ignored (the first: ")
