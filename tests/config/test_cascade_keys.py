"""Cascades in the configuration: what cannot be used is one error with its key."""

from dataclasses import replace
from pathlib import Path

import pytest

from edgebox.app.configured_pipelines import make_pipelines
from edgebox.domain.errors import ConfigError
from edgebox.domain.model_family import VariantName
from edgebox.domain.pipelines import PipelineName
from edgebox.inference.cascade_file import CascadeModel, StoredCascade, write_cascade
from edgebox.inference.zoo import bundled_folders, load_zoo
from tests.config.test_pipeline_section import errors, loaded
from tests.end_to_end.test_cascades import FILE, LARGE, SMALL, cascade

FAMILIES = load_zoo(bundled_folders()).families


@pytest.fixture
def stored() -> StoredCascade:
    return cascade(0.0)


def said(tmp_path: Path, text: str) -> str:
    config = loaded(tmp_path, text.format(models=tmp_path / "models"))
    with pytest.raises(ConfigError) as caught:
        make_pipelines(config, FAMILIES)
    first, message = str(caught.value).splitlines()
    assert first == f"{tmp_path / 'edgebox.toml'}:"
    return message.strip()


def test_a_cascade_gives_its_stages_their_variants(tmp_path: Path, stored: StoredCascade) -> None:
    write_cascade(tmp_path / "models", stored)
    text = FILE.format(models=tmp_path / "models").replace("threshold = 0.5", "share = 0.25")
    made = make_pipelines(loaded(tmp_path, text), FAMILIES)[0][PipelineName("gate")]
    assert made.first.variant == SMALL
    stage = made.cascade_stage
    assert stage is not None
    assert stage.variant == LARGE
    assert stage.cascade is not None
    large = FAMILIES[0].variant(LARGE)
    assert stage.cascade.large_px == (large.width_px, large.height_px)
    assert (stage.cascade.share, stage.cascade.threshold) == (0.25, None)
    threshold = stage.cascade.threshold_with(planned_share=0.9)
    assert threshold == stored.curve.at_share(0.25).threshold


def test_one_cascade_that_cannot_be_used_is_the_trouble_of_its_pipeline(
    tmp_path: Path, stored: StoredCascade
) -> None:
    models = tmp_path / "models"
    other = '\n[[pipelines]]\nname = "other"\n[[pipelines.stages]]\nname = "a"\nfamily = "street"\n'
    config = loaded(tmp_path, FILE.format(models=models) + other)
    key = "stages[1].cascade: "

    def missing() -> str:
        made, missing = make_pipelines(config, FAMILIES)
        assert list(made) == ["other"]
        assert list(missing) == ["gate"]
        return missing[PipelineName("gate")]

    assert missing().startswith(f"{key}{models / 'test.cascade.json'}: there is no")
    changed = replace(stored, small=replace(stored.small, fingerprint="another"))
    write_cascade(models, changed)
    assert missing().startswith(f"{key}cascade 'test' was fitted with another street-")
    (models / "test.cascade.json").write_text("{}")
    assert missing().startswith(f"{key}{models / 'test.cascade.json'}: ")


def test_stages_that_do_not_fit_their_cascade(tmp_path: Path, stored: StoredCascade) -> None:
    models = tmp_path / "models"
    write_cascade(models, stored)
    wanted = 'pipelines[0].stages[1].variant: the cascade "test" was fitted with "street-416"'
    text = FILE.replace('cascade = "test"', 'cascade = "test"\nvariant = "street-320"')
    assert said(tmp_path, text).startswith(wanted)
    text = FILE.replace('name = "small"\nfamily = "street"', 'name = "small"\nfamily = "vehicles"')
    assert 'stages[0].family: the cascade "test" was fitted with "street"' in said(tmp_path, text)


