"""Decides how a Scheduler's whole state is serialised, so that another one can continue from it.

The state is a graph of plain values: numbers, texts, containers, numpy arrays, and objects of
`domain` and `scheduling`. It is written as a JSON array of nodes that refer to each other by
number. Shared objects stay shared, whatever a policy keeps, and nothing has to be declared. A class
may name attributes in `DERIVED` that it computes again where they are None: these are left out.
Reading runs no code that the document could choose: it creates only those containers and objects of
those two packages, without calling them, and sets attributes. Pure: no clock, no I/O.

Cost: O(nodes), some microseconds each, and some nanoseconds for each number of an array. A value
that cannot be written (a function, an open file) is a `StateError`: a policy keeps data only. A set
comes back with the same members in any order.
"""

import base64
import importlib
import math
import re
from array import array
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from edgebox.domain.errors import EdgeboxError
from edgebox.scheduling.queueing import QueueingPolicy
from edgebox.scheduling.scheduler import Scheduler
from edgebox.scheduling.scheduler_parameters import SchedulerParameters

_CLASS = re.compile(r"(?:domain|scheduling)(?:\.[a-z][a-z_0-9]*)+\.[A-Za-z_][A-Za-z_0-9]*")
_UNSET = object()
_PLAIN = frozenset((type(None), bool, int, str))
_SEQUENCES: dict[str, type] = {
    "list": list, "tuple": tuple, "set": set, "frozenset": frozenset,
}  # fmt: skip
_NAMES = {cls: name for name, cls in _SEQUENCES.items()}
_EMPTY: dict[str, type] = {"list": list, "set": set, "dict": dict, "counter": Counter}
_FACTORIES: dict[str, type] = {
    "list": list, "dict": dict, "set": set, "deque": deque, "int": int, "float": float,
}  # fmt: skip

_TYPECODES = frozenset("dqH")
"""Kinds of arrays of the standard library: float64, int64, uint16."""

Nodes = list[list[Any]]
"""Each a tag and its parts. A part is a number, a text, true, false, null, or `[n]`: node n."""


class StateError(EdgeboxError):
    """A state that cannot be serialised, or a document that is no state of this version."""

    code = "state"


def write_state(scheduler: Scheduler) -> Nodes:
    """Return the state between two calls of `handle`; node 0 is the Scheduler.

    Raises:
        StateError: a part of it is not data.
    """
    writer = _Writer()
    writer.value(scheduler)
    return writer.nodes


def read_state(nodes: Nodes) -> Scheduler:
    """Return a Scheduler that continues from the written state.

    Raises:
        StateError: the document is no state, or one of another version of edgebox.
    """
    try:
        scheduler = _Reader(nodes).node(0)
    except StateError:
        raise
    except (RecursionError, *_MALFORMED) as error:
        raise StateError(f"is no state of a scheduler ({type(error).__name__}: {error})") from None
    if not isinstance(scheduler, Scheduler):
        raise StateError("is not the state of a scheduler")
    if vars(scheduler).keys() != vars(Scheduler(SchedulerParameters(), QueueingPolicy())).keys():
        raise StateError("has a scheduler with other attributes than this version of edgebox's")
    return scheduler


_MALFORMED = (TypeError, ValueError, KeyError, IndexError, AttributeError)


class _Writer:
    """Assigns a number to every object, by identity, when it is first met."""

    def __init__(self) -> None:
        self.nodes: Nodes = []
        self._numbers: dict[int, int] = {}
        self._kept: list[object] = []  # so that no identity is reused

    def value(self, of: object) -> Any:
        """Return a part: the value itself, or a reference to its node."""
        cls = type(of)
        if cls in _PLAIN or (cls is float and math.isfinite(of)):  # type: ignore[arg-type]
            return of
        number = self._numbers.get(id(of))
        if number is None:
            number = self._numbers[id(of)] = len(self.nodes)
            self._kept.append(of)
            node: list[Any] = []
            self.nodes.append(node)
            self._fill(node, of)
        return [number]

    def _values(self, of: Collection[object]) -> list[Any]:
        kinds = set(map(type, of))
        if kinds <= _PLAIN or (kinds == {float} and all(map(math.isfinite, of))):  # type: ignore[arg-type]
            return list(of)
        return [each if type(each) in _PLAIN else self.value(each) for each in of]

    def _items(self, of: dict[Any, Any]) -> list[Any]:
        return [self.value(each) for item in of.items() for each in item]

    def _fill(self, node: list[Any], of: Any) -> None:
        cls: type = type(of)
        if cls in _NAMES:
            node += [_NAMES[cls], *self._values(of)]
        elif cls is dict:
            node += ["dict", *self._items(of)]
        elif isinstance(of, Enum):
            node += ["enum", _name_of(cls), of.name]
        elif cls.__module__.startswith(("edgebox.domain.", "edgebox.scheduling.")):
            self._fill_object(node, of)
        else:
            self._fill_rare(node, of)

    def _fill_object(self, node: list[Any], of: Any) -> None:
        cls: type = type(of)
        derived: Collection[str] = getattr(cls, "DERIVED", ())
        values = {name: getattr(of, name, _UNSET) for name in _slots(cls)}
        values |= getattr(of, "__dict__", {})
        values |= dict.fromkeys(derived)
        written = {
            name: value if type(value) in _PLAIN else self.value(value)
            for name, value in values.items()
            if value is not _UNSET
        }
        node += ["object", _name_of(cls), written]

    def _fill_rare(self, node: list[Any], of: Any) -> None:
        cls = type(of)
        if cls is float:
            node += ["float", repr(of)]
        elif cls is array and of.typecode in _TYPECODES:
            numbers = np.frombuffer(of, of.typecode)
            node += ["numbers", of.typecode, numbers.dtype.str, _packed(numbers)]
        elif cls is deque:
            node += ["deque", of.maxlen, *self._values(of)]
        elif cls is Counter:
            node += ["counter", *self._items(of)]
        elif cls is defaultdict and of.default_factory in _FACTORIES.values():
            node += ["defaultdict", of.default_factory.__name__, *self._items(of)]
        elif isinstance(of, np.ndarray | np.generic) and not of.dtype.hasobject:
            scalar = isinstance(of, np.generic)
            node += ["scalar" if scalar else "array", of.dtype.str, _packed(of), *of.shape]
        elif cls is MethodType:
            node += ["method", self.value(of.__self__), of.__name__]
            _method_of(of.__self__, of.__name__)
        else:
            raise StateError(f"a {cls.__module__}.{cls.__qualname__} cannot be serialised")


