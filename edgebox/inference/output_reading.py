"""Reads the outputs of a batch: a picture whose answer makes no sense costs itself alone."""

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from edgebox.domain.model_family import Variant
from edgebox.domain.requests import DropReason
from edgebox.inference.encoded_pictures import Refused
from edgebox.inference.family import Family
from edgebox.vision.decoding import DecodingError
from edgebox.vision.detections import Detections


def read_outputs(
    family: Family, variant: Variant, outputs: Sequence[NDArray[Any]], score_min: float
) -> tuple[list[Detections], Mapping[int, Refused]]:
    """Return what was found on each picture, in input px, and which pictures have no answer.

    Args:
        family: the model's.
        variant: what ran.
        outputs: in the order of the graph, without padding.
        score_min: detections below it are left out.

    Raises:
        DecodingError: no picture has one.
    """
    size = variant.width_px, variant.height_px
    count = len(outputs[0])
    try:
        return family.decode(outputs, *size, score_min), {}
    except DecodingError:
        if count == 1:
            raise
    found = [Detections.empty()] * count
    refused: dict[int, Refused] = {}
    for row in range(count):
        try:
            (found[row],) = family.decode(
                [each[row : row + 1] for each in outputs], *size, score_min
            )
        except DecodingError as error:
            refused[row] = Refused(DropReason.FAILED, f"{variant.name}: {error}")
            if len(refused) == count:
                raise
    return found, refused