def test_stages_at_places_where_they_cannot_be(tmp_path: Path, stored: StoredCascade) -> None:
    write_cascade(tmp_path / "models", stored)
    text = FILE.replace('["small", "large"]', '["small"]')
    wanted = "'vehicle' of pipeline 'gate' must come after both 'small' and 'large'"
    assert wanted in said(tmp_path, text)
    another = '\n[[pipelines.stages]]\nname = "more"\nfamily = "street"\nafter = ["small"]\n'
    text = f'{FILE}{another}cascade = "test"\nshare = 0.5\n'
    assert "several stages with a cascade (large, more)" in said(tmp_path, text)


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("threshold = 0.5", "threshold = 1.5", "stages[1].threshold: must be a number from 0 to 1"),
        ("threshold = 0.5", "share = -0.1", "stages[1].share: must be a number from 0 to 1"),
        ("threshold = 0.5", "threshold = 0.5\nshare = 0.5", "share and threshold exclude"),
        ('cascade = "test"', "", "stages[1].threshold: is of a cascade"),
        ("threshold = 0.5", 'threshold = 0.5\nlabels = ["car"]', "given whole pictures"),
        ("threshold = 0.5", "threshold = 0.5\nmargin = 0.3", "stages[1].margin: a stage with a"),
        ("threshold = 0.5", "crops_max = 3", "stages[1].crops_max: a stage with a cascade is"),
        ("threshold = 0.5", 'order = "area"', "stages[1].order: a stage with a cascade is given"),
        ('cascade = "test"', 'cascade = "../test"', "stages[1].cascade: must be 1 to 64 letters"),
        ('name = "small"', 'name = "small"\ncascade = "test"\nshare = 0.5', "the first stage is"),
        ('after = ["small"]\ncasc', 'after = ["large"]\ncasc', "form a cycle"),
    ],
)
def test_keys_that_contradict(tmp_path: Path, old: str, new: str, wanted: str) -> None:
    text = FILE.format(models=tmp_path / "models")
    assert old in text
    assert any(wanted in each for each in errors(tmp_path, text.replace(old, new)))


def test_a_cascade_after_a_later_stage_is_refused(tmp_path: Path, stored: StoredCascade) -> None:
    write_cascade(tmp_path / "models", stored)
    text = FILE.replace('after = ["small"]\ncasc', 'after = ["vehicle"]\ncasc')
    text = text.replace('["small", "large"]', '["small"]')
    assert "'large' of pipeline 'gate' has a cascade, so it must come after 'small'" in said(
        tmp_path, text
    )


EXIT = FILE.replace('"small"\nfamily = "street"', '"small"\nfamily = "street-exit"').replace(
    '"large"\nfamily = "street"', '"large"\nfamily = "street-rest"'
)


def parts(first: str, second: str) -> StoredCascade:
    """Return a cascade of two variants."""
    known = {v.name: family for family in FAMILIES for v in family.variants}
    small, large = VariantName(first), VariantName(second)
    return replace(
        cascade(0.0),
        small=CascadeModel.of(known[small], small),
        large=CascadeModel.of(known[large], large),
    )


def test_an_exit_is_a_cascade_of_two_parts(tmp_path: Path) -> None:
    write_cascade(tmp_path / "models", parts("street-exit-256", "street-rest-256"))
    config = loaded(tmp_path, EXIT.format(models=tmp_path / "models"))
    stage = make_pipelines(config, FAMILIES)[0][PipelineName("gate")].cascade_stage
    assert stage is not None
    assert stage.cascade is not None
    assert stage.cascade.continues
    assert (stage.variant, stage.cascade.small) == ("street-rest-256", "street-exit-256")


@pytest.mark.parametrize(
    ("first", "second"),
    [("street-exit-128", "street-rest-256"), ("street-256", "street-rest-256")],
)
def test_a_second_part_after_another_first_part(tmp_path: Path, first: str, second: str) -> None:
    write_cascade(tmp_path / "models", parts(first, second))
    wanted = (
        "pipelines[0].stages[1].cascade: street-rest-256 is given features of street-exit at "
        f"256 × 160 px, which {first} does not leave"
    )
    assert said(tmp_path, EXIT).startswith(wanted)


def test_a_second_part_cannot_be_first(tmp_path: Path) -> None:
    write_cascade(tmp_path / "models", parts("street-rest-128", "street-256"))
    assert "street-rest-128 is given features of street-exit, so it cannot be the first" in said(
        tmp_path, FILE
    )


def test_a_second_part_needs_a_cascade(tmp_path: Path) -> None:
    text = EXIT.replace('cascade = "test"\nthreshold = 0.5\n', "")
    assert 'stages[1].family: "street-rest" is given features of "street-exit"' in said(
        tmp_path, text
    )
