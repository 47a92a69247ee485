"""The page's WebSocket: state documents twice a second, latest frames and the live timeline.

A viewer receives frames as fast as it reads, at most at the requested rate and always the latest.
Nothing is queued for it, so a slow viewer delays nobody.
"""

import asyncio
import logging

import orjson
from aiohttp import WSMsgType, web

from edgebox.domain.errors import InvalidInputError
from edgebox.domain.field_reader import FieldReader, parse_object
from edgebox.domain.requests import CameraId
from edgebox.runtime.box import Box
from edgebox.web.live_frame import live_frame_message
from edgebox.web.rationed_socket import ClientSocket
from edgebox.web.state_document import STATE_PERIOD_S, StateCache
from edgebox.web.timeline_documents import NEWS_PERIOD_S, TimelineReader

_log = logging.getLogger(__name__)

_RATE_HZ = 5.0
_RATE_MAX_HZ = 30.0
_STALL_S = 20.0
_MESSAGE_MAX_BYTES = 65_536
_GONE = (ConnectionError, TimeoutError)
"""Errors of a viewer that disconnected or stalled."""


class Viewer:
    """One open page."""

    def __init__(self, box: Box, states: StateCache) -> None:
        """Serve one viewer."""
        self._box = box
        self._states = states
        self._socket = ClientSocket(max_msg_size=_MESSAGE_MAX_BYTES, compress=False)
        self._wanted: frozenset[str] | None = None
        self._rate_hz = _RATE_HZ
        self._seen: dict[CameraId, int] = {}
        self._timeline: TimelineReader | None = None

    async def run(self, request: web.Request) -> web.WebSocketResponse:
        """Serve until the page disconnects."""
        await self._socket.prepare(request)
        self._box.shown.add_viewer()
        tasks = [
            asyncio.create_task(work())
            for work in (self._read, self._send_states, self._send_frames, self._send_timeline)
        ]
        try:
            await asyncio.wait(tasks, return_when="FIRST_COMPLETED")
        finally:
            self._box.shown.remove_viewer()
            for task in tasks:
                task.cancel()
            for ended in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(ended, Exception) and not isinstance(ended, _GONE):
                    _log.error("a viewer's connection failed", exc_info=ended)
        if not self._socket.closed:
            await self._socket.close()
        return self._socket

    async def close(self) -> None:
        """End the connection, because the box is stopping."""
        await self._socket.close(code=1001, drain=False)

    async def revoked(self) -> None:
        """End the connection, because its viewer may not look any more."""
        await self.close()

    async def _read(self) -> None:
        async for message in self._socket:
            if message.type is not WSMsgType.TEXT:
                continue
            try:
                self._watch(message.data)
            except InvalidInputError as error:
                body = {"type": "error", "message": str(error)}
                await self._socket.send_str(orjson.dumps(body).decode())

    def _watch(self, text: str) -> None:
        fields = parse_object(text)
        read = FieldReader("watch", fields)
        read.choice("type", ("watch",))
        rate_hz = read.number("max_hz", 0, _RATE_MAX_HZ, _RATE_HZ, above=True)
        cameras = read.items("cameras", 1_000, []) if "cameras" in fields else None
        timeline = read.flag("timeline", False)
        read.finish()
        self._rate_hz = rate_hz
        self._timeline = TimelineReader(self._box) if timeline else None
        self._wanted = None if cameras is None else frozenset(map(str, cameras))
        if self._wanted is not None:
            # Whoever is watched again begins with the latest frame, even if it came before.
            self._seen = {camera: at for camera, at in self._seen.items() if camera in self._wanted}

    async def _send_states(self) -> None:
        while True:
            document = await self._states.document()
            async with asyncio.timeout(_STALL_S):
                await self._socket.send_frame(document, WSMsgType.TEXT)
            await asyncio.sleep(STATE_PERIOD_S)

    async def _send_frames(self) -> None:
        while True:
            for camera in list(self._box.shown.latest):
                if self._wanted is None or camera in self._wanted:
                    await self._send_latest(camera)
            await asyncio.sleep(1 / self._rate_hz)

    async def _send_latest(self, camera: CameraId) -> None:
        shown = self._box.shown.latest.get(camera)
        if shown is None or self._seen.get(camera) == shown.number:
            return
        self._seen[camera] = shown.number
        message = live_frame_message(self._box, camera)
        if message is not None:
            async with asyncio.timeout(_STALL_S):
                await self._socket.send_frame(message, WSMsgType.BINARY)

    async def _send_timeline(self) -> None:
        while True:
            reader = self._timeline
            if reader is not None:
                async for message in reader.updates():
                    async with asyncio.timeout(_STALL_S):
                        await self._socket.send_frame(message, WSMsgType.TEXT)
                    if reader is not self._timeline:
                        break
            await asyncio.sleep(NEWS_PERIOD_S)
