"""What is taken for the interference of a variant that was measured alone."""

from dataclasses import replace

import pytest

from edgebox.domain.interference import with_greatest_interference
from tests.scheduling.scene import profile

LITTLE = replace(profile(128), interference=0.1, interference_factors=(1.0, 1.2))
MUCH = replace(profile(256), interference=0.5, interference_factors=(1.5,))
ALONE = profile(416)


def test_one_that_was_measured_alone_has_the_greatest_of_others() -> None:
    found = with_greatest_interference(ALONE, [LITTLE, ALONE, MUCH])
    assert [found.slowed(n) for n in range(4)] == pytest.approx([1, 1.5, 2.0, 2.5])
    assert found.quantiles_ns == ALONE.quantiles_ns


def test_what_was_measured_stays() -> None:
    none = replace(profile(608), interference_factors=(1.0,))
    assert with_greatest_interference(none, [MUCH]) == none
    assert with_greatest_interference(LITTLE, [MUCH]) == LITTLE
    assert with_greatest_interference(ALONE, [profile(608)]) == ALONE
    by_factor = with_greatest_interference(ALONE, [replace(profile(608), interference=0.3)])
    assert by_factor.slowed(2) == pytest.approx(1.6)
