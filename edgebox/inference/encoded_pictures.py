"""Decodes the pictures of a batch that arrive encoded, where the batch runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from edgebox.domain.errors import EdgeboxError
from edgebox.domain.model_family import Variant
from edgebox.domain.requests import DropReason
from edgebox.inference.family import InputSpec
from edgebox.inference.tensors import EncodedPicture, ModelInput
from edgebox.media.jpeg import decode_into
from edgebox.vision.detections import Detections
from edgebox.vision.letterbox import Placement


@dataclass(frozen=True, slots=True)
class Refused:
    """Why one picture of a batch was not answered, while others were."""

    reason: DropReason
    text: str


@dataclass(frozen=True, slots=True)
class DecodedInputs:
    """The inputs of a batch without encoded pictures."""

    inputs: Sequence[ModelInput]
    placements: Mapping[int, tuple[Placement, EncodedPicture]]
    """Where each decoded picture lies on its canvas, by row."""
    refused: Mapping[int, Refused]
    """Pictures that cannot be decoded, by row; an empty canvas stands in their place."""

    def in_pictures(self, found: Sequence[Detections]) -> list[Detections]:
        """Map the detections on pictures that were decoded here to px of the picture."""
        out = list(found)
        for row, (placement, picture) in self.placements.items():
            out[row] = placement.to_source(found[row], picture.width_px, picture.height_px)
        return out


def decode_inputs(inputs: Sequence[ModelInput], spec: InputSpec, variant: Variant) -> DecodedInputs:
    """Decode the encoded pictures among some inputs to a variant's input."""
    out: list[ModelInput] = []
    placements: dict[int, tuple[Placement, EncodedPicture]] = {}
    refused: dict[int, Refused] = {}
    for row, each in enumerate(inputs):
        if isinstance(each, EncodedPicture):
            canvas = np.empty((variant.height_px, variant.width_px, 3), np.uint8)
            try:
                decode_into(each.jpeg, canvas, spec.fill, spec.fit)
            except EdgeboxError as error:
                canvas[:] = spec.fill
                refused[row] = Refused(DropReason.INVALID, str(error))
            place = Placement.on_canvas(
                each.width_px, each.height_px, variant.width_px, variant.height_px, spec.fit
            )
            placements[row] = place, each
            out.append(canvas)
        else:
            out.append(each)
    return DecodedInputs(out, placements, refused)