class _Reader:
    """Creates each node once; a container is created before its parts, because it may contain
    itself."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._made: dict[int, Any] = {}

    def node(self, number: int) -> Any:
        """Return the value of a node."""
        if number in self._made:
            return self._made[number]
        tag, *parts = self._nodes[number]
        if tag in ("list", "set", "dict", "counter", "deque", "defaultdict"):
            return self._container(number, tag, parts)
        if tag == "object":
            return self._object(number, *parts)
        made = self._made[number] = self._unchanging(tag, parts)
        return made

    def _value(self, part: Any) -> Any:
        if type(part) is list:
            (number,) = part
            return self.node(number)
        if type(part) not in _PLAIN and type(part) is not float:
            raise StateError("has a part that is neither a value nor a reference")
        return part

    def _items(self, parts: list[Any]) -> Iterable[tuple[Any, Any]]:
        for at in range(0, len(parts), 2):
            yield self._value(parts[at]), self._value(parts[at + 1])

    def _container(self, number: int, tag: str, parts: list[Any]) -> Any:
        made: Any
        if tag == "deque":
            made, parts = deque(maxlen=parts[0]), parts[1:]
        elif tag == "defaultdict":
            made, parts = defaultdict(_FACTORIES[parts[0]]), parts[1:]
        else:
            made = _EMPTY[tag]()
        self._made[number] = made
        if isinstance(made, dict):
            dict.update(made, self._items(parts))  # a Counter's own update would count the pairs
        else:
            add = made.add if tag == "set" else made.append
            for part in parts:
                add(self._value(part))
        return made

    def _object(self, number: int, name: str, attributes: dict[str, Any]) -> Any:
        cls = _class_of(name)
        if is_dataclass(cls) and {field.name for field in fields(cls)} != set(attributes):
            raise StateError(f"has a {name} with other fields than this version of edgebox")
        made: object = object.__new__(cls)
        self._made[number] = made
        for attribute, part in attributes.items():
            object.__setattr__(made, attribute, self._value(part))
        return made

    def _unchanging(self, tag: str, parts: list[Any]) -> Any:
        if tag in _SEQUENCES:
            return _SEQUENCES[tag](self._value(part) for part in parts)
        if tag == "enum":
            return _class_of(parts[0])[parts[1]]  # type: ignore[index]
        if tag == "float":
            return float(parts[0])
        if tag in ("array", "scalar"):
            dtype, packed, *shape = parts
            flat = np.frombuffer(base64.b64decode(packed), np.dtype(dtype))
            return flat.reshape(shape).copy() if tag == "array" else flat[0]
        if tag == "numbers":
            typecode, dtype, packed = parts
            if typecode not in _TYPECODES:
                raise StateError(f"has numbers of an unknown kind, {typecode!r}")
            flat = np.frombuffer(base64.b64decode(packed), np.dtype(dtype))
            return array(typecode, flat.astype(typecode).tobytes())
        if tag == "method":
            return _method_of(self._value(parts[0]), parts[1])
        raise StateError(f"has a node of an unknown kind, {tag!r}")


def _packed(of: np.ndarray[Any, Any] | np.generic) -> str:
    return base64.b64encode(np.ascontiguousarray(of).tobytes()).decode()


def _method_of(owner: Any, name: str) -> Any:
    """Return a method of an object's class: a policy may have passed it to its parts."""
    cls: type = type(owner)
    _name_of(cls)
    if not isinstance(getattr(cls, name, None), FunctionType):
        raise StateError(f"a method {name!r} of a {cls.__name__} cannot be serialised")
    return MethodType(getattr(cls, name), owner)


@cache
def _slots(cls: type) -> tuple[str, ...]:
    found: list[str] = []
    for each in cls.__mro__:
        slots = each.__dict__.get("__slots__", ())
        found += [slots] if isinstance(slots, str) else slots
    return tuple(name for name in found if name not in ("__dict__", "__weakref__"))


@cache
def _name_of(cls: type) -> str:
    name = f"{cls.__module__}.{cls.__qualname__}".removeprefix("edgebox.")
    if not _CLASS.fullmatch(name):
        raise StateError(f"an object of {name} cannot be serialised")
    return name


@cache
def _class_of(name: str) -> type:
    module, _, cls = name.rpartition(".")
    if not _CLASS.fullmatch(name):
        raise StateError(f"names {name}, which is no part of a scheduler")
    try:
        found = getattr(importlib.import_module(f"edgebox.{module}"), cls)
    except (ImportError, AttributeError):
        raise StateError(f"has a {name}, which this version of edgebox does not know") from None
    if not isinstance(found, type) or _name_of(found) != name:
        raise StateError(f"names {name}, which is no part of a scheduler")
    return found
