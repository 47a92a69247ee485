"""Outputs of ensembles: the tensors say what the documents of POST /v1/infer say, and no more."""

from dataclasses import replace
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebox.domain.model_family import FamilyName, VariantName
from edgebox.domain.pipelines import Pipeline, PipelineName, PipelineStage, StageName
from edgebox.inference.family import Attribute, Family
from edgebox.inference.remote.binary_tensors import unpack_elements
from edgebox.runtime.frames import Answer, StageAnswer
from edgebox.runtime.stage_documents import best_rows, staged_objects
from edgebox.vision.detections import Detections
from edgebox.web.v2.stage_tensors import ensemble_outputs, ensemble_tensors
from edgebox.web.v2.tensor_codec import NO_LABEL, Tensor, outputs_for
from tests.runtime.staged import FAMILIES, FIRST, KIND, KINDS, PARTS, STREET, answer, detections

PAINT, FACE = StageName("paint"), StageName("face")
PAINTS = replace(
    KINDS,
    name=FamilyName("paints"),
    labels=("matt", "glossy", "red", "blue"),
    attributes=(Attribute("finish", ("matt", "glossy")), Attribute("colour", ("red", "blue"))),
)
FACES = replace(
    STREET,
    name=FamilyName("faces"),
    task="embed",
    labels=("embedding",),
    embedding_length=2,
)
ALL: dict[FamilyName, Family] = {**FAMILIES, PAINTS.name: PAINTS, FACES.name: FACES}
PIPELINE = Pipeline(
    PipelineName("traffic"),
    (
        PipelineStage(FIRST, STREET.name),
        PipelineStage(PARTS, STREET.name, after=(FIRST,)),
        PipelineStage(PAINT, PAINTS.name, after=(FIRST,)),
        PipelineStage(KIND, KINDS.name, after=(FIRST, PARTS)),
        PipelineStage(FACE, FACES.name, after=(PARTS,)),
    ),
)
OWN = [spec.name for spec in outputs_for(STREET)]
PARTS_OWN = ["variant", "counts", "objects", "boxes", "scores", "labels", "names"]


def tensors(
    *answers: Answer, score_min: float = 0.0, form: Any = "xyxy", pipeline: Pipeline = PIPELINE
) -> dict[str, Tensor]:
    return ensemble_tensors(answers, pipeline, ALL, form, score_min)


def as_json(tensor: Tensor) -> Any:
    """Return a tensor's values as JSON has them, in its shape."""
    flat = orjson.loads(orjson.dumps(tensor.listed(), option=orjson.OPT_SERIALIZE_NUMPY))
    return np.array(flat, object).reshape(tensor.shape).tolist()


def test_outputs_are_named_after_their_stages() -> None:
    specs = {spec.name: spec for spec in ensemble_outputs(PIPELINE, ALL)}
    assert list(specs) == [
        *OWN,
        "missing",
        *(f"parts.{name}" for name in PARTS_OWN),
        *(f"parts.kind.{name}" for name in ("variant", "label", "score")),
        *(f"parts.face.{name}" for name in ("variant", "embedding")),
        "paint.variant",
        "paint.finish.label",
        "paint.finish.score",
        "paint.colour.label",
        "paint.colour.score",
        *(f"kind.{name}" for name in ("variant", "label", "score")),
    ]
    shapes = {name: (spec.datatype, spec.shape) for name, spec in specs.items()}
    assert shapes["missing"] == ("BYTES", (-1,))
    assert shapes["parts.counts"] == ("INT64", (-1,))
    assert shapes["parts.objects"] == ("INT64", (-1, -1))
    assert shapes["parts.boxes"] == ("FP32", (-1, -1, 4))
    assert shapes["parts.face.embedding"] == ("FP32", (-1, -1, 2))
    assert shapes["paint.colour.label"] == ("BYTES", (-1, -1))
    assert shapes["kind.score"] == ("FP32", (-1, -1))


