"""The listening socket, and the answer to requests that are not HTTP.

A request that cannot be parsed never reaches a route, so the middleware cannot answer it with a
problem document. The HTTP library would log a stack trace each time, with which anybody could fill
the log.
"""

import asyncio
import logging
import ssl
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from edgebox.web.problems import bad_request

_log = logging.getLogger(__name__)
_MESSAGE_MAX = 200
"""Longest error message of the parser, which quotes the input."""

_NONE: Any = None
"""Disables the log of requests: the library accepts None, but its annotation does not."""


class Protocol(web.RequestHandler):
    """One connection, which answers malformed requests with a problem document."""

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer and close; log a stack trace only for errors of the box."""
        if not isinstance(exc, HttpProcessingError) or request.writer.output_size > 0:
            return super().handle_error(request, status, exc, message)
        said = " ".join(exc.message.split())[:_MESSAGE_MAX]
        _log.info("%s sent what is no HTTP: %s", request.remote, said)
        answer = bad_request(f"this is no HTTP request that the box understands: {said}")
        answer.force_close()
        return answer


async def listen(
    runner: web.AppRunner,
    host: str,
    port: int,
    backlog: int,
    tls: ssl.SSLContext | None = None,
) -> asyncio.Server:
    """Listen for an application.

    Raises:
        OSError: the address cannot be listened on.
    """
    server = runner.server
    assert server is not None
    loop = asyncio.get_running_loop()
    return await loop.create_server(
        # Bodies are decompressed outside the event loop (`bodies.py`).
        lambda: Protocol(server, loop=loop, access_log=_NONE, auto_decompress=False),
        host,
        port,
        backlog=backlog,
        ssl=tls,
    )
