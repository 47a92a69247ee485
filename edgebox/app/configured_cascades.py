"""Reads the cascades that pipelines name, and checks that their stages are the cascades' models."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from edgebox.config.pipeline_section import PipelineParameters, StageParameters
from edgebox.domain.cascades import Cascade
from edgebox.domain.errors import EdgeboxError, InvalidInputError, ModelError
from edgebox.domain.model_family import FamilyName
from edgebox.domain.pipelines import Pipeline, PipelineName
from edgebox.inference.cascade_file import (
    CascadeModel,
    StoredCascade,
    as_served,
    insist_on_models,
    read_cascade,
)
from edgebox.inference.family import Family


class CascadeError(EdgeboxError):
    """A cascade that a pipeline cannot use; the message begins with the key of its stage."""


def with_cascades(
    table: PipelineParameters, families: Mapping[FamilyName, Family], models: Path
) -> Pipeline:
    """Return a pipeline, its cascade read from the models folder.

    The first stage and that with the cascade run on the cascade's two variants.

    Args:
        table: as declared, without contradictions in itself.
        families: that can be served.
        models: the models folder.

    Raises:
        CascadeError: the stages do not fit the cascade.
        ModelError: the cascade's file is missing or broken, or its models are not those that it
            was fitted with; the message begins with the key of its stage.
    """
    stages = [stage.stage() for stage in table.stages]
    first = next(at for at, stage in enumerate(table.stages) if not stage.after)
    for number, of in enumerate(table.stages):
        if not of.cascade:
            continue
        where = f"stages[{number}].cascade"
        try:
            stored = read_cascade(models, of.cascade)
            insist_on_models(stored, families.values())
        except ModelError as error:
            raise ModelError(f"{where}: {error}") from None
        small, large = stored.small, stored.large
        if mistake := part_mistake(families, small, large):
            raise CascadeError(f"{where}: {mistake}")
        for at, model in ((first, small), (number, large)):
            _insist(table.stages[at], f"stages[{at}]", stored, model.family, model.variant)
        stages[first] = replace(stages[first], variant=small.variant)
        served = _served(of, stored, families)
        stages[number] = replace(of.stage(served), variant=large.variant)
    try:
        return Pipeline(PipelineName(table.name), tuple(stages))
    except InvalidInputError as error:
        raise CascadeError(f"stages: {error}") from None


def _insist(
    stage: StageParameters, where: str, cascade: StoredCascade, family: str, variant: str
) -> None:
    """Check that a stage is the model that its cascade was fitted with."""
    fitted = f'the cascade "{cascade.name}" was fitted with'
    if stage.family != family:
        raise CascadeError(f'{where}.family: {fitted} "{family}", not "{stage.family}"')
    if stage.variant and stage.variant != variant:
        raise CascadeError(
            f'{where}.variant: {fitted} "{variant}", not "{stage.variant}"; leave the key out'
        )


def _served(
    stage: StageParameters, cascade: StoredCascade, families: Mapping[FamilyName, Family]
) -> Cascade:
    family = families[FamilyName(cascade.large.family)]
    return as_served(
        cascade,
        family.variant(cascade.large.variant),
        share=stage.share or None,
        threshold=stage.threshold or None,
        continues=family.after is not None,
    )


def part_mistake(
    families: Mapping[FamilyName, Family], small: CascadeModel, large: CascadeModel
) -> str:
    """Return why one model cannot go on from the other's features; empty: it need not, or can."""
    one, other = families[FamilyName(small.family)], families[FamilyName(large.family)]
    if one.after is not None:
        return f"{small.variant} is given features of {one.after}, so it cannot be the first model"
    if other.after is None:
        return ""
    first, second = one.variant(small.variant), other.variant(large.variant)
    fits = (first.width_px, first.height_px) == (second.width_px, second.height_px)
    if one.name == other.after and fits:
        return ""
    size = f"{second.width_px} × {second.height_px} px"
    return (
        f"{large.variant} is given features of {other.after} at {size}, which {small.variant} does "
        "not leave; make the cascade of the two parts at one size"
    )
