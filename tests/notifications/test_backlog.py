"""What waits, what is lost: judged by a list."""

from hypothesis import given
from hypothesis import strategies as st

from edgebox.notifications.backlog import Backlog


@given(
    adds=st.lists(st.booleans(), max_size=60),
    entries_max=st.integers(1, 5),
    drop_oldest=st.booleans(),
)
def test_order_bound_and_losses(adds: list[bool], entries_max: int, drop_oldest: bool) -> None:
    backlog = Backlog[int](entries_max, drop_oldest=drop_oldest)
    model: list[int] = []
    lost = 0
    for number, add in enumerate(adds):
        if add:
            backlog.add(number)
            model.append(number)
            if len(model) > entries_max:
                lost += 1
                model.pop(0 if drop_oldest else -1)
        else:
            assert backlog.take() == (model.pop(0) if model else None)
        assert len(backlog) == len(model) <= entries_max
        assert backlog.overflowed == lost
