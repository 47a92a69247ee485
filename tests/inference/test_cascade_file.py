"""Files of cascades: what is written is read again, and what does not fit is one clear error."""

from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from edgebox.domain.cascades import CascadeCurve, CascadeName, CascadePoint, Decider
from edgebox.domain.errors import ModelError
from edgebox.domain.model_family import VariantName
from edgebox.inference.cascade_file import (
    CascadeModel,
    StoredCascade,
    cascade_path,
    insist_on_models,
    read_cascade,
    write_cascade,
)
from edgebox.inference.family import Family
from edgebox.inference.zoo import bundled_folders, load_family
from edgebox.vision.cascade_decider import FEATURES

SMALL, LARGE = VariantName("street-256"), VariantName("street-608")


@pytest.fixture(scope="module")
def street() -> Family:
    return load_family(next(each for each in bundled_folders() if each.name == "street"))


@pytest.fixture
def cascade(street: Family) -> StoredCascade:
    ones = (1.0,) * len(FEATURES)
    points = ((0.6, 0.0, 0.4), (0.3, 0.5, 0.1), (0.0, 1.0, 0.0))
    return StoredCascade(
        CascadeName("gate"),
        CascadeModel.of(street, SMALL),
        CascadeModel.of(street, LARGE),
        Decider(ones, -0.5),
        CascadeCurve(tuple(CascadePoint(*point) for point in points)),
        0.3,
        "yard.mp4",
        200,
        0.01,
        1_700_000_000_000,
    )


def test_a_cascade_is_read_as_it_was_written(tmp_path: Path, cascade: StoredCascade) -> None:
    path = write_cascade(tmp_path / "models", cascade)
    assert path == cascade_path(tmp_path / "models", "gate")
    assert read_cascade(tmp_path / "models", "gate") == cascade
    assert [each.name for each in (tmp_path / "models").iterdir()] == ["gate.cascade.json"]


def test_a_missing_file_says_what_there_is(tmp_path: Path, cascade: StoredCascade) -> None:
    with pytest.raises(ModelError, match=r"there is none yet.*edgebox models cascade"):
        read_cascade(tmp_path, "gate")
    write_cascade(tmp_path, cascade)
    with pytest.raises(ModelError, match=r"no cascade .yard. .there are: gate."):
        read_cascade(tmp_path, "yard")


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("version", 2, "version must be 1"),
        ("curve", [[0.5, 0, 2], [0, 1, 0]], r"curve.0 must be .*|curve.*0 to 1"),
        ("curve", [[0.1, 0, 0.5], [0.2, 1, 0]], "thresholds and losses fall"),
        ("decider", {"features": []}, "features are not those"),
        ("small", {"family": "street"}, "small.variant is missing"),
        ("pictures", -1, "pictures must be"),
    ],
)
def test_a_damaged_file_names_file_and_key(
    tmp_path: Path, cascade: StoredCascade, key: str, value: object, said: str
) -> None:
    path = write_cascade(tmp_path, cascade)
    path.write_bytes(orjson.dumps(orjson.loads(path.read_bytes()) | {key: value}))
    with pytest.raises(ModelError, match=said) as caught:
        read_cascade(tmp_path, "gate")
    assert str(path) in str(caught.value)


def test_what_is_no_json_is_one_error(tmp_path: Path) -> None:
    cascade_path(tmp_path, "gate").write_text("weights", "utf-8")
    with pytest.raises(ModelError, match="must be JSON"):
        read_cascade(tmp_path, "gate")


def test_a_changed_or_missing_model_is_an_error(cascade: StoredCascade, street: Family) -> None:
    insist_on_models(cascade, [street])
    changed = replace(cascade, large=replace(cascade.large, fingerprint="another"))
    with pytest.raises(ModelError, match="another street-608 than this box has"):
        insist_on_models(changed, [street])
    with pytest.raises(ModelError, match="street-256 of the family street as its small model"):
        insist_on_models(cascade, [])
