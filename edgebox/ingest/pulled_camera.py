"""The life of one pulled camera: open its source, serve it, and try again for ever."""

import asyncio
import logging
import os
import random
import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial

from edgebox.domain.errors import EdgeboxError
from edgebox.domain.model_family import FamilyName
from edgebox.domain.pipelines import Pipeline
from edgebox.domain.plans import Remedy, RemedyAction
from edgebox.domain.requests import Camera
from edgebox.domain.source_settings import SourceSettings
from edgebox.ingest.pulled_session import PulledSession
from edgebox.ingest.source_reader import SourceReader
from edgebox.ingest.stream_choice import Stream, StreamChoice
from edgebox.link.backoff import Backoff
from edgebox.link.capture_clock import CaptureClock
from edgebox.media.losses import LossCause
from edgebox.media.picture_stream import PictureStream, open_stream
from edgebox.planning.remedies import NOTHING_TO_DO
from edgebox.runtime.box import Box
from edgebox.runtime.model_choice import UnknownFamilyError, UnknownPipelineError
from edgebox.runtime.refusals import (
    REFUSALS,
    BoxFullError,
    CameraInUseError,
    NoCapacityError,
    UnavailableError,
)
from edgebox.runtime.source_status import Decoding, SourceState, SourceStatus, check_source
from edgebox.storage.wall_clock import wall_clock_ms
from edgebox.vision.motion_gate import MotionGate

_log = logging.getLogger(__name__)
REPORT_PERIOD_S = 1.0
_REMEDIES: tuple[tuple[type[EdgeboxError], Remedy], ...] = (
    (
        CameraInUseError,
        Remedy(RemedyAction.CHECK_SOURCE, "end the other camera of this name"),
    ),
    (
        BoxFullError,
        Remedy(RemedyAction.CHECK_SOURCE, "end another camera, or raise limits.cameras_max"),
    ),
    (
        NoCapacityError,
        Remedy(RemedyAction.LOWER_RATE, "ask for fewer frames/s, or allow more time for answers"),
    ),
    (
        UnavailableError,
        Remedy(RemedyAction.WAIT, "wait until an executor that runs its model is up again"),
    ),
    (
        EdgeboxError,
        Remedy(
            RemedyAction.CHOOSE_MODEL, "import that model, or choose another one for the camera"
        ),
    ),
)
"""What helps a camera that the box does not take; the last is for one whose model is not there."""
_REPORT = "report what the box's log says of it: this is a defect of edgebox"


@dataclass(frozen=True, slots=True)
class _Opened:
    """A stream is open."""

    which: Stream
    reader: SourceReader
    stream: PictureStream


@dataclass(frozen=True, slots=True)
class _Picture:
    """The reader of a stream has a picture."""

    which: Stream
    reader: SourceReader


@dataclass(frozen=True, slots=True)
class _Lost:
    """No more pictures come from a stream."""

    which: Stream
    reader: SourceReader
    cause: LossCause


@dataclass(frozen=True, slots=True)
class _Failed:
    """Its pictures come, but cannot be used."""

    cause: LossCause


@dataclass(frozen=True, slots=True)
class _Reconnect:
    """The camera is to connect again."""

    why: str


_Event = _Opened | _Picture | _Lost | _Failed | _Reconnect


class _EndedError(Exception):
    """A connection has ended; `state` is what the source is in now."""

    def __init__(self, state: SourceState, why: str, remedy: Remedy | None = None) -> None:
        super().__init__(why)
        self.state = state
        self.remedy = remedy

    @classmethod
    def lost(cls, cause: LossCause) -> "_EndedError":
        """Return the end of a connection whose source gives no more pictures."""
        return cls(SourceState.LOST, cause.reason, check_source(cause.remedy))


