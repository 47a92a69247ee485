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
    one_of,
    record,
    tuple_of,
    with_optional,
)

_BOX = tuple_of(NUMBER, NUMBER, NUMBER, NUMBER)
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

_DETECTION = Schema(
    "Detection",
    with_optional(
        record(label=TEXT, label_id=COUNT, score=SHARE, box=_BOX),
        attribute=described(TEXT, "Which of a classifier's attributes the label is of"),
        embedding=described(
            array(NUMBER), "The picture's embedding, of length 1, from embedding models"
        ),
    ),
)

NATIVE_ANSWER = Schema(
    "InferAnswer",
    record(
        width_px=COUNT,
        height_px=COUNT,
        detections=array(_DETECTION),
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
