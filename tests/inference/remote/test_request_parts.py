"""How the pictures of a batch are divided into requests, and what comes of each."""

from collections.abc import Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.requests import DropReason
from edgebox.inference.executor_thread import BatchJob
from edgebox.inference.remote.served_models import EdgeboxModels, _parts
from edgebox.inference.remote.server_answers import Found, OverloadedError
from edgebox.inference.tensors import EncodedPicture
from edgebox.vision.detections import Detections

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


@pytest.mark.parametrize("taken", [1, 2])
def test_what_was_answered_stays_answered_when_the_server_has_too_much_to_do(taken: int) -> None:
    models = EdgeboxModels(cast(Any, None), 0.1, "a box")
    models._bytes_max = 100
    asked: list[int] = []

    def ask(family: Any, variant: Any, pictures: Sequence[bytes], *limits_s: float) -> Found:
        if len(asked) == taken:
            raise OverloadedError("the server has too much to do")
        asked.append(len(pictures))
        return [Detections.empty() for _ in pictures], {}

    cast(Any, models)._ask = ask
    inputs = [EncodedPicture(bytes(90), 8, 8) for _ in range(7)]
    job = cast(BatchJob, type("Job", (), {"inputs": inputs}))
    with pytest.raises(OverloadedError, match="too much to do") as raised:
        models.run(cast(Any, None), cast(Any, None), job, 1.0)
    assert asked == [3] * taken
    assert raised.value.found is not None
    found, refused = raised.value.found
    assert len(found) == len(inputs)
    assert list(refused) == list(range(sum(asked), len(inputs)))
    assert {each.reason for each in refused.values()} == {DropReason.OVERLOAD}
