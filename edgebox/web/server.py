"""The HTTP server: collects the routes of every module, starts and stops in order."""

import errno
import functools
import os
import ssl

from aiohttp import web

from edgebox.domain.errors import EdgeboxError
from edgebox.web import (
    access_routes,
    camera_list,
    configuration,
    deepstack,
    explanation,
    fleet,
    fleet_history,
    fleet_settings_routes,
    health,
    history_routes,
    infer,
    job_routes,
    model_files,
    model_list,
    onboarding,
    overview,
    page,
    picture_routes,
    pipeline_list,
    prometheus,
    recording,
    results_stream,
    sockets,
    source_routes,
    system,
    timeline_routes,
)
from edgebox.web.announcing import Announcement
from edgebox.web.api_discovery import kinds_of, routes_about
from edgebox.web.connections import Connections, descriptors_for_connections
from edgebox.web.fleet_member import FleetMember
from edgebox.web.hosts import known_hosts_only, name_clients
from edgebox.web.listening import Listening, headers_complete, listen
from edgebox.web.problems import problem_documents
from edgebox.web.refusal_pacing import RefusalBudget
from edgebox.web.routes import Route, guarded
from edgebox.web.v2.kserve_routes import open_inference
from edgebox.web.web_context import WebContext
from edgebox.web.zmq_detector import ZmqDetector

_DECLARED: tuple[Route, ...] = (
    *page.ROUTES,
    *onboarding.ROUTES,
    *access_routes.ROUTES,
    *health.ROUTES,
    *prometheus.ROUTES,
    *sockets.ROUTES,
    *infer.ROUTES,
    *results_stream.ROUTES,
    *overview.ROUTES,
    *fleet.ROUTES,
    *fleet_settings_routes.ROUTES,
    *fleet_history.ROUTES,
    *source_routes.ROUTES,
    *camera_list.ROUTES,
    *picture_routes.ROUTES,
    *explanation.ROUTES,
    *model_files.ROUTES,
    *model_list.ROUTES,
    *pipeline_list.ROUTES,
    *job_routes.ROUTES,
    *configuration.ROUTES,
    *system.ROUTES,
    *timeline_routes.ROUTES,
    *history_routes.ROUTES,
    *recording.ROUTES,
)
ROUTES = (*_DECLARED, *routes_about(_DECLARED))
"""All routes except the page's assets, /v2 and /v1/vision."""
_PROBLEMS = kinds_of(ROUTES)

_SHUTDOWN_S = 3.0
_HASHED = "public, max-age=31536000, immutable"

_SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Content-Security-Policy": (
        # 'self' stands for the box's own WebSockets, too, and no style is written into the page.
        "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'self'"
    ),
}


class Server:
    """The web side of one box."""

    def __init__(self, context: WebContext) -> None:
        """Serve a box; `start` begins to listen."""
        self._context = context
        context.access.on_change = context.close_revoked
        self._runner: web.AppRunner | None = None
        self._listening: Listening | None = None
        self._announcement = Announcement(
            context.config.server, functools.partial(context.box.notices.publish, "warning")
        )
        self._detector = ZmqDetector(context)
        self._fleet = fleet.Fleet(context)
        self.port = 0
        """The port that is listened on, once started."""

    @property
    def fleet(self) -> FleetMember | None:
        """This box as one of a fleet; None: it is alone."""
        return self._context.fleet

    async def start(
        self, host: str, port: int, tls: tuple[ssl.SSLContext, str] | None = None
    ) -> None:
        """Listen, with TLS if there is a context for it, and the fingerprint of its certificate.

        Port 0 lets the system choose.

        Raises:
            EdgeboxError: the address cannot be listened on.
            ConfigError: the endpoint of `zmq_detector` cannot.
        """
        self._runner = web.AppRunner(
            application(self._context), shutdown_timeout=_SHUTDOWN_S, handle_signals=False
        )
        await self._runner.setup()
        try:
            self._listening = await listen(
                self._runner,
                host,
                port,
                backlog=1024,
                connections=self._connections(),
                limits=self._context.config.limits,
                budget=RefusalBudget(),
                tls=None if tls is None else tls[0],
            )
        except OSError as error:
            await self._runner.cleanup()
            self._runner = None
            raise EdgeboxError(f"cannot listen on {host}:{port}: {_why_not(error)}") from error
        try:
            await self._detector.start()
        except BaseException:
            await self.stop()
            raise
        self.port = self._listening.port
        self._announcement.start(self.port)
        self._fleet.start(self.port, None if tls is None else tls[1])

    def _connections(self) -> Connections:
        context = self._context
        connections = Connections(
            context.config.limits,
            context.requests.address_of,
            context.box.refusals.add_request,
            descriptors_for_connections(),
        )
        if connections.fewer:
            context.box.notices.publish(
                "warning",
                f"at most {connections.most} connections are accepted, fewer than limits."
                "cameras_max and limits.connections_max allow: this process may open too few "
                "files. Raise its limit (ulimit -n, LimitNOFILE)",
            )
        return connections

    async def stop(self) -> None:
        """Say goodbye to every camera, close every connection and stop listening."""
        await self._announcement.stop()
        await self._detector.stop()
        await self._fleet.drain()
        await self._context.close_all()
        if self._listening is not None:
            self._listening.close()
            self._listening = None
        if self._runner is not None:
            # Waits until the sessions have sent their last messages.
            await self._runner.cleanup()
            self._runner = None


def application(context: WebContext) -> web.Application:
    """Return the application with all routes."""
    uncounted = {route.path for route in ROUTES if route.kind == "websocket"}
    uncounted |= {route.path for route in health.ROUTES}
    guards = [
        headers_complete,
        name_clients(context.config.server),
        problem_documents(_PROBLEMS),
        context.requests.middleware(uncounted),
        known_hosts_only(context.config.server),
    ]
    app = web.Application(middlewares=guards, client_max_size=2**62)
    for route in ROUTES:
        answer = guarded(route, context)
        if route.method == "GET" and route.kind != "websocket":
            app.router.add_get(route.path, answer)  # answers HEAD, too
        else:
            app.router.add_route(route.method, route.path, answer)
    app.add_subapp("/v2", open_inference(context))
    app.add_subapp(deepstack.PATH, deepstack.deepstack(context))
    page.add_assets(app)
    app.on_response_prepare.append(_add_headers)
    return app


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:
    for name, value in _SECURITY_HEADERS.items():
        response.headers.setdefault(name, value)
    if request.path.startswith(f"{page.ASSETS}/") and response.status == 200:
        response.headers["Cache-Control"] = _HASHED


def _why_not(error: OSError) -> str:
    """Return why an address cannot be listened on, and what to do."""
    match error.errno:
        case errno.EADDRINUSE:
            do = "another program may use the port: stop it, or choose another one with --port"
        case errno.EACCES:
            do = "this user may not use ports as low as that: choose another one with --port"
        case _:
            do = "--host takes an address of this machine, or 0.0.0.0 for all of them"
    # Of several addresses asyncio writes the one that failed before the system's own words.
    known = error.errno is not None and error.errno > 0
    why = os.strerror(error.errno or 0).lower() if known else error.strerror or str(error)
    return f"{why}; {do}"
