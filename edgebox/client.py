"""Client of a box: `subscribe` yields results of its cameras, `watched_camera` frames of one.

`subscribe` connects again whenever the connection breaks. Results that end meanwhile are not sent
later: a box keeps none.
"""

import asyncio
import contextlib
import random
import struct
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson

from edgebox.domain.errors import EdgeboxError, InvalidInputError
from edgebox.link.backoff import Backoff
from edgebox.link.box_address import (
    OTHER_CERTIFICATE,
    UNKNOWN_CERTIFICATE,
    authorization,
    fingerprint_of,
    http_url,
    stream_url,
)
from edgebox.link.connection_errors import explained

_SILENT_S = 45.0
"""The box sends something every 15 s."""
_LINE_BYTES_MAX = 1 << 22
_ANSWER_S = 30.0
_CONNECT_S = 10.0
_FRAME_MAX_BYTES = 64 << 20
_FOR_NOW = (408, 429)
"""Statuses of a box that was too slow or asked too often, maybe by others at the same address."""


class SubscriptionRefusedError(EdgeboxError):
    """The box does not tell what was asked for, and would not if asked again."""

    http_status = 400
    code = "refused"


class TokenNeededError(SubscriptionRefusedError):
    """The box needs a token, and none was given, or one that it does not know."""


async def subscribe(
    server: str,
    query: Mapping[str, str | list[str]] | None = None,
    *,
    token: str | None = None,
    fingerprint: str | None = None,
    on_remark: Callable[[str], None] | None = None,
) -> AsyncGenerator[dict[str, Any]]:
    """Yield the messages of /v1/results for ever, over as many connections as it takes.

    Args:
        server: the box: "http://BOX:8787" (ws:// is understood, too, and BOX alone).
        query: the parameters of /v1/results: which cameras, which classes...
        token: a token of the scope viewer; None: a box that is open needs none.
        fingerprint: SHA-256 of the box's certificate, which is the only one accepted; None: any
            that the system trusts.
        on_remark: called with a sentence when a connection fails, and when one works again.

    Raises:
        InvalidInputError: `server`, `token` or `fingerprint` is malformed.
        SubscriptionRefusedError: the box says that the query or the token is wrong.
    """
    address = http_url(stream_url(server), "results")
    remark = on_remark or (lambda text: None)
    backoff, failed = Backoff(random.Random()), False
    timeout = aiohttp.ClientTimeout(total=None, connect=10, sock_read=_SILENT_S)
    trusted = None if fingerprint is None else aiohttp.Fingerprint(fingerprint_of(fingerprint))
    async with aiohttp.ClientSession(
        timeout=timeout,
        read_bufsize=_LINE_BYTES_MAX,
        headers=authorization(token),
        connector=None if trusted is None else aiohttp.TCPConnector(ssl=trusted),
    ) as client:
        while True:
            try:
                async for message in _connection(client, address, query or {}):
                    if failed:
                        remark(f"connected to {server} again")
                    failed = False
                    backoff.reset()
                    yield message
                why = "the box ended the connection"
            except aiohttp.ServerFingerprintMismatch:
                why = OTHER_CERTIFICATE
            except aiohttp.ClientConnectorCertificateError as error:
                why = f"{UNKNOWN_CERTIFICATE} ({error.certificate_error})"
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                why = explained(error)
            if not failed:
                remark(f"{why}; trying again until it works")
            failed = True
            await asyncio.sleep(backoff.wait_s())


async def get_document(
    server: str, path: str, *, token: str | None = None, fingerprint: str | None = None
) -> dict[str, Any]:
    """Return a JSON document of a box: that of /v1/PATH.

    Args:
        server: the box, as for `subscribe`.
        path: of the document, without "/v1/".
        token: one of the scope that it needs.
        fingerprint: as for `subscribe`.

    Raises:
        InvalidInputError: `server`, `token` or `fingerprint` is malformed.
        SubscriptionRefusedError: the box does not give it, or cannot be reached.
    """
    address = http_url(stream_url(server), path)
    trusted = True if fingerprint is None else aiohttp.Fingerprint(fingerprint_of(fingerprint))
    timeout = aiohttp.ClientTimeout(total=_ANSWER_S)
    with _telling_why(server):
        async with (
            aiohttp.ClientSession(timeout=timeout, headers=authorization(token)) as client,
            client.get(address, ssl=trusted) as response,
        ):
            body = await response.read()
    if response.status != 200:
        raise _refusal(response.status, body)
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        raise SubscriptionRefusedError(_said(body))
    return found


@contextlib.contextmanager
def _telling_why(server: str) -> Iterator[None]:
    """Say in words why a box cannot be reached.

    Raises:
        SubscriptionRefusedError: it cannot.
    """
    try:
        yield
    except aiohttp.ServerFingerprintMismatch:
        raise SubscriptionRefusedError(f"{server}: {OTHER_CERTIFICATE}") from None
    except aiohttp.ClientConnectorCertificateError as error:
        why = f"{UNKNOWN_CERTIFICATE} ({error.certificate_error})"
        raise SubscriptionRefusedError(f"{server}: {why}") from None
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        why = f"it cannot be reached: {explained(error)}"
        raise SubscriptionRefusedError(f"{server}: {why}") from None


