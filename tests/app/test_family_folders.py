"""Which bundled families a box serves: those that something names, and no others."""

from dataclasses import replace
from pathlib import Path

import pytest

from edgebox.app.family_folders import known_folders, served_folders
from edgebox.app.startup import load_families
from edgebox.config.inference_section import InferenceParameters
from edgebox.domain.errors import ModelError
from tests.inference.tiny_onnx import YOLOX_32, write_family


@pytest.fixture
def inference(tmp_path: Path) -> InferenceParameters:
    """Return the defaults, with nothing imported."""
    return replace(InferenceParameters(), models=str(tmp_path / "none"))


def served(inference: InferenceParameters, wanted: tuple[str, ...] = ()) -> list[str]:
    return [folder.name for folder in served_folders(inference, wanted)]


def test_a_box_serves_the_detector_alone_unless_it_is_told_otherwise(
    inference: InferenceParameters,
) -> None:
    assert served(inference) == ["street"]
    families, problems = load_families(inference)
    assert [family.name for family in families] == ["street"]
    assert not problems


def test_a_family_that_is_named_is_served(inference: InferenceParameters) -> None:
    both = replace(inference, bundled=("street", "vehicles"))
    assert served(both) == ["street", "vehicles"]
    assert served(inference, ("vehicles", "imported")) == ["street", "vehicles"]
    assert served(replace(inference, family="vehicles", bundled=())) == ["vehicles"]
    families, problems = load_families(inference, ["vehicles"])
    assert [family.name for family in families] == ["street", "vehicles"]
    assert not problems


def test_the_default_family_is_always_served(inference: InferenceParameters) -> None:
    assert served(replace(inference, bundled=())) == ["street"]


def test_folders_of_ones_own_are_always_served(
    inference: InferenceParameters, tmp_path: Path
) -> None:
    own = write_family(tmp_path / "own", YOLOX_32)
    named = replace(inference, families=(str(own),), family="tiny", bundled=())
    assert served_folders(named) == [own]
    assert [folder.name for folder in known_folders(named)] == ["street", "vehicles", "own"]


def test_a_bundled_family_that_is_not_there_is_an_error(inference: InferenceParameters) -> None:
    with pytest.raises(ModelError, match=r"inference\.bundled: no family 'cats' comes with"):
        served(replace(inference, bundled=("street", "cats")))
