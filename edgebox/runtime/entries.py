"""Writes one call of the core as a line of JSON, and reads it back.

Writing is one call into orjson, cheap enough for every decision. Reading follows the annotations
of the dataclasses in `scheduling.events` and `scheduling.actions`, so a new one, or a new field,
needs no code here; an error names the place that does not fit. docs/how-to/journal.md specifies
the lines.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, NewType, Union, get_args, get_origin, get_type_hints

import orjson

from edgebox.domain.errors import EdgeboxError, InvalidInputError
from edgebox.scheduling.actions import Action
from edgebox.scheduling.events import Event

_OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_APPEND_NEWLINE

EVENTS: dict[str, Any] = {kind.__name__: kind for kind in get_args(Event)}
ACTIONS: dict[str, Any] = {kind.__name__: kind for kind in get_args(Action)}

Read = Callable[[Any, str], Any]
"""Converts a JSON value to an annotation's type; the text is its place, for errors."""


class JournalError(EdgeboxError):
    """An unreadable journal file."""

    code = "journal"


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One call of `Scheduler.handle`. A wake-up has no event."""

    now_ns: int
    event: Event | None
    actions: tuple[Action, ...]
    raised: str = ""
    """The exception that the call raised instead of returning orders: a defect of edgebox."""


def write_entry(
    now_ns: int, event: Event | None, actions: list[Action] | tuple[Action, ...]
) -> bytes:
    """Return the line of one call, with its end of line."""
    named = None if event is None else (type(event).__name__, event)
    ordered = [(type(action).__name__, action) for action in actions]
    return orjson.dumps((now_ns, named, ordered), option=_OPTIONS)


def write_raised(now_ns: int, event: Event | None, raised: str) -> bytes:
    """Return the line of a call that raised."""
    named = None if event is None else (type(event).__name__, event)
    return orjson.dumps((now_ns, named, {"raised": raised}), option=_OPTIONS)


def read_entry(line: bytes) -> JournalEntry:
    """Return the call that a line records.

    Raises:
        JournalError: the line is cut off or malformed.
    """
    try:
        written = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise JournalError(f"is cut off or damaged ({error})") from None
    if type(written) is not list or len(written) != 3 or type(written[0]) is not int:
        raise JournalError("is no entry: it must be [instant, event, actions]")
    now_ns, event, actions = written
    read_event = None if event is None else _named(event, EVENTS, "event")
    if type(actions) is dict:
        return JournalEntry(now_ns, read_event, (), _text(actions.get("raised"), "raised"))
    if type(actions) is not list:
        raise JournalError("actions: must be a list")
    return JournalEntry(
        now_ns, read_event, tuple(_named(action, ACTIONS, "action") for action in actions)
    )


def _named(written: Any, kinds: Mapping[str, Any], what: str) -> Any:
    if type(written) is not list or len(written) != 2:
        raise JournalError(f"{what}: must be [name, fields]")
    name, content = written
    if name not in kinds:
        raise JournalError(f"{what}: there is no {name!r} in this version of edgebox")
    return reader(kinds[name])(content, name)


@cache
def reader(kind: Any) -> Read:
    """Return the reader of an annotation's values.

    Raises:
        TypeError: no event uses this kind of annotation yet.
    """
    if isinstance(kind, NewType):
        return reader(kind.__supertype__)
    made = _SCALARS.get(kind)
    if made is None:
        made = _dataclass_reader(kind) if is_dataclass(kind) else _generic_reader(kind)
    return made


def _generic_reader(kind: Any) -> Read:
    origin, arguments = get_origin(kind), get_args(kind)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _enum_reader(kind)
    if origin is tuple:
        return _tuple_reader(arguments)
    if origin in (dict, Mapping):
        return _mapping_reader(*arguments)
    inner = [each for each in arguments if each is not NoneType]
    if origin in (UnionType, Union) and len(inner) == 1:
        return _optional_reader(reader(inner[0]))
    raise TypeError(f"no reader for {kind!r}")


def _refuse(place: str, wanted: str, value: Any) -> JournalError:
    return JournalError(f"{place}: must be {wanted}, not {orjson.dumps(value).decode():.60}")


def _scalar(kinds: tuple[type, ...], wanted: str) -> Read:
    def read(value: Any, place: str) -> Any:
        if type(value) not in kinds:
            raise _refuse(place, wanted, value)
        return value

    return read


_text = _scalar((str,), "a text")
_SCALARS: dict[Any, Read] = {
    int: _scalar((int,), "a whole number"),
    # The number keeps its type: 10 and 10.0 are equal, but print differently.
    float: _scalar((float, int), "a number"),
    str: _text,
    bool: _scalar((bool,), "true or false"),
}


def _dataclass_reader(kind: Any) -> Read:
    hints = get_type_hints(kind)
    readers = {field.name: reader(hints[field.name]) for field in fields(kind)}
    needed = {
        field.name
        for field in fields(kind)
        if field.default is MISSING and field.default_factory is MISSING
    }

    def read(value: Any, place: str) -> Any:
        if type(value) is not dict:
            raise _refuse(place, f"the fields of a {kind.__name__}", value)
        if missing := needed - value.keys():
            raise JournalError(f"{place}.{min(missing)}: is missing")
        if unknown := value.keys() - readers.keys():
            raise JournalError(f"{place}.{min(unknown)}: is unknown to this version of edgebox")
        given = {name: readers[name](of, f"{place}.{name}") for name, of in value.items()}
        try:
            return kind(**given)
        except InvalidInputError as error:
            raise JournalError(f"{place}: {error}") from None

    return read


def _enum_reader(kind: type[Enum]) -> Read:
    members = {member.value: member for member in kind}

    def read(value: Any, place: str) -> Any:
        if type(value) is not str or value not in members:
            raise _refuse(place, f"one of {', '.join(members)}", value)
        return members[value]

    return read


def _optional_reader(inner: Read) -> Read:
    return lambda value, place: None if value is None else inner(value, place)


def _tuple_reader(arguments: tuple[Any, ...]) -> Read:
    endless = len(arguments) == 2 and arguments[1] is Ellipsis
    inner = [reader(each) for each in arguments if each is not Ellipsis]

    def read(value: Any, place: str) -> Any:
        if type(value) is not list or not (endless or len(value) == len(inner)):
            wanted = "a list" if endless else f"a list of {len(inner)}"
            raise _refuse(place, wanted, value)
        each = inner * len(value) if endless else inner
        return tuple(one(of, f"{place}[{at}]") for at, (one, of) in enumerate(zip(each, value)))  # noqa: B905

    return read


def _mapping_reader(of_key: Any, of_value: Any) -> Read:
    base = of_key.__supertype__ if isinstance(of_key, NewType) else of_key
    read_value = reader(of_value)

    def read(value: Any, place: str) -> Any:
        if type(value) is not dict:
            raise _refuse(place, "an object", value)
        try:
            return {base(key): read_value(of, f"{place}.{key}") for key, of in value.items()}
        except ValueError:
            raise _refuse(place, "an object whose keys are whole numbers", value) from None

    return read