@dataclass(frozen=True, slots=True)
class BoxAccess:
    """A box, and what it is shown."""

    server: str
    """Its address, as for `subscribe`."""
    token: str | None = None
    """One of the scope viewer; None: a box that is open needs none."""
    fingerprint: str | None = None
    """As for `subscribe`."""


@dataclass(frozen=True, slots=True)
class Viewed:
    """One frame of a camera."""

    jpeg: bytes
    width_px: int
    """Width of the camera's own picture; the JPEG may be smaller."""
    height_px: int


@contextlib.asynccontextmanager
async def watched_camera(
    box: BoxAccess, camera: str, rate_hz: float
) -> AsyncIterator[AsyncIterator[Viewed]]:
    """Watch one camera of a box: its frames as the page receives them. http-api.md.

    Frames are as large as the camera sends them over its link at that moment.

    Args:
        box: where it is.
        camera: its name.
        rate_hz: largest frame rate.

    Raises:
        InvalidInputError: `box` is malformed, or has no such camera connected.
        SubscriptionRefusedError: the box cannot be reached, or does not show its cameras.
    """
    # A WebSocket that is refused tells only a status; the document that it sends first tells why.
    state = await get_document(box.server, "state", token=box.token, fingerprint=box.fingerprint)
    _insist_on_camera(state, box.server, camera)
    trusted = fingerprint_of(box.fingerprint) if box.fingerprint is not None else None
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S)
    async with aiohttp.ClientSession(timeout=timeout, headers=authorization(box.token)) as client:
        with _telling_why(box.server):
            try:
                socket = await client.ws_connect(
                    http_url(stream_url(box.server), "ui"),
                    max_msg_size=_FRAME_MAX_BYTES,
                    ssl=True if trusted is None else aiohttp.Fingerprint(trusted),
                )
            except aiohttp.WSServerHandshakeError as error:
                raise _not_shown(box.server, error.status) from None
        async with socket:
            request = {"type": "watch", "cameras": [camera], "max_hz": rate_hz}
            await socket.send_str(orjson.dumps(request).decode())
            yield _frames(socket, box.server, camera)


async def _frames(
    socket: aiohttp.ClientWebSocketResponse, server: str, camera: str
) -> AsyncIterator[Viewed]:
    """Yield frames until the box ends the connection."""
    async for message in socket:
        if message.type is aiohttp.WSMsgType.TEXT:
            document = orjson.loads(message.data)
            if document.get("type") == "state":
                _insist_on_camera(document, server, camera)
        elif message.type is aiohttp.WSMsgType.BINARY:
            (length,) = struct.unpack_from("<I", message.data)
            header = orjson.loads(message.data[4 : 4 + length])
            if header["camera"] == camera:  # otherwise sent before the request arrived
                yield Viewed(message.data[4 + length :], header["width_px"], header["height_px"])


def _insist_on_camera(state: Mapping[str, Any], server: str, camera: str) -> None:
    cameras = state.get("cameras")
    if not isinstance(cameras, list):
        raise SubscriptionRefusedError(f"{server}: this is no edgebox: its state has no cameras")
    connected = [each["id"] for each in cameras if each["connected"]]
    if camera not in connected:
        raise InvalidInputError(
            f"{server}: no camera {camera!r} is connected there "
            f"(connected: {', '.join(connected) or 'none'})"
        )


async def next_within(frames: AsyncIterator[Viewed], seconds: float) -> Viewed | None:
    """Return the next frame; None: none came in time, or the box disconnected."""
    try:
        async with asyncio.timeout(seconds):
            return await anext(frames, None)
    except TimeoutError:
        return None


async def _connection(
    client: aiohttp.ClientSession, address: str, query: Mapping[str, str | list[str]]
) -> AsyncGenerator[dict[str, Any]]:
    """Yield the messages of one connection.

    Raises:
        SubscriptionRefusedError: the box says that the query is wrong.
        aiohttp.ClientError, TimeoutError: it cannot be reached now, or no longer.
    """
    headers = {"Accept": "text/event-stream"}
    async with client.get(address, params=query, headers=headers) as response:
        if 400 <= response.status < 500 and response.status not in _FOR_NOW:
            raise _refusal(response.status, await response.read())
        if response.status != 200:
            raise aiohttp.ClientPayloadError(_said(await response.read()))
        async for line in response.content:
            if line.startswith(b"data: "):
                message: dict[str, Any] = orjson.loads(line[6:])
                yield message


def _refusal(status: int, body: bytes) -> SubscriptionRefusedError:
    kind = TokenNeededError if status == 401 else SubscriptionRefusedError
    return kind(_said(body))


def _not_shown(server: str, status: int) -> SubscriptionRefusedError:
    """Return the error for a box that tells its state and refuses its pictures."""
    why = f"it refuses its pictures, with status {status}"
    if status == 503:
        why += ": too many are watching (limits.viewers_max). Close a page, or try again"
    return SubscriptionRefusedError(f"{server}: {why}")


def _said(body: bytes) -> str:
    """Return what a box's problem document says, or what else answered there."""
    with contextlib.suppress(orjson.JSONDecodeError, KeyError, TypeError):
        return str(orjson.loads(body)["detail"])
    return f"this is no edgebox, or an old one: it said {body[:80]!r}"
