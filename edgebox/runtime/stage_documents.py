"""Writes what the later stages of a pipeline say about objects, as plain values for JSON.

One notation for everything that leaves the box: messages to cameras, results for programs, events,
the page.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from edgebox.domain.model_family import FamilyName
from edgebox.domain.pipelines import Pipeline, StageName
from edgebox.inference.family import Family
from edgebox.runtime.frames import Answer, StageAnswer
from edgebox.vision.detections import Detections

_SCORE_DIGITS = 3
_EMBEDDING_DIGITS = 6


@dataclass(frozen=True, slots=True)
class StagedObjects:
    """What the later stages say about the objects of one answer, by the object's row in it."""

    documents: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    """By the stage's name, what it says."""
    attributes: Mapping[int, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    """By the attribute's name, its label and score: what all classifiers say of the object."""


def staged_objects(
    answer: Answer,
    pipeline: Pipeline | None,
    families: Mapping[FamilyName, Family],
    score_min: float,
    *,
    embeddings: bool = True,
) -> StagedObjects:
    """Return what the later stages of a pipeline say about the objects of an answer.

    A classifier's document has `label` and `score`, or `attributes` with a label and a score each;
    a detector's has `detections`, best first, which may have `stages` themselves; an embedding
    model's has `embedding`. Each names the `variant` it ran on. It is `remembered` if it was
    said of the same object in an earlier picture.

    Args:
        answer: of a frame.
        pipeline: that the frame ran through; None: none.
        families: of its stages, at least.
        score_min: what later detectors find with less is left out.
        embeddings: whether to include them: they are long.
    """
    if not answer.stages or pipeline is None:
        return StagedObjects()
    writer = _Writer(pipeline, families, score_min, embeddings)
    documents = writer.by_object(answer.stages)
    return StagedObjects(
        documents, {row: found for row, of in documents.items() if (found := writer.attributes(of))}
    )


def best_rows(found: Detections, score_min: float) -> NDArray[np.intp]:
    """Return the rows that score at least `score_min`, in falling order of their scores."""
    rows = (found.scores >= score_min).nonzero()[0]
    return rows[(-found.scores[rows]).argsort(kind="stable")]


def best_classes(family: Family, found: Detections) -> dict[str, dict[str, Any]]:
    """Return the most likely label of each attribute of a classifier, with its score.

    A family with one answer only has it under the name "".
    """
    names = family.attribute_names
    best: dict[str, dict[str, Any]] = {name: {} for name in names}
    for row in best_rows(found, 0.0).tolist():
        number = int(found.labels[row])
        of = best.setdefault(names[number] if names else "", {})
        if not of:
            of |= {"label": family.labels[number], "score": _score(found, row)}
    return {name: of for name, of in best.items() if of}


class _Writer:
    """Writes the documents of one frame."""

    def __init__(
        self,
        pipeline: Pipeline,
        families: Mapping[FamilyName, Family],
        score_min: float,
        embeddings: bool,
    ) -> None:
        self._families = {stage.name: families[stage.family] for stage in pipeline.stages}
        self._order = {stage.name: at for at, stage in enumerate(pipeline.stages)}
        self._score_min = score_min
        self._embeddings = embeddings
        counts: Counter[str] = Counter()
        for family in self._families.values():
            counts.update(set(family.attribute_names))
        self._shared = {name for name, count in counts.items() if count > 1}

    def by_object(self, answers: Sequence[StageAnswer]) -> dict[int, dict[str, Any]]:
        """Return what stages say, by the row of the object and the name of the stage."""
        out: dict[int, dict[str, Any]] = {}
        for answer in sorted(answers, key=lambda each: self._order[each.stage]):
            out.setdefault(answer.object, {})[answer.stage] = self._document(answer)
        return out

    def _document(self, answer: StageAnswer) -> dict[str, Any]:
        family, found = self._families[answer.stage], answer.detections
        document: dict[str, Any] = {"variant": answer.variant}
        if answer.remembered:
            document["remembered"] = True
        if found.embeddings is not None:
            if self._embeddings and len(found):
                values = found.embeddings[0].astype(np.float64)
                document["embedding"] = np.round(values, _EMBEDDING_DIGITS).tolist()
            return document
        if family.task == "detect":
            document["detections"] = self._detections(answer, family)
            return document
        best = best_classes(family, found)
        if family.attribute_names:
            return document | {"attributes": best}
        return document | best.get("", {})

    def _detections(self, answer: StageAnswer, family: Family) -> list[dict[str, Any]]:
        found, later = answer.detections, self.by_object(answer.stages)
        rows = best_rows(found, self._score_min)
        boxes = np.round(found.boxes[rows].astype(np.float64), 1).tolist()
        out = []
        for row, box in zip(rows.tolist(), boxes, strict=True):
            one: dict[str, Any] = {
                "label": family.labels[int(found.labels[row])],
                "score": _score(found, row),
                "box": box,
            }
            if row in later:
                one["stages"] = later[row]
            out.append(one)
        return out

    def attributes(self, stages: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Return the labels of an object by attribute, from the documents of its stages.

        A classifier with one answer gives an attribute of its stage's name. Where several
        classifiers of the pipeline have an attribute of the same name, it is "STAGE.NAME".
        """
        out: dict[str, dict[str, Any]] = {}
        for stage, document in stages.items():
            for name, value in document.get("attributes", {}).items():
                out[f"{stage}.{name}" if name in self._shared else name] = value
            if "label" in document:
                name = f"{stage}.{stage}" if self._is_attribute(stage) else stage
                out[name] = {"label": document["label"], "score": document["score"]}
        return out

    def _is_attribute(self, stage: str) -> bool:
        return any(stage in family.attribute_names for family in self._families.values())


class StageDocument(TypedDict):
    """One stage of a pipeline in short."""

    name: StageName
    family: FamilyName
    after: Sequence[StageName]


def stages_json(pipeline: Pipeline) -> list[StageDocument]:
    """Return the stages of a pipeline in short: name, family and what they come after."""
    return [
        {"name": stage.name, "family": stage.family, "after": list(stage.after)}
        for stage in pipeline.stages
    ]


def missing_json(missing: Sequence[StageName]) -> dict[str, list[str]]:
    """Return the field of a partial answer; nothing for one that is complete."""
    return {"missing": list(map(str, missing))} if missing else {}


def _score(found: Detections, row: int) -> float:
    # In float64: a rounded float32 would be written with spurious digits.
    return round(float(found.scores[row]), _SCORE_DIGITS)
