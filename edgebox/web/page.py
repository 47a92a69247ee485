"""Serves the page's files: `GET /` and the files it loads."""

from collections.abc import Mapping

from aiohttp import web

from edgebox.domain.errors import EdgeboxError
from edgebox.web.page_folder import PAGE
from edgebox.web.routes import Route
from edgebox.web.web_context import WebContext

ASSETS = "/assets"


class PageMissingError(EdgeboxError):
    """The page's files are missing: this source tree's page was never built."""

    http_status = 404
    code = "page_missing"
    title = "The page is not built"


def add_assets(app: web.Application) -> None:
    """Serve the files the page loads."""
    if (PAGE / "assets").is_dir():
        app.router.add_static(ASSETS, PAGE / "assets")


def page_file(name: str, headers: Mapping[str, str] | None = None) -> web.FileResponse:
    """Answer with one of the built pages.

    Raises:
        PageMissingError: it was never built.
    """
    file = PAGE / name
    if not file.is_file():
        raise PageMissingError("the page is not built; run `make page` in the source tree")
    return web.FileResponse(file, headers={"Cache-Control": "no-cache", **(headers or {})})


async def _page(context: WebContext, request: web.Request) -> web.StreamResponse:
    return page_file("index.html")


ROUTES = (
    Route(
        method="GET",
        path="/",
        answer=_page,
        scope=None,
        summary="The page",
        problems=(PageMissingError,),
        any_origin=True,
        kind="page",
    ),
)
