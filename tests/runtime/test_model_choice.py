"""Which models a camera gets: what its hello names, else the box's defaults."""

from dataclasses import replace

import pytest

from edgebox.domain.errors import ModelError
from edgebox.domain.model_family import FamilyName, VariantName
from edgebox.domain.pipelines import Pipeline, PipelineName, PipelineStage, StageName
from edgebox.inference.family import Family
from edgebox.inference.zoo import bundled_folders, load_zoo
from edgebox.runtime.model_choice import (
    ModelChoice,
    UnknownFamilyError,
    UnknownPipelineError,
    served,
)

STREET = load_zoo(bundled_folders()).family("street")
OTHER = replace(STREET, name=FamilyName("other"))
FIRST = PipelineStage(StageName("street"), STREET.name)
AGAIN = PipelineStage(StageName("again"), OTHER.name, after=(FIRST.name,))
TRAFFIC = Pipeline(PipelineName("traffic"), (FIRST, AGAIN))


def choice(default: str = "", families: tuple[Family, ...] = (STREET, OTHER)) -> ModelChoice:
    models, _ = served(families, "street", {TRAFFIC.name: TRAFFIC}, default)
    return models


def test_what_a_hello_names_is_taken() -> None:
    models = choice()
    assert models.of(None, None) == ("street", None)
    assert models.of("other", None) == ("other", None)
    assert models.of(None, "traffic") == ("street", TRAFFIC)
    assert models.of("street", "traffic") == ("street", TRAFFIC)


def test_the_default_pipeline_is_for_cameras_that_name_nothing() -> None:
    models = choice("traffic")
    assert models.of(None, None) == ("street", TRAFFIC)
    assert models.of("", "") == ("street", TRAFFIC)
    assert models.of("street", None) == ("street", None)


def test_unknown_names_and_two_that_do_not_fit() -> None:
    models = choice()
    with pytest.raises(UnknownFamilyError, match="no model family cats; it has street, other"):
        models.of("cats", "traffic")
    with pytest.raises(UnknownPipelineError, match="no pipeline trafic; it has traffic"):
        models.of(None, "trafic")
    with pytest.raises(UnknownPipelineError, match="begins with the family street, not with other"):
        models.of("other", "traffic")
    with pytest.raises(UnknownPipelineError, match="no pipeline x; it has none"):
        ModelChoice().of(None, "x")


def test_a_pipeline_that_no_executor_runs_is_left_out_unless_it_is_the_default() -> None:
    models, texts = served((STREET,), "street", {TRAFFIC.name: TRAFFIC})
    assert models.pipelines == {}
    assert texts == [
        "pipeline traffic is left out: no executor runs the family other of its stage again"
    ]
    with pytest.raises(ModelError, match="is the default one"):
        served((STREET,), "street", {TRAFFIC.name: TRAFFIC}, "traffic")


def test_a_pipeline_whose_variant_is_not_served_is_left_out() -> None:
    stage = replace(FIRST, variant=VariantName("street-1"))
    pipeline = Pipeline(TRAFFIC.name, (stage,))
    _, texts = served((STREET,), "street", {pipeline.name: pipeline})
    assert texts == [
        "pipeline traffic is left out: the variant street-1 of its stage street is not served"
    ]


def test_a_second_part_is_no_model_of_a_camera() -> None:
    rest = load_zoo(bundled_folders()).family("street-rest")
    models = choice(families=(STREET, OTHER, rest))
    with pytest.raises(UnknownFamilyError, match="street-rest is given features of street-exit"):
        models.of("street-rest", None)
