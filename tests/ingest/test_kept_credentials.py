"""Changes of fetched cameras where the file of their passwords cannot be read."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from edgebox.domain.errors import KeptFileError
from edgebox.domain.requests import CameraId
from edgebox.domain.source_address import Credentials
from edgebox.domain.source_settings import SourceSettings
from edgebox.ingest.pulled_cameras import PulledCameras
from edgebox.ingest.source_fields import read_settings
from edgebox.storage.credential_file import CredentialFile
from edgebox.storage.database import IN_MEMORY, Storage
from tests.web.sites import box_that_waits

GATE, YARD = CameraId("gate"), CameraId("yard")
SECRET = Credentials("ann", "secret")


def source(camera: CameraId, credentials: Credentials | None = None) -> SourceSettings:
    settings = read_settings(camera, {"url": f"rtsp://{camera}.test/live"})
    return replace(settings, credentials=credentials)


@pytest.fixture
async def storage() -> AsyncIterator[Storage]:
    storage = await Storage.open(IN_MEMORY)
    yield storage
    await storage.close()


async def test_a_password_that_could_not_be_read_at_the_start_outlives_other_changes(
    tmp_path: Path, storage: Storage
) -> None:
    path = tmp_path / "box.credentials.json"
    first = PulledCameras(box_that_waits(), (), storage.sources, CredentialFile(path), 2)
    await first.add(source(GATE, SECRET))
    await first.stop()
    assert await storage.flush()
    content = path.read_bytes()
    path.write_bytes(b"{")
    again = PulledCameras(box_that_waits(), (), storage.sources, CredentialFile(path), 2)
    await again.load()
    path.write_bytes(content)
    await again.change(GATE, lambda before: replace(before, rate_hz=3.0))
    await again.stop()
    assert CredentialFile(path).load() == {GATE: SECRET}


async def test_a_damaged_file_prevents_only_new_passwords(tmp_path: Path, storage: Storage) -> None:
    path = tmp_path / "box.credentials.json"
    path.write_bytes(b"{")
    box = box_that_waits()
    cameras = PulledCameras(box, (), storage.sources, CredentialFile(path), 2)
    await cameras.add(source(GATE))
    await cameras.change(GATE, lambda before: replace(before, rate_hz=3.0))
    with pytest.raises(KeptFileError, match="is damaged"):
        await cameras.add(source(YARD, SECRET))
    await cameras.remove(GATE)
    await cameras.stop()
    assert path.read_bytes() == b"{"
    warnings = [event.text for event in box.notices.recent if event.level == "warning"]
    assert len(warnings) == 2
    assert all("a password of gate may still be in it" in text for text in warnings)
    assert await storage.flush()
    assert await storage.sources.load() == []
