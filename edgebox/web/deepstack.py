"""Routes under /v1/vision: single pictures in the form of DeepStack and CodeProject.AI.

docs/reference/http-api.md. Frigate, Blue Iris and others speak it. It is a sub-application, because
the protocol has its own error format. Its clients cannot tell how long they wait: `deadline_ms` in
the address does: what is not likely to be answered by then is refused. An answer is late only if
its batch takes longer than was learned.
"""

import asyncio
import time

import numpy as np
import orjson
from aiohttp import hdrs, web

from edgebox.domain.access import ForbiddenError, Scope, UnauthorizedError
from edgebox.domain.errors import InvalidInputError
from edgebox.domain.field_reader import is_number
from edgebox.runtime.frames import ONE_SHOT_APP
from edgebox.runtime.stage_documents import best_rows
from edgebox.vision.detections import Detections
from edgebox.web.bodies import read_body
from edgebox.web.camera_pictures import (
    DEADLINE_MAX_MS,
    DEADLINE_MIN_MS,
    DEADLINE_MS,
    FRAME_BYTES_SETTING,
    NotServedError,
    answered,
    family_named,
    largest_in_time,
    read_picture,
)
from edgebox.web.form_file import FORM, Form, read_form
from edgebox.web.hosts import client_of
from edgebox.web.identification import identify, refuse_foreign_pages
from edgebox.web.listening import cancelled_with_client
from edgebox.web.problems import errors_as
from edgebox.web.query_parameters import Number, check_names, decimal
from edgebox.web.refused_pictures import refusals_noted, refuse_repetitions
from edgebox.web.request_limits import SlowBodyError
from edgebox.web.routes import JSON, json_response, refuse_unready
from edgebox.web.web_context import WebContext

PATH = "/v1/vision"
SCOPE = Scope.CAMERA
CONFIDENCE_MIN = 0.4
"""Without `min_confidence` in the form: what clients of the protocol expect."""
_KEY_FIELD = "api_key"
_KEYED_BODY_BYTES_MAX = 1_048_576
"""Who a form comes from is known only when it was read, if its token is in it."""
KEYED_BODY_S = 5.0
"""Nor may it hold one of the requests at once for longer."""
_DEADLINE = Number(
    "deadline_ms",
    DEADLINE_MIN_MS,
    DEADLINE_MAX_MS,
    DEADLINE_MS,
    "Deadline of the answer, counted from arrival: a little less than the client waits",
)


def deepstack(context: WebContext) -> web.Application:
    """Return the sub-application for /v1/vision."""
    routes = _Routes(context)
    app = web.Application(
        middlewares=[errors_as(_failed)],
        client_max_size=2**62,
    )
    app.add_routes(
        [
            web.post("/detection", routes.detect),
            web.post("/custom/list", routes.models),
            web.post("/custom/{family}", routes.detect),
        ]
    )
    return app


