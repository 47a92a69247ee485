"""Names of classes that come with their numbers."""

from collections.abc import Mapping
from typing import Any


def in_order(named: Mapping[Any, Any]) -> list[Any] | None:
    """Return what is named by the numbers of classes, in their order.

    None: the numbers are not 0 to n - 1, so that some class would get the name of another.
    """
    if sorted(named, key=str) != sorted(range(len(named)), key=str):
        return None
    return [named[number] for number in range(len(named))]
