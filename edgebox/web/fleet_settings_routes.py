"""Routes by which boxes of a fleet compare and fetch settings of cameras. They change nothing."""

from aiohttp import web

from edgebox.domain.errors import InvalidInputError, TooLargeError
from edgebox.fleet.replicated_settings import BUCKETS, NAMES
from edgebox.fleet.settings_documents import (
    DIGEST_PATTERN,
    WANTED_MAX,
    read_comparison,
    read_wish,
    settings_answer,
    versions_answer,
)
from edgebox.web.bodies import read_object
from edgebox.web.fleet_answers import route_for_boxes
from edgebox.web.fleet_member import FleetMember
from edgebox.web.fleet_settings_exchange import SETTINGS_PATH, VERSIONS_PATH
from edgebox.web.routes import JSON, Answer, Body
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


async def _versions(context: WebContext, member: FleetMember, request: web.Request) -> bytes:
    digests, first = read_comparison(await read_object(request))
    return versions_answer(member.settings.replicated, digests, first)


async def _settings(context: WebContext, member: FleetMember, request: web.Request) -> bytes:
    wanted = read_wish(await read_object(request))
    return settings_answer(member.settings.replicated.settings, wanted)


_DIGEST: JsonSchema = {"type": "string", "pattern": f"^{DIGEST_PATTERN.pattern}$"}
_ROW: JsonSchema = {
    "type": "array",
    "description": "Camera, setting, counter, the box that changed it, and a digest of the value.",
}
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

ROUTES = (
    route_for_boxes(
        method="POST",
        path=VERSIONS_PATH,
        document=_versions,
        summary="The versions of settings in the parts where another box has others",
        body=Body({JSON: _COMPARISON}, "What the asking box has"),
        answer=Answer(
            "The versions.",
            record(
                versions={"type": "array", "items": _ROW},
                next=described(nullable(COUNT), "The part to go on with; null: none."),
            ),
        ),
        problems=(InvalidInputError, TooLargeError),
    ),
    route_for_boxes(
        method="POST",
        path=SETTINGS_PATH,
        document=_settings,
        summary="Some settings of cameras, for another box",
        doc="As many as fit into the answer; those that are not known are left out.",
        body=Body({JSON: _WISH}, "Which ones"),
        answer=Answer(
            "The settings.",
            record(
                settings=array(
                    record(
                        camera=TEXT, setting=one_of(*NAMES), counter=COUNT, box=TEXT, value=_VALUE
                    )
                )
            ),
        ),
        problems=(InvalidInputError, TooLargeError),
    ),
)
