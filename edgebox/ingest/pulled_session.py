"""One connection of a pulled camera to the core: pictures in, advice obeyed.

It is what a WebSocket's session is for other cameras. The same sender's window decides which
pictures are used, and the box counts, plans and answers them in the same way.
"""

import asyncio
import itertools
import logging
import time
from collections.abc import Callable
from concurrent.futures import Executor

from edgebox.domain.plans import Advice
from edgebox.ingest.source_reader import NewestPicture
from edgebox.link.from_camera import FrameHeader
from edgebox.link.own_uplink import NoUplink
from edgebox.link.protocol import FRAME_HEADER_BYTES
from edgebox.link.sender import Decision, Send, SenderWindow
from edgebox.media import losses
from edgebox.media.losses import LossCause
from edgebox.media.picture_stream import DecodedPicture
from edgebox.runtime.box import Box
from edgebox.runtime.camera_record import CameraRecord
from edgebox.runtime.frames import Answer, ArrivedFrame, FrameResult, PendingFrame
from edgebox.runtime.source_status import Decoding

_log = logging.getLogger(__name__)


class PulledSession:
    """Gives the pictures of one source to the box, from the opening to the end."""

    def __init__(
        self,
        box: Box,
        address: str,
        size_px: tuple[int, int],
        *,
        phase: float,
        pool: Executor,
        decoding: Decoding,
        on_end: Callable[[str], None],
        on_failure: Callable[[LossCause], None],
    ) -> None:
        """Wait for `opened`.

        Args:
            box: takes the pictures.
            address: of the source, as it may be shown.
            size_px: (width, height) of the camera's own picture, which boxes are in pixels of.
            phase: of its pictures, in periods (`RateGate`).
            pool: threads that scale and encode.
            decoding: takes the cost.
            on_end: called with the reason when the box ends the connection.
            on_failure: called with the reason when its pictures cannot be used.
        """
        self.address = address
        self._box = box
        self._size_px = size_px
        self._phase = phase
        self._pool = pool
        self._decoding = decoding
        self._on_end = on_end
        self._on_failure = on_failure
        self._record: CameraRecord | None = None
        self._window: SenderWindow | None = None
        self._numbers = itertools.count(1)
        self._pictures: dict[int, tuple[DecodedPicture, int]] = {}
        self._captured_total = self._captured_before = 0
        self._captured_ns: int | None = None
        self._encoding: set[asyncio.Task[None]] = set()

    def opened(self, record: CameraRecord) -> None:
        """Begin: the box has taken the camera."""
        camera = record.camera
        last_slo_ns = camera.steps[-1].by_ns if camera.steps else camera.slo_ns
        self._record = record
        self._captured_before = self._decoding.captured_total
        self._window = SenderWindow(
            *self._size_px,
            camera.slo_ns,
            camera.rate_hz,
            unacknowledged_max=1,  # the next picture is scaled when the one before is handed over
            last_slo_ns=last_slo_ns,
            bandwidth=NoUplink(),
            phase=self._phase,
        )
        self._synchronise()
        if record.advice is not None:
            self._window.advised(record.advice)

    @property
    def rate_hz(self) -> float:
        """How many pictures a second the camera is to give, by its own settings."""
        return 0.0 if self._record is None else self._record.camera.rate_hz

    @property
    def advised_px(self) -> tuple[int, int] | None:
        """The width and height that the plan wants its pictures to have; None: not known yet."""
        advice = None if self._record is None else self._record.advice
        return None if advice is None else (advice.width_px, advice.height_px)

    # -- the session as the box sees it -----------------------------------------------------

    def advised(self, advice: Advice) -> None:
        """Obey new advice, and the deadline in force."""
        if self._window is not None and self._record is not None:
            camera = self._record.camera
            self._window.advised(advice)
            last_slo_ns = camera.steps[-1].by_ns if camera.steps else camera.slo_ns
            self._window.deadlines(camera.slo_ns, last_slo_ns)

    def replaced(self) -> None:
        """End the connection: the same camera has connected again."""
        self._on_end("this camera has connected again")

    def reconnect(self, why: str) -> None:
        """End the connection, so that the camera connects again with new settings."""
        self._on_end(why)

    # -- pictures -----------------------------------------------------------------------------

    def captured(self, newest: NewestPicture) -> None:
        """Decide about a picture that was just decoded."""
        if self._window is None:
            return
        self._captured_total = newest.captured_total - self._captured_before
        number = next(self._numbers)
        self._pictures[number] = (newest.picture, self._captured_total)
        self._captured_ns = newest.picture.captured_ns
        self._apply(self._window.captured(number, self._captured_ns, time.monotonic_ns()))

    def report(self) -> None:
        """Count pictures that were not used; called about once a second."""
        if self._record is None or self._window is None:
            return
        self._synchronise()
        now_ns = self._box.driver.clock_ns()
        self._decoding.note(now_ns)
        waiting = int(self._window.waiting is not None)
        unused = self._captured_total - self._window.sent_total - waiting
        skipped = self._record.reported(unused, now_ns, self._captured_ns)
        if new := skipped.total:
            metrics = self._box.metrics.of(self._record.camera.id)
            metrics.captured(new, new, now_ns, skipped.ordered)

    async def close(self, why: str) -> None:
        """End: no more pictures come.

        The box knows it before anything is waited for: who waits may be interrupted.
        """
        record, self._record, self._window = self._record, None, None
        if record is not None:
            self._box.close_camera(record, why)
        self._pictures.clear()
        for task in self._encoding:
            task.cancel()
        await asyncio.gather(*self._encoding, return_exceptions=True)

    def _synchronise(self) -> None:
        """Say that the camera's clock is the box's own."""
        if self._record is not None:
            now_ns = self._box.driver.clock_ns()
            self._record.link.pong(now_ns, now_ns, now_ns)

    def _apply(self, decisions: list[Decision]) -> None:
        for decision in decisions:
            picture, captured_total = self._pictures.pop(decision.frame)
            if isinstance(decision, Send):
                task = asyncio.create_task(self._send(decision, picture, captured_total))
                self._encoding.add(task)
                task.add_done_callback(self._sent)

    def _sent(self, task: asyncio.Task[None]) -> None:
        """Say so if a picture could not be sent: the window waits for it, and takes no other."""
        self._encoding.discard(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        _log.error("a picture of %s could not be used", self.address, exc_info=error)
        reason = f"its pictures could not be converted ({type(error).__name__})"
        self._on_failure(LossCause(reason, losses.UNKNOWN_CODEC.remedy))

    async def _send(self, send: Send, picture: DecodedPicture, captured_total: int) -> None:
        """Scale and encode a picture, and give it to the box."""
        loop = asyncio.get_running_loop()
        jpeg, took_ns = await loop.run_in_executor(self._pool, _encoded, picture, send)
        self._decoding.convert_ns += took_ns
        self._decoding.used += 1
        record, window = self._record, self._window
        if record is None or window is None:
            return
        now_ns = time.monotonic_ns()
        size_bytes = FRAME_HEADER_BYTES + len(jpeg)
        header = FrameHeader(
            send.frame, picture.captured_ns, now_ns, *self._size_px, captured_total
        )
        window.encoded(send.frame, size_bytes, send.width_px * send.height_px, now_ns)
        arrived = ArrivedFrame(header, jpeg, size_bytes, (send.width_px, send.height_px))
        self._box.submit_frame(record, arrived, self._ended)
        self._apply(window.acknowledged(send.frame, time.monotonic_ns(), 0))

    def _ended(self, frame: PendingFrame, ending: FrameResult) -> None:
        window = self._window
        if window is None or not isinstance(ending, Answer):
            return
        now_ns = time.monotonic_ns()
        window.answered(max(0, now_ns - frame.request.arrival_ns), now_ns, ending.placement)


def _encoded(picture: DecodedPicture, send: Send) -> tuple[bytes, int]:
    """Return a JPEG of the size to be sent, and the processor time that it took."""
    began_ns = time.thread_time_ns()
    jpeg = picture.jpeg(send.width_px, send.height_px, send.quality)
    return jpeg, time.thread_time_ns() - began_ns
