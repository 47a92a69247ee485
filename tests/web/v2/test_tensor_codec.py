"""Outputs of the Open Inference Protocol: JSON and binary data say the same, padding is marked."""

import struct
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.errors import InvalidInputError
from edgebox.domain.model_family import FamilyName, VariantName
from edgebox.domain.requests import Outcome
from edgebox.inference.family import Attribute, Family, InputSpec
from edgebox.inference.remote.binary_tensors import pack_element, unpack_elements
from edgebox.runtime.frames import Answer, Timing
from edgebox.vision.detections import Detections
from edgebox.web.v2.tensor_codec import (
    NO_LABEL,
    OUTPUTS,
    outputs_for,
    outputs_of,
)
from tests.web.test_detection_documents import LABELS, detections

KINDS = {"FP32": "<f4", "INT64": "<i8"}


def answer(found: Detections, number: int) -> Answer:
    timing = Timing(0, 0, 0, 0, number * 1_500_000, 1)
    outcome = Outcome.LATE if number % 2 else Outcome.ON_TIME
    return Answer(outcome, VariantName(f"tall-{number}"), found, timing, 1.0)


def family(
    labels: tuple[str, ...],
    attributes: tuple[Attribute, ...] = (),
    embedding_length: int | None = None,
) -> Family:
    spec = InputSpec("nhwc", "uint8", "rgb", "stretch", 114, 32)
    return Family(
        name=FamilyName("tall"),
        task="detect",
        licence="none",
        description="",
        labels=labels,
        input=spec,
        decoder="",
        variants=(),
        files={},
        attributes=attributes,
        embedding_length=embedding_length,
    )


def test_attributes_and_embeddings_have_outputs_of_their_own() -> None:
    kinds = (Attribute("type", ("car", "bus")), Attribute("colour", ("red", "blue")))
    box = np.array([[0, 0, 8, 4]] * 2, np.float32)
    said = Detections(box, np.array([0.4, 0.9], np.float32), np.array([1, 2]))
    classified = family(("car", "bus", "red", "blue"), kinds)
    outputs = outputs_of([answer(said, 0), answer(said.above(0.5), 1)], classified, "xyxy", 0.0)
    assert list(outputs) == [spec.name for spec in outputs_for(classified)]
    assert outputs["names"].values == ("red", "bus", "red", "")
    assert outputs["attributes"].values == ("colour", "type", "colour", "")
    one = Detections(
        box[:1], np.ones(1, np.float32), np.zeros(1, np.int64), np.array([[0.6, 0, 0.8]], "f4")
    )
    embedded = family(("embedding",), embedding_length=3)
    outputs = outputs_of([answer(one, 0), answer(Detections.empty(), 1)], embedded, "xyxy", 0.0)
    assert list(outputs) == [spec.name for spec in outputs_for(embedded)]
    assert outputs["embeddings"].shape == (2, 1, 3)
    assert np.array(outputs["embeddings"].values).tolist() == [
        [pytest.approx([0.6, 0, 0.8])],
        [[0, 0, 0]],
    ]
    assert "embeddings" not in outputs_of([], family(LABELS), "xyxy", 0.0)


@given(st.lists(detections(), min_size=1, max_size=4), st.floats(0, 1))
def test_rows_are_what_scores_enough_best_first_and_then_padding(
    found: list[Detections], least: float
) -> None:
    answers = [answer(one, number) for number, one in enumerate(found)]
    outputs = outputs_of(answers, family(LABELS), "xyxy", least)
    assert list(outputs) == [spec.name for spec in OUTPUTS]
    parameters: dict[str, Any] = {}
    for name, tensor in outputs.items():
        flat = orjson.loads(orjson.dumps(tensor.listed(), option=orjson.OPT_SERIALIZE_NUMPY))
        packed = tensor.packed()
        if tensor.spec.datatype == "BYTES":
            texts = unpack_elements(memoryview(packed), len(flat))
            assert [bytes(text).decode() for text in texts] == flat
        else:
            kind = KINDS[tensor.spec.datatype]
            assert np.frombuffer(packed, kind).tolist() == np.array(flat, kind).tolist()
        parameters[name] = np.array(flat, object).reshape(tensor.shape)
    for row, one in enumerate(found):
        # The judge: pure Python over the rows, ties in their own order.
        kept = [at for at in range(len(one)) if one.scores[at] >= np.float32(least)]
        kept.sort(key=lambda at: -float(one.scores[at]))
        count = parameters["counts"][row]
        assert count == len(kept)
        assert parameters["labels"][row, :count].tolist() == [int(one.labels[at]) for at in kept]
        assert parameters["names"][row, :count].tolist() == [LABELS[one.labels[at]] for at in kept]
        boxes = np.array(parameters["boxes"][row, :count].tolist(), np.float32).reshape(-1, 4)
        assert (boxes == one.boxes[kept]).all()
        assert set(parameters["labels"][row, count:]) <= {NO_LABEL}
        assert set(parameters["names"][row, count:]) <= {""}
        assert not parameters["scores"][row, count:].any()
        assert parameters["variants"][row] == f"tall-{row}"
        assert parameters["outcomes"][row] == ("late" if row % 2 else "on_time")
        assert parameters["latency_ms"][row] == row * 1.5


@given(st.lists(st.binary(max_size=20), min_size=1, max_size=8), st.data())
def test_elements_are_unpacked_or_refused(elements: list[bytes], data: st.DataObject) -> None:
    packed = b"".join(map(pack_element, elements))
    assert [bytes(one) for one in unpack_elements(memoryview(packed), len(elements))] == elements
    for count in (len(elements) + 1, len(elements) - 1):
        with pytest.raises(InvalidInputError):
            unpack_elements(memoryview(packed), count)
    cut = data.draw(st.integers(0, len(packed) - 1))
    with pytest.raises(InvalidInputError):
        unpack_elements(memoryview(packed[:cut]), len(elements))


def test_a_length_is_four_bytes_little_end_first() -> None:
    assert pack_element(b"abc") == struct.pack("<I", 3) + b"abc"
