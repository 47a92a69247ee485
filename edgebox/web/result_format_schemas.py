"""Schemas of the answers to one picture, one for each result format."""

from edgebox.web.schemas import (
    COUNT,
    NUMBER,
    SHARE,
    TEXT,
    JsonSchema,
    Schema,
    array,
    constant,
    described,
    nullable,
    one_of,
    record,
    tuple_of,
)

_BOX = tuple_of(NUMBER, NUMBER, NUMBER, NUMBER)
_FOUND = record(label=TEXT, label_id=COUNT, score=SHARE, box=_BOX)
_DETECTION: JsonSchema = {
    **_FOUND,
    "properties": {
        **_FOUND["properties"],
        "track": described(
            nullable({"type": "integer", "minimum": 1}),
            "The object's number; only for frames of a camera that is tracked",
        ),
    },
}
_ABOUT: dict[str, JsonSchema | Schema] = {
    "variant": TEXT,
    "outcome": one_of("on_time", "late"),
    "timing_ms": Schema(
        "InferTiming",
        record(
            network=NUMBER, queue=NUMBER, inference=NUMBER, total=NUMBER, batch_size=COUNT,
            **{"return": NUMBER},
        ),
    ),
}  # fmt: skip

NATIVE_ANSWER = Schema(
    "InferAnswer",
    record(
        width_px=COUNT,
        height_px=COUNT,
        detections=array(Schema("Detection", _DETECTION)),
        **_ABOUT,
    ),
)
COCO_ANSWER = Schema(
    "CocoAnswer",
    record(
        images=array(Schema("CocoImage", record(id=COUNT, width=COUNT, height=COUNT))),
        annotations=array(
            Schema(
                "CocoAnnotation",
                record(
                    id=COUNT, image_id=COUNT, category_id=COUNT, bbox=_BOX, area=NUMBER,
                    iscrowd=constant(0), score=SHARE,
                ),
            )
        ),
        categories=array(Schema("CocoCategory", record(id=COUNT, name=TEXT))),
        info=Schema("CocoInfo", record(**_ABOUT)),
    ),
)  # fmt: skip
SUPERVISION_ANSWER = Schema(
    "SupervisionAnswer",
    record(
        image=Schema("SupervisionImage", record(width=COUNT, height=COUNT)),
        predictions=array(
            Schema(
                "SupervisionPrediction",
                record(
                    x=NUMBER, y=NUMBER, width=NUMBER, height=NUMBER, confidence=SHARE,
                    class_id=COUNT, **{"class": TEXT},
                ),
            )
        ),
        **_ABOUT,
    ),
)  # fmt: skip
