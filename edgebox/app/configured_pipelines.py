"""Decides whether the models of a box can be the stages of its configured pipelines."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from edgebox.app.configured_cascades import CascadeError, with_cascades
from edgebox.config.config_file import Config
from edgebox.config.keys import nearest
from edgebox.config.pipeline_section import PipelineParameters
from edgebox.domain.errors import ConfigError, ModelError
from edgebox.domain.model_family import FamilyName
from edgebox.domain.pipelines import Pipeline, PipelineName, PipelineStage, StageName
from edgebox.inference.family import Family
from edgebox.inference.zoo import bundled_folders


def make_pipelines(
    config: Config, families: Iterable[Family], unloaded: Sequence[ModelError] = ()
) -> tuple[dict[PipelineName, Pipeline], dict[PipelineName, str]]:
    """Return the pipelines, once it is known which families can be served, and why others are not.

    A mistake in the configuration is an error. A model or a cascade that cannot be loaded is the
    trouble of the pipelines that need it alone.

    Args:
        config: the configuration, without contradictions in itself.
        families: those that can be served.
        unloaded: why other families cannot be served; said where a stage names one that cannot.

    Raises:
        ConfigError: every stage that no model of this box can be, every stage that does not fit
            its cascade, and every pipeline with the name of a family or a variant; or the default
            pipeline cannot be served.
    """
    known = {family.name: family for family in families}
    made: dict[PipelineName, Pipeline] = {}
    missing: dict[PipelineName, str] = {}
    problems: list[str] = []
    for number, table in enumerate(config.pipelines):
        problems += (f"pipelines[{number}].{each}" for each in _of_name(table.name, known.values()))
        if why := _unloaded(table, known, unloaded):
            missing[PipelineName(table.name)] = why
            continue
        try:
            pipeline = with_cascades(table, known, config.inference.models_folder)
        except CascadeError as error:
            problems.append(f"pipelines[{number}].{error}")
            continue
        except ModelError as error:
            missing[PipelineName(table.name)] = str(error)
            continue
        made[pipeline.name] = pipeline
        places = {StageName(s.name): place for place, s in enumerate(table.stages)}
        for stage in pipeline.stages:
            where = f"pipelines[{number}].stages[{places[stage.name]}]"
            problems += (f"{where}.{each}" for each in _of_models(pipeline, stage, known))
    if problems:
        raise ConfigError(
            "\n".join([f"{config.source}:", *(f"  {problem}" for problem in problems)])
        )
    default = PipelineName(config.inference.pipeline)
    if default in missing:
        raise ConfigError(
            f"{config.source}: inference.pipeline: the default pipeline {default} cannot be "
            f"served: {missing[default]}"
        )
    return made, missing


def _unloaded(
    table: PipelineParameters,
    families: Mapping[FamilyName, Family],
    unloaded: Sequence[ModelError],
) -> str:
    """Return which stage cannot run because models were not loaded; empty: none.

    What is not loaded may have any name: its file could not be read.
    """
    for number, stage in enumerate(table.stages):
        if unloaded and FamilyName(stage.family) not in families:
            whys = "; ".join(map(str, unloaded))
            return (
                f'stages[{number}].family: there is no model family "{stage.family}" that can be '
                f"served; not loaded: {whys}"
            )
    return ""


def _of_name(name: str, families: Iterable[Family]) -> Iterator[str]:
    """Yield why a pipeline cannot have this name: /v2 serves it beside families and variants."""
    for family in families:
        if name == family.name:
            of = "a model family"
        elif name in {variant.name for variant in family.variants}:
            of = f'a variant of the model family "{family.name}"'
        else:
            continue
        yield (
            f'name: {of} is called "{name}", too, and /v2 serves both as models by their names; '
            "give the pipeline another name"
        )


def _of_models(
    pipeline: Pipeline, stage: PipelineStage, families: Mapping[FamilyName, Family]
) -> Iterator[str]:
    """Yield why no model of this box can be a stage: key, colon, reason."""
    family = families.get(stage.family)
    if family is None:
        # Bundled ones are served once a pipeline names them.
        there = dict.fromkeys((*families, *(folder.name for folder in bundled_folders())))
        yield (
            f'family: there is no model family "{stage.family}" that can be served'
            f"{nearest(stage.family, there)}"
        )
    elif family.after is not None and stage.cascade is None:
        yield (
            f'family: "{family.name}" is given features of "{family.after}", not pictures or '
            "crops; give the stage a cascade of the two (edgebox models cascade)"
        )
    elif (later := pipeline.next_stages(stage.name)) and family.task != "detect":
        names = " and ".join(f'"{each.name}"' for each in later)
        yield (
            f'family: "{family.name}" finds no objects (its task is {family.task}), so {names} '
            "cannot come after it; use a detector here"
        )
    elif not stage.after and family.task != "detect":
        yield (
            f'family: "{family.name}" finds no objects (its task is {family.task}), but the first '
            "stage must; use a detector here, and this family in a stage after it"
        )
    if family is not None and stage.once_per_track and family.task == "detect":
        yield (
            f'once_per_track: "{family.name}" finds objects, which move; leave it out, or use a '
            "classifier or an embedding model here"
        )
    if family is not None and stage.variant is not None:
        offered = [variant.name for variant in family.offered]
        if stage.variant not in offered:
            yield (
                f'variant: family "{family.name}" has no variant "{stage.variant}"'
                f"{nearest(stage.variant, offered)}"
            )
    before = [families.get(each.family) for each in pipeline.stages if each.name in stage.after]
    found = [each for each in before if each is not None and each.task == "detect"]
    if not stage.after and stage.labels:
        yield "labels: the first stage is given whole pictures, which have no class; leave it out"
    if not found or len(found) < len(before):  # said at the stages before
        return
    labels = list(dict.fromkeys(label for each in found for label in each.labels))
    for label in stage.labels:
        if label not in labels:
            names = ", ".join(dict.fromkeys(f'"{each.name}"' for each in found))
            yield f'labels: {names} finds no "{label}"{nearest(label, labels)}'
