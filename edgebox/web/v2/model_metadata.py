"""The protocol's models: every family, every variant by its name, and every pipeline.

With a family the box chooses the variant by the deadline; a pipeline is an ensemble. Each model has
one version, the loaded one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from edgebox.domain.errors import UnknownNameError
from edgebox.domain.model_family import FamilyName, Variant
from edgebox.domain.pipelines import Pipeline
from edgebox.inference.family import Family
from edgebox.inference.family_prints import family_print, reading_print
from edgebox.runtime.box import Box
from edgebox.runtime.frames import Answer
from edgebox.runtime.stage_documents import stages_json
from edgebox.web.detection_documents import BoxForm
from edgebox.web.v2.stage_tensors import ensemble_outputs, ensemble_tensors
from edgebox.web.v2.tensor_codec import INPUTS, Tensor, TensorSpec, outputs_for, outputs_of

VERSION = "1"
PLATFORM = "onnxruntime_onnx"
ENSEMBLE_PLATFORM = "ensemble"
_CONFIG_TYPES = {
    "BYTES": "TYPE_STRING", "UINT8": "TYPE_UINT8", "FP32": "TYPE_FP32", "INT64": "TYPE_INT64",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Model:
    """A model of the protocol."""

    name: str
    family: Family
    """The family; the first stage's if it is a pipeline."""
    variant: Variant | None
    """The variant; None: the largest that can meet the deadline."""
    pipeline: Pipeline | None = None
    """None: it is a family or a variant."""
    families: Mapping[FamilyName, Family] = field(default_factory=dict)
    """The families of the pipeline's stages, at least."""

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """The outputs that it offers."""
        if self.pipeline is not None:
            return ensemble_outputs(self.pipeline, self.families)
        return outputs_for(self.family)

    def tensors(
        self, answers: Sequence[Answer], form: BoxForm, score_min: float
    ) -> dict[str, Tensor]:
        """Return every output of the answers to some pictures, by name."""
        if self.pipeline is not None:
            return ensemble_tensors(answers, self.pipeline, self.families, form, score_min)
        return outputs_of(answers, self.family, form, score_min)

    def unserved_because(self, box: Box) -> str:
        """Return why it cannot be asked now; empty: it can be.

        A pipeline needs an executor for each of its stages. A request that comes nevertheless is
        answered without a later stage that has none.
        """
        if self.pipeline is None:
            return box.unserved_because([self.variant] if self.variant else self.family.offered)
        for stage in self.pipeline.stages:
            if because := box.unserved_because(self.families[stage.family].offered):
                return f"stage {stage.name}: {because}"
        return ""

    def metadata(self) -> dict[str, Any]:
        """Return the protocol's model metadata."""
        return {
            "name": self.name,
            "versions": [VERSION],
            "platform": PLATFORM if self.pipeline is None else ENSEMBLE_PLATFORM,
            "inputs": [_described(spec) for spec in INPUTS],
            "outputs": [_described(spec) for spec in self.outputs],
        }

    def config(self, frame_bytes_max: int) -> dict[str, Any]:
        """Return Triton's model configuration, as far as it applies.

        Args:
            frame_bytes_max: the largest JPEG that the box takes.
        """
        return {
            "name": self.name,
            **(_run_by_onnxruntime() if self.pipeline is None else _run_as_steps(self.pipeline)),
            # Batches are formed across requests and cameras; clients need not batch.
            "max_batch_size": 0,
            "input": [{**_configured(spec), "optional": True} for spec in INPUTS],
            "output": [_configured(spec) for spec in self.outputs],
            "parameters": {
                key: {"string_value": text}
                for key, text in {**self._texts(), "frame_bytes_max": str(frame_bytes_max)}.items()
            },
        }

    def _texts(self) -> dict[str, str]:
        """Return the parameters of its configuration."""
        texts = {
            "labels": orjson.dumps(self.family.labels).decode(),
            "family": self.family.name,
        }
        if self.pipeline is not None:
            return texts | {"stages": orjson.dumps(stages_json(self.pipeline)).decode()}
        texts["licence"] = self.family.licence
        texts["fingerprint"] = family_print(self.family)
        texts["reading"] = reading_print(self.family)
        if self.variant is not None:
            texts["width_px"], texts["height_px"] = map(
                str, (self.variant.width_px, self.variant.height_px)
            )
        return texts


def models_of(box: Box) -> Iterator[Model]:
    """Return all models, each family before its variants, and pipelines last.

    No pipeline has the name of a family or a variant: `app.configured_pipelines` refuses it.
    """
    for family in box.families.values():
        if family.after is not None:  # its input is no picture
            continue
        yield Model(family.name, family, None)
        for variant in family.offered:
            yield Model(variant.name, family, variant)
    for pipeline in box.models.pipelines.values():
        first = box.families[pipeline.first.family]
        yield Model(pipeline.name, first, None, pipeline, box.families)


def model_named(box: Box, name: str, version: str | None) -> Model:
    """Return a model; if a family and a variant have the same name, the family.

    Raises:
        UnknownNameError: unknown name or version.
    """
    found = _found(box, name)
    if found is None:
        there_are = ", ".join(model.name for model in models_of(box))
        raise UnknownNameError(f"there is no model {name!r}; there are {there_are}")
    if version not in (None, VERSION):
        raise UnknownNameError(f"model {name} has no version {version!r}; it has {VERSION}")
    return found


def _found(box: Box, name: str) -> Model | None:
    family = box.families.get(FamilyName(name))
    if family is not None and family.after is None:
        return Model(name, family, None)
    for each in box.families.values():
        for variant in each.offered if each.after is None else ():
            if variant.name == name:
                return Model(name, each, variant)
    return next((model for model in models_of(box) if model.name == name), None)


def _run_by_onnxruntime() -> dict[str, Any]:
    return {"platform": PLATFORM, "backend": "onnxruntime"}


def _run_as_steps(pipeline: Pipeline) -> dict[str, Any]:
    """Return the steps of an ensemble; what one hands to another are crops, which have no name."""
    steps = [{"model_name": stage.family, "model_version": -1} for stage in pipeline.stages]
    return {"platform": ENSEMBLE_PLATFORM, "ensemble_scheduling": {"step": steps}}


def _described(spec: TensorSpec) -> dict[str, Any]:
    return {"name": spec.name, "datatype": spec.datatype, "shape": spec.shape}


def _configured(spec: TensorSpec) -> dict[str, Any]:
    return {"name": spec.name, "data_type": _CONFIG_TYPES[spec.datatype], "dims": spec.shape}
