"""Reads what another machine says it found: nothing of it is taken on trust. Pure.

An error names what is wrong with the answer. Who asked adds the server and the model.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgebox.domain.requests import DropReason, Outcome
from edgebox.inference.encoded_pictures import Refused
from edgebox.inference.family import Family
from edgebox.inference.remote.binary_tensors import BYTES, Values, numpy_type
from edgebox.inference.remote.server_answers import LOAD_REASONS, Found, plain
from edgebox.inference.tensors import EncodedPicture
from edgebox.vision.decoding import insist_on
from edgebox.vision.detections import Detections

_ANSWERED = (Outcome.ON_TIME.value, Outcome.LATE.value)


def tensor(
    outputs: Mapping[str, Values], name: str, datatype: str, shape: Sequence[int]
) -> NDArray[Any]:
    """Return an output.

    Args:
        outputs: by name.
        name: which one.
        datatype: of its numbers, by the protocol's name.
        shape: the sizes of its axes; -1: any.

    Raises:
        ValueError: there is no such output, or it is of another type or shape.
    """
    array = outputs.get(name)
    if array is None:
        raise ValueError(f"it has no output {name}")
    if not isinstance(array, np.ndarray) or array.dtype != numpy_type(datatype):
        is_of = array.dtype.name if isinstance(array, np.ndarray) else BYTES
        raise ValueError(f"output {name} is of {is_of}, not of {datatype}")
    if len(array.shape) != len(shape) or any(
        size not in (-1, found) for size, found in zip(shape, array.shape, strict=True)
    ):
        raise ValueError(f"output {name} came back as {array.shape}, not as {tuple(shape)}")
    return array


def found_by_edgebox(
    outputs: Mapping[str, Values], family: Family, pictures: Sequence[EncodedPicture]
) -> Found:
    """Return what another edgebox found on some pictures, in their px, and what it did not answer.

    Raises:
        ValueError: the answer is not of these pictures, or the family finds nothing of the kind.
    """
    count = len(pictures)
    scores = tensor(outputs, "scores", "FP32", (count, -1))
    most = scores.shape[1]
    boxes = tensor(outputs, "boxes", "FP32", (count, most, 4))
    labels = tensor(outputs, "labels", "INT64", (count, most))
    counts = tensor(outputs, "counts", "INT64", (count,))
    if counts.min() < 0 or counts.max() > most:
        raise ValueError(f"output counts is from {counts.min()} to {counts.max()} of {most}")
    embeddings = None
    if family.embedding_length is not None:
        shape = count, most, family.embedding_length
        embeddings = tensor(outputs, "embeddings", "FP32", shape)
    given = np.arange(most) < counts[:, None]
    every = None if embeddings is None else embeddings[given]
    insist_on(Detections(boxes[given], scores[given], labels[given], every), len(family.labels))
    found = [
        Detections(
            boxes[row, :n], scores[row, :n], labels[row, :n],
            None if embeddings is None else embeddings[row, :n],
        ).scaled(1.0, 1.0, picture.width_px, picture.height_px)
        for row, (n, picture) in enumerate(zip(counts.tolist(), pictures, strict=True))
    ]  # fmt: skip
    return found, _not_answered(outputs.get("outcomes"), count)


def _not_answered(outcomes: Values | None, count: int) -> Mapping[int, Refused]:
    if not isinstance(outcomes, list) or len(outcomes) != count:
        raise ValueError(f"output outcomes is not {count} texts")
    refused: dict[int, Refused] = {}
    for row, outcome in enumerate(outcomes):
        text = outcome.decode()
        if text == DropReason.INVALID.value:
            refused[row] = Refused(DropReason.INVALID, "the other box cannot decode it")
        elif text in LOAD_REASONS:
            refused[row] = Refused(DropReason.OVERLOAD, f"the other box dropped it: {text}")
        elif text not in _ANSWERED:
            refused[row] = Refused(DropReason.FAILED, f"the other box dropped it: {plain(text)}")
    return refused