def test_what_a_stage_did_not_take_or_answer_is_empty() -> None:
    paint = StageAnswer(PAINT, 2, VariantName("paints-32"), detections((1, 0.75), (2, 0.5)))
    kind = StageAnswer(KIND, 0, VariantName("kinds-32"), Detections.empty())
    one = answer(detections((1, 0.5), (0, 0.75), (2, 0.25)), (paint, kind), missing=(KIND, PAINT))
    got = tensors(one, answer(detections((1, 0.5))))
    assert as_json(got["missing"]) == ["kind,paint", ""]
    assert as_json(got["scores"]) == [[0.75, 0.5, 0.25], [0.5, 0, 0]]
    assert as_json(got["paint.variant"]) == [["", "", "paints-32"], ["", "", ""]]
    assert as_json(got["paint.finish.label"]) == [["", "", "glossy"], ["", "", ""]]
    assert as_json(got["paint.colour.score"]) == [[0, 0, 0.5], [0, 0, 0]]
    assert as_json(got["kind.variant"]) == [["", "kinds-32", ""], ["", "", ""]]
    assert as_json(got["kind.label"]) == [["", "", ""], ["", "", ""]]
    assert got["parts.boxes"].shape == (2, 0, 4)
    assert got["parts.face.embedding"].shape == (2, 0, 2)
    assert as_json(got["parts.counts"]) == [0, 0]


def test_detections_of_a_later_stage_say_on_which_object_they_were_found() -> None:
    face = replace(detections((0, 1.0)), embeddings=np.array([[0.6, 0.8]], np.float32))
    deep = StageAnswer(FACE, 1, VariantName("faces-32"), face)
    parts = (
        StageAnswer(PARTS, 0, VariantName("street-128"), detections((3, 0.5), (4, 0.75)), (deep,)),
        StageAnswer(PARTS, 1, VariantName("street-160"), detections((0, 0.5))),
    )
    one = answer(detections((1, 0.5), (2, 0.75)), parts)
    got = tensors(answer(detections()), one, form="xywh")
    # The object with the higher score comes first, and so does what was found on it.
    assert as_json(got["parts.variant"]) == [["", ""], ["street-160", "street-128"]]
    assert as_json(got["parts.counts"]) == [0, 3]
    assert as_json(got["parts.objects"]) == [[NO_LABEL] * 3, [0, 1, 1]]
    assert as_json(got["parts.labels"]) == [[NO_LABEL] * 3, [0, 4, 3]]
    assert as_json(got["parts.names"])[1] == [STREET.labels[at] for at in (0, 4, 3)]
    assert as_json(got["parts.scores"]) == [[0, 0, 0], [0.5, 0.75, 0.5]]
    assert as_json(got["parts.boxes"])[1][1:] == [[10, 10, 8, 20], [0, 10, 8, 20]]
    assert as_json(got["parts.face.variant"])[1] == ["", "faces-32", ""]
    assert as_json(got["parts.face.embedding"])[1] == [[0, 0], pytest.approx([0.6, 0.8]), [0, 0]]


# -- all tensors against the documents ----------------------------------------------------------

scores = st.integers(0, 8).map(lambda eighths: eighths / 8)
"""Eighths are the same in float32, and after rounding to three digits."""


def rows(labels: int) -> st.SearchStrategy[Detections]:
    one = st.tuples(st.integers(0, labels - 1), scores)
    return st.lists(one, max_size=4).map(lambda each: detections(*each))


@st.composite
def answers_after(draw: st.DrawFn, stage: StageName, count: int) -> tuple[StageAnswer, ...]:
    """Return what the stages after a stage say about some of its objects."""
    said = []
    for later in PIPELINE.next_stages(stage):
        family = ALL[later.family]
        for row in range(count):
            if not draw(st.booleans()):
                continue
            found = draw(rows(len(family.labels)))
            if family.task == "embed":
                found = found.select(np.arange(min(1, len(found))))
                found = replace(found, embeddings=np.full((len(found), 2), 0.5, np.float32))
            deeper = draw(answers_after(later.name, len(found)))
            name = VariantName(f"{family.name}-{draw(st.integers(1, 3))}")
            said.append(StageAnswer(later.name, row, name, found, deeper))
    return tuple(draw(st.permutations(said)))


