"""Owns the HTTP server: routes, errors as JSON, the page's files, an orderly end."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import orjson
from aiohttp import web

from edgebox.config import LimitParameters
from edgebox.domain.errors import EdgeboxError
from edgebox.runtime.box import Box
from edgebox.runtime.journal import Journal
from edgebox.runtime.looplag import LoopLag
from edgebox.runtime.recordings import compressed, file_name
from edgebox.web.infer import infer
from edgebox.web.prometheus import CONTENT_TYPE, metrics_text
from edgebox.web.results import Results
from edgebox.web.stream import CameraSession
from edgebox.web.ui import StateCache, Viewer
from edgebox.web.v2.routes import open_inference

_log = logging.getLogger(__name__)

PAGE = Path(__file__).parent / "page"
_SHUTDOWN_S = 3.0
_HASHED = "public, max-age=31536000, immutable"

_SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' blob: data:; style-src 'self' 'unsafe-inline'; "
        "connect-src 'self' ws: wss:"
    ),
}


class NotReadyError(EdgeboxError):
    """The box is still starting, or is stopping."""

    http_status = 503
    code = "not_ready"


class PageMissingError(EdgeboxError):
    """The page's files are not there: a source tree whose page was never built."""

    http_status = 404
    code = "page_missing"


class ForeignOriginError(EdgeboxError):
    """A web page of another site tried to use this box through its visitor's browser."""

    http_status = 403
    code = "foreign_origin"


class Server:
    """The web side of one box."""

    def __init__(self, box: Box, limits: LimitParameters, lag: LoopLag, journal: Journal) -> None:
        """Serve `box`; nothing listens before `start`."""
        self._box = box
        self._journal = journal
        self._limits = limits
        self._lag = lag
        self._states = StateCache(box, lag)
        self._sessions: set[CameraSession] = set()
        self._viewers: set[Viewer] = set()
        self._runner: web.AppRunner | None = None
        self.port = 0
        """The port that is listened on, once started."""

    async def start(self, host: str, port: int) -> None:
        """Listen; port 0 lets the system choose.

        Raises:
            EdgeboxError: the address cannot be listened on.
        """
        app = web.Application(middlewares=[_errors_as_json], client_max_size=2**62)
        app.add_routes(
            [
                web.get("/", self._page),
                web.get("/healthz", self._health),
                web.get("/readyz", self._ready),
                web.get("/metrics", self._metrics),
                web.get("/v1/stream", self._stream),
                web.post("/v1/infer", self._infer),
                web.get("/v1/state", self._state),
                web.get("/v1/journal", self._recording),
                web.get("/v1/ui", self._ui),
            ]
        )
        Results(self._box, self._admit).add_to(app)
        app.add_subapp("/v2", open_inference(self._box, self._limits, self._admit))
        if (PAGE / "assets").is_dir():
            app.router.add_static("/assets", PAGE / "assets")
        app.on_response_prepare.append(_add_headers)
        self._runner = web.AppRunner(
            app,
            access_log=None,
            shutdown_timeout=_SHUTDOWN_S,
            handle_signals=False,
            auto_decompress=False,  # bodies.py does it, beside the event loop
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port, backlog=1024)
        try:
            await site.start()
        except OSError as error:
            await self._runner.cleanup()
            self._runner = None
            raise EdgeboxError(
                f"cannot listen on {host}:{port}: {error.strerror or error}; another program may "
                "use the port: stop it, or choose another one with --port"
            ) from error
        sockets = self._runner.addresses
        self.port = sockets[0][1]

    async def stop(self) -> None:
        """Say goodbye to every camera, close every connection and stop listening."""
        for session in list(self._sessions):
            session.shut_down()
        for viewer in list(self._viewers):
            await viewer.close()
        if self._runner is not None:
            # Waits for what the sessions still have to say.
            await self._runner.cleanup()
            self._runner = None

    # -- routes -----------------------------------------------------------------------------

    async def _page(self, request: web.Request) -> web.StreamResponse:
        index = PAGE / "index.html"
        if not index.is_file():
            raise PageMissingError("the page is not built; run `make page` in the source tree")
        return web.FileResponse(index, headers={"Cache-Control": "no-cache"})

    async def _health(self, request: web.Request) -> web.Response:
        return _json({"status": "ok"})

    async def _ready(self, request: web.Request) -> web.Response:
        box = self._box
        return _json(
            {"ready": box.ready, "reason": box.not_ready_because}, 200 if box.ready else 503
        )

    async def _metrics(self, request: web.Request) -> web.Response:
        return web.Response(
            body=await metrics_text(self._box, self._lag), headers={"Content-Type": CONTENT_TYPE}
        )

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        self._admit(request)
        session = CameraSession(self._box, self._limits, request.remote or "?")
        self._sessions.add(session)
        try:
            return await session.run(request)
        finally:
            self._sessions.discard(session)

    async def _ui(self, request: web.Request) -> web.StreamResponse:
        _refuse_foreign_pages(request)
        viewer = Viewer(self._box, self._states)
        self._viewers.add(viewer)
        try:
            return await viewer.run(request)
        finally:
            self._viewers.discard(viewer)

    async def _infer(self, request: web.Request) -> web.Response:
        self._admit(request)
        return await infer(self._box, self._limits, request)

    async def _state(self, request: web.Request) -> web.Response:
        return web.Response(body=await self._states.document(), content_type="application/json")

    async def _recording(self, request: web.Request) -> web.StreamResponse:
        _refuse_foreign_pages(request)
        pieces = compressed(self._journal.recording())
        response = web.StreamResponse(
            headers={
                "Content-Type": "application/gzip",
                "Content-Disposition": f'attachment; filename="{file_name()}"',
            }
        )
        await response.prepare(request)
        while piece := await asyncio.to_thread(next, pieces, b""):
            await response.write(piece)
        await response.write_eof()
        return response

    def _admit(self, request: web.Request) -> None:
        _refuse_foreign_pages(request)
        if not self._box.ready:
            raise NotReadyError(f"the box is not ready: {self._box.not_ready_because}")


def _refuse_foreign_pages(request: web.Request) -> None:
    """Refuse what another site's page sends: browsers allow it WebSockets to anywhere.

    Raises:
        ForeignOriginError: the browser names an origin that is not this box.
    """
    origin = request.headers.get("Origin")
    if origin is not None and origin.split("://", 1)[-1] != request.host:
        raise ForeignOriginError(f"pages of {origin} may not use this box")


def _json(document: object, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(document), status=status, content_type="application/json")


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:
    for name, value in _SECURITY_HEADERS.items():
        response.headers.setdefault(name, value)
    if request.path.startswith("/assets/") and response.status == 200:
        response.headers["Cache-Control"] = _HASHED


@web.middleware
async def _errors_as_json(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    try:
        return await handler(request)
    except EdgeboxError as error:
        return _error(error.http_status, error.code, str(error))
    except web.HTTPException as error:
        if error.status < 400:
            raise
        code = (error.reason or "error").lower().replace(" ", "_")
        return _error(error.status, code, f"{error.status}: {request.method} {request.path}")
    except Exception:
        _log.exception("%s %s failed", request.method, request.path)
        return _error(500, "internal", "the box failed on this request; its log says why")


def _error(status: int, code: str, message: str) -> web.Response:
    return _json({"error": {"code": code, "message": message}}, status)
