"""Routes of access: log in and out, manage tokens, pair cameras. docs/how-to/access.md."""

from typing import Any

from aiohttp import web

from edgebox.domain.access import Identity, Scope, TooManyAttemptsError, UnauthorizedError
from edgebox.domain.errors import StorageError, TooLargeError, UnknownNameError
from edgebox.domain.field_reader import FieldReader
from edgebox.domain.requests import CameraId
from edgebox.link.protocol import NAME_PATTERN, NAME_WANTED
from edgebox.runtime.access_control import (
    CAMERA_SESSION_S,
    SESSION_S,
    LastAdministratorError,
    TokenLimitError,
    token_document,
)
from edgebox.runtime.pairings import LIFE_S, PairingError
from edgebox.web.bodies import read_object
from edgebox.web.hosts import client_of
from edgebox.web.identification import may, of_browser, sender_of, session_cookie, whoever_sent
from edgebox.web.query_parameters import InPath
from edgebox.web.routes import JSON, Answer, Body, Route, json_response
from edgebox.web.schemas import (
    BOOLEAN,
    COUNT,
    TEXT,
    JsonSchema,
    Schema,
    any_of,
    array,
    constant,
    described,
    nullable,
    one_of,
    record,
    request_of,
    with_optional,
)
from edgebox.web.web_context import WebContext

_TEXT_MAX = 200
_NAME_MAX = 80
_ID = InPath("id", "The token's `id`")


# -- browsers ---------------------------------------------------------------------------------


async def _session(context: WebContext, request: web.Request) -> web.Response:
    return _described(context, request, whoever_sent(context.access, request))


async def _log_in(context: WebContext, request: web.Request) -> web.Response:
    read = FieldReader("login", await read_object(request))
    text = read.text("token", length_max=_TEXT_MAX)
    read.refuse_unknown()
    read.finish()
    identity, cookie = await context.access.log_in(text, client_of(request).address)
    response = _described(context, request, identity)
    _set_cookie(context, request, response, identity, cookie)
    return response


async def _log_out(context: WebContext, request: web.Request) -> web.Response:
    identity = of_browser(context.access, request, camera=False)
    if identity is not None:
        await context.access.log_out(identity)
    response = web.Response(status=204)
    response.del_cookie(session_cookie(request, camera=False))
    return response


def _set_cookie(
    context: WebContext,
    request: web.Request,
    response: web.Response,
    identity: Identity,
    cookie: str,
) -> None:
    is_camera = identity.scope is Scope.CAMERA
    response.set_cookie(
        session_cookie(request, camera=is_camera),
        cookie,
        max_age=CAMERA_SESSION_S if is_camera else SESSION_S,
        httponly=True,
        samesite="Strict",
        secure=client_of(request).secure,
    )


def _described(
    context: WebContext, request: web.Request, identity: Identity | None
) -> web.Response:
    token = None if identity is None else identity.token
    may_be_camera = identity is not None and identity.may(Scope.CAMERA)
    return json_response(
        {
            "scope": None if identity is None else identity.scope.value,
            "name": None if token is None else token.name,
            "camera": None if identity is None else identity.camera,
            "may_be_camera": may_be_camera or may(context.access, request, Scope.CAMERA),
            "logged_in": identity is not None
            and identity.session is not None
            and identity.scope is not Scope.CAMERA,
            "open_to": context.access.open_to.value,
        }
    )


# -- tokens -----------------------------------------------------------------------------------


async def _tokens(context: WebContext, request: web.Request) -> web.Response:
    return json_response({"tokens": [token_document(each) for each in context.access.tokens]})


async def _issue(context: WebContext, request: web.Request) -> web.Response:
    read = FieldReader("token", await read_object(request))
    scope = Scope(read.choice("scope", tuple(Scope)))
    camera = _camera_in(read, needed=scope is Scope.CAMERA)
    name = read.text("name", camera or None, length_min=1, length_max=_NAME_MAX)
    read.refuse_unknown()
    read.finish()
    token, text = await context.access.issue(name, scope, camera)
    _note(context, request, f"made a token for {name} ({scope})")
    return json_response({**token_document(token), "token": text}, 201)


async def _revoke(context: WebContext, request: web.Request) -> web.Response:
    token_id = _ID.read(request)
    named = next((t.name for t in context.access.tokens if t.id == token_id), token_id)
    await context.access.revoke(token_id)
    _note(context, request, f"revoked the token of {named}")
    return web.Response(status=204)


def _note(context: WebContext, request: web.Request, what: str) -> None:
    token = sender_of(request).token
    who = "somebody without login" if token is None else token.name
    context.box.notices.publish("info", f"{who} {what}")


# -- pairing ----------------------------------------------------------------------------------


async def _begin_pairing(context: WebContext, request: web.Request) -> web.Response:
    read = FieldReader("pairing", await read_object(request))
    camera = _camera_in(read, needed=False)
    read.refuse_unknown()
    read.finish()
    pairing = context.access.begin_pairing(camera)
    document = {"code": pairing.shown, "camera": camera, "expires_s": LIFE_S}
    return json_response(document, 201)


async def _pair(context: WebContext, request: web.Request) -> web.Response:
    read = FieldReader("pair", await read_object(request))
    code = read.text("code", length_max=_NAME_MAX)
    camera = _camera_in(read, needed=True)
    browser = read.flag("browser", False)
    read.refuse_unknown()
    read.finish()
    assert camera is not None
    access, address = context.access, client_of(request).address
    if browser:
        identity, cookie = await access.pair_browser(code, camera, address)
        response = json_response({"camera": camera}, 201)
        _set_cookie(context, request, response, identity, cookie)
    else:
        _, text = await access.pair(code, camera, address)
        response = json_response({"camera": camera, "token": text}, 201)
    context.box.notices.publish("info", f"{camera} was paired from {address}", camera)
    return response