class PulledCamera:
    """One camera, for as long as its settings are the same."""

    def __init__(
        self,
        box: Box,
        settings: SourceSettings,
        status: SourceStatus,
        pool: Executor,
        *,
        phase: float = 0.0,
        rng: random.Random | None = None,
    ) -> None:
        """Prepare to fetch; `run` does.

        Args:
            box: takes the pictures.
            settings: of the camera.
            status: is kept up to date.
            pool: threads that scale and encode.
            phase: of its pictures, in periods, so that cameras take turns (`RateGate`).
            rng: for the waits between attempts.
        """
        self._box = box
        self._settings = settings
        self._status = status
        self._pool = pool
        self._phase = phase
        self._backoff = Backoff(rng or random.Random())
        self._instance = f"pulled-{os.urandom(6).hex()}"
        self._since_s = time.monotonic()
        """Since when it is in its state, by a clock that nobody sets."""

    async def run(self) -> None:
        """Fetch pictures until cancelled."""
        self._enter(SourceState.CONNECTING, "")
        while True:
            self._status.attempts += 1
            try:
                await self._connection()
            except _EndedError as ended:
                self._enter(ended.state, str(ended), ended.remedy)
            except Exception as error:  # a defect must not end the retries
                _log.exception("fetching %s failed", self._settings.camera)
                why = f"the box failed with it ({type(error).__name__})"
                self._enter(SourceState.LOST, why, check_source(_REPORT))
            await asyncio.sleep(self._backoff.wait_s())

    # -- one connection -----------------------------------------------------------------------

    async def _connection(self) -> None:
        """Serve one connection until it ends.

        Raises:
            _EndedError: always, with how it ended.
        """
        readers = _Readers(self._settings, self._status.decoding, self._phase, self._slo_ns)
        session: PulledSession | None = None
        why = "the box does not fetch it any more"
        try:
            self._models()  # nothing is fetched that no model is there for
            readers.open("main")
            stream = await self._opened(readers)
            session = PulledSession(
                self._box,
                self._settings.address.shown,
                (stream.width_px, stream.height_px),
                phase=self._phase,
                pool=self._pool,
                decoding=self._status.decoding,
                on_end=lambda why: readers.events.put_nowait(_Reconnect(why)),
                on_failure=lambda cause: readers.events.put_nowait(_Failed(cause)),
            )
            await self._open_camera(stream, session)
            await self._serve(session, readers)
        except _EndedError as ended:
            why = f"source lost: {ended}" if ended.state is SourceState.LOST else str(ended)
            raise
        finally:
            readers.close()
            if session is not None:
                await session.close(why)

    async def _opened(self, readers: "_Readers") -> PictureStream:
        """Return the main stream once it is open; raises _EndedError."""
        event = await readers.events.get()
        if isinstance(event, _Lost):
            raise _EndedError.lost(event.cause)
        assert isinstance(event, _Opened)
        readers.streams[event.which] = event.stream
        self._shows(event.stream, "main")
        return event.stream

    def _models(self) -> tuple[FamilyName, Pipeline | None]:
        """Return the models of the camera; raises _EndedError."""
        box, settings = self._box, self._settings
        if not box.ready:
            why = f"the box is not ready: {box.not_ready_because}"
            raise _EndedError(SourceState.REFUSED, why, NOTHING_TO_DO)
        try:
            return box.models.of(settings.family, settings.pipeline)
        except (UnknownFamilyError, UnknownPipelineError) as error:
            raise _refused(error) from None

    def _slo_ns(self) -> int:
        """Return within which time of its capture a picture is to be answered. In any thread."""
        overrides = self._box.overrides.get(self._settings.camera)
        on_box = None if overrides is None else overrides.slo_ns
        return on_box or round(self._settings.slo_ms * 1e6)

    def _shows(self, stream: PictureStream, which: Stream) -> None:
        """Note the stream that is read now."""
        status = self._status
        status.codec, status.decoder, status.stream = stream.codec, stream.decoder, which
        status.width_px, status.height_px = stream.width_px, stream.height_px

    async def _open_camera(self, stream: PictureStream, session: PulledSession) -> None:
        """Have the box take the camera; raises _EndedError."""
        box, settings = self._box, self._settings
        family, pipeline = self._models()
        try:
            camera = Camera(
                id=settings.camera,
                app=settings.app,
                family=family,
                slo_ns=round(settings.slo_ms * 1e6),
                rate_hz=settings.rate_hz,
                width_px=stream.width_px,
                height_px=stream.height_px,
                min_accuracy=settings.min_accuracy,
                min_rate_hz=min(settings.min_rate_hz, settings.rate_hz),
                pipeline=pipeline,
            )
            agent = f"fetched by the box ({stream.codec})"
            record = await box.open_camera(camera, agent, self._instance, session, pulled=True)
        except REFUSALS as error:
            raise _refused(error) from None
        record.named = settings.named
        session.opened(record)

    async def _serve(self, session: PulledSession, readers: "_Readers") -> None:
        """Give pictures to the box until something ends it; raises _EndedError."""
        choice, report_s = StreamChoice(), time.monotonic()
        while True:
            readers.of[choice.reading].rate_hz = session.rate_hz
            left_s = report_s + REPORT_PERIOD_S - time.monotonic()
            if left_s <= 0:
                report_s = time.monotonic()
                session.report()
                if self._settings.substream is not None:
                    self._choose(choice, session, readers)
                continue
            try:
                async with asyncio.timeout(left_s):
                    event = await readers.events.get()
            except TimeoutError:
                continue
            if not readers.knows(event):
                continue
            match event:
                case _Opened():
                    self._switch(choice, session, readers, event)
                case _Picture() if event.which == choice.reading:
                    self._captured(session, readers, choice.reading)
                case _Lost():
                    self._stream_lost(choice, readers, event)
                case _Failed():
                    raise _EndedError.lost(event.cause)
                case _Reconnect():
                    raise _EndedError(SourceState.CONNECTING, event.why)

    def _choose(self, choice: StreamChoice, session: PulledSession, readers: "_Readers") -> None:
        """Open the other stream if the plan needs it."""
        if session.advised_px is not None:
            wanted = choice.wanted(session.advised_px, time.monotonic_ns())
            if wanted != choice.reading and wanted not in readers.of:
                readers.open(wanted)

    def _switch(
        self, choice: StreamChoice, session: PulledSession, readers: "_Readers", opened: _Opened
    ) -> None:
        """Read the stream that has just been opened, if the plan still needs it."""
        which, stream = opened.which, opened.stream
        if which == "sub":
            choice.sub_px = stream.width_px, stream.height_px
        advised_px = session.advised_px
        if advised_px is None or choice.wanted(advised_px, time.monotonic_ns()) != which:
            readers.end(which)
            return
        readers.end(choice.reading)
        readers.streams[which] = stream
        choice.reading = which
        self._shows(stream, which)

    def _stream_lost(self, choice: StreamChoice, readers: "_Readers", lost: _Lost) -> None:
        """Go on with the main stream if the smaller one is lost; raises _EndedError otherwise."""
        reading = lost.which == choice.reading
        if lost.which == "main" and reading:
            raise _EndedError.lost(lost.cause)
        readers.end(lost.which)
        if lost.which == "sub":
            choice.failed(time.monotonic_ns())
            if reading:
                why = f"its substream was lost: {lost.cause.reason}"
                raise _EndedError(SourceState.CONNECTING, why)

    def _captured(self, session: PulledSession, readers: "_Readers", which: Stream) -> None:
        newest = readers.of[which].take()
        if newest is None:
            return
        picture, stream = newest.picture, readers.streams[which]
        size_px = (picture.width_px, picture.height_px)
        if size_px != (stream.width_px, stream.height_px):
            raise _EndedError(
                SourceState.CONNECTING, f"its pictures have {size_px[0]} × {size_px[1]} px now"
            )
        self._status.times = stream.times
        self._enter(SourceState.LIVE, "")
        session.captured(newest)

    # -- what people learn of it ----------------------------------------------------------------

    def _enter(self, state: SourceState, why: str, remedy: Remedy | None = None) -> None:
        """Note a state, and tell people if it is another one."""
        status, before = self._status, self._status.state
        status.why, status.remedy = why, remedy
        if state is SourceState.LIVE:
            self._backoff.reset()
            status.attempts = 0
        if state is before and status.since_ms:
            return
        now_s = time.monotonic()
        lasted_s = int(now_s - self._since_s)
        self._since_s = now_s
        status.state, status.since_ms = state, wall_clock_ms()
        address, camera = status.address.shown, status.camera
        publish = partial(self._box.notices.publish_from, address, camera=camera)
        if state is SourceState.LOST:
            status.losses += 1
            publish("warning", f"{camera}: source lost: {why}; the box tries again")
        elif state is SourceState.REFUSED:
            publish("warning", f"{camera}: the box does not take it: {why}; it tries again")
        elif state is SourceState.LIVE and before in (SourceState.LOST, SourceState.REFUSED):
            publish("info", f"{camera}: pictures come again, after {lasted_s} s")


