"""A call's line: every event and action comes back as it went, and nothing else comes in."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from types import UnionType
from typing import Any, NewType, Union, get_args, get_origin, get_type_hints

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebox.domain.cascades import CascadeCurve
from edgebox.domain.model_family import FamilyName
from edgebox.domain.pipelines import Pipeline, PipelineName, PipelineStage, StageName
from edgebox.domain.requests import Camera, CameraId, DropReason, RequestId
from edgebox.runtime.entries import (
    ACTIONS,
    EVENTS,
    JournalEntry,
    JournalError,
    read_entry,
    reader,
    write_entry,
    write_raised,
)
from edgebox.scheduling.actions import Action, Drop
from edgebox.scheduling.events import CameraConnected, Event, RequestPrepared
from edgebox.scheduling.request_stages import Cause
from tests.scheduling.cascades import CURVE

WHOLE = st.integers(-(2**63), 2**63 - 1)
SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    int: WHOLE,
    float: st.floats(allow_nan=False, allow_infinity=False) | WHOLE,
    str: st.text(st.characters(exclude_categories=["Cs"])),
    bool: st.booleans(),
}


def values_of(kind: Any) -> st.SearchStrategy[Any]:
    """Return values of an annotation: written apart from the reader, as its judge."""
    if isinstance(kind, NewType):
        return values_of(kind.__supertype__)
    if isinstance(kind, type) and not is_dataclass(kind):
        return st.sampled_from(kind) if issubclass(kind, Enum) else SCALARS[kind]
    if isinstance(kind, type) and is_dataclass(kind):
        if kind is CascadeCurve:
            return st.just(CURVE)
        hints = get_type_hints(kind)
        made = {field.name: values_of(hints[field.name]) for field in fields(kind)}
        return pipelines() if kind is Pipeline else st.builds(kind, **made)
    return containers_of(*get_args(kind), origin=get_origin(kind))


def containers_of(*arguments: Any, origin: Any) -> st.SearchStrategy[Any]:
    if origin in (UnionType, Union):
        return st.one_of(st.none(), *(values_of(a) for a in arguments if a is not type(None)))
    if origin is tuple and arguments[-1] is not Ellipsis:
        return st.tuples(*map(values_of, arguments))
    if origin is tuple:
        return st.lists(values_of(arguments[0]), max_size=3).map(tuple)
    assert origin is Mapping
    return st.dictionaries(values_of(arguments[0]), values_of(arguments[1]), max_size=3)


@st.composite
def pipelines(draw: st.DrawFn) -> Pipeline:
    """Return chains of stages: others are no pipelines."""
    stages = draw(st.lists(values_of(PipelineStage), min_size=1, max_size=3))
    names = [StageName(str(at)) for at in range(len(stages))]
    chain = (
        replace(
            stage,
            name=name,
            after=tuple(names[:at][-1:]),
            cascade=stage.cascade if (at, len(names)) == (1, 2) else None,
        )
        for at, (name, stage) in enumerate(zip(names, stages, strict=True))
    )
    return Pipeline(PipelineName("p"), tuple(chain))


def test_what_is_no_pipeline_is_refused() -> None:
    camera = Camera(
        CameraId("gate"), "app", FamilyName("f"), 1, 1.0, 1, 1,
        pipeline=Pipeline(PipelineName("p"), (PipelineStage(StageName("s"), FamilyName("f")),)),
    )  # fmt: skip
    line = write_entry(0, CameraConnected(camera), [])
    with pytest.raises(JournalError, match=r"camera\.pipeline: stage 's' .* after 't'"):
        read_entry(line.replace(b'"after":[]', b'"after":["t"]'))


def test_the_two_unions_are_what_is_read() -> None:
    assert set(EVENTS.values()) == set(get_args(Event))
    assert set(ACTIONS.values()) == set(get_args(Action))


@pytest.mark.parametrize("kind", EVENTS.values(), ids=EVENTS)
def test_every_event_comes_back(kind: Any) -> None:
    @settings(max_examples=30, deadline=None)
    @given(WHOLE, values_of(kind))
    def check(now_ns: int, event: Event) -> None:
        line = write_entry(now_ns, event, [])
        assert line.endswith(b"\n")
        assert line.count(b"\n") == 1
        assert read_entry(line) == JournalEntry(now_ns, event, ())
        assert repr(read_entry(line).event) == repr(event)

    check()


@pytest.mark.parametrize("kind", ACTIONS.values(), ids=ACTIONS)
def test_every_action_comes_back(kind: Any) -> None:
    @settings(max_examples=30, deadline=None)
    @given(st.lists(values_of(kind), max_size=3))
    def check(actions: list[Action]) -> None:
        assert read_entry(write_entry(5, None, actions)) == JournalEntry(5, None, tuple(actions))

    check()


def test_what_a_call_raised_comes_back() -> None:
    event = RequestPrepared(RequestId(3), 5)
    line = write_raised(7, event, "KeyError: 3")
    assert read_entry(line) == JournalEntry(7, event, (), "KeyError: 3")


def test_a_line_is_for_reading() -> None:
    drop = Drop(RequestId(3), DropReason.QUEUE, Cause.EXPIRED)
    line = write_entry(7, RequestPrepared(RequestId(3), 5), [drop])
    assert line == (
        b'[7,["RequestPrepared",{"request":3,"took_ns":5}],'
        b'[["Drop",{"request":3,"reason":"queue","cause":"expired"}]]]\n'
    )


CAMERA = orjson.loads(
    orjson.dumps(Camera(CameraId("gate"), "a", FamilyName("street"), 5, 1.5, 64, 48))
)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b'[7,["RequestPrep', "cut off"),
        (b"", "cut off"),
        (b"{}", "must be [instant, event, actions]"),
        (b"[7.5,null,[]]", "must be [instant, event, actions]"),
        (b"[7,null,3]", "actions: must be a list"),
        (b'[7,null,{"raised":3}]', "raised: must be a text"),
        (b"[7,[1],[]]", "event: must be [name, fields]"),
        (b'[7,["Explode",{}],[]]', "there is no 'Explode'"),
        (b'[7,null,[["CameraConnected",{}]]]', "action: there is no 'CameraConnected'"),
        (b'[7,["RequestPrepared",{"request":3}],[]]', "RequestPrepared.took_ns: is missing"),
        (b'[7,["RequestPrepared",{"request":3,"took_ns":1,"x":1}],[]]', ".x: is unknown"),
        (b'[7,["RequestPrepared",{"request":true,"took_ns":1}],[]]', "a whole number, not true"),
        (b'[7,["RequestPrepared",[3]],[]]', "must be the fields of a RequestPrepared"),
        (
            b'[7,null,[["Drop",{"request":3,"reason":"bored","cause":"expired"}]]]',
            "Drop.reason: must be one of",
        ),
    ],
)
def test_other_lines_are_refused_with_the_place(line: bytes, says: str) -> None:
    with pytest.raises(JournalError) as refused:
        read_entry(line)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("rate_hz", "fast", 'CameraConnected.camera.rate_hz: must be a number, not "fast"'),
        ("app", None, "CameraConnected.camera.app: must be a text, not null"),
    ],
)
def test_the_place_is_named_in_depth(field: str, value: object, says: str) -> None:
    written = [1, ["CameraConnected", {"camera": {**CAMERA, field: value}}], []]
    with pytest.raises(JournalError) as refused:
        read_entry(orjson.dumps(written))
    assert str(refused.value) == says


def test_fields_with_a_default_may_be_missing() -> None:
    content = {name: value for name, value in CAMERA.items() if name != "min_accuracy"}
    entry = read_entry(orjson.dumps([1, ["CameraConnected", {"camera": content}], []]))
    assert isinstance(entry.event, CameraConnected)
    assert entry.event.camera.min_accuracy == 0.0


@dataclass(frozen=True, slots=True)
class Paired:
    pairs: tuple[tuple[int, float], ...]
    by_number: Mapping[int, str]


def test_annotations_that_events_may_get() -> None:
    read = reader(Paired)
    written = {"pairs": [[1, 0.5], [2, 1]], "by_number": {"3": "c"}}
    assert read(written, "it") == Paired(((1, 0.5), (2, 1)), {3: "c"})
    with pytest.raises(JournalError, match=r"it\.pairs\[1\]: must be a list of 2"):
        read({**written, "pairs": [[1, 0.5], [2]]}, "it")
    with pytest.raises(JournalError, match=r"it\.by_number: must be an object whose keys"):
        read({**written, "by_number": {"c": "3"}}, "it")
    with pytest.raises(JournalError, match=r"it\.by_number: must be an object, not"):
        read({**written, "by_number": []}, "it")
    with pytest.raises(TypeError, match="no reader for"):
        reader(bytes)
