"""A camera's life cycle: capture, connect, reconnect, stop, and the summary."""

import asyncio
import os
import random
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp
import numpy as np
from numpy.typing import NDArray

from edgebox import __version__
from edgebox.camera.accounting import Accounting, Summary
from edgebox.camera.box_connection import BoxConnection
from edgebox.camera.capture import Capture
from edgebox.camera.first_stage import FirstStage
from edgebox.camera.pairing import connector, why
from edgebox.camera.records import FrameRecord
from edgebox.camera.session import (
    BoxRefusedError,
    Callbacks,
    ConnectionLostError,
    RedirectedError,
    Session,
    introduce,
)
from edgebox.camera.source_watch import watch_source
from edgebox.domain.errors import InvalidInputError
from edgebox.domain.plans import Advice
from edgebox.link.backoff import Backoff
from edgebox.link.box_address import authorization
from edgebox.link.deadlines import to_steps
from edgebox.link.from_camera import SLO_MS, split_slo
from edgebox.link.messages import (
    DropNotice,
    Hello,
    Result,
    decode_from_camera,
)
from edgebox.link.placement import PlacementMode
from edgebox.link.sender import SkipReason
from edgebox.link.shaping import BandwidthTrace, ShapedLink
from edgebox.media.sources import FrameSource

ENCODER_THREADS = 2
IN_USE_PATIENCE_S = 45.0
"""The box notices a half-open connection after 30 s; until then it may hold this camera's name."""
ANSWER_PATIENCE_S = 10.0
"""How long a camera that runs for a limited time waits at least for a box that does not answer."""
FINISHED = "it has finished"
"""What a camera says as it leaves on purpose."""
AFTER_SLO_S = 1.0
"""Extra time after the last deadline to wait for the last answers."""
_RETRIED_REASONS = frozenset(
    ("camera_in_use", "box_full", "no_capacity", "silent", "too_slow", "too_fast", "unavailable")
)


@dataclass(frozen=True, slots=True)
class Status:
    """State of a camera, for a line on a terminal."""

    connected: bool
    captured: int
    sent: int
    on_time_share: float | None
    """Share on time among frames that ended in the last 10 s."""
    latency_ms: float | None
    """Median latency of the last 10 s."""
    bandwidth_bps: float | None
    advice: Advice | None
    remark: str
    """The last remark for people."""


