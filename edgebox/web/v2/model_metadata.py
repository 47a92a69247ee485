"""The protocol's models: every family, and every variant by its name.

With a family the box chooses the variant by the deadline. Each model has one version, the loaded
one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from edgebox.domain.errors import UnknownNameError
from edgebox.domain.model_family import FamilyName, Variant
from edgebox.inference.family import Family
from edgebox.runtime.box import Box
from edgebox.web.v2.tensor_codec import INPUTS, TensorSpec, outputs_for

VERSION = "1"
PLATFORM = "onnxruntime_onnx"
_CONFIG_TYPES = {
    "BYTES": "TYPE_STRING", "UINT8": "TYPE_UINT8", "FP32": "TYPE_FP32", "INT64": "TYPE_INT64",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Model:
    """A model of the protocol."""

    name: str
    family: Family
    variant: Variant | None
    """The variant; None: the largest that can meet the deadline."""

    @property
    def variants(self) -> tuple[Variant, ...]:
        """The variants that may run."""
        return self.family.offered if self.variant is None else (self.variant,)

    def metadata(self) -> dict[str, Any]:
        """Return the protocol's model metadata."""
        return {
            "name": self.name,
            "versions": [VERSION],
            "platform": PLATFORM,
            "inputs": [_described(spec) for spec in INPUTS],
            "outputs": [_described(spec) for spec in outputs_for(self.family)],
        }

    def config(self) -> dict[str, Any]:
        """Return Triton's model configuration, as far as it applies."""
        texts = {
            "labels": orjson.dumps(self.family.labels).decode(),
            "family": self.family.name,
            "licence": self.family.licence,
        }
        if self.variant is not None:
            texts["width_px"], texts["height_px"] = map(
                str, (self.variant.width_px, self.variant.height_px)
            )
        return {
            "name": self.name,
            "platform": PLATFORM,
            "backend": "onnxruntime",
            # Batches are formed across requests and cameras; clients need not batch.
            "max_batch_size": 0,
            "input": [{**_configured(spec), "optional": True} for spec in INPUTS],
            "output": [_configured(spec) for spec in outputs_for(self.family)],
            "parameters": {key: {"string_value": text} for key, text in texts.items()},
        }


def models_of(box: Box) -> Iterator[Model]:
    """Return all models, each family before its variants."""
    for family in box.families.values():
        yield Model(family.name, family, None)
        for variant in family.offered:
            yield Model(variant.name, family, variant)


def model_named(box: Box, name: str, version: str | None) -> Model:
    """Return a model; if a family and a variant have the same name, the family.

    Raises:
        UnknownNameError: unknown name or version.
    """
    family = box.families.get(FamilyName(name))
    found = Model(name, family, None) if family is not None else None
    if found is None:
        found = next((model for model in models_of(box) if model.name == name), None)
    if found is None:
        there_are = ", ".join(model.name for model in models_of(box))
        raise UnknownNameError(f"there is no model {name!r}; there are {there_are}")
    if version not in (None, VERSION):
        raise UnknownNameError(f"model {name} has no version {version!r}; it has {VERSION}")
    return found


def _described(spec: TensorSpec) -> dict[str, Any]:
    return {"name": spec.name, "datatype": spec.datatype, "shape": spec.shape}


def _configured(spec: TensorSpec) -> dict[str, Any]:
    return {"name": spec.name, "data_type": _CONFIG_TYPES[spec.datatype], "dims": spec.shape}
