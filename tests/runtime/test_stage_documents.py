"""What later stages say, as documents: nested, by the object's row, best first."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.model_family import FamilyName, VariantName
from edgebox.domain.pipelines import Pipeline, PipelineName, PipelineStage
from edgebox.inference.family import Attribute, Family
from edgebox.runtime.frames import StageAnswer
from edgebox.runtime.stage_documents import (
    StagedObjects,
    best_classes,
    best_rows,
    missing_json,
    staged_objects,
    stages_json,
)
from tests.runtime.staged import (
    FAMILIES,
    FIRST,
    KIND,
    KINDS,
    PARTS,
    PIPELINE,
    SMALL,
    STREET,
    answer,
    detections,
    kind,
)


def staged(*stages: StageAnswer, score_min: float = 0.3) -> StagedObjects:
    found = detections((1, 0.6), (2, 0.9), (0, 0.2))
    return staged_objects(answer(found, stages), PIPELINE, FAMILIES, score_min)


def test_a_classifier_says_its_best_label() -> None:
    got = staged(kind(1, 2, 0.875), kind(0, 0, 0.5))
    assert got.documents == {
        0: {"kind": {"variant": SMALL, "label": "hatchback", "score": 0.5}},
        1: {"kind": {"variant": SMALL, "label": "estate", "score": 0.875}},
    }
    assert got.attributes == {
        0: {"kind": {"label": "hatchback", "score": 0.5}},
        1: {"kind": {"label": "estate", "score": 0.875}},
    }


def test_a_detector_says_what_it_finds_and_what_comes_after_that() -> None:
    parts = StageAnswer(
        PARTS,
        1,
        VariantName("street-128"),
        detections((0, 0.5), (3, 0.1), (4, 0.75)),
        (kind(2, 1, 0.5),),
    )
    got = staged(parts, kind(1, 0, 0.25))
    assert list(got.documents) == [1]
    assert got.documents[1] == {
        "kind": {"variant": SMALL, "label": "hatchback", "score": 0.25},
        "parts": {
            "variant": "street-128",
            "detections": [
                {
                    "label": "motorbike",
                    "score": 0.75,
                    "box": [20.0, 10.0, 28.0, 30.0],
                    "stages": {"kind": {"variant": SMALL, "label": "van", "score": 0.5}},
                },
                {"label": "person", "score": 0.5, "box": [0.0, 10.0, 8.0, 30.0]},
            ],
        },
    }
    assert list(got.documents[1]) == [PARTS, KIND] or list(got.documents[1]) == [KIND, PARTS]
    assert got.attributes == {1: {"kind": {"label": "hatchback", "score": 0.25}}}


def test_without_stages_there_is_nothing() -> None:
    assert staged() == StagedObjects()
    found = detections((1, 0.6))
    assert staged_objects(answer(found, (kind(0, 1, 0.5),)), None, FAMILIES, 0.3) == StagedObjects()


def test_a_classifier_without_any_label_says_its_variant_only() -> None:
    got = staged(StageAnswer(KIND, 0, SMALL, detections()))
    assert got.documents == {0: {"kind": {"variant": SMALL}}}
    assert got.attributes == {}


def test_the_best_of_equal_labels_is_the_first() -> None:
    assert best_classes(KINDS, detections((2, 0.5), (1, 0.5))) == {
        "": {"label": "estate", "score": 0.5}
    }


@given(st.lists(st.floats(0, 1, width=32), max_size=8), st.floats(0, 1))
def test_rows_are_those_with_enough_score_in_falling_order(
    scores: list[float], score_min: float
) -> None:
    found = detections(*((0, score) for score in scores))
    rows = best_rows(found, score_min).tolist()
    kept = [row for row in range(len(scores)) if np.float32(scores[row]) >= score_min]
    assert rows == sorted(kept, key=lambda row: (-found.scores[row], row))


def test_short_forms() -> None:
    assert missing_json(()) == {}
    assert missing_json((KIND,)) == {"missing": ["kind"]}
    assert stages_json(PIPELINE)[0] == {"name": "street", "family": "street", "after": []}


TYPE = Attribute("type", ("car", "van"))
COLOUR = Attribute("colour", ("red", "blue"))


def with_attributes(*attributes: Attribute) -> Family:
    labels = tuple(label for each in attributes for label in each.labels)
    return replace(KINDS, labels=labels, attributes=attributes)


def test_a_classifier_with_attributes_says_the_best_label_of_each() -> None:
    families = {**FAMILIES, KINDS.name: with_attributes(TYPE, COLOUR)}
    found = detections((1, 0.75), (0, 0.25), (2, 0.5), (3, 0.125))
    one = answer(detections((1, 0.6)), (StageAnswer(KIND, 0, SMALL, found),))
    got = staged_objects(one, PIPELINE, families, 0.3)
    said = {"type": {"label": "van", "score": 0.75}, "colour": {"label": "red", "score": 0.5}}
    assert got.documents == {0: {"kind": {"variant": SMALL, "attributes": said}}}
    assert got.attributes == {0: said}


def test_attributes_of_one_name_are_told_apart_by_their_stages() -> None:
    other = replace(with_attributes(COLOUR), name=FamilyName("other"))
    pipeline = Pipeline(
        PipelineName("two"),
        (
            PipelineStage(FIRST, STREET.name),
            PipelineStage(KIND, KINDS.name, after=(FIRST,)),
            PipelineStage(PARTS, other.name, after=(FIRST,)),
        ),
    )
    families = {**FAMILIES, KINDS.name: with_attributes(TYPE, COLOUR), other.name: other}
    stages = (
        StageAnswer(PARTS, 0, SMALL, detections((1, 0.75))),
        StageAnswer(KIND, 0, SMALL, detections((0, 0.5), (2, 0.5))),
    )
    got = staged_objects(answer(detections((1, 0.6)), stages), pipeline, families, 0.3)
    assert {name: of["label"] for name, of in got.attributes[0].items()} == {
        "type": "car",
        "kind.colour": "red",
        "parts.colour": "blue",
    }


def test_an_embedding_is_given_where_it_is_wanted() -> None:
    found = replace(detections((0, 1.0)), embeddings=np.array([[0.6, 0.8]], np.float32))
    one = answer(detections((1, 0.6)), (StageAnswer(KIND, 0, SMALL, found),))
    got = staged_objects(one, PIPELINE, FAMILIES, 0.3)
    assert got.documents == {0: {"kind": {"variant": SMALL, "embedding": [0.6, 0.8]}}}
    assert got.attributes == {}
    short = staged_objects(one, PIPELINE, FAMILIES, 0.3, embeddings=False)
    assert short.documents == {0: {"kind": {"variant": SMALL}}}
