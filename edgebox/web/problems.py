"""Errors over HTTP: problem documents after RFC 9457.

`type` is `/v1/problems/CODE`, which this box describes (`ROUTES` below), or `about:blank` where
the status suffices. `code` is the same word for programs that compare words.
"""

import logging
import traceback
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

import orjson
from aiohttp import hdrs, web

from edgebox.domain.errors import EdgeboxError
from edgebox.web.schemas import COUNT, TEXT, Schema, described

_log = logging.getLogger(__name__)

CONTENT_TYPE = "application/problem+json"
TYPES_PATH = "/v1/problems/"
CHALLENGE = 'Bearer realm="edgebox"'
"""How a client may identify itself."""

Answerer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class ProblemKind:
    """One kind of problem."""

    code: str
    status: int
    title: str

    @property
    def reference(self) -> str:
        """The `type` in its problem documents."""
        return TYPES_PATH + self.code

    @classmethod
    def of(cls, error: "type[EdgeboxError] | ProblemKind") -> "ProblemKind":
        """Return the kind of problem of an error class."""
        if isinstance(error, ProblemKind):
            return error
        return cls(error.code, error.http_status, error.title)


PROBLEM_SCHEMA = Schema(
    "Problem",
    {
        "type": "object",
        "description": "A problem document, RFC 9457.",
        "properties": {
            "type": described(
                {**TEXT, "format": "uri-reference"},
                "URI of the kind of problem; about:blank: the status suffices",
            ),
            "title": described(TEXT, "The kind of problem in words"),
            "status": described({**COUNT, "minimum": 400, "maximum": 599}, "The HTTP status"),
            "detail": described(TEXT, "What is wrong in this case, and what to do about it"),
            "code": described(TEXT, "The kind of problem as one word, for programs"),
            "instance": described(TEXT, "Only if the box failed: the reference in its log"),
        },
        "required": ["type", "title", "status", "detail", "code"],
    },
)
INTERNAL = ProblemKind("internal", 500, EdgeboxError.title)


def problem_documents(kinds: Iterable[ProblemKind]) -> Callable[..., Awaitable[web.StreamResponse]]:
    """Return the middleware that turns every error into a problem document.

    Args:
        kinds: kinds of problem that this box describes, for `type`.
    """
    known = {kind.code: kind for kind in kinds}

    @web.middleware
    async def answer(request: web.Request, handler: Answerer) -> web.StreamResponse:
        try:
            return await handler(request)
        except EdgeboxError as error:
            free_frames(error)
            headers = {"WWW-Authenticate": CHALLENGE} if error.http_status == 401 else None
            return _problem(
                known.get(error.code), error.http_status, error.code, str(error), headers=headers
            )
        except web.HTTPException as error:
            if error.status < 400:
                raise
            return _of_status(request, error)
        except ConnectionError as error:
            free_frames(error)
            return web.Response(status=499)  # the client is gone: nobody reads this
        except Exception:
            occurrence = f"urn:uuid:{uuid.uuid4()}"
            _log.exception("%s %s failed (%s)", request.method, request.path, occurrence)
            detail = "the box failed on this request; its log says why, under this instance"
            return _problem(INTERNAL, 500, INTERNAL.code, detail, instance=occurrence)

    return answer


def errors_as(
    said: Callable[[str, int, str], object],
) -> Callable[..., Awaitable[web.StreamResponse]]:
    """Return the middleware of a protocol that has its own error format.

    Args:
        said: returns the JSON document of an error from its message, its HTTP status and its code;
            without a code it is empty.
    """

    def response(message: str, status: int, code: str = "") -> web.Response:
        document = orjson.dumps(said(message, status, code))
        return web.Response(body=document, status=status, content_type="application/json")

    @web.middleware
    async def answer(request: web.Request, handler: Answerer) -> web.StreamResponse:
        try:
            return await handler(request)
        except EdgeboxError as error:
            free_frames(error)
            refused = response(str(error), error.http_status, error.code)
            if error.http_status == 401:
                refused.headers[hdrs.WWW_AUTHENTICATE] = CHALLENGE
            return refused
        except web.HTTPException as error:
            if error.status < 400:
                raise
            what = f"{error.status} {error.reason}: {request.method} {request.path}"
            refused = response(what, error.status)
            if isinstance(error, web.HTTPMethodNotAllowed):
                refused.headers[hdrs.ALLOW] = error.headers[hdrs.ALLOW]
            return refused
        except ConnectionError:
            raise  # the client is gone
        except Exception:
            _log.exception("%s %s failed", request.method, request.path)
            return response("the box failed on this request; its log says why", 500)

    return answer


def free_frames(error: BaseException) -> None:
    """Free what the functions that an error ended refer to, such as a request's body.

    Whoever keeps the error, as the HTTP library does with the request, would otherwise keep them
    until a full collection of garbage, of which there are none while cameras are connected.
    """
    traceback.clear_frames(error.__traceback__)


def problem_document(error: EdgeboxError) -> dict[str, object]:
    """Return the problem document of an error whose kind this box describes."""
    kind = ProblemKind(error.code, error.http_status, error.title)
    return {
        "type": kind.reference,
        "title": kind.title,
        "status": kind.status,
        "detail": str(error),
        "code": kind.code,
    }


def problem_document_bytes(error: EdgeboxError) -> bytes:
    """Return the problem document of an error as JSON."""
    return orjson.dumps(problem_document(error))


def bad_request(detail: str) -> web.Response:
    """Return the problem document of a malformed request."""
    return _problem(None, 400, "bad_request", detail)


def _of_status(request: web.Request, error: web.HTTPException) -> web.Response:
    """Return the problem document of an error of the HTTP library."""
    code = HTTPStatus(error.status).phrase.lower().replace(" ", "_")
    detail = f"{request.method} {request.path}"
    headers: dict[str, str] = {}
    if isinstance(error, web.HTTPMethodNotAllowed):
        allowed = ", ".join(sorted(error.allowed_methods))
        detail += f" is not possible; {allowed} is"
        headers[hdrs.ALLOW] = allowed
    elif error.status == 404:
        detail += ": there is nothing here; GET /v1/openapi.json lists what there is"
    elif error.text:
        detail += f": {error.text}"
    return _problem(None, error.status, code, detail, headers=headers)


def _problem(
    kind: ProblemKind | None,
    status: int,
    code: str,
    detail: str,
    *,
    instance: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> web.Response:
    document: dict[str, object] = {
        "type": "about:blank" if kind is None else kind.reference,
        "title": HTTPStatus(status).phrase if kind is None else kind.title,
        "status": status,
        "detail": detail,
        "code": code,
    }
    if instance is not None:
        document["instance"] = instance
    return web.Response(
        body=orjson.dumps(document), status=status, content_type=CONTENT_TYPE, headers=headers
    )
