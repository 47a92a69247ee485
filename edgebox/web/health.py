"""Health checks for process supervisors: liveness and readiness."""

from typing import Any

from aiohttp import web

from edgebox.runtime.box import Box
from edgebox.runtime.planning_thread import OVERDUE_NS, PlanningThread
from edgebox.web.routes import Answer, Route, json_response
from edgebox.web.schemas import (
    BOOLEAN,
    COUNT,
    NUMBER,
    TEXT,
    Schema,
    constant,
    described,
    mapping,
    nullable,
    record,
)
from edgebox.web.web_context import WebContext

_ALIVE = Schema("Alive", record(status=constant("ok")))
_READINESS = Schema(
    "Readiness",
    record(
        ready=described(BOOLEAN, "Whether frames are answered: executors and decoding are well."),
        reason=described(TEXT, "Why they are not; empty: they are."),
        executors=record(ok=BOOLEAN, states=mapping(TEXT)),
        decoding=described(
            record(ok=BOOLEAN, threads=COUNT, hanging=COUNT),
            "The threads that decode, and those that do not come back from a picture.",
        ),
        database=described(
            record(ok=BOOLEAN, reason=TEXT),
            "Whether what is recorded is kept. Frames do not need it.",
        ),
        plan=described(
            record(ok=BOOLEAN, age_s=nullable(NUMBER), reason=TEXT),
            "The plan in force, which stays while the planner fails. Frames need no newer one.",
        ),
    ),
)


async def _health(context: WebContext, request: web.Request) -> web.Response:
    return json_response({"status": "ok"})


def readiness(context: WebContext) -> dict[str, Any]:
    """Return whether frames are answered, and the state of each part that it takes."""
    box, storage = context.box, context.storage
    reason = box.unserved_because()
    document: dict[str, Any] = {
        "executors": {"ok": not reason, "states": {}},
        "decoding": {"ok": False, "threads": 0, "hanging": 0},
        "database": {"ok": not storage.last_error, "reason": storage.last_error},
        "plan": {"ok": True, "age_s": None, "reason": ""},
    }
    if box.attached:
        driver = box.driver
        supervised = driver.scheduler.supervised
        document["executors"]["states"] = {of: str(it.state) for of, it in supervised.items()}
        hanging, threads = driver.decoder.hanging_threads
        document["decoding"] = {"ok": threads > 0, "threads": threads, "hanging": hanging}
        if not threads:
            reason = reason or "no picture can be decoded: every thread hangs"
        document["plan"] = _plan(box, driver.planning)
    return {"ready": not reason, "reason": reason, **document}


def _plan(box: Box, planning: PlanningThread) -> dict[str, Any]:
    computing_ns = planning.computing_ns or 0
    reason = planning.last_error
    if computing_ns >= OVERDUE_NS:
        reason = f"the planner has not ended for {computing_ns / 1e9:.0f} s"
    age_ns = box.last_plan.age_ns(box.driver.clock_ns()) if box.attached else None
    age_s = None if age_ns is None else round(age_ns / 1e9, 3)
    return {"ok": not reason, "age_s": age_s, "reason": reason}


async def _ready(context: WebContext, request: web.Request) -> web.Response:
    document = readiness(context)
    return json_response(document, 200 if document["ready"] else 503)


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
            Answer("Models are warm, an executor is up, and pictures are decoded.", _READINESS),
            Answer("The box is not ready; `reason` says why.", _READINESS, status=503),
        ),
        any_origin=True,
    ),
)
