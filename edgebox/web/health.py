"""Health checks for process supervisors: liveness and readiness."""

from aiohttp import web

from edgebox.web.routes import Answer, Route, json_response
from edgebox.web.schemas import BOOLEAN, TEXT, Schema, constant, record
from edgebox.web.web_context import WebContext

_ALIVE = Schema("Alive", record(status=constant("ok")))
_READINESS = Schema("Readiness", record(ready=BOOLEAN, reason=TEXT))


async def _health(context: WebContext, request: web.Request) -> web.Response:
    return json_response({"status": "ok"})


async def _ready(context: WebContext, request: web.Request) -> web.Response:
    reason = context.box.unserved_because()
    return json_response({"ready": not reason, "reason": reason}, 503 if reason else 200)


ROUTES = (
    Route(
        method="GET",
        path="/healthz",
        answer=_health,
        scope=None,
        summary="Whether the process lives",
        answers=(Answer("It does.", _ALIVE),),
        any_origin=True,
    ),
    Route(
        method="GET",
        path="/readyz",
        answer=_ready,
        scope=None,
        summary="Whether frames can be answered",
        answers=(
            Answer("Models are warm, and an executor is up.", _READINESS),
            Answer("The box is not ready; `reason` says why.", _READINESS, status=503),
        ),
        any_origin=True,
    ),
)
