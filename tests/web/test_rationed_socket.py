"""Sockets whose small frames are rationed: what is passed on, and who is told."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiohttp import WSMessage, WSMsgType, web

from edgebox.link.receipts import SMALL_FRAMES_BURST, MessageReceipts
from edgebox.web.rationed_socket import _MESSAGES_IN_A_ROW, ClientSocket, RationedSocket, _Watch

SMALL = b"\x81\x00"
"""A text frame without anything in it."""


class Transport:
    """Hands reads to whatever protocol it has."""

    def __init__(self, protocol: asyncio.Protocol) -> None:
        self.protocol = protocol

    def get_protocol(self) -> asyncio.Protocol:
        return self.protocol

    def set_protocol(self, protocol: asyncio.Protocol) -> None:
        self.protocol = protocol


class Protocol(asyncio.Protocol):
    """Keeps the calls that it gets."""

    def __init__(self) -> None:
        self.calls: list[object] = []

    def data_received(self, data: bytes) -> None:
        self.calls.append(data)

    def eof_received(self) -> bool:
        self.calls.append("eof")
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self.calls.append(exc)

    def pause_writing(self) -> None:
        self.calls.append("pause")

    def resume_writing(self) -> None:
        self.calls.append("resume")


class Scene:
    """A socket on a transport, and how often it was told of a flood."""

    def __init__(self) -> None:
        self.floods = 0
        self.protocol = Protocol()
        self.transport = Transport(self.protocol)
        self.request = cast(web.BaseRequest, SimpleNamespace(transport=self.transport))
        self.socket = RationedSocket(MessageReceipts(), lambda: 0, self._flooded)

    def _flooded(self) -> None:
        self.floods += 1


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_watch_passes_on_what_is_no_read() -> None:
    protocol, error = Protocol(), ConnectionResetError()
    watch = _Watch(protocol, lambda data: b"" if data == b"refused" else data)
    watch.data_received(b"passed")
    watch.data_received(b"refused")
    watch.pause_writing()
    watch.resume_writing()
    assert watch.eof_received()
    watch.connection_lost(error)
    assert protocol.calls == [b"passed", "pause", "resume", "eof", error]


async def test_reads_are_passed_on_until_there_are_too_many_which_is_told_once(
    monkeypatch: pytest.MonkeyPatch, scene: Scene
) -> None:
    async def prepare(self: object, request: object) -> None: ...

    monkeypatch.setattr(web.WebSocketResponse, "prepare", prepare)
    await scene.socket.prepare(scene.request)
    within = SMALL * SMALL_FRAMES_BURST
    scene.transport.protocol.data_received(within)
    assert scene.protocol.calls == [within]
    scene.transport.protocol.data_received(SMALL)
    scene.transport.protocol.data_received(SMALL)
    assert scene.protocol.calls == [within]
    assert scene.floods == 1


async def test_a_socket_that_has_begun_is_not_watched_again(
    monkeypatch: pytest.MonkeyPatch, scene: Scene
) -> None:
    """aiohttp prepares it once more when its handler has ended; TLS has no protocol any more then.

    That ended in a stack trace where the box itself had closed the connection.
    """

    async def prepare(self: object, request: object) -> None: ...

    monkeypatch.setattr(web.WebSocketResponse, "prepare", prepare)
    await scene.socket.prepare(scene.request)
    monkeypatch.setattr(web.WebSocketResponse, "prepared", True)
    scene.transport.protocol = cast(asyncio.Protocol, None)
    await scene.socket.prepare(scene.request)
    assert scene.transport.protocol is None


async def test_what_becomes_no_websocket_is_not_watched(
    monkeypatch: pytest.MonkeyPatch, scene: Scene
) -> None:
    async def prepare(self: object, request: object) -> None:
        assert scene.transport.protocol is not scene.protocol, "it is watched from here on"
        raise web.HTTPBadRequest

    monkeypatch.setattr(web.WebSocketResponse, "prepare", prepare)
    with pytest.raises(web.HTTPBadRequest):
        await scene.socket.prepare(scene.request)
    assert scene.transport.protocol is scene.protocol


async def test_others_have_a_turn_however_many_messages_are_there(
    monkeypatch: pytest.MonkeyPatch, scene: Scene
) -> None:
    message = WSMessage(WSMsgType.TEXT, "", None)

    async def receive(self: object, timeout: float | None = None) -> WSMessage:  # noqa: ASYNC109
        return message

    monkeypatch.setattr(web.WebSocketResponse, "receive", receive)
    turns: list[int] = []
    for turn in range(3):
        asyncio.get_running_loop().call_soon(turns.append, turn)
        for at in range(_MESSAGES_IN_A_ROW):
            assert await scene.socket.receive() is message
            assert at > 0 or turns == list(range(turn)), "not for every message"
        assert turns == list(range(turn + 1))


async def test_a_programs_socket_is_closed_when_it_is_flooded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    closed = asyncio.Event()
    how: dict[str, Any] = {}

    async def close(self: object, **given: Any) -> bool:
        how.update(given)
        closed.set()
        return True

    monkeypatch.setattr(ClientSocket, "close", close)
    socket = ClientSocket()
    for _ in range(2):
        socket._read(SMALL * (SMALL_FRAMES_BURST + 1))
    await closed.wait()
    assert how["code"] == 1008
    assert b"3000 WebSocket frames a second" in how["message"]
