"""One camera's WebSocket: hello, frames in, acks, results and advice out. protocol.md.

A session never waits for its own sending (outbox.py), so a camera that stops reading delays
nobody.
"""

import asyncio
import itertools
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

from aiohttp import WebSocketError, WSCloseCode, WSMsgType, web

from edgebox.config.config_file import LimitParameters
from edgebox.domain.access import ForbiddenError, Identity
from edgebox.domain.errors import InvalidInputError
from edgebox.domain.plans import Advice
from edgebox.domain.requests import CameraId
from edgebox.inference.family import Family
from edgebox.link.messages import (
    BAD_MESSAGES_CLOSE_CODE,
    BAD_MESSAGES_MAX,
    ERROR_CODES,
    HELLO_TIMEOUT_NS,
    SOURCE_BACK,
    SOURCE_LOST,
    VERSIONS,
    Ack,
    AdviceMessage,
    BoxPong,
    Bye,
    CameraMessage,
    CameraPing,
    ErrorMessage,
    Hello,
    OtherBoxes,
    Ping,
    Pong,
    Redirect,
    Report,
    Welcome,
    decode_from_camera,
)
from edgebox.link.receipts import SMALL_FRAME_BYTES, SMALL_FRAMES_PER_S
from edgebox.runtime.box import Box
from edgebox.runtime.camera_placement import offer
from edgebox.runtime.camera_record import CameraRecord
from edgebox.runtime.frames import Answer, FrameResult, PendingFrame
from edgebox.runtime.model_choice import UnknownFamilyError, UnknownPipelineError
from edgebox.runtime.refusals import REFUSALS
from edgebox.runtime.source_status import told_trouble
from edgebox.web.camera_socket import CameraSocket
from edgebox.web.fleet_member import FleetMember
from edgebox.web.frame_endings import ending_message
from edgebox.web.frame_messages import read_frame
from edgebox.web.hello_camera import camera_of_hello
from edgebox.web.outbox import Outbox

_log = logging.getLogger(__name__)

_FIRST_PINGS = 5
_FIRST_PING_PERIOD_S = 0.1
_PING_PERIOD_S = 1.0
_NO_CLOCK = (
    " (it does not run, or camera_ns is not in nanoseconds); capture times are estimated without it"
)
_PINGS_KEPT = 32
_STALL_S = 10.0
_OUTBOX_MAX = 4_096
_TEXT_BYTES_MAX = 65_536
"""Longer texts are not parsed, because parsing would block the loop."""


