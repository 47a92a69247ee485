"""GET /v1/journal: the journal of the last minute as a file. docs/how-to/journal.md."""

import asyncio

from aiohttp import web

from edgebox.domain.access import Scope
from edgebox.runtime.journal import NoJournalError
from edgebox.runtime.recordings import compressed, file_name
from edgebox.web.listening import sending
from edgebox.web.routes import Answer, Route
from edgebox.web.web_context import WebContext


async def _recording(context: WebContext, request: web.Request) -> web.StreamResponse:
    pieces = compressed(context.journal.recording())
    response = web.StreamResponse(
        headers={
            "Content-Type": "application/gzip",
            "Content-Disposition": f'attachment; filename="{file_name()}"',
        }
    )
    await response.prepare(request)
    sent_bytes = 0
    with sending(request, lambda: sent_bytes):
        while piece := await asyncio.to_thread(next, pieces, b""):
            await response.write(piece)
            sent_bytes += len(piece)
        await response.write_eof()
    return response


ROUTES = (
    Route(
        method="GET",
        path="/v1/journal",
        answer=_recording,
        scope=Scope.OPERATOR,
        summary="Download the journal",
        doc="The last minute of every decision, which `edgebox replay` reproduces.",
        answers=(
            Answer("JSON lines, compressed with gzip.", None, content_type="application/gzip"),
        ),
        problems=(NoJournalError,),
    ),
)
