"""Schemas of zones and lines, in settings and in the state of a camera."""

from edgebox.domain.zones import NAME_PATTERN, POINTS_MAX, ZONES_MAX
from edgebox.link.zone_messages import DWELL_MAX_S
from edgebox.web.schemas import (
    COUNT,
    SHARE,
    TEXT,
    JsonSchema,
    Schema,
    array,
    described,
    mapping,
    record,
    tuple_of,
)

_NAME: JsonSchema = {"type": "string", "pattern": f"^{NAME_PATTERN}$"}
_POINT = tuple_of(SHARE, SHARE)
_CLASSES = described(array({**TEXT, "minLength": 1}), "Classes that count; none: all")
_ZONE: dict[str, JsonSchema] = {
    "name": _NAME,
    "points": described(
        {"type": "array", "items": _POINT, "minItems": 3, "maxItems": POINTS_MAX},
        "Corners in their order, in shares of the picture; sides must not cross",
    ),
    "classes": _CLASSES,
    "min_dwell_s": described(
        {"type": "number", "minimum": 0, "maximum": DWELL_MAX_S},
        "Seconds after which a stay makes an event",
    ),
}
_LINE: dict[str, JsonSchema] = {
    "name": _NAME,
    "points": described(
        {"type": "array", "items": _POINT, "minItems": 2, "maxItems": 2},
        "Its ends; in is from the left to the right of who looks from the first to the second",
    ),
    "classes": _CLASSES,
}


def _setting(fields: dict[str, JsonSchema]) -> JsonSchema:
    return {**record(**fields), "required": ["name", "points"], "additionalProperties": False}


ZONES: JsonSchema = {
    **array(Schema("Zone", _setting(_ZONE))), "maxItems": ZONES_MAX,
}  # fmt: skip
LINES: JsonSchema = {
    **array(Schema("Line", _setting(_LINE))), "maxItems": ZONES_MAX,
}  # fmt: skip
CAMERA_TRACKING = Schema(
    "CameraTracking",
    record(
        tracks=COUNT,
        zones=array(Schema("ZoneState", record(**_ZONE, counts=mapping(COUNT)))),
        lines=array(
            Schema("LineState", record(**_LINE, **{"in": mapping(COUNT), "out": mapping(COUNT)}))
        ),
    ),
)
