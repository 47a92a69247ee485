"""Routes of the two WebSockets: the cameras' and the page's."""

from aiohttp import web

from edgebox.web.request_limits import TooManyViewersError
from edgebox.web.routes import Route
from edgebox.web.stream import CameraSession
from edgebox.web.ui import Viewer
from edgebox.web.web_context import WebContext


async def _stream(context: WebContext, request: web.Request) -> web.StreamResponse:
    session = CameraSession(context.box, context.config.limits, request.remote or "?")
    context.connections.add(session)
    try:
        return await session.run(request)
    finally:
        context.connections.discard(session)


async def _ui(context: WebContext, request: web.Request) -> web.StreamResponse:
    viewer = Viewer(context.box, context.states)
    with context.requests.viewer(request.remote):
        context.connections.add(viewer)
        try:
            return await viewer.run(request)
        finally:
            context.connections.discard(viewer)


ROUTES = (
    Route(
        method="GET",
        path="/v1/stream",
        answer=_stream,
        summary="A camera's WebSocket: frames in, results and advice out "
        "(docs/reference/protocol.md)",
        needs_ready=True,
        kind="websocket",
    ),
    Route(
        method="GET",
        path="/v1/ui",
        answer=_ui,
        summary="The page's WebSocket: state documents and live frames "
        "(docs/reference/http-api.md)",
        problems=(TooManyViewersError,),
        kind="websocket",
    ),
)