class _FatalError(Exception):
    """Ends the session after telling the camera why; `noted`: a notice was already published."""

    def __init__(self, code: str, message: str, *, noted: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.noted = noted


class CameraSession:
    """The connection of one camera, from its hello to its end."""

    def __init__(
        self,
        box: Box,
        limits: LimitParameters,
        address: str,
        identities: Sequence[Identity],
        publisher: Callable[[Sequence[Identity], CameraId], Identity],
        *,
        fleet: FleetMember | None = None,
    ) -> None:
        """Serve one connection from `address`, which may be each of `identities`.

        `publisher` returns which of them may use a name, or raises ForbiddenError.
        """
        self.address = address
        self.identity = identities[0]
        """Who it is; before its hello the likeliest."""
        self._identities = identities
        self._publisher = publisher
        self._fleet = fleet
        self._box = box
        self._limits = limits
        self._socket = CameraSocket(
            limits.frame_bytes_max,
            box.driver.clock_ns,
            self._echoed,
            self._flooded,
            self._takes_frame,
        )
        self._outbox = Outbox(self._socket, _OUTBOX_MAX, _STALL_S)
        self._record: CameraRecord | None = None
        self._family: Family | None = None
        self._pings = itertools.count(1)
        self._pings_sent_ns: dict[int, int] = {}
        self._bad_messages = 0
        self._last_message_s = time.monotonic()
        self._why_ended = "the connection was lost"
        self._ended = asyncio.Event()
        self._ended_by: _FatalError | None = None

    # -- the session as the box sees it -----------------------------------------------------

    def advised(self, advice: Advice) -> None:
        """Send new advice, and the deadline in force, at once."""
        slo_ms = None if self._record is None else self._record.slo_ms
        self._outbox.put(AdviceMessage(advice, slo_ms).encode())

    def replaced(self) -> None:
        """End the connection: the same camera has connected again."""
        self._finish(_FatalError("replaced", "this camera has connected again"))

    def reconnect(self, why: str) -> None:
        """Say goodbye, so that the camera connects again and learns of new settings."""
        self._outbox.put(Bye(why).encode())
        self._why_ended = why
        self._finish(None)

    def redirect(self, message: Redirect) -> None:
        """Send the camera to another box."""
        self._outbox.put(message.encode())
        self._why_ended = f"it was sent to {message.place.address}: {message.reason}"
        self._finish(None)

    def tell(self, message: OtherBoxes) -> None:
        """Tell the camera where it may go if it loses this box."""
        self._outbox.put(message.encode())

    async def close(self) -> None:
        """Send the camera to another box, or say goodbye: the box is stopping."""
        to = None if self._fleet is None else self._fleet.leaving(self)
        self._outbox.put((to or Bye("shutdown")).encode())
        self._why_ended = "the box is stopping"
        self._finish(None)

    async def revoked(self) -> None:
        """Say goodbye: the camera may not use this box any more, nor others of its fleet."""
        self.reconnect("its token was revoked, or its login has ended")

    # -- life -------------------------------------------------------------------------------

    async def run(self, request: web.Request) -> web.WebSocketResponse:
        """Serve the connection until it ends."""
        await self._socket.prepare(request)
        sender = asyncio.create_task(self._outbox.run(), name="camera-outbox")
        worker = asyncio.create_task(self._converse(), name="camera-session")
        ended = asyncio.create_task(self._ended.wait(), name="camera-end")
        try:
            tasks: list[asyncio.Task[Any]] = [worker, sender, ended]
            await asyncio.wait(tasks, return_when="FIRST_COMPLETED")
            fatal = self._fatal_of(worker, sender)
        finally:
            worker.cancel()
            ended.cancel()
            if self._record is not None:
                self._box.close_camera(self._record, self._why_ended)
                if self._fleet is not None:
                    self._fleet.left(self._record.camera.id, self)
        await self._say_goodbye(sender, fatal)
        await asyncio.gather(worker, return_exceptions=True)
        return self._socket

    def _fatal_of(
        self, worker: "asyncio.Task[None]", sender: "asyncio.Task[None]"
    ) -> _FatalError | None:
        fatal: _FatalError | None = None
        if self._ended.is_set():
            fatal = self._ended_by
        elif worker.done():
            error = worker.exception()
            if isinstance(error, _FatalError):
                fatal = error
            elif error is not None:
                _log.error("session of %s failed", self.address, exc_info=error)
                self._why_ended = "the box failed; its log says why"
        elif sender.done() and self._outbox.overrun:
            fatal = _FatalError(
                "too_slow", "the camera does not read what the box sends; read acks and results"
            )
        if fatal is not None:
            self._why_ended = str(fatal)
        return fatal

    async def _say_goodbye(self, sender: "asyncio.Task[None]", fatal: _FatalError | None) -> None:
        code = 1000
        if fatal is not None:
            row = ERROR_CODES.get(fatal.code)
            code = BAD_MESSAGES_CLOSE_CODE
            if row is not None and row.close_code is not None:
                code = row.close_code
            self._outbox.put(ErrorMessage(fatal.code, str(fatal), True).encode())
            if not fatal.noted:
                self._note(f"{self._name}: {fatal}")
        self._outbox.close()
        try:
            async with asyncio.timeout(1.0):
                await sender
        except TimeoutError:
            sender.cancel()
        try:
            async with asyncio.timeout(2.0):
                await self._socket.close(code=code, drain=not self._outbox.overrun)
        except (TimeoutError, ConnectionError):
            _log.debug("%s did not take part in closing", self.address)

    def _finish(self, fatal: _FatalError | None) -> None:
        if not self._ended.is_set():
            self._ended_by = fatal
            self._ended.set()

    @property
    def _camera_name(self) -> str | None:
        return None if self._record is None else str(self._record.camera.id)

    @property
    def _name(self) -> str:
        return self._camera_name or self.address

    def _note(self, text: str) -> None:
        self._box.notices.publish_from(self.address, "warning", text, self._camera_name)

    # -- the conversation -------------------------------------------------------------------

    async def _converse(self) -> None:
        if not await self._hello():
            return
        pinger = asyncio.create_task(self._keep_pinging(), name="camera-pings")
        try:
            await self._read()
        finally:
            pinger.cancel()

    async def _hello(self) -> bool:
        """Welcome the camera; False: it was sent to another box."""
        try:
            async with asyncio.timeout(HELLO_TIMEOUT_NS / 1e9):
                message = await self._socket.next_message()
        except TimeoutError:
            raise _FatalError("bad_hello", "no hello came within 10 s of connecting") from None
        if message.type is not WSMsgType.TEXT:
            raise _FatalError("bad_hello", "the first message must be a hello, as text")
        try:
            hello = _decoded(message.data)
        except InvalidInputError as error:
            raise _FatalError("bad_hello", str(error)) from None
        if not isinstance(hello, Hello):
            raise _FatalError("bad_hello", f"the first message must be a hello, not {hello.TYPE}")
        return await self._open(hello)

    async def _open(self, hello: Hello) -> bool:
        box = self._box
        version = hello.common_version()
        if version is None:
            raise _FatalError(
                "version",
                f"this box speaks protocol version {', '.join(map(str, VERSIONS))}, the camera "
                f"{', '.join(map(str, hello.versions))}; update the older one",
            )
        try:
            self.identity = self._publisher(self._identities, CameraId(hello.camera))
            family, pipeline = box.models.of(hello.family, hello.pipeline)
        except (ForbiddenError, UnknownFamilyError, UnknownPipelineError) as error:
            raise _FatalError(error.code, str(error)) from None
        camera = camera_of_hello(hello, family, pipeline)
        fleet = self._fleet
        if fleet and (to := fleet.redirect_hello(camera, hello.redirects, self.identity)):
            self._outbox.put(to.encode())
            return False
        try:
            self._record = await box.open_camera(camera, hello.agent, hello.instance, self)
        except REFUSALS as error:
            raise _FatalError(error.code, str(error), noted=True) from None
        self._record.named = hello.named
        in_force = self._record.camera
        self._family = box.families[in_force.family]
        if hello.placement:
            self._record.offer = offer(in_force, box.families)
        self._outbox.put(
            Welcome(
                version=version,
                camera=hello.camera,
                box=f"edgebox/{box.version}",
                clock_ns=box.driver.clock_ns(),
                frame_bytes_max=self._limits.frame_bytes_max,
                unacknowledged_max=self._limits.unacknowledged_max,
                family=in_force.family,
                labels=self._family.labels,
                advice=self._advice(),
                slo_ms=self._record.slo_ms,
                pipeline=None if in_force.pipeline is None else in_force.pipeline.name,
                placement=self._record.offer,
            ).encode()
        )
        if fleet and hello.redirects is not None:
            fleet.joined(camera.id, self)
        return True

    def _advice(self) -> Advice:
        record = self._record
        if record is None or record.advice is None:
            raise _FatalError("unavailable", "the box has no advice for this camera. Try again")
        return record.advice

    async def _read(self) -> None:
        while True:
            message = await self._socket.next_message()
            self._last_message_s = time.monotonic()
            match message.type:
                case WSMsgType.BINARY:
                    self._frame(message.data)
                case WSMsgType.TEXT:
                    if not self._text(message.data):
                        return
                case WSMsgType.ERROR:  # the socket has closed
                    self._broken(message.data)
                    return
                case _:
                    return

    def _broken(self, error: Exception) -> None:
        self._why_ended = f"it broke the WebSocket protocol ({error})"
        if isinstance(error, WebSocketError) and error.code == WSCloseCode.MESSAGE_TOO_BIG:
            self._why_ended = self._socket.too_large.message
        self._note(f"{self._name}: {self._why_ended}")

    def _text(self, data: bytes) -> bool:
        """Handle a text message; False: the camera says goodbye."""
        record = self._record
        assert record is not None
        try:
            message = _decoded(data)
        except InvalidInputError as error:
            self._bad_message(str(error))
            return True
        match message:
            case Pong():
                self._pong(record, message)
            case CameraPing():
                self._outbox.put(BoxPong(message.id).encode())
            case Report():
                self._report(record, message)
            case Bye():
                self._why_ended = message.reason or "it said goodbye"
                return False
            case ErrorMessage():
                self._note(f"{self._name} says: {message.message}")
                if message.code in (SOURCE_LOST, SOURCE_BACK):
                    record.source_trouble = told_trouble(message)
            case Hello():
                self._bad_message("the camera has already sent its hello; reconnect to change it")
        return True

    def _bad_message(self, why: str) -> None:
        self._bad_messages += 1
        if self._bad_messages > BAD_MESSAGES_MAX:
            raise _FatalError("bad_message", f"too many messages not understood; the last: {why}")
        self._outbox.put(ErrorMessage("bad_message", why, False).encode())

    # -- frames -----------------------------------------------------------------------------

    def _takes_frame(self) -> bool:
        """Return whether to read a frame that begins to arrive: those within its camera's budget.

        So a camera that ignores its advice takes nothing from those that obey theirs. Whether the
        box is idle does not matter: it looks idle, too, where the loop is too busy to hand frames
        over in time.
        """
        record = self._record
        if record is None:
            return True
        return record.budget.take(self._box.driver.clock_ns(), record.camera.last_slo_ns)

    def _frame(self, data: bytes) -> None:
        record = self._record
        assert record is not None
        try:
            arrived = read_frame(
                data,
                record,
                self._family,
                self._limits.frame_bytes_max,
                receipt=self._socket.receipt,
                takes_frame=self._takes_frame,
            )
        except InvalidInputError as error:
            self._bad_message(str(error))
            return
        number = arrived.header.frame
        acked = dropped = False
        early: list[bytes] = []

        def ended(frame: PendingFrame, ending: FrameResult) -> None:
            nonlocal dropped
            dropped = not isinstance(ending, Answer)
            assert self._family is not None
            message = ending_message(
                frame, ending, self._advice(), self._family.labels, self._box.families
            )
            # The ack goes first, also when the frame ended on arrival.
            (self._outbox.put if acked else early.append)(message)

        suspicious = self._box.submit_frame(record, arrived, ended)
        received_ns = self._box.driver.clock_ns()
        self._outbox.put(Ack(number, received_ns, not dropped, self._advice()).encode())
        acked = True
        for message in early:
            self._outbox.put(message)
        if suspicious:
            self._ping()

    # -- clock, reports, silence ------------------------------------------------------------

    async def _keep_pinging(self) -> None:
        for _ in range(_FIRST_PINGS):
            self._ping()
            await asyncio.sleep(_FIRST_PING_PERIOD_S)
        while True:
            silent_s = time.monotonic() - self._last_message_s
            if silent_s > self._limits.silent_s:
                self._finish(_FatalError("silent", f"nothing was received for {silent_s:.0f} s"))
                return
            self._ping()
            await asyncio.sleep(_PING_PERIOD_S)

    def _ping(self) -> None:
        number = next(self._pings)
        now_ns = self._box.driver.clock_ns()
        self._pings_sent_ns[number] = now_ns
        if len(self._pings_sent_ns) > _PINGS_KEPT:
            del self._pings_sent_ns[min(self._pings_sent_ns)]
        self._outbox.put(Ping(number, now_ns).encode())
        if self._record is not None and self._record.link.clock.offset_ns is None:
            # Cameras need not answer these, but every WebSocket answers its own pings.
            self._outbox.put(self._socket.next_ping(), WSMsgType.PING)

    def _echoed(self, sent_ns: int, received_ns: int) -> None:
        if self._record is not None:
            self._record.link.echoed(sent_ns, received_ns)

    def _flooded(self) -> None:
        self._finish(
            _FatalError(
                "too_fast",
                f"more than {SMALL_FRAMES_PER_S} WebSocket frames a second that carry less than "
                f"{SMALL_FRAME_BYTES} bytes; send fewer messages, pings and pongs",
            )
        )

    def _pong(self, record: CameraRecord, pong: Pong) -> None:
        sent_ns = self._pings_sent_ns.pop(pong.id, None)
        if sent_ns is None:  # a duplicate or outdated answer
            return
        clock = record.link.clock
        was_erratic = clock.is_erratic
        jumped = record.link.pong(sent_ns, pong.camera_ns, self._box.driver.clock_ns())
        if clock.is_erratic and not was_erratic:
            self._note(f"{self._name}: its clock jumps all the time{_NO_CLOCK}")
        elif jumped and not clock.is_erratic:
            self._note(f"{self._name}: its clock jumped; deadlines follow the new one")

    def _report(self, record: CameraRecord, report: Report) -> None:
        now_ns = self._box.driver.clock_ns()
        skipped = record.reported(sum(report.skipped.values()), now_ns)
        if new := skipped.total:
            metrics = self._box.metrics.of(record.camera.id)
            metrics.captured(new, new, now_ns, skipped.ordered)


def _decoded(text: bytes) -> CameraMessage:
    if len(text) > _TEXT_BYTES_MAX:
        raise InvalidInputError(
            f"a text message may have at most {_TEXT_BYTES_MAX} bytes, not {len(text)}"
        )
    return decode_from_camera(text)
