"""Jobs that people start: measuring or importing a family. docs/how-to/models.md."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from aiohttp import web

from edgebox.domain.access import Scope
from edgebox.domain.errors import InvalidInputError, ModelError, TooLargeError, UnknownNameError
from edgebox.domain.job_errors import (
    CamerasConnectedError,
    FamilyExistsError,
    FamilyInUseError,
    ImportRefusedError,
    MemoryLimitedError,
    NoImportsError,
)
from edgebox.domain.model_family import FamilyName
from edgebox.inference.family import Family
from edgebox.inference.importing.folder import family_name
from edgebox.inference.importing.layouts import EMBEDDING_LAYOUTS, LAYOUTS
from edgebox.runtime.job_runner import BusyError, Job
from edgebox.web.problems import PROBLEM_SCHEMA, problem_document
from edgebox.web.query_parameters import Choice, InPath, Text
from edgebox.web.request_limits import present_holding
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
from edgebox.web.web_context import Upload, WebContext

_LICENCE_LENGTH_MAX = 200

_ID = InPath("id", "The job's number")
_FAMILY = InPath("family", "A model family")
_NAME = Text("name", "Name of the new family: small letters, digits and . _ -", required=True)
_LAYOUT = Choice(
    "layout",
    tuple(layout.name for layout in (*LAYOUTS, *EMBEDDING_LAYOUTS)),
    None,
    "Input and output layout, where it cannot be detected; docs/how-to/models.md",
)
_LICENCE = Text("licence", "Its licence; by default that in the file")


async def _jobs(context: WebContext, request: web.Request) -> web.Response:
    return json_response({"jobs": [_document(job) for job in context.model_jobs.jobs.all]})


async def _job(context: WebContext, request: web.Request) -> web.Response:
    number = _ID.read(request)
    for job in context.model_jobs.jobs.all:
        if str(job.id) == number:
            return json_response(_document(job))
    raise UnknownNameError(f"there is no job {number!r}; GET /v1/jobs lists those there are")


async def _measure(context: WebContext, request: web.Request) -> web.Response:
    return json_response(_document(context.model_jobs.measure(_family(context, request))), 202)


def _family(context: WebContext, request: web.Request) -> Family:
    """Return the family that a request names.

    Raises:
        UnknownNameError: it is not served.
    """
    name = _FAMILY.read(request)
    family = context.box.families.get(FamilyName(name))
    if family is None:
        raise UnknownNameError(
            f"no model family {name!r}; there are {', '.join(context.box.families)}"
        )
    return family


async def _remove(context: WebContext, request: web.Request) -> web.Response:
    await context.model_jobs.remove(_family(context, request).name)
    return web.Response(status=204)


async def _set_default(context: WebContext, request: web.Request) -> web.Response:
    await context.model_jobs.set_default(_family(context, request).name)
    return web.Response(status=204)


async def _import(context: WebContext, request: web.Request) -> web.Response:
    try:
        name = family_name(_NAME.read(request), Path())
    except ModelError as error:
        raise InvalidInputError(str(error)) from None
    licence = " ".join((_LICENCE.read(request) or "").split())[:_LICENCE_LENGTH_MAX] or None
    upload = Upload(
        name=name,
        chunks=_chunks(request, context.config.limits.model_bytes_max),
        layout=_LAYOUT.read(request),
        licence=licence,
    )
    return json_response(_document(await context.model_jobs.import_model(upload)), 202)


async def _chunks(request: web.Request, most: int) -> AsyncIterator[bytes]:
    """Yield a body in pieces as it arrives.

    Raises:
        TooLargeError: raised as soon as the limit is exceeded.
        InvalidInputError: the body is empty.
        SlowBodyError: it arrives too slowly.
    """
    if (request.content_length or 0) > most:
        raise TooLargeError(
            f"the file has {request.content_length} bytes; at most {most} are taken "
            "(limits.model_bytes_max)"
        )
    received = 0
    async for part in present_holding().parts(request):
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
        text=described(TEXT, "Present step; after the end, the result"),
        share=described(SHARE, "How much of it is done"),
        started_ms=COUNT,
        ended_ms=nullable(COUNT),
        remarks=described(array(TEXT), "Remarks about the result"),
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
        scope=Scope.VIEWER,
        summary="Jobs that measure or import families",
        answers=(
            Answer("The last 20 since the start, the newest first.", record(jobs=array(_JOB))),
        ),
    ),
    Route(
        method="GET",
        path="/v1/jobs/{id}",
        answer=_job,
        scope=Scope.VIEWER,
        summary="Progress and result of a job",
        parameters=(_ID,),
        answers=(Answer("The job.", _JOB),),
        problems=(UnknownNameError,),
        reported=(ImportRefusedError, CamerasConnectedError),
    ),
    Route(
        method="POST",
        path="/v1/models/{family}/profile",
        answer=_measure,
        scope=Scope.ADMIN,
        summary="Measure a family again on every executor",
        doc="Only while no camera is connected; a camera that connects ends the job.",
        parameters=(_FAMILY,),
        answers=_STARTED,
        problems=(UnknownNameError, BusyError, CamerasConnectedError, MemoryLimitedError),
        needs_ready=True,
    ),
    Route(
        method="POST",
        path="/v1/models",
        answer=_import,
        scope=Scope.ADMIN,
        summary="Import a model",
        doc="As `edgebox models import` does. The family is served when the job is done.",
        parameters=(_NAME, _LAYOUT, _LICENCE),
        body=Body({"application/octet-stream": _FILE}, "An ONNX file as it is, without a form"),
        answers=_STARTED,
        problems=(BusyError, FamilyExistsError, TooLargeError, NoImportsError, ModelError),
        needs_ready=True,
    ),
    Route(
        method="DELETE",
        path="/v1/models/{family}",
        answer=_remove,
        scope=Scope.ADMIN,
        summary="Remove an imported family",
        doc="Its files are deleted. What cameras, pipelines or the default use stays.",
        parameters=(_FAMILY,),
        answers=(Answer("It is removed.", None, status=204),),
        problems=(UnknownNameError, BusyError, FamilyInUseError, ModelError),
        needs_ready=True,
    ),
    Route(
        method="POST",
        path="/v1/models/{family}/default",
        answer=_set_default,
        scope=Scope.ADMIN,
        summary="Make a family that of cameras that name none",
        doc="At once and after restarts; connected cameras that name none connect again.",
        parameters=(_FAMILY,),
        answers=(Answer("It is the default.", None, status=204),),
        problems=(UnknownNameError, FamilyInUseError, ModelError),
        needs_ready=True,
    ),
)
