"""Client of a box for Python programs: `subscribe` yields results of its cameras.

Connects again whenever the connection breaks. Results that end meanwhile are not sent later: a box
keeps none.
"""

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any

import aiohttp
import orjson

from edgebox.domain.errors import EdgeboxError
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
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout, headers=authorization(token)) as client,
            client.get(address, ssl=trusted) as response,
        ):
            body = await response.read()
    except aiohttp.ServerFingerprintMismatch:
        raise SubscriptionRefusedError(f"{server}: {OTHER_CERTIFICATE}") from None
    except aiohttp.ClientConnectorCertificateError as error:
        why = f"{UNKNOWN_CERTIFICATE} ({error.certificate_error})"
        raise SubscriptionRefusedError(f"{server}: {why}") from None
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        why = f"it cannot be reached: {explained(error)}"
        raise SubscriptionRefusedError(f"{server}: {why}") from None
    if response.status != 200:
        raise _refusal(response.status, body)
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        raise SubscriptionRefusedError(_said(body))
    return found


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


def _said(body: bytes) -> str:
    """Return what a box's problem document says, or what else answered there."""
    with contextlib.suppress(orjson.JSONDecodeError, KeyError, TypeError):
        return str(orjson.loads(body)["detail"])
    return f"this is no edgebox, or an old one: it said {body[:80]!r}"