class _Routes:
    """The handlers of the routes."""

    def __init__(self, context: WebContext) -> None:
        self._context = context
        self._box = context.box

    async def models(self, request: web.Request) -> web.Response:
        """List the families that `/v1/vision/custom/...` takes."""
        refuse_foreign_pages(request)
        if not self._may(request):
            await self._form(request, identified=False)
        names = [name for name, family in self._box.families.items() if family.after is None]
        return json_response({"success": True, "models": names})

    async def detect(self, request: web.Request) -> web.Response:
        """Answer one picture."""
        began_ns = time.monotonic_ns()
        refuse_foreign_pages(request)
        identified = self._may(request)
        check_names(request, (_DEADLINE,))
        refuse_unready(self._context)
        deadline_ms = _DEADLINE.read(request)
        form = await self._form(request, identified=identified)
        family = family_named(self._box, request.match_info.get("family"))
        family.insist_on_pictures()
        confidence_min = _confidence(form.fields.get("min_confidence"))
        content = form.file()
        picture, picture_px = await read_picture(self._context, content)
        variant = largest_in_time(self._box, family.offered, picture_px, deadline_ms)
        if identified:
            refuse_repetitions(
                self._context, request, variant, deadline_ms, app=ONE_SHOT_APP, said=_refusal
            )
        with refusals_noted(self._context, request), cancelled_with_client(request):
            found = await answered(
                self._box,
                picture,
                picture_px,
                variant,
                deadline_ms,
                app=ONE_SHOT_APP,
                address=client_of(request).address,
            )
        took_ms = (time.monotonic_ns() - began_ns) / 1e6
        predictions = _predictions(found.detections, family.labels, confidence_min)
        return json_response(
            {
                "success": True,
                "predictions": predictions,
                "count": len(predictions),
                "duration": round(took_ms / 1e3, 4),
                "inferenceMs": round(found.timing.inference_ns / 1e6, 1),
                "processMs": round(took_ms, 1),
                "code": 200,
            }
        )

    def _may(self, request: web.Request) -> bool:
        """Return whether a request says who it is; if not, its form may.

        Raises:
            ForbiddenError: its token does not allow pictures.
            UnauthorizedError: its token does not exist, or it has none and can have none.
        """
        try:
            identify(self._context.access, request, SCOPE)
        except UnauthorizedError:
            if request.content_type != FORM or hdrs.AUTHORIZATION in request.headers:
                raise
            return False
        return True

    async def _form(self, request: web.Request, *, identified: bool) -> Form:
        """Return the form of a request, whose sender is known then; a bare body is its file."""
        frame_bytes_max = self._context.config.limits.frame_bytes_max
        bytes_max = frame_bytes_max if identified else _KEYED_BODY_BYTES_MAX
        setting = FRAME_BYTES_SETTING if identified else "without the header Authorization"
        try:
            async with asyncio.timeout(None if identified else KEYED_BODY_S):
                body = await read_body(request, min(bytes_max, frame_bytes_max), setting=setting)
        except TimeoutError:
            said = f"a form without the header Authorization must arrive within {KEYED_BODY_S:g} s"
            raise SlowBodyError(said) from None
        if request.content_type != FORM:
            return Form((memoryview(body),), {})
        form = read_form(body, request.headers[hdrs.CONTENT_TYPE])
        if not identified:
            self._admit(form.fields.get(_KEY_FIELD, ""))
        return form

    def _admit(self, key: str) -> None:
        """Refuse a form whose `api_key` is no token that may send pictures."""
        identity = self._context.access.by_token(key.strip())
        if identity is None:
            raise UnauthorizedError(
                f"this box needs a token of the scope {SCOPE}, as {_KEY_FIELD} of the form or in "
                "the header Authorization; the page's Access makes one"
            )
        if not identity.may(SCOPE):
            raise ForbiddenError(f"this needs the scope {SCOPE}; the token has {identity.scope}")


def _confidence(text: str | None) -> float:
    if text is None or not text.strip():
        return CONFIDENCE_MIN
    value = decimal(text.strip())
    if not is_number(value, 0.0, 1.0):
        raise InvalidInputError(f"min_confidence must be a number from 0 to 1, not {text[:40]!r}")
    return value


def _predictions(
    found: Detections, labels: tuple[str, ...], confidence_min: float
) -> list[dict[str, object]]:
    """Return the detections, best first, in whole pixels of the picture."""
    shown = found.select(best_rows(found, confidence_min))
    boxes = np.round(shown.boxes.astype(np.float64)).astype(int).tolist()
    scores = np.round(shown.scores.astype(np.float64), 3).tolist()
    return [
        {
            "label": labels[label],
            "confidence": score,
            "x_min": x_min,
            "y_min": y_min,
            "x_max": x_max,
            "y_max": y_max,
        }
        for label, score, (x_min, y_min, x_max, y_max) in zip(
            shown.labels.tolist(), scores, boxes, strict=True
        )
    ]


def _failed(said: str, status: int, _code: str = "") -> dict[str, object]:
    return {"success": False, "error": said, "predictions": None, "duration": 0, "code": status}


def _refusal(error: NotServedError) -> tuple[str, bytes]:
    return JSON, orjson.dumps(_failed(str(error), error.http_status))
