"""Schemas of the answers to one picture, one for each result format."""

from edgebox.domain.cascades import CascadeOutcome
from edgebox.web.schemas import (
    BOOLEAN,
    COUNT,
    NUMBER,
    SHARE,
    TEXT,
    JsonSchema,
    Schema,
    array,
    constant,
    described,
    mapping,
    nullable,
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

_STAGES = described(
    mapping(
        Schema(
            "StageFindings",
            with_optional(
                record(variant=TEXT),
                label=described(TEXT, "The best class of a classifier with one answer"),
                score=SHARE,
                attributes=described(
                    mapping(Schema("AttributeLabel", record(label=TEXT, score=SHARE))),
                    "The best class of each attribute of a classifier with several",
                ),
                detections=described(
                    array(record(label=TEXT, score=SHARE, box=_BOX)),
                    "What a detector finds on the object; they may have `stages`, too",
                ),
                embedding=array(NUMBER),
                remembered=described(BOOLEAN, "It was said with an earlier picture of the object"),
            ),
        )
    ),
    "What the later stages of a pipeline say about it, by the stage's name",
)
_MISSING = described(
    array(TEXT), "Stages that some object was not answered by in time: the answer is partial"
)
_CASCADE = described(
    one_of(*CascadeOutcome),
    "With a cascade: whether the objects are the small model's (kept), the large one's (sent_on), "
    "or the small one's because the large one was too late (missed)",
)

DETECTION = Schema(
    "Detection",
    with_optional(
        record(label=TEXT, label_id=COUNT, score=SHARE, box=_BOX),
        stages=_STAGES,
        track=described(
            nullable({"type": "integer", "minimum": 1}),
            "The object's number; only for frames of a camera that is tracked",
        ),
        attribute=described(TEXT, "Which of a classifier's attributes the label is of"),
        embedding=described(
            array(NUMBER), "The picture's embedding, of length 1, from embedding models"
        ),
    ),
)

NATIVE_ANSWER = Schema(
    "InferAnswer",
    with_optional(
        record(
            width_px=COUNT,
            height_px=COUNT,
            detections=array(DETECTION),
            **_ABOUT,
        ),
        missing=_MISSING,
        cascade=_CASCADE,
    ),
)
COCO_ANSWER = Schema(
    "CocoAnswer",
    record(
        images=array(Schema("CocoImage", record(id=COUNT, width=COUNT, height=COUNT))),
        annotations=array(
            Schema(
                "CocoAnnotation",
                with_optional(
                    record(
                        id=COUNT, image_id=COUNT, category_id=COUNT, bbox=_BOX, area=NUMBER,
                        iscrowd=constant(0), score=SHARE,
                    ),
                    attributes=described(mapping(TEXT), "What classifiers say, by attribute"),
                    stages=_STAGES,
                ),
            )
        ),
        categories=array(Schema("CocoCategory", record(id=COUNT, name=TEXT))),
        info=Schema(
            "CocoInfo",
            with_optional(record(**_ABOUT), missing=_MISSING, cascade=_CASCADE),
        ),
    ),
)  # fmt: skip
SUPERVISION_ANSWER = Schema(
    "SupervisionAnswer",
    with_optional(
        record(
        image=Schema("SupervisionImage", record(width=COUNT, height=COUNT)),
        predictions=array(
            Schema(
                "SupervisionPrediction",
                with_optional(
                    record(
                        x=NUMBER, y=NUMBER, width=NUMBER, height=NUMBER, confidence=SHARE,
                        class_id=COUNT, **{"class": TEXT},
                    ),
                    stages=_STAGES,
                ),
            )
        ),
        **_ABOUT,
        ),
        data=described(
            mapping(array(TEXT)), "What classifiers say, by attribute: a label per prediction"
        ),
        missing=_MISSING, cascade=_CASCADE,
    ),
)  # fmt: skip
