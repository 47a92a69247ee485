"""Names of zones and lines, over the patterns of their cameras."""

from fnmatch import fnmatchcase
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from edgebox.config.tracking_sections import patterns_meet

NAMES = ["".join(letters) for length in range(7) for letters in product("ab", repeat=length)]
patterns = st.text("ab*?", max_size=4)


@given(patterns, patterns)
def test_patterns_meet_where_a_name_fits_both(one: str, other: str) -> None:
    # Two patterns of four characters that have a name in common have one of at most six.
    common = any(fnmatchcase(name, one) and fnmatchcase(name, other) for name in NAMES)
    assert patterns_meet(one, other) == common
    assert patterns_meet(other, one) == common


def test_long_patterns_are_no_burden() -> None:
    assert patterns_meet("*a" * 300, "a*" * 300)
    assert not patterns_meet("*a" * 300 + "b", "a*" * 300 + "c")
