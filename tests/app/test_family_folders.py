"""Which bundled families a box serves: those that something names, and no others."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from edgebox.app.family_folders import known_folders, served_folders
from edgebox.app.startup import load_families
from edgebox.config.config_file import Config
from edgebox.config.inference_section import InferenceParameters
from edgebox.config.pipeline_section import PipelineParameters, StageParameters
from edgebox.domain.errors import ConfigError
from tests.inference.tiny_onnx import YOLOX_32, write_family


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """Return the defaults, with nothing imported."""
    return Config(inference=replace(InferenceParameters(), models=str(tmp_path / "none")))


def changed(config: Config, **inference: Any) -> Config:
    return replace(config, inference=replace(config.inference, **inference))


def served(config: Config) -> list[str]:
    return [folder.name for folder in served_folders(config)]


def test_a_box_serves_the_detector_alone_unless_it_is_told_otherwise(config: Config) -> None:
    assert served(config) == ["street"]
    families, problems = load_families(config)
    assert [family.name for family in families] == ["street"]
    assert not problems


def test_a_family_that_is_named_is_served(config: Config) -> None:
    assert served(changed(config, bundled=("street", "vehicles"))) == ["street", "vehicles"]
    assert served(changed(config, family="vehicles", bundled=())) == ["vehicles"]
    families, problems = load_families(changed(config, bundled=("vehicles",)))
    assert [family.name for family in families] == ["street", "vehicles"]
    assert not problems


def test_a_family_of_a_pipeline_is_served(config: Config) -> None:
    stages = (StageParameters(name="find", family="street"), StageParameters(family="vehicles"))
    pipelines = (PipelineParameters(name="traffic", stages=stages),)
    assert served(replace(config, pipelines=pipelines)) == ["street", "vehicles"]


def test_the_default_family_is_always_served(config: Config) -> None:
    assert served(changed(config, bundled=())) == ["street"]


def test_folders_of_ones_own_are_always_served(config: Config, tmp_path: Path) -> None:
    own = write_family(tmp_path / "own", YOLOX_32)
    named = changed(config, families=(str(own),), family="tiny", bundled=())
    assert served_folders(named) == [own]
    known = known_folders(named.inference)
    names = [folder.name for folder in known]
    assert names == ["street", "street-exit", "street-rest", "vehicles", "own"]


def test_a_bundled_family_that_is_not_there_is_an_error(config: Config) -> None:
    with pytest.raises(ConfigError, match=r"inference\.bundled: no family 'cats' comes with"):
        served(changed(config, bundled=("street", "cats")))


def test_a_name_where_a_folder_is_wanted_is_refused(config: Config, tmp_path: Path) -> None:
    named = changed(config, families=(str(tmp_path / "street"),))
    with pytest.raises(ConfigError, match=r'inference\.family = "street"'):
        served_folders(named)
    (tmp_path / "street").mkdir()
    assert tmp_path / "street" in served_folders(named)
