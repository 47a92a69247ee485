"""Answers of a pipeline for tests: a detector, a classifier, and a detector after the first."""

from dataclasses import replace

import numpy as np

from edgebox.domain.model_family import FamilyName, VariantName
from edgebox.domain.pipelines import Pipeline, PipelineName, PipelineStage, StageName
from edgebox.domain.requests import Outcome
from edgebox.inference.family import Family
from edgebox.inference.zoo import bundled_folders, load_zoo
from edgebox.runtime.frames import Answer, StageAnswer, Timing
from edgebox.vision.detections import Detections

STREET = load_zoo(bundled_folders()).family("street")
KINDS = replace(
    STREET, name=FamilyName("kinds"), task="classify", labels=("hatchback", "van", "estate")
)
FAMILIES: dict[FamilyName, Family] = {STREET.name: STREET, KINDS.name: KINDS}
FIRST, KIND, PARTS = StageName("street"), StageName("kind"), StageName("parts")
PIPELINE = Pipeline(
    PipelineName("traffic"),
    (
        PipelineStage(FIRST, STREET.name),
        PipelineStage(KIND, KINDS.name, after=(FIRST, PARTS)),
        PipelineStage(PARTS, STREET.name, after=(FIRST,)),
    ),
)
SMALL = VariantName("kinds-32")


def detections(*rows: tuple[int, float]) -> Detections:
    """Return detections of these labels and scores, each at its own place."""
    boxes = [(10 * at, 10, 10 * at + 8, 30) for at in range(len(rows))]
    return Detections(
        np.array(boxes, np.float32).reshape(-1, 4),
        np.array([score for _, score in rows], np.float32),
        np.array([label for label, _ in rows], np.int64),
    )


def kind(row: int, label: int, score: float) -> StageAnswer:
    """Return a classifier's answer: this label, and another one with a lower score."""
    found = detections(((label + 1) % 3, score / 2), (label, score))
    return StageAnswer(KIND, row, SMALL, found)


def answer(
    found: Detections,
    stages: tuple[StageAnswer, ...] = (),
    missing: tuple[StageName, ...] = (),
) -> Answer:
    """Return an answer with these stages."""
    timing = Timing(1, 2, 3, 4, 10, 1)
    return Answer(
        Outcome.ON_TIME,
        STREET.variants[0].name,
        found,
        timing,
        1.0,
        stages=stages,
        missing=missing,
    )
