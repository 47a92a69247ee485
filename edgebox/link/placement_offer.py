"""Owns the box's offer to a camera: what it needs to run the first stage of its frames itself.

The offer names the family's manifest by its checksum, the variants, and the rules by which objects
become crops for later stages. Pure: no clock, no I/O.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from edgebox.domain.field_reader import FieldReader
from edgebox.domain.model_family import FamilyName, VariantName
from edgebox.domain.pipelines import CROPS_MAX, CropOrder, PipelineStage, StageName
from edgebox.domain.requests import StagePlacement
from edgebox.link.protocol import OWN_SIDE_MAX_PX

STAGES_MAX = 32
VARIANTS_MAX = 256
_LABELS_MAX = 100_000
_SHA256_DIGITS = 64


class CropFit(StrEnum):
    """How a crop is laid on the input of its stage's model."""

    LETTERBOX = "letterbox"
    """Its aspect is kept, and all of it is inside."""
    STRETCH = "stretch"
    """It fills the input, with any aspect."""
    COVER = "cover"
    """It fills the input, its aspect is kept, and what is over is cut off."""


@dataclass(frozen=True, slots=True)
class OfferedStage:
    """A later stage: the objects that it takes, and the size of its input."""

    stage: PipelineStage
    width_px: int
    height_px: int
    fit: CropFit = CropFit.COVER
    """How a crop is laid on its input; it need not be larger than that takes."""

    def crop_size_px(self, width_px: int, height_px: int) -> tuple[int, int]:
        """Return the size at which a crop of this size is sent: scaled down to its input."""
        x, y = self.width_px / width_px, self.height_px / height_px
        if self.fit == CropFit.STRETCH:
            return min(width_px, self.width_px), min(height_px, self.height_px)
        scale = min(1.0, max(x, y) if self.fit == CropFit.COVER else min(x, y))
        return max(1, round(width_px * scale)), max(1, round(height_px * scale))

    def to_json(self) -> dict[str, object]:
        """Return the fields in their wire format."""
        stage = self.stage
        return {
            "name": stage.name,
            "labels": stage.labels,
            "score_min": stage.score_min,
            "side_min_px": stage.side_min_px,
            **({} if stage.region is None else {"region": stage.region}),
            "margin": stage.margin,
            "crops_max": stage.crops_max,
            "order": stage.order.value,
            "width_px": self.width_px,
            "height_px": self.height_px,
            "fit": self.fit.value,
        }

    @classmethod
    def read(cls, read: FieldReader) -> Self:
        """Read the fields; errors are collected in the reader."""
        region: tuple[float, float, float, float] | None = None
        if "region" in read:
            left, top, right, bottom = read.numbers("region", 0, 1, length=4)
            region = left, top, right, bottom
        orders = tuple(each.value for each in CropOrder)
        return cls(
            PipelineStage(
                name=StageName(read.text("name", length_min=1)),
                family=FamilyName(""),
                labels=tuple(map(str, read.items("labels", _LABELS_MAX, []))),
                score_min=read.number("score_min", 0, 1),
                side_min_px=read.integer("side_min_px", 1, OWN_SIDE_MAX_PX),
                region=region,
                margin=read.number("margin", 0, 10),
                crops_max=read.integer("crops_max", 1, CROPS_MAX),
                order=CropOrder(read.choice("order", orders)),
            ),
            width_px=read.integer("width_px", 1, OWN_SIDE_MAX_PX),
            height_px=read.integer("height_px", 1, OWN_SIDE_MAX_PX),
            fit=CropFit(read.choice("fit", tuple(CropFit), CropFit.COVER)),
        )


@dataclass(frozen=True, slots=True)
class PlacementOffer:
    """What a camera needs to run the first stage of its frames itself."""

    sha256: str
    """Checksum of the family's manifest, which has those of the model files."""
    variants: tuple[VariantName, ...]
    """Variants that it may run; a frame names one by its place here."""
    stages: tuple[OfferedStage, ...] = ()
    """The later stages, which are given crops of the objects; a crop names one by its place."""

    def to_json(self) -> dict[str, object]:
        """Return the fields in their wire format."""
        return {
            "sha256": self.sha256,
            "variants": self.variants,
            "stages": [stage.to_json() for stage in self.stages],
        }

    @classmethod
    def read(cls, read: FieldReader) -> Self:
        """Read the fields; errors are collected in the reader."""
        digest = read.text("sha256")
        if len(digest) != _SHA256_DIGITS or set(digest) - set("0123456789abcdef"):
            read.refuse("sha256", f"must be {_SHA256_DIGITS} hexadecimal digits", digest)
        variants = read.texts("variants")
        if not 1 <= len(variants) <= VARIANTS_MAX:
            read.refuse("variants", f"must be 1 to {VARIANTS_MAX} names", variants)
        return cls(
            digest,
            tuple(map(VariantName, variants)),
            tuple(map(OfferedStage.read, read.objects("stages", STAGES_MAX, []))),
        )


def placement_json(placement: StagePlacement) -> Mapping[str, str]:
    """Return the field of an answer whose first stage ran at its camera; nothing for others."""
    return {} if placement is StagePlacement.BOX else {"placement": placement.value}
