"""The protocol's tensors: inputs and outputs of models, and their binary encoding.

Pure. `inference.remote.binary_tensors` has what a client needs as well.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from edgebox.domain.requests import DropReason
from edgebox.inference.family import Family
from edgebox.inference.remote.binary_tensors import pack_element
from edgebox.runtime.frames import Answer
from edgebox.runtime.stage_documents import best_rows
from edgebox.vision.detections import Detections
from edgebox.web.detection_documents import BoxForm

Datatype = Literal["BYTES", "UINT8", "FP32", "INT64"]

NO_LABEL = -1
"""Number in rows beyond a picture's last detection."""


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor in the metadata; -1 is any size."""

    name: str
    datatype: Datatype
    shape: tuple[int, ...]


INPUTS = (
    TensorSpec("image", "BYTES", (-1,)),
    TensorSpec("pixels", "UINT8", (-1, -1, -1, 3)),
)
"""Alternative inputs: JPEGs, or RGB pictures of one size."""

OUTPUTS = (
    TensorSpec("boxes", "FP32", (-1, -1, 4)),
    TensorSpec("scores", "FP32", (-1, -1)),
    TensorSpec("labels", "INT64", (-1, -1)),
    TensorSpec("names", "BYTES", (-1, -1)),
    TensorSpec("counts", "INT64", (-1,)),
    TensorSpec("variants", "BYTES", (-1,)),
    TensorSpec("outcomes", "BYTES", (-1,)),
    TensorSpec("latency_ms", "FP32", (-1,)),
)
"""Outputs of every family. The first index is the picture, the second the detection, best first."""

_ATTRIBUTES = TensorSpec("attributes", "BYTES", (-1, -1))
_EMBEDDINGS = "embeddings"


def outputs_for(family: Family) -> tuple[TensorSpec, ...]:
    """Return the outputs of a family's models."""
    out: tuple[TensorSpec, ...] = OUTPUTS
    if family.attributes:
        out += (_ATTRIBUTES,)
    if family.embedding_length is not None:
        out += (TensorSpec(_EMBEDDINGS, "FP32", (-1, -1, family.embedding_length)),)
    return out


@dataclass(frozen=True, slots=True)
class Tensor:
    """One output of one answer."""

    spec: TensorSpec
    shape: tuple[int, ...]
    values: NDArray[np.float32] | NDArray[np.int64] | tuple[str, ...]
    """Values, row by row; texts for BYTES."""

    def listed(self) -> object:
        """Return its elements for JSON, flat."""
        if isinstance(self.values, tuple):
            return self.values
        return np.ascontiguousarray(self.values).reshape(-1)

    def packed(self) -> bytes:
        """Return its elements as binary data."""
        if isinstance(self.values, tuple):
            return b"".join(pack_element(text.encode()) for text in self.values)
        if sys.byteorder == "little":
            return self.values.tobytes()
        return self.values.astype(self.values.dtype.newbyteorder("<")).tobytes()


def outputs_of(
    answers: Sequence[Answer], family: Family, form: BoxForm, score_min: float
) -> dict[str, Tensor]:
    """Return every output of some answers, by name.

    Pictures with fewer detections than the one with most are filled up: boxes and scores with 0,
    embeddings with 0, labels with `NO_LABEL`, names and attributes with "".
    """
    labels, attributes = family.labels, family.attribute_names
    found = [
        answer.detections.select(best_rows(answer.detections, score_min)) for answer in answers
    ]
    n, k = len(found), max(map(len, found), default=0)
    boxes, scores, numbers = _filled_up(found, form, k)
    listed = numbers.ravel().tolist()
    latencies = np.array([answer.timing.total_ns / 1e6 for answer in answers], np.float32)
    values: list[NDArray[np.float32] | NDArray[np.int64] | tuple[str, ...]] = [
        boxes,
        scores,
        numbers,
        _texts("" if number == NO_LABEL else labels[number] for number in listed),
        np.array([len(one) for one in found], np.int64),
        _texts(answer.variant for answer in answers),
        _texts(answer.outcome.value for answer in answers),
        latencies,
    ]
    if attributes:
        values.append(_texts("" if number == NO_LABEL else attributes[number] for number in listed))
    if family.embedding_length is not None:
        embeddings = np.zeros((n, k, family.embedding_length), np.float32)
        for row, one in enumerate(found):
            if one.embeddings is not None:
                embeddings[row, : len(one)] = one.embeddings
        values.append(embeddings)
    sizes = (n, k)
    return {
        spec.name: Tensor(spec, (*sizes[: len(spec.shape)], *spec.shape[2:]), value)
        for spec, value in zip(outputs_for(family), values, strict=True)
    }


def _filled_up(
    found: Sequence[Detections], form: BoxForm, rows: int
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int64]]:
    """Return boxes (n, rows, 4), scores (n, rows) and labels (n, rows) of n pictures."""
    if len(found) == 1:  # it has as many rows as it is to have
        [only] = found
        boxes = only.xywh() if form == "xywh" else only.boxes
        return boxes[None], only.scores[None], only.labels[None]
    boxes = np.zeros((len(found), rows, 4), np.float32)
    scores = np.zeros((len(found), rows), np.float32)
    numbers = np.full((len(found), rows), NO_LABEL, np.int64)
    for row, one in enumerate(found):
        boxes[row, : len(one)] = one.xywh() if form == "xywh" else one.boxes
        scores[row, : len(one)] = one.scores
        numbers[row, : len(one)] = one.labels
    return boxes, scores, numbers


def with_reasons(outcomes: Tensor, dropped: Mapping[int, DropReason]) -> Tensor:
    """Return outcomes with the reasons of pictures that were not answered, by row."""
    return replace(
        outcomes,
        values=_texts(dropped.get(row, each) for row, each in enumerate(outcomes.values)),
    )


def _texts(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(map(str, values))
