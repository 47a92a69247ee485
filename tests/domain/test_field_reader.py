"""Fields read one by one: what is absent takes its default, in every kind of field."""

import pytest

from edgebox.domain.errors import ConfigError, InvalidInputError
from edgebox.domain.field_reader import FieldPath, FieldReader, Notation, dotted


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


def place(path: FieldPath) -> str:
    return f"file:7: {dotted(path, first=1)}: "


DOCUMENT = Notation(place, ConfigError, object="a table", unknown="unknown (known: {})")


def test_a_document_raises_its_own_error_at_the_first_mistake() -> None:
    read = FieldReader((), {"cameras": [{"mbps": [1, "x"]}]}, DOCUMENT)
    (camera,) = read.objects("cameras")
    with pytest.raises(ConfigError) as caught:
        camera.numbers("mbps", 0, 9)
    wanted = 'file:7: cameras[1].mbps[2]: must be a number from 0 to 9, not "x"'
    assert str(caught.value) == wanted


def test_null_is_a_value_where_it_does_not_mean_absent() -> None:
    with pytest.raises(ConfigError, match="seed: must be a whole number from 0 to 9, not null"):
        FieldReader((), {"seed": None}, DOCUMENT).integer("seed", 0, 9, 1)
    assert FieldReader("thing", {"seed": None}).integer("seed", 0, 9, 1) == 1


def test_what_nobody_has_read_is_unknown() -> None:
    read = FieldReader((), {"a": True, "b": 1}, DOCUMENT)
    assert read.flag("a")
    with pytest.raises(ConfigError, match=r"file:7: b: unknown \(known: a\)"):
        read.refuse_unknown()


def test_errors_of_inner_objects_and_lists_are_collected_in_one() -> None:
    read = FieldReader("hello", {"inner": {"n": 3.0}, "list": [{"n": True}, 7], "x": 1})
    read.inner("inner").integer("n", 0, 9)
    for one in read.objects("list"):
        one.number("n", 0, 9, above=True)
    assert read.numbers("missing", 2, 9, length=3) == [2, 2, 2]
    read.refuse_unknown(("inner", "list"))
    with pytest.raises(InvalidInputError) as caught:
        read.finish()
    assert str(caught.value).split("; ") == [
        "hello.inner.n must be an integer from 0 to 9, not 3.0",
        "hello.list[1] must be an object, not 7",
        "hello.list[0].n must be a number above 0 and at most 9, not true",
        "hello.missing is missing: it must be an array of 3 numbers",
        "hello.x is not known",
        "there are inner, list",
    ]


def test_a_missing_object_is_told_once() -> None:
    read = FieldReader("hello", {"inner": 5})
    read.inner("inner").integer("n", 0, 9)
    assert read.errors == ["hello.inner must be an object, not 5"]
