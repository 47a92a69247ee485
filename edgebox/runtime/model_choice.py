"""Chooses the models that a camera's frames run on, from what its hello names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from edgebox.domain.errors import EdgeboxError, ModelError
from edgebox.domain.model_family import FamilyName
from edgebox.domain.pipelines import Pipeline, PipelineName
from edgebox.inference.family import Family

_NO_FAMILY = FamilyName("")


class UnknownFamilyError(EdgeboxError):
    """The box has no such model family."""

    code = "unknown_family"


class UnknownPipelineError(EdgeboxError):
    """The box has no such pipeline, or it begins with another family than the hello names."""

    code = "unknown_pipeline"


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The families and pipelines that are served, and the defaults among them."""

    families: Mapping[FamilyName, Family] = field(default_factory=dict)
    default_family: FamilyName = _NO_FAMILY
    pipelines: Mapping[PipelineName, Pipeline] = field(default_factory=dict)
    default_pipeline: PipelineName | None = None
    """For cameras that name neither a pipeline nor a family; None: they get the default family."""

    @property
    def only_synthetic(self) -> bool:
        """Whether every detector was trained on made-up pictures: none is for real cameras."""
        detectors = [family for family in self.families.values() if family.task == "detect"]
        return bool(detectors) and all(family.synthetic for family in detectors)

    def of(self, family: str | None, pipeline: str | None) -> tuple[FamilyName, Pipeline | None]:
        """Return the family and the pipeline of a camera that names these; empty: it names none.

        Raises:
            UnknownFamilyError: there is no such family.
            UnknownPipelineError: there is no such pipeline, or it begins with another family.
        """
        if family and family not in self.families:
            raise UnknownFamilyError(
                f"this box has no model family {family}; it has {', '.join(self.families)}"
            )
        if family and (after := self.families[FamilyName(family)].after) is not None:
            raise UnknownFamilyError(
                f"{family} is given features of {after}, not pictures: name a pipeline that has "
                "them as its stages"
            )
        chosen = self.pipeline(pipeline) if pipeline else None
        if chosen is None and not family and self.default_pipeline is not None:
            chosen = self.pipelines[self.default_pipeline]
        if chosen is None:
            return FamilyName(family or self.default_family), None
        if family and family != chosen.first.family:
            raise UnknownPipelineError(
                f"the pipeline {chosen.name} begins with the family {chosen.first.family}, not "
                f"with {family}; name one of the two only"
            )
        return chosen.first.family, chosen

    def pipeline(self, name: str) -> Pipeline:
        """Return one pipeline.

        Raises:
            UnknownPipelineError: there is none of this name.
        """
        found = self.pipelines.get(PipelineName(name))
        if found is None:
            there_are = f"it has {', '.join(self.pipelines)}" if self.pipelines else "it has none"
            raise UnknownPipelineError(f"this box has no pipeline {name}; {there_are}")
        return found


def served(
    families: Sequence[Family],
    default_family: str,
    pipelines: Mapping[PipelineName, Pipeline] | None = None,
    default_pipeline: str = "",
    missing: Mapping[PipelineName, str] | None = None,
) -> tuple[ModelChoice, list[str]]:
    """Return what is served, and which pipelines are not.

    A pipeline of which no executor runs a stage is not served either.

    Args:
        families: those that executors run.
        default_family: for cameras that name none.
        pipelines: those whose models are there.
        default_pipeline: for cameras that name neither a pipeline nor a family; empty: none.
        missing: further ones that are configured, and why they cannot be served.

    Raises:
        ModelError: the default pipeline is not served.
    """
    known = {family.name: family for family in families}
    reasons = {name: _unserved_because(each, known) for name, each in (pipelines or {}).items()}
    reasons |= missing or {}
    texts = {name: f"pipeline {name} is left out: {why}" for name, why in reasons.items() if why}
    default = PipelineName(default_pipeline) if default_pipeline else None
    if default in texts:
        raise ModelError(f"{texts[default]}; it is the default one (inference.pipeline)")
    kept = {name: each for name, each in (pipelines or {}).items() if name not in texts}
    return ModelChoice(known, FamilyName(default_family), kept, default), list(texts.values())


def _unserved_because(pipeline: Pipeline, families: Mapping[FamilyName, Family]) -> str:
    """Return why a pipeline cannot be served with these families; empty: it can."""
    for stage in pipeline.stages:
        family = families.get(stage.family)
        if family is None:
            return f"no executor runs the family {stage.family} of its stage {stage.name}"
        if stage.variant is not None and stage.variant not in {v.name for v in family.offered}:
            return f"the variant {stage.variant} of its stage {stage.name} is not served"
    return ""
