"""GET /v1/state: what the page shows, as one document. docs/http-api.md."""

from aiohttp import web

from edgebox.web.routes import JSON, Answer, Route
from edgebox.web.site import Site


async def _state(site: Site, request: web.Request) -> web.Response:
    return web.Response(body=await site.states.document(), content_type=JSON)


ROUTES = (
    Route(
        method="GET",
        path="/v1/state",
        answer=_state,
        summary="What the page shows, as one document",
        answers=(Answer("The box and its cameras now.", {"type": "object"}),),
    ),
)
