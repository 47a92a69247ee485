"""The send queue of one WebSocket: queueing a message never blocks."""

import asyncio
from collections import deque

from aiohttp import WSMsgType, web


class Outbox:
    """A bounded queue that a task sends over a WebSocket."""

    def __init__(self, socket: web.WebSocketResponse, messages_max: int, stall_s: float) -> None:
        """Queue up to `messages_max` messages; a single send may take `stall_s`."""
        self.overrun = False
        self._socket = socket
        self._messages_max = messages_max
        self._stall_s = stall_s
        self._waiting: deque[tuple[bytes, WSMsgType]] = deque()
        self._news = asyncio.Event()
        self._closing = False

    def put(self, message: bytes, kind: WSMsgType = WSMsgType.TEXT) -> None:
        """Queue a message; if the queue is full, the peer counts as stalled."""
        if len(self._waiting) >= self._messages_max:
            self.overrun = True
        else:
            self._waiting.append((message, kind))
        self._news.set()

    async def run(self) -> None:
        """Send until closed; returns early when the peer stalls or disconnects."""
        while not self._closing or self._waiting:
            if not self._waiting:
                self._news.clear()
                await self._news.wait()
            try:
                loop = asyncio.get_running_loop()
                async with asyncio.timeout(self._stall_s) as stalled:
                    while self._waiting and not self.overrun:
                        await self._socket.send_frame(*self._waiting.popleft())
                        stalled.reschedule(loop.time() + self._stall_s)
            except TimeoutError:
                self.overrun = True
            except (ConnectionError, RuntimeError):
                return
            if self.overrun:
                return

    def close(self) -> None:
        """Let `run` return once everything has been sent."""
        self._closing = True
        self._news.set()
