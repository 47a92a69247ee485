"""Packed counts come back as they were, and add up; damage is noticed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.storage.packing import Ints, added, packed, unpacked

CODES = 640
COUNTS = st.dictionaries(
    st.integers(0, CODES - 1), st.one_of(st.integers(1, 300), st.integers(1, 2**40)), max_size=40
)


def dense(counts: dict[int, int]) -> Ints:
    out = np.zeros(CODES, np.int64)
    for code, count in counts.items():
        out[code] = count
    return out


@given(st.lists(st.tuples(COUNTS, st.integers(0, 3)), max_size=12))
def test_rows_are_added_up_by_group(rows: list[tuple[dict[int, int], int]]) -> None:
    expected = np.zeros((4, CODES), np.int64)
    for counts, group in rows:
        expected[group] += dense(counts)
    blobs = [packed(dense(counts)) for counts, _ in rows]
    groups = np.array([group for _, group in rows], np.int64)
    assert (unpacked(blobs, groups, (4, CODES)) == expected).all()


@given(COUNTS, COUNTS)
def test_two_are_added(one: dict[int, int], other: dict[int, int]) -> None:
    together = added(packed(dense(one)), packed(dense(other)), CODES)
    assert together == packed(dense(one) + dense(other))


def test_small_counts_take_two_bytes_each() -> None:
    assert len(packed(dense(dict.fromkeys(range(40, 90), 255)))) == 100
    assert packed(dense({})) == b""


@pytest.mark.parametrize("blob", [b"\x01", b"\x00\x05", b"\xff\x01" * 3, b"\x01\x01\x02"])
def test_damage_is_noticed(blob: bytes) -> None:
    with pytest.raises(ValueError, match="damaged"):
        unpacked([blob], np.zeros(1, np.int64), (1, CODES))