def _camera_in(read: FieldReader, *, needed: bool) -> CameraId | None:
    if not needed and read.raw("camera") is None:
        return None
    return CameraId(read.text("camera", pattern=NAME_PATTERN, expected=NAME_WANTED))


_CODE: JsonSchema = {**TEXT, "maxLength": _NAME_MAX}
_CAMERA: JsonSchema = {"type": "string", "pattern": f"^{NAME_PATTERN.pattern}$"}
_SESSION = Schema(
    "Session",
    record(
        scope=described(
            nullable(one_of(*Scope)), "What the sender may do; null: a login is needed"
        ),
        name=described(nullable(TEXT), "The name of its token"),
        camera=described(nullable(TEXT), "The only camera that it may be"),
        may_be_camera=described(
            BOOLEAN, "It may be a camera, by what it sent first or by a browser's pairing"
        ),
        logged_in=described(BOOLEAN, "It is a browser that has logged in"),
        open_to=one_of("nobody", "loopback", "everybody"),
    ),
)
_TOKEN_FIELDS: dict[str, Any] = {
    "id": TEXT,
    "name": TEXT,
    "scope": one_of(*Scope),
    "camera": nullable(TEXT),
    "created_ms": COUNT,
    "last_used_ms": nullable(COUNT),
}
_TOKEN = Schema("Token", record(**_TOKEN_FIELDS))
_ISSUED = Schema(
    "IssuedToken",
    record(**_TOKEN_FIELDS, token=described(TEXT, "Its text, which is told this once")),
)
_TOKEN_NAME = described({**TEXT, "minLength": 1, "maxLength": _NAME_MAX}, "Who has it")
_NEW_TOKEN = Schema(
    "NewToken",
    any_of(
        request_of(
            {"scope": one_of(*(s for s in Scope if s is not Scope.CAMERA)), "name": _TOKEN_NAME},
            camera={"type": "null"},
        ),
        request_of(
            {
                "scope": constant(Scope.CAMERA.value),
                "camera": described(_CAMERA, "The only one that it may be"),
            },
            name=nullable(_TOKEN_NAME),
        ),
    ),
)
_PAIRING = Schema("Pairing", record(code=TEXT, camera=nullable(TEXT), expires_s=COUNT))

ROUTES = (
    Route(
        method="GET",
        path="/v1/session",
        answer=_session,
        scope=None,
        summary="Who the sender is, and what it may do",
        answers=(Answer("The sender.", _SESSION),),
        problems=(UnauthorizedError,),
    ),
    Route(
        method="POST",
        path="/v1/login",
        answer=_log_in,
        scope=None,
        summary="Begin a browser's session with a token",
        doc="The answer sets a cookie that no script can read.",
        body=Body({JSON: request_of({"token": {**TEXT, "maxLength": _TEXT_MAX}})}, "The token"),
        answers=(Answer("The sender as it is now.", _SESSION),),
        problems=(UnauthorizedError, TooManyAttemptsError, TooLargeError, StorageError),
    ),
    Route(
        method="POST",
        path="/v1/logout",
        answer=_log_out,
        scope=None,
        summary="End a browser's session",
        doc="One that was paired as a camera stays it.",
        answers=(Answer("It has ended.", None, status=204),),
        problems=(StorageError,),
    ),
    Route(
        method="GET",
        path="/v1/tokens",
        answer=_tokens,
        scope=Scope.ADMIN,
        summary="All tokens, without their texts",
        answers=(Answer("The oldest first.", record(tokens=array(_TOKEN))),),
    ),
    Route(
        method="POST",
        path="/v1/tokens",
        answer=_issue,
        scope=Scope.ADMIN,
        summary="Make a token",
        doc="A camera has one token: the one that it had before ends.",
        body=Body({JSON: _NEW_TOKEN}, "Its scope and its name"),
        answers=(Answer("The token.", _ISSUED, status=201),),
        problems=(TokenLimitError, TooLargeError, StorageError),
    ),
    Route(
        method="DELETE",
        path="/v1/tokens/{id}",
        answer=_revoke,
        scope=Scope.ADMIN,
        summary="Revoke a token",
        doc="Its sessions and open connections end, too.",
        parameters=(_ID,),
        answers=(Answer("It is revoked.", None, status=204),),
        problems=(UnknownNameError, LastAdministratorError, StorageError),
    ),
    Route(
        method="POST",
        path="/v1/pairings",
        answer=_begin_pairing,
        scope=Scope.OPERATOR,
        summary="Get a code with which a camera gets its token",
        body=Body(
            {JSON: request_of({}, camera=nullable(_CAMERA))},
            "The camera's name; none: any that has no token yet",
        ),
        answers=(Answer("The code.", _PAIRING, status=201),),
        problems=(TooLargeError,),
    ),
    Route(
        method="POST",
        path="/v1/pair",
        answer=_pair,
        scope=None,
        summary="Use a code: get a camera's token",
        body=Body(
            {
                JSON: request_of(
                    {"code": {**TEXT, "maxLength": _NAME_MAX}, "camera": _CAMERA},
                    browser=nullable(BOOLEAN),
                )
            },
            "The code and the camera's name; `browser`: set a cookie in place of a token",
        ),
        answers=(
            Answer(
                "The camera's token.",
                with_optional(record(camera=TEXT), token=TEXT),
                status=201,
            ),
        ),
        problems=(PairingError, TooManyAttemptsError, TokenLimitError, TooLargeError, StorageError),
    ),
)
