"""The outputs of ensembles: those of the first stage, and what later stages say as tensors.

Pure. They are made from the documents of `runtime.stage_documents`, so they say what POST /v1/infer
says of the same picture, rounded as there.

A stage's outputs have its name before them: `vehicle.label`. They are aligned with the detections
of the first stage: element [i, j] is about object j of picture i. A later detector has its own
detections, all of a picture in one row, with the object that each was found on. The outputs of a
stage after it begin with the detector's name and are aligned with these: `plate.text.label`. So no
tensor has more than three dimensions, and padding stays small.

Where a stage did not take an object or has not answered, there are the same values as in rows
beyond a picture's last detection: 0, `NO_LABEL` and "". JSON has no NaN.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from edgebox.domain.model_family import FamilyName
from edgebox.domain.pipelines import Pipeline, PipelineStage, StageName
from edgebox.inference.family import Family
from edgebox.runtime.frames import Answer
from edgebox.runtime.stage_documents import best_rows, staged_objects
from edgebox.web.detection_documents import BoxForm
from edgebox.web.v2.tensor_codec import NO_LABEL, Datatype, Tensor, TensorSpec, outputs_of

MISSING = TensorSpec("missing", "BYTES", (-1,))
"""The stages that some object of the picture was not answered by in time, separated by commas."""

Documents = Sequence[Sequence[Mapping[str, Any]]]
"""For each picture, a document of each object, in order; empty: nothing is said of it."""


def ensemble_outputs(
    pipeline: Pipeline, families: Mapping[FamilyName, Family]
) -> tuple[TensorSpec, ...]:
    """Return the outputs of a pipeline, whose stages are of these families."""
    return tuple(each.spec for each in ensemble_tensors((), pipeline, families, "xyxy", 0).values())


def ensemble_tensors(
    answers: Sequence[Answer],
    pipeline: Pipeline,
    families: Mapping[FamilyName, Family],
    form: BoxForm,
    score_min: float,
) -> dict[str, Tensor]:
    """Return every output of some answers, by name.

    Args:
        answers: of pictures that ran through the pipeline.
        pipeline: the pipeline.
        families: of its stages, at least.
        form: of all boxes.
        score_min: detections of every stage below it are left out.
    """
    objects = []
    for answer in answers:
        said = staged_objects(answer, pipeline, families, score_min).documents
        objects.append([said.get(row, {}) for row in _rows(answer, score_min)])
    missing = tuple(",".join(answer.missing) for answer in answers)
    writer = _Writer(pipeline, families, form)
    tensors = [
        *outputs_of(answers, families[pipeline.first.family], form, score_min).values(),
        Tensor(MISSING, (len(missing),), missing),
        *writer.after(pipeline.first.name, "", objects),
    ]
    return {tensor.spec.name: tensor for tensor in tensors}


def _rows(answer: Answer, score_min: float) -> list[int]:
    rows: list[int] = best_rows(answer.detections, score_min).tolist()
    return rows


class _Writer:
    """Writes the tensors of the later stages of a pipeline."""

    def __init__(
        self, pipeline: Pipeline, families: Mapping[FamilyName, Family], form: BoxForm
    ) -> None:
        self._pipeline = pipeline
        self._families = families
        self._form = form

    def after(self, stage: StageName, prefix: str, objects: Documents) -> Iterator[Tensor]:
        """Yield what the stages after a stage say of its objects.

        Args:
            stage: that found the objects.
            prefix: of the names of its own outputs.
            objects: for each, what the stages say, by the stage's name.
        """
        for later in self._pipeline.next_stages(stage):
            if later.cascade is not None:  # its objects are the picture's
                continue
            said = [[of.get(later.name, {}) for of in picture] for picture in objects]
            yield from self._of_stage(later, f"{prefix}{later.name}.", said)

    def _of_stage(self, stage: PipelineStage, prefix: str, said: Documents) -> Iterator[Tensor]:
        family = self._families[stage.family]
        yield _column(f"{prefix}variant", "BYTES", said, "variant")
        if family.task == "detect":
            yield from self._detections(stage, family, prefix, said)
        elif family.embedding_length is not None:
            yield _column(f"{prefix}embedding", "FP32", said, "embedding", family.embedding_length)
        elif family.attributes:
            attributes = _plucked(said, "attributes", {})
            for attribute in family.attributes:
                of = _plucked(attributes, attribute.name, {})
                yield from _answers(f"{prefix}{attribute.name}.", of)
        else:
            yield from _answers(prefix, said)

    def _detections(
        self, stage: PipelineStage, family: Family, prefix: str, said: Documents
    ) -> Iterator[Tensor]:
        """Yield the detections of a later detector: those of each picture in one row."""
        numbers = {label: number for number, label in enumerate(family.labels)}
        found = [
            [
                {
                    **one,
                    "number": numbers[one["label"]],
                    "object": at,
                    "box": self._in_form(one["box"]),
                }
                for at, of in enumerate(picture)
                for one in of.get("detections", ())
            ]
            for picture in said
        ]
        counts = np.array([len(picture) for picture in found], np.int64)
        yield Tensor(TensorSpec(f"{prefix}counts", "INT64", (-1,)), counts.shape, counts)
        yield _column(f"{prefix}objects", "INT64", found, "object")
        yield _column(f"{prefix}boxes", "FP32", found, "box", 4)
        yield _column(f"{prefix}scores", "FP32", found, "score")
        yield _column(f"{prefix}labels", "INT64", found, "number")
        yield _column(f"{prefix}names", "BYTES", found, "label")
        yield from self.after(stage.name, prefix, _plucked(found, "stages", {}))

    def _in_form(self, box: Sequence[float]) -> Sequence[float]:
        if self._form == "xyxy":
            return box
        left, top, right, bottom = box
        return (left, top, right - left, bottom - top)


def _answers(prefix: str, said: Documents) -> Iterator[Tensor]:
    """Yield what a classifier says, of one attribute if it answers several."""
    yield _column(f"{prefix}label", "BYTES", said, "label")
    yield _column(f"{prefix}score", "FP32", said, "score")


def _plucked(said: Documents, key: str, default: Mapping[str, Any]) -> Documents:
    return [[of.get(key, default) for of in picture] for picture in said]


def _column(
    name: str, datatype: Datatype, said: Documents, key: str, length: int | None = None
) -> Tensor:
    """Return one value of each document as a tensor, filled up where there is none.

    Args:
        name: of the tensor.
        datatype: of its elements.
        said: the documents.
        key: of the value in a document.
        length: of the value, if it is a vector; None: it is a single value.
    """
    sizes = () if length is None else (length,)
    spec = TensorSpec(name, datatype, (-1, -1, *sizes))
    shape = (len(said), max(map(len, said), default=0), *sizes)
    if datatype == "BYTES":
        rows = ([*(of.get(key, "") for of in row), *[""] * (shape[1] - len(row))] for row in said)
        return Tensor(spec, shape, tuple(chain.from_iterable(rows)))
    if datatype == "INT64":
        numbers = np.full(shape, NO_LABEL, np.int64)
    else:
        numbers = np.zeros(shape, np.float32)
    for at, picture in enumerate(said):
        for column, of in enumerate(picture):
            if key in of:
                numbers[at, column] = of[key]
    return Tensor(spec, shape, numbers)
