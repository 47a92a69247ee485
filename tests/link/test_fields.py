"""Fields read one by one: what is absent takes its default, in every kind of field."""

import pytest

from edgebox.domain.errors import InvalidInputError
from edgebox.link.fields import FieldReader


@pytest.mark.parametrize("fields", [{}, {"list": None, "text": None, "number": None}])
def test_what_is_absent_takes_its_default(fields: dict[str, object]) -> None:
    read = FieldReader("thing", fields)
    assert read.items("list", 3, []) == []
    assert read.text("text", "none") == "none"
    assert read.number("number", 0, 1, 0.5) == 0.5
    read.finish()


def test_without_a_default_everything_absent_is_named_at_once() -> None:
    read = FieldReader("thing", {})
    read.items("list", 3)
    read.text("text")
    with pytest.raises(InvalidInputError, match=r"list is missing.*; thing\.text is missing"):
        read.finish()
