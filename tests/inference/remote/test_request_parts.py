"""How the pictures of a batch are divided into requests."""

from hypothesis import given
from hypothesis import strategies as st

from edgebox.inference.remote.served_models import _parts

SIZES = st.lists(st.integers(1, 100), max_size=32)


@given(SIZES, st.integers(100, 400))
def test_no_request_is_too_large_and_none_is_sent_in_vain(sizes: list[int], bytes_max: int) -> None:
    pictures = [bytes(size) for size in sizes]
    parts = _parts(range(len(sizes)), pictures, bytes_max)
    assert [row for part in parts for row in part] == list(range(len(sizes)))
    totals = [sum(sizes[row] for row in part) for part in parts]
    assert all(0 < total <= bytes_max for total in totals)
    assert all(
        total + sizes[after[0]] > bytes_max for total, after in zip(totals, parts[1:], strict=False)
    )


@given(SIZES)
def test_where_no_limit_is_known_there_is_one_request(sizes: list[int]) -> None:
    pictures = [bytes(size) for size in sizes]
    assert len(_parts(range(len(sizes)), pictures, 0)) == bool(sizes)
