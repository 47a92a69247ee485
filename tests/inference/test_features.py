"""The tensors between the parts of a network: what fits, and what a batch is made of."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.model_family import FamilyName, Variant, VariantName
from edgebox.inference.features import FeatureSpec, part_mistake, stacked, stand_in

SPECS = (FeatureSpec("fine", 3, 4), FeatureSpec("coarse", 5, 8))
VARIANT = Variant(VariantName("v"), FamilyName("f"), 64, 32, 0.5)


def some(count: int) -> list[tuple[np.ndarray, ...]]:
    rng = np.random.default_rng(count)
    shapes = [spec.shape(VARIANT) for spec in SPECS]
    return [tuple(rng.random(s, dtype=np.float32) for s in shapes) for _ in range(count)]


@given(st.integers(1, 6), st.integers(0, 4))
def test_a_batch_has_the_features_of_each_picture_in_order(count: int, more: int) -> None:
    pictures = some(count)
    batch = stacked(SPECS, VARIANT, pictures, count + more)
    for at, spec in enumerate(SPECS):
        rows = batch[spec.name]
        assert rows.shape == (count + more, *spec.shape(VARIANT))
        for row in range(count + more):
            np.testing.assert_array_equal(rows[row], pictures[min(row, count - 1)][at])


def test_a_batch_of_one_is_no_copy() -> None:
    (picture,) = some(1)
    batch = stacked(SPECS, VARIANT, [picture], 1)
    assert all(np.shares_memory(batch[s.name], p) for s, p in zip(SPECS, picture, strict=True))


def test_features_of_another_size_are_refused() -> None:
    (picture,) = some(1)
    with pytest.raises(
        ValueError, match=r"takes features 'fine' \(3, 8, 16\) float32, not \(3, 8,"
    ):
        stacked(SPECS, VARIANT, [(picture[0][:, :, :-1], picture[1])], 1)
    with pytest.raises(ValueError, match="do not fit a batch of 1"):
        stacked(SPECS, VARIANT, some(2), 1)
    with pytest.raises(ValueError, match="do not fit a batch of 1"):
        stacked(SPECS, VARIANT, [], 1)


def test_what_stands_in_for_a_picture_fits() -> None:
    features = stand_in(SPECS, VARIANT)
    assert all(each.min() >= 0 and each.max() > 0 for each in features)
    stacked(SPECS, VARIANT, [features], 4)


@pytest.mark.parametrize(
    ("second", "wanted"),
    [
        (SPECS, ""),
        (SPECS[:1], "given 1 tensors, and the first part has 2"),
        (SPECS[::-1], 'given "coarse" with 5 channels at stride 8, and the first part has "fine"'),
        ((SPECS[0], FeatureSpec("coarse", 6, 8)), 'the first part has "coarse" with 5 channels'),
        ((SPECS[0], FeatureSpec("coarse", 5, 16)), "at stride 16, and the first part has"),
    ],
)
def test_parts_that_do_not_fit(second: tuple[FeatureSpec, ...], wanted: str) -> None:
    mistake = part_mistake(SPECS, second)
    assert wanted in mistake
    assert bool(mistake) is bool(wanted)
