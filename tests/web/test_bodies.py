"""Unpacking of bodies: what comes out is what went in, within the bound, or a clear error."""

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.errors import InvalidInputError, TooLargeError
from edgebox.web.bodies import unpacked

PACKERS = (gzip.compress, zlib.compress)


@given(st.binary(max_size=500), st.sampled_from(PACKERS), st.integers(0, 500))
def test_bodies_are_unpacked_within_the_bound(body: bytes, packer: object, most: int) -> None:
    assert callable(packer)
    packed = packer(body)
    if len(body) <= most:
        assert unpacked(packed, most) == body
    else:
        with pytest.raises(TooLargeError, match=f"at most {most} bytes"):
            unpacked(packed, most)


@given(st.binary(min_size=1, max_size=100), st.sampled_from(PACKERS), st.data())
def test_what_is_cut_off_or_followed_by_more_is_refused(
    body: bytes, packer: object, data: st.DataObject
) -> None:
    assert callable(packer)
    packed = packer(body)
    cut = data.draw(st.integers(0, len(packed) - 1))
    for broken in (packed[:cut], packed + b"more"):
        with pytest.raises(InvalidInputError, match="does not match its Content-Encoding"):
            unpacked(broken, 1_000)


@given(st.binary(min_size=3, max_size=100).filter(lambda data: data[0] not in (0x1F, 0x78)))
def test_what_was_never_packed_is_refused(body: bytes) -> None:
    with pytest.raises((InvalidInputError, TooLargeError)):
        unpacked(body, 1_000)
