"""GET /v1/timeline: the last minute of batches, drops and queues. docs/reference/http-api.md."""

from aiohttp import web

from edgebox.domain.access import Scope
from edgebox.domain.requests import DropReason
from edgebox.runtime.timeline_recorder import WINDOW_NS
from edgebox.web.query_parameters import Number
from edgebox.web.routes import Answer, Route, json_response
from edgebox.web.schemas import (
    COUNT,
    NUMBER,
    TEXT,
    Schema,
    array,
    mapping,
    nullable,
    one_of,
    record,
    tuple_of,
)
from edgebox.web.timeline_documents import instant_ms, timeline_document
from edgebox.web.web_context import WebContext

_LATEST_MS = 2.0**53
_FROM = Number("from_ms", 0, _LATEST_MS, None, "Begin here, on the box's clock; else a minute ago")
_TO = Number("to_ms", 0, _LATEST_MS, None, "End here; else now")


async def _timeline(context: WebContext, request: web.Request) -> web.Response:
    from_ms, to_ms = _FROM.read(request), _TO.read(request)
    driver = context.box.driver
    now_ns = driver.clock_ns()
    document = await timeline_document(
        driver,
        now_ns,
        instant_ms(now_ns - WINDOW_NS) if from_ms is None else from_ms,
        instant_ms(now_ns) if to_ms is None else to_ms,
    )
    return json_response(document)


_OUTCOME = one_of("on_time", "late", "queue", "failed", "departed", "shutdown")
_NEVER_SENT = (DropReason.SENDER, DropReason.PLAN)
_REASON = one_of(*(reason for reason in DropReason if reason not in _NEVER_SENT))
_REQUEST = Schema(
    "BatchRequest",
    record(
        request=COUNT, camera=TEXT, frame=nullable(COUNT), stage=nullable(TEXT),
        captured_ms=NUMBER, arrived_ms=NUMBER, deadline_ms=NUMBER,
        outcome=nullable(_OUTCOME),
    ),
)  # fmt: skip
_BATCH = Schema(
    "Batch",
    record(
        batch=COUNT,
        kind=one_of("batch", "sample"),
        executor=TEXT,
        variant=TEXT,
        size=COUNT,
        padded_size=COUNT,
        threads=nullable(COUNT),
        ordered_ms=NUMBER,
        started_ms=nullable(NUMBER),
        ended_ms=nullable(NUMBER),
        answered_ms=nullable(NUMBER),
        expected_ms=nullable(NUMBER),
        requests=array(_REQUEST),
    ),
)
_DROP = Schema(
    "DroppedRequest",
    record(
        at_ms=NUMBER, request=COUNT, camera=TEXT, frame=nullable(COUNT), stage=nullable(TEXT),
        variant=nullable(TEXT), captured_ms=NUMBER,
        arrived_ms=NUMBER, deadline_ms=NUMBER, reason=_REASON,
    ),
)  # fmt: skip
_ADVISED_SIZE = Schema(
    "AdvisedSize", record(variant=TEXT, width_px=COUNT, height_px=COUNT, rate_hz=NUMBER)
)
_CHANGE = Schema(
    "PlanChange",
    record(
        at_ms=NUMBER, camera=TEXT, before=nullable(_ADVISED_SIZE), after=_ADVISED_SIZE, reason=TEXT
    ),
)
_TIMELINE = Schema(
    "Timeline",
    record(
        from_ms=NUMBER,
        to_ms=NUMBER,
        now_ms=NUMBER,
        unix_ms=COUNT,
        failure=TEXT,
        executors=array(TEXT),
        variants=array(TEXT),
        batches=array(_BATCH),
        running=array(_BATCH),
        drops=array(_DROP),
        changes=array(_CHANGE),
        plans=array(record(asked_ms=NUMBER, answered_ms=NUMBER, utilisation=NUMBER)),
        queues=array(tuple_of(NUMBER, mapping(COUNT))),
        decision_us=nullable(record(count=COUNT, p50=NUMBER, p99=NUMBER, max=NUMBER)),
    ),
)

ROUTES = (
    Route(
        method="GET",
        path="/v1/timeline",
        answer=_timeline,
        scope=Scope.VIEWER,
        summary="Timeline of the last minute",
        doc="Batches, drops, queues, plans and how they changed; instants on the box's clock.",
        parameters=(_FROM, _TO),
        answers=(Answer("Entries that overlap the span.", _TIMELINE),),
        needs_ready=True,
    ),
)
