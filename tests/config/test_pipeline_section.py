"""Pipelines in the configuration: read, and every mistake named at once with its key."""

from dataclasses import replace
from pathlib import Path

import pytest

from edgebox.app.configured_pipelines import make_pipelines
from edgebox.config.config_file import Config, load
from edgebox.domain.errors import ConfigError, ModelError
from edgebox.domain.model_family import FamilyName, VariantName
from edgebox.domain.pipelines import (
    CROPS_MAX,
    CropOrder,
    PipelineName,
    PipelineStage,
    StageName,
)
from edgebox.inference.family import Family
from edgebox.inference.zoo import bundled_folders, load_zoo
from edgebox.web.configuration import shown

KINDS = FamilyName("kinds")
GOOD = """
[inference]
pipeline = "traffic"
[[pipelines]]
name = "traffic"
[[pipelines.stages]]
name = "vehicle"
family = "kinds"
after = ["street"]
labels = ["car", "bus"]
score_min = 0.5
side_min_px = 16
region = [0, 0.5, 1.0, 1]
margin = 0.2
crops_max = 4
order = "area"
variant = "kinds-64"
[[pipelines.stages]]
name = "street"
family = "street"
"""


def loaded(folder: Path, text: str) -> Config:
    path = folder / "edgebox.toml"
    path.write_text(text, encoding="utf-8")
    return load(path)


