"""Owns what waits to be sent on one WebSocket: having something to say never blocks."""

import asyncio
from collections import deque

from aiohttp import WSMsgType, web


class Outbox:
    """A bounded queue in front of a WebSocket, emptied by a task of its own."""

    def __init__(self, socket: web.WebSocketResponse, messages_max: int, stall_s: float) -> None:
        """Queue up to `messages_max`; a single send may take `stall_s`."""
        self.overrun = False
        self._socket = socket
        self._messages_max = messages_max
        self._stall_s = stall_s
        self._waiting: deque[tuple[bytes, WSMsgType]] = deque()
        self._news = asyncio.Event()
        self._closing = False

    def put(self, message: bytes, kind: WSMsgType = WSMsgType.TEXT) -> None:
        """Queue one message; past the bound the peer counts as one that does not read."""
        if len(self._waiting) >= self._messages_max:
            self.overrun = True
        else:
            self._waiting.append((message, kind))
        self._news.set()

    async def run(self) -> None:
        """Send until closed; returns early when the peer does not read or is gone."""
        while not self._closing or self._waiting:
            if not self._waiting:
                self._news.clear()
                await self._news.wait()
            try:
                async with asyncio.timeout(self._stall_s):
                    while self._waiting and not self.overrun:
                        await self._socket.send_frame(*self._waiting.popleft())
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
