"""Changes a constant for a while, to measure what it is worth."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import ModuleType


@contextmanager
def changed(
    module: ModuleType, name: str, value: object, importers: Iterable[ModuleType] = ()
) -> Iterator[None]:
    """Change a constant of a module, and of those among `importers` that have imported it."""
    was = getattr(module, name)
    owners = [each for each in (module, *importers) if getattr(each, name, None) is was]
    for owner in owners:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner in owners:
            setattr(owner, name, was)
