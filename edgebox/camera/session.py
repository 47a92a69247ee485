"""One connection to the box, from its welcome to its end: messages in, frames out.

The sender's window decides what is sent; the accounting decides how frames ended.
"""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass

import aiohttp

from edgebox.camera.accounting import Accounting
from edgebox.camera.records import HandedOver
from edgebox.camera.uplink import Captured, Detect, Frame, Uplink
from edgebox.domain.errors import EdgeboxError, InvalidInputError
from edgebox.domain.plans import Advice
from edgebox.domain.requests import StagePlacement
from edgebox.link.deadlines import to_steps
from edgebox.link.messages import (
    Ack,
    AdviceMessage,
    BoxMessage,
    BoxPong,
    Bye,
    DropNotice,
    ErrorMessage,
    Hello,
    OtherBoxes,
    Ping,
    Pong,
    Redirect,
    Result,
    Welcome,
    decode_from_box,
)
from edgebox.link.placement import PlacementCosts
from edgebox.link.sender import Decision, SenderWindow, Skip
from edgebox.link.shaping import ShapedLink

WELCOME_TIMEOUT_S = 10.0
REPORT_PERIOD_S = 1.0
UNACKNOWLEDGED_MAX = 2


class BoxRefusedError(EdgeboxError):
    """The box ended the connection with an error; `reason` is its code."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class RedirectedError(EdgeboxError):
    """Another box is to serve this camera."""

    code = "redirected"

    def __init__(self, redirect: Redirect) -> None:
        super().__init__(redirect.reason or "another box is to serve this camera")
        self.redirect = redirect


class ConnectionLostError(EdgeboxError):
    """The connection was lost; a retry may succeed."""

    code = "connection_lost"


@dataclass(frozen=True, slots=True)
class Callbacks:
    """Functions called with messages of the box, in the event loop; they must be quick."""

    result: Callable[[Result], None]
    drop: Callable[[DropNotice], None]
    remark: Callable[[str], None]
    """Called with a sentence for people."""
    others: Callable[[OtherBoxes], None]
    """Called when the box tells of others."""
    silence_max_s: Callable[[], float]
    """Returns after how long a silence the connection counts as lost."""


async def introduce(socket: aiohttp.ClientWebSocketResponse, hello: Hello) -> Welcome:
    """Send the hello and return the box's welcome.

    Raises:
        BoxRefusedError: the box refused this camera.
        RedirectedError: the box sends it to another one.
        ConnectionLostError: the box disconnected, was silent, or violated the protocol.
    """
    await socket.send_frame(hello.encode(), aiohttp.WSMsgType.TEXT)
    while True:
        message = await _receive(socket, WELCOME_TIMEOUT_S)
        if message.type is not aiohttp.WSMsgType.TEXT:
            continue
        try:
            received = decode_from_box(message.data)
        except InvalidInputError as error:
            raise ConnectionLostError(f"this is not an edgebox: {error}") from None
        if isinstance(received, Welcome):
            return received
        if isinstance(received, ErrorMessage):
            raise BoxRefusedError(received.code, received.message)
        if isinstance(received, Redirect):
            raise RedirectedError(received)
        if isinstance(received, Bye):
            raise ConnectionLostError(f"the box said bye: {received.reason}")


class Session:
    """One welcomed connection."""

    def __init__(
        self,
        socket: aiohttp.ClientWebSocketResponse,
        hello: Hello,
        welcome: Welcome,
        *,
        accounting: Accounting,
        pool: Executor,
        link: ShapedLink | None,
        callbacks: Callbacks,
    ) -> None:
        self.advice: Advice = welcome.advice
        self.window = SenderWindow(
            hello.width_px,
            hello.height_px,
            round(hello.slo_ms * 1e6),
            hello.rate_hz,
            min(UNACKNOWLEDGED_MAX, welcome.unacknowledged_max),
            last_slo_ns=round(hello.last_slo_ms * 1e6),
        )
        self.window.advised(welcome.advice)
        self._hello = hello
        self._socket = socket
        self._accounting = accounting
        self._callbacks = callbacks
        self._uplink = Uplink(socket, pool, link, self._handed_over, self._detected)
        self.offer = welcome.placement
        """What the box offers for running the first stage here; None: nothing."""
        self._frames: dict[int, Captured] = {}
        self.rtt_ns = 0
        """The least round trip so far; 0: none was measured."""
        self._bad_messages = 0
        self._aim(welcome.slo_ms)

    async def run(self) -> None:
        """Serve the connection until it ends with an error.

        Raises:
            BoxRefusedError, RedirectedError, ConnectionLostError: how it ended.
        """
        tasks = [
            asyncio.create_task(work)
            for work in (self._read(), self._uplink.encode(), self._uplink.write(), self._report())
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        except (aiohttp.ClientError, OSError) as error:
            raise ConnectionLostError(f"the connection broke: {error}") from None
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._apply(self.window.close())
            self._accounting.lost(time.monotonic_ns())

    def captured(self, number: int, captured_ns: int, rgb: Frame) -> None:
        """Process a frame that was just captured and counted."""
        frame = Captured(number, captured_ns, self.window.captured_total + 1, rgb)
        self._frames[number] = frame
        self._apply(self.window.captured(number, captured_ns, time.monotonic_ns()))

    def run_first_stage(self, detect: Detect, costs: PlacementCosts) -> None:
        """Run the first stage of frames here from now on, where that is worth it."""
        self._uplink.detect = detect
        self.window.placement = costs

    async def say_bye(self, reason: str) -> None:
        """Send the last report and a goodbye."""
        try:
            await self._say(self._accounting.report().encode())
            await self._say(Bye(reason).encode())
        except (aiohttp.ClientError, OSError):
            return  # already disconnected

    async def tell(self, code: str, text: str, remedy: str) -> None:
        """Tell the box what is wrong here, and what helps, for its people."""
        await self._say(ErrorMessage(code, text, fatal=False, remedy=remedy).encode())

    def settle(self) -> None:
        """Drop frames that are not sent yet, after the last capture."""
        self._apply(self.window.close())

    async def _read(self) -> None:
        while True:
            message = await _receive(self._socket, self._callbacks.silence_max_s())
            now_ns = time.monotonic_ns()
            if message.type is aiohttp.WSMsgType.PING:
                await self._socket.pong(message.data)
            elif message.type is aiohttp.WSMsgType.PONG:
                self._measured(message.data, now_ns)
            elif message.type is aiohttp.WSMsgType.TEXT:
                try:
                    received = decode_from_box(message.data)
                except InvalidInputError as error:
                    await self._complain(error, message.data)
                else:
                    await self._handle(received, now_ns)

    async def _handle(self, message: BoxMessage, now_ns: int) -> None:
        match message:
            case Ping():
                await self._say(Pong(message.id, time.monotonic_ns()).encode())
            case Ack():
                self._obey(message.advice)
                self._accounting.acked(message.frame, message.accepted, now_ns)
                self._apply(self.window.acknowledged(message.frame, now_ns, self.rtt_ns))
            case Result():
                self._obey(message.advice)
                box_ns = self._accounting.answered(message, now_ns)
                if box_ns is not None:
                    box_ns += self.rtt_ns // 2
                    self.window.answered(box_ns, now_ns, message.placement)
                    self._callbacks.result(message)
            case DropNotice():
                self._obey(message.advice)
                self._accounting.dropped(message, now_ns)
                self._callbacks.drop(message)
            case AdviceMessage():
                self._obey(message.advice)
                self._aim(message.slo_ms)
            case ErrorMessage(fatal=True):
                raise BoxRefusedError(message.code, message.message)
            case ErrorMessage():
                self._callbacks.remark(f"the box complains: {message.message}")
            case OtherBoxes():
                self._callbacks.others(message)
            case Redirect():
                raise RedirectedError(message)
            case Bye():
                raise ConnectionLostError(f"the box said bye: {message.reason}")
            case Welcome() | BoxPong():
                pass  # a second welcome, or an answer to no question

    def _obey(self, advice: Advice) -> None:
        self.advice = advice
        self.window.advised(advice)

    def _aim(self, slo_ms: float | None) -> None:
        """Apply the deadline set on the box; None: that of the hello."""
        first_ms, later = self._hello.slo_ms, self._hello.later
        if slo_ms is not None:
            first_ms, later = slo_ms, ()
        slo_ns, steps = round(first_ms * 1e6), to_steps(later)
        self.window.deadlines(slo_ns, steps[-1].by_ns if steps else slo_ns)
        self._accounting.deadlines(slo_ns, steps)

    def _apply(self, decisions: list[Decision]) -> None:
        for decision in decisions:
            frame = self._frames.pop(decision.frame, None)
            if isinstance(decision, Skip):
                self._accounting.skipped(decision.frame, decision.reason, time.monotonic_ns())
            elif frame is not None:
                self._uplink.put(decision, frame)

    def _handed_over(self, frame: HandedOver) -> None:
        at_camera = frame.placement is StagePlacement.CAMERA
        pixels = 0 if at_camera else frame.width_px * frame.height_px
        if self.window.placement is not None and not at_camera:
            self.window.placement.encoded(frame.encode_ns)
        self.window.encoded(frame.number, frame.size_bytes, pixels, frame.sent_ns)
        self._accounting.sent(frame, self.advice.variant)

    def _detected(self, frame: int, size_bytes: int | None, took_ns: int) -> bool:
        """Note that the first stage of a frame has run here; return whether to send the frame."""
        if self.window.detecting != frame:
            return False  # it was skipped meanwhile: nothing more is to be sent
        decisions = self.window.detected(frame, size_bytes, took_ns, time.monotonic_ns())
        if size_bytes is None:
            self.window.placement = None
            self._callbacks.remark("the model failed here: pictures are sent from now on")
        skipped = [each for each in decisions if isinstance(each, Skip) and each.frame == frame]
        for skip in skipped:
            self._accounting.skipped(frame, skip.reason, time.monotonic_ns())
        self._apply([each for each in decisions if each not in skipped])
        return not skipped

    def _measured(self, ping: bytes, now_ns: int) -> None:
        sent_ns = int.from_bytes(ping, "little")
        if 0 < sent_ns <= now_ns:
            rtt_ns = now_ns - sent_ns
            self.rtt_ns = min(self.rtt_ns, rtt_ns) if self.rtt_ns else rtt_ns

    async def _report(self) -> None:
        while True:
            await self._socket.ping(time.monotonic_ns().to_bytes(8, "little"))
            await asyncio.sleep(REPORT_PERIOD_S)
            await self._say(self._accounting.report().encode())

    async def _complain(self, error: InvalidInputError, text: str) -> None:
        self._callbacks.remark(f"the box sent an invalid message: {error}")
        # Errors are not answered, otherwise two sides could send errors for ever.
        if '"error"' not in text:
            await self._say(ErrorMessage("bad_message", str(error), fatal=False).encode())

    async def _say(self, text: bytes) -> None:
        await self._socket.send_frame(text, aiohttp.WSMsgType.TEXT)


async def _receive(socket: aiohttp.ClientWebSocketResponse, timeout_s: float) -> aiohttp.WSMessage:
    """Return the next message.

    Raises:
        BoxRefusedError, ConnectionLostError: the connection ended or timed out.
    """
    try:
        message = await socket.receive(timeout_s)
    except TimeoutError:
        raise ConnectionLostError(f"nothing was received for {timeout_s:g} s") from None
    if message.type in (
        aiohttp.WSMsgType.CLOSE,
        aiohttp.WSMsgType.CLOSING,
        aiohttp.WSMsgType.CLOSED,
    ):
        raise ConnectionLostError("the box closed the connection")
    if message.type is aiohttp.WSMsgType.ERROR:
        raise ConnectionLostError(f"the connection broke: {socket.exception()}")
    return message