class Camera:
    """A camera that streams to a box.

    Either give it a source and `run` it, or use it as an async context manager and `send`
    frames of your own:

        async with Camera(None, "ws://box:8787", size_px=(1280, 720), on_result=print) as camera:
            camera.send(rgb)  # a (720, 1280, 3) uint8 array

    Args:
        source: where frames come from; None: they are pushed with `send`.
        server: "ws://box:8787"; the scheme may be left out.
        token: its token at the box, from `edgebox.camera.pairing` or `edgebox tokens add`; None: a
            box that is open needs none.
        fingerprint: SHA-256 of the box's certificate, which is the only one accepted; None: any
            that the system trusts.
        name: the camera's name at the box.
        slo_ms: each frame's deadline, from capture to the result's arrival; or several, as pairs
            of deadline and utility: [(100, 1), (300, 0.3)].
        rate_hz: desired frames per second.
        app: the application the frames belong to.
        family: the model family; None: the box's default.
        pipeline: the box's pipeline that frames run through; None: the box's default.
        detect: whether the first stage of frames runs here: never; always; or automatically, where
            a frame is answered earlier so. The box's model is fetched for it.
        cache: folder in which fetched models are kept; None: the user's cache folder.
        min_accuracy: run no variant below this accuracy.
        min_rate_hz: lowest useful frame rate.
        site: a name for the uplink that it shares with other cameras; None: it has its own.
        link: sends no faster than this trace; None: as fast as the network goes.
        size_px: (width, height) of pushed frames; sources define theirs.
        on_result: called with each result, in the event loop.
        on_drop: called with each drop.
        on_frame_end: called with the record of each captured frame.
        on_remark: called with sentences for a person (connected, lost, refused).
        rng: for the reconnect waits.

    Raises:
        InvalidInputError: an argument that the box would refuse.
    """

    def __init__(
        self,
        source: FrameSource | None,
        server: str = "ws://127.0.0.1:8787",
        *,
        token: str | None = None,
        fingerprint: str | None = None,
        name: str = "camera",
        slo_ms: float | Sequence[tuple[float, float]] = SLO_MS,
        rate_hz: float = 10.0,
        app: str = "default",
        family: str | None = None,
        min_accuracy: float = 0.0,
        min_rate_hz: float = 0.0,
        site: str | None = None,
        pipeline: str | None = None,
        detect: PlacementMode | str = PlacementMode.NEVER,
        cache: Path | None = None,
        link: BandwidthTrace | None = None,
        size_px: tuple[int, int] | None = None,
        on_result: Callable[[Result], None] | None = None,
        on_drop: Callable[[DropNotice], None] | None = None,
        on_frame_end: Callable[[FrameRecord], None] | None = None,
        on_remark: Callable[[str], None] | None = None,
        rng: random.Random | None = None,
    ) -> None:
        width_px, height_px = _frame_size(source, size_px)
        rng = rng or random.Random()
        self._box = BoxConnection(server, token, fingerprint, rng)
        self._headers, self._fingerprint = authorization(token), fingerprint
        first_ms, later = split_slo(slo_ms)
        self._detect = _mode(detect)
        self._first_stage = FirstStage(self._detect, cache)
        self.hello = Hello(
            camera=name,
            width_px=width_px,
            height_px=height_px,
            # Constant for this object, so that a reconnection replaces the old connection.
            instance=f"{os.getpid():x}-{os.urandom(6).hex()}",
            slo_ms=first_ms,
            later=later,
            rate_hz=rate_hz,
            app=app,
            family=family,
            min_accuracy=min_accuracy,
            min_rate_hz=min_rate_hz,
            site=site,
            pipeline=pipeline,
            placement=self._detect is not PlacementMode.NEVER,
            agent=f"edgebox-camera/{__version__}",
        )
        decode_from_camera(self.hello.encode())  # raises the errors of the box
        self._source = source
        self._trace = link
        self._on_result = on_result
        self._on_drop = on_drop
        self._on_remark = on_remark
        self._backoff = Backoff(rng)
        self._accounting = Accounting(round(first_ms * 1e6), to_steps(later), on_frame_end)
        self._pool = ThreadPoolExecutor(ENCODER_THREADS, thread_name_prefix="encode")
        self._callbacks = Callbacks(
            self._result, self._drop, self._say, self._box.told, lambda: self._box.silence_max_s
        )
        self._session: Session | None = None
        self._link: ShapedLink | None = None
        self._frames_captured = 0
        self._remark = ""
        self._refused_since_s: float | None = None
        self._welcomed, self._stopped = asyncio.Event(), asyncio.Event()
        self._idle = asyncio.Event()
        self._connecting: asyncio.Task[None] | None = None
        self._started_s = 0.0
        self._duration_s: float | None = None

    @property
    def url(self) -> str:
        """The WebSocket of the box that it is connected to, or tries now."""
        return self._box.url

    async def run(self, duration_s: float | None = None) -> Summary:
        """Stream the source until it ends, `stop` is called or the time is over.

        The time counts from the box's first welcome. No box may answer for as long, and at least
        for `ANSWER_PATIENCE_S`; without a time for ever.

        Raises:
            EdgeboxError: the box refused this camera for good, none answered, or the source failed.
        """
        if self._source is None:
            raise InvalidInputError("a camera without a source is not run; use `async with`")
        await self.start()
        capture = Capture(self._source, self._from_source)
        try:
            patience_s = None if duration_s is None else max(duration_s, ANSWER_PATIENCE_S)
            await self._first_welcome(patience_s)
            if not self._stopped.is_set():
                await self._capture(self._source, capture, duration_s)
        finally:
            self._source.close()
            await self.finish()
        if capture.error is not None:
            raise capture.error
        return self.summary()

    async def _capture(
        self, source: FrameSource, capture: Capture, duration_s: float | None
    ) -> None:
        """Capture until the source ends, `stop` is called or the time is over."""
        capture.start()
        watching = asyncio.create_task(watch_source(source, lambda: self._session, self._say))
        try:
            await self._until_any(self._stopped.wait(), capture.ended.wait(), timeout_s=duration_s)
        finally:
            watching.cancel()
        await capture.stop()

    async def _first_welcome(self, patience_s: float | None) -> None:
        """Wait for the first welcome or `stop`; raises if no box answers for so long."""
        while not (self._welcomed.is_set() or self._stopped.is_set()):
            answers = self._box.answers
            waits = self._welcomed.wait(), self._stopped.wait()
            came = await self._until_any(*waits, timeout_s=patience_s)
            if not came and self._box.answers == answers:
                why_none = f"no box has answered for {patience_s:g} s ({self._remark})"
                raise ConnectionLostError(why_none)

    async def start(self) -> None:
        """Begin to connect, in the background."""
        self._started_s = time.monotonic()
        self._connecting = asyncio.create_task(self._stay_connected())

    async def finish(self) -> None:
        """Wait for the outstanding answers until 1 s after their last deadline, report, say bye.

        Raises:
            EdgeboxError: the connection had failed for good before.
        """
        if self._connecting is None:
            return
        session = self._session
        if session is not None:
            session.settle()
            deadline_s = time.monotonic() + self._accounting.last_slo_ns / 1e9 + AFTER_SLO_S
            while self._accounting.open_count and self._session is session:
                # Answers set the event; frames can also end otherwise, hence the short wait.
                self._idle.clear()
                left_s = deadline_s - time.monotonic()
                if left_s <= 0:
                    break
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._idle.wait(), min(left_s, 0.25))
            if self._session is session:
                await session.say_bye(FINISHED)
        connecting, self._connecting = self._connecting, None
        if not connecting.done():
            connecting.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(connecting, return_exceptions=True)
        self._accounting.lost(time.monotonic_ns())
        self._duration_s = time.monotonic() - self._started_s
        self._first_stage.close()
        self._pool.shutdown(wait=False, cancel_futures=True)
        if not connecting.cancelled() and (error := connecting.exception()) is not None:
            raise error

    async def __aenter__(self) -> Self:
        await self.start()
        try:
            await self._until_any(self._welcomed.wait())
        except BaseException:  # nobody leaves what was never entered
            with suppress(Exception):
                await self.finish()
            raise
        if not self._welcomed.is_set():
            await self.finish()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.finish()

    def stop(self) -> None:
        """Make `run` end cleanly."""
        self._stopped.set()

    def send(self, rgb: NDArray[np.uint8]) -> int:
        """Push a frame that was captured just now; call it in the event loop.

        Args:
            rgb: (height, width, 3) of the size announced; not to be changed afterwards.

        Returns:
            The frame's number, as the result or drop will name it.

        Raises:
            InvalidInputError: another shape or type than announced, or the camera is not open.
        """
        expected = (self.hello.height_px, self.hello.width_px, 3)
        if rgb.shape != expected or rgb.dtype != np.uint8:
            raise InvalidInputError(
                f"a frame must be uint8 of shape {expected}, not {rgb.dtype} of {rgb.shape}"
            )
        if self._connecting is None:
            raise InvalidInputError("the camera is not open; use it in `async with`")
        return self._take(time.monotonic_ns(), rgb)

    def summary(self) -> Summary:
        """Return the figures as they stand."""
        duration_s = self._duration_s
        if duration_s is None:
            duration_s = time.monotonic() - self._started_s
        return self._accounting.summary(self.hello.camera, duration_s)

    def status(self) -> Status:
        """Return the present state."""
        now_ns = time.monotonic_ns()
        session = self._session
        share, latency_ms = self._accounting.recent(now_ns)
        return Status(
            connected=session is not None,
            captured=self._accounting.captured_count,
            sent=self._accounting.sent_count,
            on_time_share=share,
            latency_ms=latency_ms,
            bandwidth_bps=session.window.bandwidth_bps(now_ns) if session else None,
            advice=session.advice if session else None,
            remark=self._remark,
        )

    def _from_source(self, captured_ns: int, rgb: NDArray[np.uint8]) -> None:
        # A hung device may resume after everything is counted.
        if self._connecting is not None:
            self._take(captured_ns, rgb)

    def _take(self, captured_ns: int, rgb: NDArray[np.uint8]) -> int:
        self._frames_captured += 1
        number = self._frames_captured
        self._accounting.captured(number, captured_ns)
        if self._session is None:
            self._accounting.skipped(number, SkipReason.OFFLINE, time.monotonic_ns())
        else:
            self._session.captured(number, captured_ns, rgb)
        return number

    async def _stay_connected(self) -> None:
        async with aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=None),
            headers=self._headers,
            connector=connector(self._fingerprint),
        ) as client:
            while True:
                wait = True
                try:
                    await self._connect(client)
                except RedirectedError as error:
                    wait = self._box.redirected(error.redirect)
                    self._say(f"sent to {self.url}: {error}")
                except BoxRefusedError as error:
                    self._consider(error)
                    wait = self._box.lost()
                except ConnectionLostError as error:
                    self._say(f"{self.url}: {error}")
                    wait = self._box.lost()
                if wait:
                    await asyncio.sleep(self._backoff.wait_s())

    async def _connect(self, client: aiohttp.ClientSession) -> None:
        """Serve one connection until it ends with an error."""
        try:
            async with await self._box.open(client) as socket:
                welcome = await introduce(socket, self._present_hello())
                self._box.welcomed()
                self._accounting.connected()
                self._backoff.reset()
                self._refused_since_s = None
                if self._welcomed.is_set():
                    self._accounting.reconnects += 1
                if self._trace is not None and self._link is None:
                    self._link = ShapedLink(self._trace, time.monotonic_ns())
                session = Session(
                    socket,
                    self.hello,
                    welcome,
                    accounting=self._accounting,
                    pool=self._pool,
                    link=self._link,
                    callbacks=self._callbacks,
                )
                self._session = session
                self._say(f"connected to {welcome.box or 'the box'} at {self.url}")
                self._welcomed.set()
                preparing = asyncio.create_task(
                    self._first_stage.prepare(client, self.url, session, self.hello, self._say)
                )
                try:
                    await session.run()
                finally:
                    self._session = None
                    self._box.rtt_ns = session.rtt_ns
                    preparing.cancel()
                    await asyncio.gather(preparing, return_exceptions=True)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise ConnectionLostError(f"cannot connect: {why(error)}") from None

    def _present_hello(self) -> Hello:
        """Return the hello; a camera that runs first stages is not sent to other boxes."""
        if self._detect is not PlacementMode.NEVER:
            return self.hello
        return replace(self.hello, redirects=self._box.redirects)

    def _consider(self, error: BoxRefusedError) -> None:
        """Return if a refusal is worth a retry; raise it otherwise."""
        if error.reason not in _RETRIED_REASONS:
            raise error
        if error.reason == "camera_in_use":
            now_s = time.monotonic()
            self._refused_since_s = self._refused_since_s or now_s
            if now_s - self._refused_since_s > IN_USE_PATIENCE_S:
                raise error
        self._say(f"the box refuses for now: {error}")

    async def _until_any(
        self, *waits: Coroutine[Any, Any, object], timeout_s: float | None = None
    ) -> bool:
        """Wait for the first of these, or for the final end; return whether any came in time."""
        assert self._connecting is not None
        tasks = [asyncio.ensure_future(wait) for wait in waits]
        try:
            done, _ = await asyncio.wait(
                {*tasks, self._connecting}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            for task in tasks:
                task.cancel()
        if self._connecting.done():
            self._stopped.set()
        return bool(done)

    def _result(self, result: Result) -> None:
        self._idle.set()
        if self._on_result is not None:
            self._on_result(result)

    def _drop(self, notice: DropNotice) -> None:
        self._idle.set()
        if self._on_drop is not None:
            self._on_drop(notice)

    def _say(self, remark: str) -> None:
        if remark == self._remark:
            return  # as the attempt before: a box that is away for days is told of once
        self._remark = remark
        if self._on_remark is not None:
            self._on_remark(remark)


def _mode(detect: PlacementMode | str) -> PlacementMode:
    try:
        return PlacementMode(detect)
    except ValueError:
        modes = ", ".join(PlacementMode)
        raise InvalidInputError(f"detect must be one of {modes}, not {detect!r}") from None


def _frame_size(source: FrameSource | None, size_px: tuple[int, int] | None) -> tuple[int, int]:
    if source is not None:
        return source.width_px, source.height_px
    if size_px is None:
        raise InvalidInputError("a camera without a source needs size_px=(width, height)")
    return size_px
