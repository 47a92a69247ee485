"""All cameras whose pictures the box fetches itself: configured ones, and those that were added."""

import asyncio
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Literal

from edgebox.config.camera_section import CameraParameters
from edgebox.domain.errors import (
    EdgeboxError,
    InvalidInputError,
    StorageError,
    UnknownNameError,
)
from edgebox.domain.requests import CameraId
from edgebox.domain.source_address import Credentials
from edgebox.domain.source_settings import SourceSettings
from edgebox.ingest.pulled_camera import PulledCamera
from edgebox.ingest.source_fields import configured, read_settings, written
from edgebox.link.rate_gate import spread_phase
from edgebox.media import losses
from edgebox.media.containers import SourceError, cause_of_failure
from edgebox.media.picture_stream import open_stream
from edgebox.runtime.box import Box
from edgebox.runtime.refusals import BoxFullError
from edgebox.runtime.source_status import SourceStatus
from edgebox.storage.credential_file import CredentialFile
from edgebox.storage.source_rows import SourceRows

TEST_QUALITY = 85
TEST_WIDTH_MAX_PX = 1280
_TESTS_MAX = 2
"""Sources that are tried at once."""
_FIRST_PICTURE_S = 20.0


class SourceExistsError(EdgeboxError):
    """A camera of this name is fetched already."""

    http_status = 409
    code = "source_exists"
    title = "The box fetches a camera of this name"


class ConfiguredSourceError(EdgeboxError):
    """The camera is in the configuration file, which the box does not write."""

    http_status = 409
    code = "source_configured"
    title = "The camera is in the configuration file"


class TestsBusyError(EdgeboxError):
    """Too many sources are being tried."""

    http_status = 503
    code = "tests_busy"
    title = "Other sources are being tried"


@dataclass(frozen=True, slots=True)
class TestPicture:
    """The first picture of a source."""

    jpeg: bytes
    width_px: int
    """Size of the source's picture; the JPEG may be smaller."""
    height_px: int
    codec: str
    decoder: str


