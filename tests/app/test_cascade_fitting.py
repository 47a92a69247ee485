"""Which two models can be a cascade."""

from dataclasses import replace

import pytest

from edgebox.app.cascade_fitting import CascadeSide, find_side, insist_on_pair
from edgebox.domain.errors import ModelError
from edgebox.domain.model_family import QUANTILES, ExecutorId, FamilyName, LatencyProfile
from edgebox.inference.zoo import bundled_folders, load_family

FAMILIES = [load_family(folder) for folder in bundled_folders()]


def test_models_are_named_by_family_or_variant() -> None:
    for wanted in ("street", "street-608", "street/street-608"):
        assert find_side(FAMILIES, wanted).variant.name == "street-608"
    with pytest.raises(ModelError, match="no model family or variant 'street/vehicles-64'"):
        find_side(FAMILIES, "street/vehicles-64")


def test_classes_must_match() -> None:
    small, large = find_side(FAMILIES, "street-256"), find_side(FAMILIES, "street-608")
    insist_on_pair(small, large, [])
    labels = ("person", "bicycle", *large.family.labels[2:])
    other = replace(large, family=replace(large.family, name=FamilyName("coco"), labels=labels))
    with pytest.raises(ModelError, match="class 1 is 'car' in one and 'bicycle' in the other"):
        insist_on_pair(small, other, [])
    fewer = replace(other, family=replace(other.family, labels=small.family.labels[:3]))
    with pytest.raises(ModelError, match="one has 5, the other 3"):
        insist_on_pair(small, fewer, [])


def test_the_small_model_is_the_cheaper_one() -> None:
    small, large = find_side(FAMILIES, "street-256"), find_side(FAMILIES, "street-608")
    insist_on_pair(small, large, [])
    with pytest.raises(ModelError, match="street-608 has no fewer pixels than street-256"):
        insist_on_pair(large, small, [])

    files = {name: replace(file, sha256=64 * "0") for name, file in large.family.files.items()}
    other = replace(large, family=replace(large.family, name=FamilyName("other"), files=files))
    insist_on_pair(other, small, [])  # nothing says which of two families is the smaller one
    profiles = [_profile(small, 5), _profile(other, 30)]
    insist_on_pair(small, other, profiles)
    with pytest.raises(ModelError, match="street-608 takes 30"):
        insist_on_pair(other, small, profiles)


def test_the_parts_of_a_network_have_their_order_and_may_take_any_time() -> None:
    first, second = (find_side(FAMILIES, f"street-{part}-256") for part in ("exit", "rest"))
    insist_on_pair(first, second, [_profile(first, 8), _profile(second, 6)])


def _profile(side: CascadeSide, ms: int) -> LatencyProfile:
    times_ns = (ms * 1_000_000,) * len(QUANTILES)
    return LatencyProfile(side.variant.name, ExecutorId("cpu/0"), {1: times_ns})


def test_a_second_part_goes_on_from_its_own_first_part() -> None:
    first, second = (find_side(FAMILIES, f"street-{part}-256") for part in ("exit", "rest"))
    insist_on_pair(first, second, [])
    with pytest.raises(ModelError, match="which street-exit-128 does not leave"):
        insist_on_pair(find_side(FAMILIES, "street-exit-128"), second, [])
    with pytest.raises(ModelError, match="so it cannot be the first model"):
        insist_on_pair(second, first, [])
