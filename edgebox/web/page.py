"""Owns the page's files: `GET /` and what it loads."""

from pathlib import Path

from aiohttp import web

from edgebox.domain.errors import EdgeboxError
from edgebox.web.routes import Route
from edgebox.web.site import Site

PAGE = Path(__file__).parent / "page"
ASSETS = "/assets"


class PageMissingError(EdgeboxError):
    """The page's files are not there: a source tree whose page was never built."""

    http_status = 404
    code = "page_missing"
    title = "The page is not built"


def add_assets(app: web.Application) -> None:
    """Serve the files the page loads."""
    if (PAGE / "assets").is_dir():
        app.router.add_static(ASSETS, PAGE / "assets")


async def _page(site: Site, request: web.Request) -> web.StreamResponse:
    index = PAGE / "index.html"
    if not index.is_file():
        raise PageMissingError("the page is not built; run `make page` in the source tree")
    return web.FileResponse(index, headers={"Cache-Control": "no-cache"})


ROUTES = (
    Route(
        method="GET",
        path="/",
        answer=_page,
        summary="The page",
        problems=(PageMissingError,),
        any_origin=True,
        kind="page",
    ),
)
