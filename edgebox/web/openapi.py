"""Describes declared routes as an OpenAPI 3.1 document. Pure.

Everything comes from the declarations that the server uses, so document and server agree.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from edgebox.web.problems import CONTENT_TYPE, PROBLEM_SCHEMA, ProblemKind
from edgebox.web.query_parameters import Parameter
from edgebox.web.routes import Answer, Route
from edgebox.web.schemas import Schema

OPENAPI = "3.1.1"
_SECURITY_SCHEMES = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "A token of the scope in the operation's `x-scope`, or of a wider one.",
    },
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "edgebox_session_PORT",
        "description": "A browser that has logged in; its page must be the box's own.",
    },
}
_SECURITY: list[dict[str, list[str]]] = [{"token": []}, {"session": []}]


def document(routes: Sequence[Route], version: str) -> dict[str, Any]:
    """Return the OpenAPI document of some routes; WebSockets are listed under `x-websockets`."""
    schemas = _Schemas()
    paths: dict[str, dict[str, Any]] = defaultdict(dict)
    for route in routes:
        if route.kind == "api":
            paths[route.path][route.method.lower()] = _operation(route, schemas)
    sockets = {r.path: _operation(r, schemas) for r in routes if r.kind == "websocket"}
    return {
        "openapi": OPENAPI,
        "info": {
            "title": "edgebox",
            "version": version,
            "description": (
                "What a person or a program can ask an edgebox. Cameras speak a protocol of their "
                "own over a WebSocket. `x-websockets` describes how WebSockets are opened and, "
                "under `x-messages`, JSON that they send. Under /v2 is the Open Inference "
                "Protocol, which has a description of its own."
            ),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": dict(paths),
        "x-websockets": sockets,
        "components": {"schemas": schemas.named, "securitySchemes": _SECURITY_SCHEMES},
    }


class _Schemas:
    """Replaces each named schema by a reference, and collects the definitions."""

    def __init__(self) -> None:
        self.named: dict[str, Any] = {}
        self._known: dict[str, Schema] = {}

    def written(self, of: object) -> Any:
        """Return a schema as JSON.

        Raises:
            ValueError: two schemas have one name.
        """
        if isinstance(of, Schema):
            if self._known.setdefault(of.name, of) is not of:
                raise ValueError(f"two schemas are called {of.name}")
            if of.name not in self.named:
                self.named[of.name] = {}  # before its parts: it may contain itself
                self.named[of.name] = self.written(of.definition)
            return {"$ref": f"#/components/schemas/{of.name}"}
        if isinstance(of, Mapping):
            return {name: self.written(part) for name, part in of.items()}
        if isinstance(of, list | tuple):
            return [self.written(part) for part in of]
        return of


def _operation(route: Route, schemas: _Schemas) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": _operation_id(route),
        "summary": route.summary,
        "responses": _responses(route, schemas),
    }
    if route.scope is None:
        described["security"] = []
    else:
        described |= {"security": _SECURITY, "x-scope": route.scope.value}
    if route.doc:
        described["description"] = route.doc
    if route.messages:
        described["x-messages"] = [schemas.written(each) for each in route.messages]
    if route.parameters:
        described["parameters"] = [_parameter(each) for each in route.parameters]
    if route.body is not None:
        described["requestBody"] = {
            "required": True,
            "description": route.body.doc,
            "content": {
                content_type: {"schema": schemas.written(schema)}
                for content_type, schema in route.body.content.items()
            },
        }
    return described


def _operation_id(route: Route) -> str:
    """Return a name for generated clients: "get_v1_cameras_id"."""
    parts = [part.strip("{}") for part in route.path.split("/") if part]
    return "_".join([route.method.lower(), *parts]).replace(".", "_").replace("-", "_")


def _parameter(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": parameter.location,
        "required": parameter.location == "path" or getattr(parameter, "required", False),
        "description": parameter.doc,
        "schema": parameter.schema(),
    }


def _responses(route: Route, schemas: _Schemas) -> dict[str, Any]:
    answers: dict[int, Answer] = {answer.status: answer for answer in route.answers}
    kinds: dict[int, list[ProblemKind]] = defaultdict(list)
    for kind in route.kinds():
        kinds[kind.status].append(kind)
    found: dict[str, Any] = {}
    for status in sorted({*answers, *kinds}):
        docs, content = [], {}
        if status in answers:
            answer = answers[status]
            docs.append(answer.doc)
            if answer.schema is not None:
                content[answer.content_type] = {"schema": schemas.written(answer.schema)}
        if status in kinds:
            docs.append(_description(kinds[status]))
            content[CONTENT_TYPE] = {"schema": schemas.written(PROBLEM_SCHEMA)}
        found[str(status)] = {"description": " Or: ".join(docs)}
        if content:
            found[str(status)]["content"] = content
    found["default"] = {
        "description": "Problems that any request may meet: 405, 500.",
        "content": {CONTENT_TYPE: {"schema": schemas.written(PROBLEM_SCHEMA)}},
    }
    return found


def _description(kinds: Iterable[ProblemKind]) -> str:
    return "; ".join(f"`{kind.code}`: {kind.title}" for kind in kinds)
