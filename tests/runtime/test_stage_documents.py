"""What later stages say, as documents: nested, by the object's row, best first."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.model_family import VariantName
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
    KIND,
    KINDS,
    PARTS,
    PIPELINE,
    SMALL,
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
