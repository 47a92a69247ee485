"""Long work that people start: a family measured or imported, and how far it is. docs/models.md."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from aiohttp import web

from edgebox.domain.errors import InvalidInputError, ModelError, TooLargeError, UnknownNameError
from edgebox.domain.model_family import FamilyName
from edgebox.inference.importing.folder import family_name
from edgebox.inference.importing.layouts import LAYOUTS
from edgebox.runtime.job_runner import BusyError, Job
from edgebox.web.problems import PROBLEM_SCHEMA, problem_document
from edgebox.web.query_parameters import Choice, InPath, Text
from edgebox.web.routes import Answer, Body, Route, json_response
from edgebox.web.schemas import (
    COUNT,
    SHARE,
    TEXT,
    Schema,
    array,
    described,
    nullable,
    one_of,
    record,
)
from edgebox.web.web_context import (
    CamerasConnectedError,
    FamilyExistsError,
    ImportRefusedError,
    MemoryLimitedError,
    NoImportsError,
    Upload,
    WebContext,
)

_LICENCE_LENGTH_MAX = 200

_ID = InPath("id", "The job's number")
_FAMILY = InPath("family", "A model family")
_NAME = Text(
    "name", "What the family is to be called: small letters, digits and . _ -", required=True
)
_LAYOUT = Choice(
    "layout",
    tuple(layout.name for layout in LAYOUTS),
    None,
    "How the model is fed and read, where that cannot be found out; docs/models.md",
)
_LICENCE = Text("licence", "Its licence; what the file says of it if not given")


async def _jobs(site: WebContext, request: web.Request) -> web.Response:
    return json_response({"jobs": [_document(job) for job in site.model_jobs.jobs.all]})


async def _job(site: WebContext, request: web.Request) -> web.Response:
    number = _ID.read(request)
    for job in site.model_jobs.jobs.all:
        if str(job.id) == number:
            return json_response(_document(job))
    raise UnknownNameError(f"there is no job {number!r}; GET /v1/jobs lists those there are")


async def _measure(site: WebContext, request: web.Request) -> web.Response:
    name = _FAMILY.read(request)
    family = site.box.families.get(FamilyName(name))
    if family is None:
        raise UnknownNameError(
            f"no model family {name!r}; there are {', '.join(site.box.families)}"
        )
    return json_response(_document(site.model_jobs.measure(family)), 202)


async def _import(site: WebContext, request: web.Request) -> web.Response:
    try:
        name = family_name(_NAME.read(request), Path())
    except ModelError as error:
        raise InvalidInputError(str(error)) from None
    licence = " ".join((_LICENCE.read(request) or "").split())[:_LICENCE_LENGTH_MAX] or None
    upload = Upload(
        name=name,
        chunks=_chunks(request, site.config.limits.model_bytes_max),
        layout=_LAYOUT.read(request),
        licence=licence,
    )
    return json_response(_document(await site.model_jobs.import_model(upload)), 202)


async def _chunks(request: web.Request, most: int) -> AsyncIterator[bytes]:
    """Yield a body as it comes.

    Raises:
        TooLargeError: as soon as it is known to be.
        InvalidInputError: there is none.
    """
    if (request.content_length or 0) > most:
        raise TooLargeError(
            f"the file has {request.content_length} bytes; at most {most} are taken "
            "(limits.model_bytes_max)"
        )
    received = 0
    async for part in request.content.iter_any():
        received += len(part)
        if received > most:
            raise TooLargeError(
                f"the file has more than {most} bytes, the most that are taken "
                "(limits.model_bytes_max)"
            )
        yield part
    if not received:
        raise InvalidInputError("the body is empty; send an ONNX file as it is, without a form")


def _document(job: Job) -> dict[str, Any]:
    return {
        "id": job.id,
        "kind": job.kind,
        "family": job.family,
        "state": job.state,
        "text": job.text,
        "share": round(job.share, 3),
        "started_ms": job.started_ms,
        "ended_ms": job.ended_ms,
        "remarks": job.remarks,
        "problem": None if job.error is None else problem_document(job.error),
    }


_JOB = Schema(
    "Job",
    record(
        id=COUNT,
        kind=one_of("profile", "import"),
        family=TEXT,
        state=one_of("running", "done", "failed"),
        text=described(TEXT, "What it is at; once it is done, what came of it"),
        share=described(SHARE, "How much of it is done"),
        started_ms=COUNT,
        ended_ms=nullable(COUNT),
        remarks=described(array(TEXT), "What to know about the result"),
        problem=described(nullable(PROBLEM_SCHEMA), "Why it failed"),
    ),
)
_STARTED = (Answer("It has begun: the job to follow.", _JOB, status=202),)
_FILE = {"type": "string", "contentMediaType": "application/octet-stream"}

ROUTES = (
    Route(
        method="GET",
        path="/v1/jobs",
        answer=_jobs,
        summary="What is being measured or imported, and what was",
        answers=(
            Answer("The last 20 since the start, the newest first.", record(jobs=array(_JOB))),
        ),
    ),
    Route(
        method="GET",
        path="/v1/jobs/{id}",
        answer=_job,
        summary="How far a job is, and how it ended",
        parameters=(_ID,),
        answers=(Answer("The job.", _JOB),),
        problems=(UnknownNameError,),
        told=(ImportRefusedError, CamerasConnectedError),
    ),
    Route(
        method="POST",
        path="/v1/models/{family}/profile",
        answer=_measure,
        summary="Measure a family anew on every executor",
        doc="Only while no camera is connected; the first one that comes ends it.",
        parameters=(_FAMILY,),
        answers=_STARTED,
        problems=(UnknownNameError, BusyError, CamerasConnectedError, MemoryLimitedError),
        needs_admin=True,
        needs_ready=True,
    ),
    Route(
        method="POST",
        path="/v1/models",
        answer=_import,
        summary="Import a model",
        doc="As `edgebox models import` does. The family is served from the next start on.",
        parameters=(_NAME, _LAYOUT, _LICENCE),
        body=Body({"application/octet-stream": _FILE}, "An ONNX file as it is, without a form"),
        answers=_STARTED,
        problems=(BusyError, FamilyExistsError, TooLargeError, NoImportsError, ModelError),
        needs_admin=True,
        needs_ready=True,
    ),
)