class PulledCameras:
    """Starts, changes and stops them. Lives on the event loop."""

    def __init__(
        self,
        box: Box,
        parameters: Sequence[CameraParameters],
        rows: SourceRows,
        credentials: CredentialFile,
        cameras_max: int,
    ) -> None:
        """Prepare those in the configuration.

        Args:
            box: takes the pictures.
            parameters: the cameras in the configuration.
            rows: where added cameras are stored.
            credentials: where their user names and passwords are.
            cameras_max: so many cameras at most.

        Raises:
            ConfigError: a password in the configuration cannot be read.
        """
        self._box = box
        self._rows = rows
        self._credentials = credentials
        self._cameras_max = cameras_max
        self._settings: dict[CameraId, SourceSettings] = {}
        self._numbers: dict[CameraId, int] = {}
        """Each camera's own small number, which says when in a period its pictures are due."""
        self._tasks: dict[CameraId, asyncio.Task[None]] = {}
        threads = max(1, (os.cpu_count() or 2) // 2)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="source-encode")
        self._testing = asyncio.Semaphore(_TESTS_MAX)
        self._changing = asyncio.Lock()
        """Held while cameras are added, changed or removed, which waits for files and tasks."""
        self._running = False
        for number, each in enumerate(parameters):
            self._know(configured(each, number), "configuration")

    async def load(self) -> None:
        """Read the cameras that were added over the API; damaged ones are left out, with a notice.

        Raises:
            StorageError: the database cannot be read.
        """
        try:
            credentials = await asyncio.to_thread(self._credentials.load)
        except StorageError as error:
            credentials = {}
            self._box.notices.publish("error", str(error))
        for camera, fields in await self._rows.load():
            if camera in self._settings:
                continue  # the file has one of this name
            try:
                settings = read_settings(camera, fields)
            except InvalidInputError as error:
                text = f"the stored source of {camera} is damaged: {error}"
                self._box.notices.publish("warning", text, camera)
                continue
            self._know(replace(settings, credentials=credentials.get(camera)), "api")

    def start(self) -> None:
        """Begin to fetch; the box is ready."""
        self._running = True
        for camera in self._settings:
            self._fetch(camera)

    async def stop(self) -> None:
        """End fetching."""
        self._running = False
        await asyncio.gather(*map(self._end, list(self._tasks)))
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def add(self, settings: SourceSettings) -> None:
        """Begin to fetch a camera, now and after every start.

        Raises:
            SourceExistsError: one of this name is fetched.
            BoxFullError: there are as many as the box may have.
            StorageError: its password cannot be kept.
        """
        camera = settings.camera
        async with self._changing:
            if camera in self._settings:
                raise SourceExistsError(
                    f"the box fetches a camera named {camera}; choose another name"
                )
            if len(self._settings) >= self._cameras_max:
                raise BoxFullError.of(self._cameras_max)
            await self._keep_credentials(camera, settings.credentials)
            self._rows.record(camera, written(settings))
            self._know(settings, "api")
            where = settings.address.shown
            text = f"{camera} was added: the box fetches it from {where}"
            self._box.notices.publish("info", text, camera)
            self._fetch(camera)

    async def change(
        self, camera: CameraId, changed: Callable[[SourceSettings], SourceSettings]
    ) -> None:
        """Fetch a camera with other settings from now on.

        Args:
            camera: which.
            changed: returns its settings, given those that it has; what it raises changes nothing.

        Raises:
            UnknownNameError: the box fetches no such camera.
            ConfiguredSourceError: it is in the configuration.
            StorageError: its password cannot be kept.
        """
        async with self._changing:
            before = self._settings.get(camera)
            if before is None:
                raise _unknown(camera)
            settings = changed(before)
            self._check_added(camera)
            if settings == before:
                return
            # Of a file that could not be read at the start, no password is known: it stays there.
            if settings.credentials != before.credentials:
                await asyncio.to_thread(self._credentials.put, camera, settings.credentials)
            self._rows.record(camera, written(settings))
            await self._end(camera)
            losses = self._box.sources[camera].losses
            self._know(settings, "api")
            self._box.sources[camera].losses = losses
            self._box.notices.publish("info", f"the source of {camera} was changed", camera)
            self._fetch(camera)

    async def remove(self, camera: CameraId) -> None:
        """Fetch a camera no more, and forget its source.

        Raises:
            UnknownNameError: the box fetches no such camera.
            ConfiguredSourceError: it is in the configuration.
            StorageError: its password cannot be deleted.
        """
        async with self._changing:
            if camera not in self._settings:
                raise _unknown(camera)
            self._check_added(camera)
            await self._keep_credentials(camera, None)
            self._rows.forget(camera)
            await self._end(camera)
            del self._settings[camera], self._numbers[camera], self._box.sources[camera]

    async def test(self, settings: SourceSettings) -> TestPicture:
        """Return the first picture of a source, which need not be known.

        Raises:
            SourceError: there is none; the message says why.
            TestsBusyError: too many are being tried.
        """
        if self._testing.locked():
            raise TestsBusyError("other sources are being tried; try again in a few seconds")
        await self._testing.acquire()
        found = asyncio.ensure_future(asyncio.to_thread(_first_picture, settings))
        # A thread that is too late still counts: of such there must not be ever more.
        found.add_done_callback(lambda _: self._testing.release())
        done, _ = await asyncio.wait({found}, timeout=_FIRST_PICTURE_S)
        if not done:
            found.add_done_callback(lambda late: late.cancelled() or late.exception())
            raise SourceError(settings.address.shown, losses.silent(_FIRST_PICTURE_S))
        return found.result()

    # -- inside ---------------------------------------------------------------------------------

    def _know(self, settings: SourceSettings, origin: Literal["configuration", "api"]) -> None:
        self._settings[settings.camera] = settings
        if settings.camera not in self._numbers:
            taken = set(self._numbers.values())
            self._numbers[settings.camera] = min(set(range(len(taken) + 1)) - taken)
        self._box.sources[settings.camera] = SourceStatus(
            settings.camera, settings.address, origin, family=settings.family
        )

    def _check_added(self, camera: CameraId) -> None:
        if self._box.sources[camera].origin == "configuration":
            raise ConfiguredSourceError(
                f"{camera} is in the configuration file, [[cameras]]; change it there, and start "
                "the box again"
            )

    async def _keep_credentials(self, camera: CameraId, credentials: Credentials | None) -> None:
        """Keep a camera's credentials; a file that cannot be read prevents only new ones."""
        if credentials is None:
            try:
                await asyncio.to_thread(self._credentials.load)
            except StorageError as error:
                text = f"{error}; a password of {camera} may still be in it"
                self._box.notices.publish("warning", text, camera)
                return
        await asyncio.to_thread(self._credentials.put, camera, credentials)

    def _fetch(self, camera: CameraId) -> None:
        if not self._running:
            return
        fetching = PulledCamera(
            self._box,
            self._settings[camera],
            self._box.sources[camera],
            self._pool,
            phase=spread_phase(self._numbers[camera]),
        )
        self._tasks[camera] = asyncio.create_task(fetching.run(), name=f"source {camera}")

    async def _end(self, camera: CameraId) -> None:
        task = self._tasks.pop(camera, None)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def _unknown(camera: CameraId) -> UnknownNameError:
    return UnknownNameError(f"the box fetches no camera {camera!r}; POST /v1/cameras adds one")


def _first_picture(settings: SourceSettings) -> TestPicture:
    """Fetch one picture; blocks.

    Raises:
        SourceError: there is none; the message says why.
    """
    try:
        return _picture_of(settings)
    except SourceError:
        raise
    except Exception as error:  # also a decoder's defect
        raise SourceError(settings.address.shown, cause_of_failure(error)) from error


def _picture_of(settings: SourceSettings) -> TestPicture:
    stream = open_stream(settings.address, settings.credentials, settings.decoder)
    try:
        for picture in stream.pictures(lambda _: True):
            width_px = min(stream.width_px, TEST_WIDTH_MAX_PX)
            height_px = max(1, round(stream.height_px * width_px / stream.width_px))
            jpeg = picture.jpeg(width_px, height_px, TEST_QUALITY)
            return TestPicture(
                jpeg, stream.width_px, stream.height_px, stream.codec, stream.decoder
            )
    finally:
        stream.close()
    raise SourceError(settings.address.shown, losses.NO_VIDEO)