def _refused(error: EdgeboxError) -> _EndedError:
    """Return the end of a connection that the box refuses."""
    remedy = next(remedy for kind, remedy in _REMEDIES if isinstance(error, kind))
    return _EndedError(SourceState.REFUSED, str(error), remedy)


class _Readers:
    """The readers of a camera's streams: of one, and of two while it changes over."""

    def __init__(
        self,
        settings: SourceSettings,
        decoding: Decoding,
        phase: float,
        slo_ns: Callable[[], int],
    ) -> None:
        self.events: asyncio.Queue[_Event] = asyncio.Queue()
        self.of: dict[Stream, SourceReader] = {}
        self.streams: dict[Stream, PictureStream] = {}
        self._settings = settings
        self._decoding = decoding
        self._phase = phase
        self._slo_ns = slo_ns
        self._gate = MotionGate() if settings.motion_gate else None

    def open(self, which: Stream) -> None:
        """Begin to open a stream."""
        settings, put = self._settings, self.events.put_nowait
        clock = partial(CaptureClock, late_ns=self._slo_ns)
        address = settings.substream if which == "sub" else settings.address
        assert address is not None
        reader = SourceReader(
            partial(open_stream, address, settings.credentials, settings.decoder, clock),
            self._decoding,
            phase=self._phase,
            gate=self._gate,
            on_opened=lambda stream: put(_Opened(which, reader, stream)),
            on_picture=lambda: put(_Picture(which, reader)),
            on_lost=lambda cause: put(_Lost(which, reader, cause)),
        )
        self.of[which] = reader
        reader.start()

    def knows(self, event: _Event) -> bool:
        """Return whether an event counts: those of readers that were ended do not any more."""
        if isinstance(event, _Failed | _Reconnect):
            return True
        return self.of.get(event.which) is event.reader

    def end(self, which: Stream) -> None:
        """End the reading of a stream."""
        self.of.pop(which).close()
        self.streams.pop(which, None)

    def close(self) -> None:
        """End all reading."""
        for which in list(self.of):
            self.end(which)
