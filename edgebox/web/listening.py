"""Owns the listening socket, and the answer to whoever does not speak HTTP on it.

What cannot be parsed never reaches a route, so the middleware cannot make a problem document of it;
and the HTTP library would log a stack trace each time, which lets anybody fill a log.
"""

import asyncio
import logging
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from edgebox.web.problems import bad_request

_log = logging.getLogger(__name__)
_SAID_MAX = 200
"""Characters of a parser's complaint, which quotes what came."""

_NONE: Any = None
"""No log of requests: the library takes it, but its annotation does not say so."""


class Protocol(web.RequestHandler):
    """One connection, which answers what is no HTTP with a problem document."""

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer and close; only what the box itself did wrong has a stack trace."""
        if not isinstance(exc, HttpProcessingError) or request.writer.output_size > 0:
            return super().handle_error(request, status, exc, message)
        said = " ".join(exc.message.split())[:_SAID_MAX]
        _log.info("%s sent what is no HTTP: %s", request.remote, said)
        answer = bad_request(f"this is no HTTP request that the box understands: {said}")
        answer.force_close()
        return answer


async def listen(runner: web.AppRunner, host: str, port: int, backlog: int) -> asyncio.Server:
    """Listen for an application that was set up.

    Raises:
        OSError: the address cannot be listened on.
    """
    server = runner.server
    assert server is not None
    loop = asyncio.get_running_loop()
    return await loop.create_server(
        # Bodies are unpacked beside the event loop (`bodies.py`).
        lambda: Protocol(server, loop=loop, access_log=_NONE, auto_decompress=False),
        host,
        port,
        backlog=backlog,
    )
