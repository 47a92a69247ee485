"""Routes by which boxes of a fleet compare and fetch settings of cameras. They change nothing."""

from aiohttp import web

from edgebox.domain.access import UnauthorizedError
from edgebox.domain.errors import InvalidInputError, TooLargeError
from edgebox.fleet.replicated_settings import BUCKETS, FIELDS
from edgebox.fleet.settings_documents import (
    DIGEST_PATTERN,
    WANTED_MAX,
    read_comparison,
    read_wish,
    settings_answer,
    versions_answer,
)
from edgebox.web.bodies import read_object
from edgebox.web.fleet_answers import NoFleetError, asked_by_box
from edgebox.web.fleet_settings_exchange import SETTINGS_PATH, VERSIONS_PATH
from edgebox.web.routes import JSON, Answer, Body, Route
from edgebox.web.schemas import (
    COUNT,
    TEXT,
    JsonSchema,
    Schema,
    array,
    described,
    nullable,
    one_of,
    record,
)
from edgebox.web.web_context import WebContext


async def _versions(context: WebContext, request: web.Request) -> web.Response:
    asked = asked_by_box(context, request)
    digests, first = read_comparison(await read_object(request))
    return asked.answer(versions_answer(asked.member.settings.replicated, digests, first))


async def _settings(context: WebContext, request: web.Request) -> web.Response:
    asked = asked_by_box(context, request)
    wanted = read_wish(await read_object(request))
    return asked.answer(settings_answer(asked.member.settings.replicated.settings, wanted))


_DIGEST: JsonSchema = {"type": "string", "pattern": f"^{DIGEST_PATTERN.pattern}$"}
_ROW = {"type": "array", "description": "Camera, setting, counter, and the box that changed it."}
_COMPARISON = Schema(
    "SettingsComparison",
    record(
        digests=described(
            {"type": "array", "items": _DIGEST, "minItems": BUCKETS, "maxItems": BUCKETS},
            "Of each part of the asking box's settings.",
        ),
        first=described(COUNT, "The part to begin with."),
    ),
)
_WISH = Schema(
    "SettingsWish",
    record(
        wanted={
            "type": "array",
            "maxItems": WANTED_MAX,
            "items": {"type": "array", "description": "A camera and a setting."},
        }
    ),
)
_VALUE: JsonSchema = {"type": "object", "description": "The fields that are set; none: removed."}
_AUTHORIZED = "For boxes that share the fleet's secret: they show a ticket that it signs."

ROUTES = (
    Route(
        method="POST",
        path=VERSIONS_PATH,
        answer=_versions,
        scope=None,
        summary="The versions of settings in the parts where another box has others",
        doc=_AUTHORIZED,
        body=Body({JSON: _COMPARISON}, "What the asking box has"),
        answers=(
            Answer(
                "The versions.",
                record(
                    versions={"type": "array", "items": _ROW},
                    next=described(nullable(COUNT), "The part to go on with; null: none."),
                ),
            ),
        ),
        problems=(NoFleetError, UnauthorizedError, InvalidInputError, TooLargeError),
    ),
    Route(
        method="POST",
        path=SETTINGS_PATH,
        answer=_settings,
        scope=None,
        summary="Some settings of cameras, for another box",
        doc=f"{_AUTHORIZED} As many as fit into the answer; those that are not known are left out.",
        body=Body({JSON: _WISH}, "Which ones"),
        answers=(
            Answer(
                "The settings.",
                record(
                    settings=array(
                        record(
                            camera=TEXT,
                            setting=one_of(*FIELDS),
                            counter=COUNT,
                            box=TEXT,
                            value=_VALUE,
                        )
                    )
                ),
            ),
        ),
        problems=(NoFleetError, UnauthorizedError, InvalidInputError, TooLargeError),
    ),
)
