"""Owns what the files of planning problems have in common. Pure: the bytes come from the caller."""

from collections.abc import Sequence

import orjson

from edgebox.domain.errors import InvalidInputError
from edgebox.domain.field_reader import FieldReader, Notation, dotted, shown_in_document


def instance_reader(text: bytes, source: str) -> FieldReader:
    """Return a reader of one JSON object.

    Args:
        text: the file's bytes.
        source: what errors call it.

    Raises:
        InvalidInputError: the text is no JSON object.
    """
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidInputError(f"{source}: is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise InvalidInputError(f"{source}: must be a JSON object")
    notation = Notation(lambda path: f"{source}: {dotted(path)}: ", object="a JSON object")
    return FieldReader((), document, notation)


def refuse_twice(root: FieldReader, of: str, key: str, names: Sequence[str]) -> None:
    """Check that the objects of an array have names of their own.

    Raises:
        InvalidInputError: two have the same.
    """
    seen: set[str] = set()
    for at, name in enumerate(names):
        if name in seen:
            raise root.wrong((of, at, key), f"{shown_in_document(name)} is there twice")
        seen.add(name)