def errors(folder: Path, text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        loaded(folder, text)
    first, *rest = str(caught.value).splitlines()
    assert first == f"{folder / 'edgebox.toml'}:"
    return [line.strip() for line in rest]


@pytest.fixture(scope="module")
def families() -> list[Family]:
    """Return the bundled detector, and a classifier that has the rest from it."""
    street = load_zoo(bundled_folders()).family("street")
    variant = replace(street.variants[0], name=VariantName("kinds-64"), family=KINDS)
    kinds = replace(street, name=KINDS, task="classify", labels=("car", "van"), variants=(variant,))
    return [street, kinds]


def test_a_pipeline_is_read_with_its_stages_in_order(
    tmp_path: Path, families: list[Family]
) -> None:
    config = loaded(tmp_path, GOOD)
    assert config.inference.pipeline == "traffic"
    made, _ = make_pipelines(config, families)
    assert list(made) == ["traffic"]
    street, vehicle = made[PipelineName("traffic")].stages
    assert (street.name, street.after) == ("street", ())
    assert vehicle == PipelineStage(
        name=StageName("vehicle"),
        family=KINDS,
        after=(StageName("street"),),
        labels=("car", "bus"),
        score_min=0.5,
        side_min_px=16,
        region=(0.0, 0.5, 1.0, 1.0),
        margin=0.2,
        crops_max=4,
        order=CropOrder.AREA,
        variant=VariantName("kinds-64"),
    )


def test_what_is_left_out_is_as_the_stage_has_it(tmp_path: Path) -> None:
    text = '[[pipelines]]\nname = "p"\n[[pipelines.stages]]\nname = "s"\nfamily = "street"\n'
    ((stage,),) = (each.stages for each in loaded(tmp_path, text).pipelines)
    assert stage.stage() == PipelineStage(StageName("s"), FamilyName("street"))


def test_pipelines_are_shown_with_where_values_are_from(tmp_path: Path) -> None:
    rows = {row["key"]: row for row in shown(loaded(tmp_path, GOOD))}
    assert rows["pipelines[0].name"]["value"] == "traffic"
    assert rows["pipelines[0].stages[0].crops_max"]["value"] == 4
    assert rows["pipelines[0].stages[0].crops_max"]["origin"] == "file"
    assert rows["pipelines[0].stages[1].crops_max"]["origin"] == "default"


def test_every_wrong_key_is_named_at_once(tmp_path: Path) -> None:
    text = f"""
    [inference]
    pipeline = "trafic"
    [[pipelines]]
    name = "traffic"
    [[pipelines.stages]]
    name = "a b"
    family = 3
    after = "street"
    region = [0, 0, 2, 1]
    crops_max = {CROPS_MAX + 1}
    order = "best"
    label = ["car"]
    """
    got = errors(tmp_path, text)
    where = "pipelines[0].stages[0]"
    assert [each.split(":")[0] for each in got] == [
        f"{where}.{name}"
        for name in ("name", "family", "after", "region", "crops_max", "order", "label")
    ]
    assert got[3] == f"{where}.region: must be a list of numbers from 0 to 1, not [0, 0, 2, 1]"
    assert f"must be a whole number from 1 to {CROPS_MAX}, not {CROPS_MAX + 1}" in got[4]
    assert got[5] == f'{where}.order: must be one of "score", "area", not "best"'
    assert got[6] == f"{where}.label: there is no such key; did you mean labels?"


def test_stages_must_be_tables(tmp_path: Path) -> None:
    got = errors(tmp_path, '[[pipelines]]\nname = "p"\nstages = ["street"]\n')
    assert got == ['pipelines[0].stages: must be tables, [[pipelines.stages]], not ["street"]']


def stage(name: str, *more: str, family: str = "street") -> str:
    lines = ("[[pipelines.stages]]", f'name = "{name}"', f'family = "{family}"', *more)
    return "\n".join(lines) + "\n"


FIRST = '[[pipelines]]\nname = "p"\n'


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (FIRST, "pipelines[0].stages: pipeline 'p' has no stages"),
        ("[[pipelines]]\n" + stage("a"), "pipelines[0].name: is needed"),
        (
            FIRST + stage("a") + FIRST + stage("a"),
            'pipelines[1].name: another pipeline is called "p", too',
        ),
        (
            FIRST + stage("a") + stage("a", 'after = ["a"]'),
            'pipelines[0].stages[1].name: another stage of this pipeline is called "a", too',
        ),
        *(
            (
                FIRST + stage("a") + stage("b", 'after = ["a"]') + wrong,
                f"pipelines[0].stages[{at}].once_per_track: only objects of the first stage are "
                "tracked; leave it out, or let the stage come after that one alone",
            )
            for at, wrong in (
                (2, stage("c", 'after = ["b"]', "once_per_track = true")),
                (2, stage("c", 'after = ["a", "b"]', "once_per_track = true")),
            )
        ),
        (
            FIRST + stage("a", "once_per_track = true"),
            "pipelines[0].stages[0].once_per_track: only objects of the first stage are tracked; "
            "leave it out, or let the stage come after that one alone",
        ),
        (
            FIRST + stage("a") + stage("a.b", 'after = ["a"]'),
            "pipelines[0].stages[1].name: must not begin with the name of another stage and a dot, "
            '"a.": /v2 names outputs in this way',
        ),
        (
            FIRST + stage("street") + stage("b", 'after = ["stret"]'),
            'pipelines[0].stages[1].after: there is no stage "stret"; did you mean street?',
        ),
        (
            FIRST + stage("a") + stage("b"),
            "pipelines[0].stages: pipeline 'p' has several stages that take whole pictures (a, b); "
            "all but one must come after another",
        ),
        (
            FIRST + stage("a", 'after = ["b"]') + stage("b", 'after = ["a"]'),
            "pipelines[0].stages: the stages of pipeline 'p' form a cycle: ",
        ),
        (
            FIRST + stage("a", "region = [0.5, 0, 0.4, 1]"),
            "pipelines[0].stages[0].region: must be left, top, right and bottom with left below "
            "right and top below bottom, not [0.5, 0.0, 0.4, 1.0]",
        ),
        (
            FIRST + stage("a", "region = [0.5]"),
            "pipelines[0].stages[0].region: must be left, top, right and bottom",
        ),
        (
            '[inference]\npipeline = "q"\n' + FIRST + stage("a"),
            'inference.pipeline: there is no pipeline "q" (there are: p)',
        ),
        (
            '[inference]\npipeline = "q"\n',
            'inference.pipeline: there is no pipeline "q" (there are: none)',
        ),
    ],
)
def test_what_contradicts_itself(tmp_path: Path, text: str, wanted: str) -> None:
    (error,) = errors(tmp_path, text)
    assert error.startswith(wanted)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            FIRST + stage("a", family="stret"),
            'stages[0].family: there is no model family "stret" that can be served; did you mean '
            "street?",
        ),
        (
            FIRST + stage("a") + stage("b", 'after = ["a"]', family="vehicels"),
            'stages[1].family: there is no model family "vehicels" that can be served; did you '
            "mean vehicles?",
        ),
        (
            FIRST + stage("a", family="kinds"),
            'stages[0].family: "kinds" finds no objects (its task is classify), but the first '
            "stage must; use a detector here, and this family in a stage after it",
        ),
        (
            FIRST + stage("a", family="kinds") + stage("b", 'after = ["a"]'),
            'stages[0].family: "kinds" finds no objects (its task is classify), so "b" cannot come '
            "after it; use a detector here",
        ),
        (
            FIRST + stage("a") + stage("b", 'after = ["a"]', 'labels = ["cars"]', family="kinds"),
            'stages[1].labels: "street" finds no "cars"; did you mean car?',
        ),
        (
            FIRST + stage("a") + stage("b", 'after = ["a"]', "once_per_track = true"),
            'stages[1].once_per_track: "street" finds objects, which move; leave it out, or use a '
            "classifier or an embedding model here",
        ),
        (
            FIRST + stage("a", 'labels = ["car"]'),
            "stages[0].labels: the first stage is given whole pictures, which have no class; leave "
            "it out",
        ),
        (
            FIRST + stage("a", 'variant = "street-25"'),
            'stages[0].variant: family "street" has no variant "street-25"; did you mean '
            "street-256?",
        ),
    ],
)
def test_what_no_model_of_the_box_can_do(
    tmp_path: Path, families: list[Family], text: str, wanted: str
) -> None:
    config = loaded(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        make_pipelines(config, families)
    assert str(caught.value).splitlines() == [f"{config.source}:", f"  pipelines[0].{wanted}"]


def test_why_a_family_of_a_stage_was_not_loaded(tmp_path: Path, families: list[Family]) -> None:
    config = loaded(tmp_path, FIRST + stage("a").replace("street", "reid"))
    unloaded = [ModelError("reid/family.toml: embedding_length is 128, but reid.onnx gives 256")]
    made, missing = make_pipelines(config, families, unloaded)
    assert not made
    assert missing[PipelineName("p")] == (
        'stages[0].family: there is no model family "reid" that can be served; not loaded: '
        f"{unloaded[0]}"
    )
    made, missing = make_pipelines(loaded(tmp_path, FIRST + stage("a")), families, unloaded)
    assert list(made) == ["p"]
    assert not missing


def test_a_default_pipeline_that_cannot_be_served_is_a_wrong_configuration(
    tmp_path: Path, families: list[Family]
) -> None:
    text = '[inference]\npipeline = "p"\n' + FIRST + stage("a").replace("street", "reid")
    config = loaded(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        make_pipelines(config, families, [ModelError("reid.onnx is missing")])
    assert str(caught.value) == (
        f"{config.source}: inference.pipeline: the default pipeline p cannot be served: "
        'stages[0].family: there is no model family "reid" that can be served; not loaded: '
        "reid.onnx is missing"
    )
    assert caught.value.exit_code == 78


@pytest.mark.parametrize(
    ("name", "of"),
    [("street", "a model family"), ("street-608", 'a variant of the model family "street"')],
)
def test_a_pipeline_has_no_name_of_a_model(
    tmp_path: Path, families: list[Family], name: str, of: str
) -> None:
    config = loaded(tmp_path, f'[[pipelines]]\nname = "{name}"\n' + stage("a"))
    with pytest.raises(ConfigError) as caught:
        make_pipelines(config, families)
    assert str(caught.value).splitlines() == [
        f"{config.source}:",
        f'  pipelines[0].name: {of} is called "{name}", too, and /v2 serves both as models by '
        "their names; give the pipeline another name",
    ]


def test_a_detector_may_come_after_another(tmp_path: Path, families: list[Family]) -> None:
    text = (
        FIRST
        + stage("a")
        + stage("b", 'after = ["a"]')
        + stage("c", 'after = ["a", "b"]', 'labels = ["bus"]', family="kinds")
    )
    config = loaded(tmp_path, text)
    assert len(make_pipelines(config, families)[0][PipelineName("p")].stages) == 3
