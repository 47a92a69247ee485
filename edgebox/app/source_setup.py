"""Builds the cameras that the box fetches, and what the database keeps of every camera."""

from typing import Any

from edgebox.config.config_file import Config
from edgebox.ingest.pulled_cameras import PulledCameras
from edgebox.link.deadlines import written_steps
from edgebox.runtime.box import Box
from edgebox.runtime.camera_record import CameraRecord
from edgebox.storage.credential_file import CredentialFile, credential_file
from edgebox.storage.database import Storage


async def pulled_cameras(config: Config, box: Box, storage: Storage) -> PulledCameras:
    """Return the cameras that the box fetches; they are started when it is ready.

    Raises:
        ConfigError: a password in the configuration cannot be read.
        StorageError: the database cannot be read.
    """
    sources = PulledCameras(
        box,
        config.cameras,
        storage.sources,
        CredentialFile(credential_file(config.storage.file)),
        config.limits.cameras_max,
    )
    await sources.load()
    return sources


def stored_hello(record: CameraRecord) -> dict[str, Any]:
    """Return the settings of a camera that has just connected."""
    camera = record.requested
    return {
        "app": camera.app,
        "family": camera.family,
        "slo_ms": written_steps(camera.slo_ns, camera.steps),
        "rate_hz": camera.rate_hz,
        "width_px": camera.width_px,
        "height_px": camera.height_px,
        "min_accuracy": camera.min_accuracy,
        "min_rate_hz": camera.min_rate_hz,
        "site": camera.site,
        "pipeline": None if camera.pipeline is None else camera.pipeline.name,
        "agent": record.agent,
    }
