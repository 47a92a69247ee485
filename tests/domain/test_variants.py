"""The variants of a family up to one of them."""

from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.model_family import Variant, up_to
from tests.scheduling.scene import FAMILY


@given(st.sets(st.sampled_from(range(len(FAMILY))), min_size=1), st.sampled_from(FAMILY))
def test_nothing_larger_is_left_unless_all_are(loaded: set[int], limit: Variant) -> None:
    variants = [FAMILY[at] for at in sorted(loaded)]
    found = up_to(variants, limit)
    assert list(found) == ([v for v in variants if v.pixels <= limit.pixels] or [variants[0]])
    assert list(up_to(variants, None)) == variants
