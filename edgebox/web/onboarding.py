"""Routes for adding a camera: the browser camera's page and the box's addresses."""

from aiohttp import web

from edgebox.domain.access import Scope
from edgebox.web.addresses import reachable_at
from edgebox.web.identification import has_tls, port_of
from edgebox.web.page import PageMissingError, page_file
from edgebox.web.routes import Answer, Route, json_response
from edgebox.web.schemas import BOOLEAN, TEXT, Schema, array, described, record
from edgebox.web.web_context import WebContext

_MAY_USE_CAMERA = {
    "Permissions-Policy": "camera=(self), screen-wake-lock=(self), microphone=(), geolocation=()"
}
_ADDRESSES = Schema(
    "Addresses",
    record(
        only_here=described(BOOLEAN, "The box listens for its own machine only"),
        tls=described(BOOLEAN, "It speaks TLS there: https:// and wss:// lead to it"),
        addresses=described(
            array(TEXT), "host:port under which other machines reach the box, the most likely first"
        ),
    ),
)


async def _browser_camera(context: WebContext, request: web.Request) -> web.StreamResponse:
    return page_file("camera.html", _MAY_USE_CAMERA)


async def _addresses(context: WebContext, request: web.Request) -> web.Response:
    hosts = reachable_at(context.config.server.host)
    port = port_of(request)
    return json_response(
        {
            "only_here": not hosts,
            "tls": has_tls(request),
            "addresses": [f"{_in_url(host)}:{port}" for host in hosts],
        }
    )


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


ROUTES = (
    Route(
        method="GET",
        path="/camera",
        answer=_browser_camera,
        scope=None,
        summary="The page that makes a phone or a laptop a camera",
        problems=(PageMissingError,),
        any_origin=True,
        kind="page",
    ),
    Route(
        method="GET",
        path="/v1/addresses",
        answer=_addresses,
        scope=Scope.VIEWER,
        summary="Where other machines reach this box",
        answers=(Answer("The addresses that the box knows.", _ADDRESSES),),
    ),
)
