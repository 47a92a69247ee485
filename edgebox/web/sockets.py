"""Routes of the two WebSockets: the cameras' and the page's."""

from aiohttp import web

from edgebox.domain.access import Scope
from edgebox.web.hosts import client_of
from edgebox.web.identification import identities_of, sender_of
from edgebox.web.live_frame import LiveFrameHeader
from edgebox.web.request_limits import TooManyViewersError
from edgebox.web.routes import Route
from edgebox.web.state_types import State
from edgebox.web.stream import CameraSession
from edgebox.web.typed_schemas import schema_of
from edgebox.web.ui import Viewer
from edgebox.web.web_context import WebContext


async def _stream(context: WebContext, request: web.Request) -> web.StreamResponse:
    session = CameraSession(
        context.box,
        context.config.limits,
        client_of(request).address,
        identities_of(request),
        context.access.publisher,
        fleet=context.fleet,
    )
    with context.connected(session, lambda: session.identity):
        return await session.run(request)


async def _ui(context: WebContext, request: web.Request) -> web.StreamResponse:
    viewer, identity = Viewer(context.box, context.states), sender_of(request)
    with (
        context.requests.viewer(client_of(request)),
        context.connected(viewer, lambda: identity),
    ):
        return await viewer.run(request)


ROUTES = (
    Route(
        method="GET",
        path="/v1/stream",
        answer=_stream,
        scope=Scope.CAMERA,
        summary="A camera's WebSocket: frames in, results and advice out "
        "(docs/reference/protocol.md)",
        needs_ready=True,
        kind="websocket",
    ),
    Route(
        method="GET",
        path="/v1/ui",
        answer=_ui,
        scope=Scope.VIEWER,
        summary="The page's WebSocket: state documents and live frames "
        "(docs/reference/http-api.md)",
        problems=(TooManyViewersError,),
        kind="websocket",
        messages=(schema_of(State), schema_of(LiveFrameHeader)),
    ),
)