@st.composite
def whole_answers(draw: st.DrawFn) -> Answer:
    found = draw(rows(len(STREET.labels)))
    stages = draw(answers_after(FIRST, len(found)))
    return answer(found, stages, tuple(draw(st.sets(st.sampled_from((KIND, PARTS, FACE))))))


class Reader:
    """Reads the documents of one picture back from tensors, as a client would."""

    def __init__(self, document: dict[str, Any], picture: int) -> None:
        self._document = document
        self._picture = picture

    def _of(self, name: str, at: int) -> Any:
        return self._document[name][self._picture][at]

    def stages(self, after: StageName, prefix: str, at: int) -> dict[str, Any]:
        out = {}
        for stage in PIPELINE.next_stages(after):
            inner = f"{prefix}{stage.name}."
            if variant := self._of(f"{inner}variant", at):
                out[str(stage.name)] = {"variant": variant} | self._said(stage, inner, at)
        return out

    def _said(self, stage: PipelineStage, prefix: str, at: int) -> dict[str, Any]:
        family = ALL[stage.family]
        if family.task == "detect":
            count = self._document[f"{prefix}counts"][self._picture]
            own = [row for row in range(count) if self._of(f"{prefix}objects", row) == at]
            return {"detections": [self._detection(stage, prefix, row) for row in own]}
        if family.task == "embed":
            embedding = self._of(f"{prefix}embedding", at)
            return {"embedding": embedding} if any(embedding) else {}
        names = [each.name for each in family.attributes]
        if not names:
            return self._label(prefix, at)
        each = {name: self._label(f"{prefix}{name}.", at) for name in names}
        return {"attributes": {name: of for name, of in each.items() if of}}

    def _label(self, prefix: str, at: int) -> dict[str, Any]:
        label = self._of(f"{prefix}label", at)
        return {"label": label, "score": self._of(f"{prefix}score", at)} if label else {}

    def _detection(self, stage: PipelineStage, prefix: str, row: int) -> dict[str, Any]:
        label = self._of(f"{prefix}names", row)
        assert label == ALL[stage.family].labels[self._of(f"{prefix}labels", row)]
        score, box = self._of(f"{prefix}scores", row), self._of(f"{prefix}boxes", row)
        deeper = self.stages(stage.name, prefix, row)
        one = {"label": label, "score": score, "box": box}
        return {**one, "stages": deeper} if deeper else one


@settings(max_examples=60)
@given(st.lists(whole_answers(), min_size=1, max_size=3), scores)
def test_a_client_reads_the_same_documents_from_the_tensors(
    answers: list[Answer], score_min: float
) -> None:
    got = tensors(*answers, score_min=score_min)
    assert list(got) == [spec.name for spec in ensemble_outputs(PIPELINE, ALL)]
    values = {name: as_json(tensor) for name, tensor in got.items()}
    for picture, one in enumerate(answers):
        staged = staged_objects(one, PIPELINE, ALL, score_min).documents
        kept = best_rows(one.detections, score_min).tolist()
        assert values["counts"][picture] == len(kept)
        assert values["missing"][picture] == ",".join(one.missing)
        reader = Reader(values, picture)
        for at, row in enumerate(kept):
            assert reader.stages(FIRST, "", at) == staged.get(row, {})
        for at in range(len(kept), max(values["counts"])):
            assert reader.stages(FIRST, "", at) == {}


@settings(max_examples=60)
@given(st.lists(whole_answers(), max_size=3))
def test_binary_data_and_json_say_the_same(answers: list[Answer]) -> None:
    kinds = {"FP32": "<f4", "INT64": "<i8"}
    for tensor in tensors(*answers).values():
        wanted = tensor.spec.shape
        assert [w for w in zip(wanted, tensor.shape, strict=True) if w[0] not in (-1, w[1])] == []
        flat = np.array(as_json(tensor), object).reshape(-1).tolist()
        assert len(flat) == np.prod(tensor.shape)
        if tensor.spec.datatype == "BYTES":
            texts = unpack_elements(memoryview(tensor.packed()), len(flat))
            assert [bytes(text).decode() for text in texts] == flat
        else:
            kind = kinds[tensor.spec.datatype]
            assert np.frombuffer(tensor.packed(), kind).tolist() == np.array(flat, kind).tolist()
