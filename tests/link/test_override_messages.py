"""Settings over a hello: written and read alike, changed field by field, refused by name."""

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebox.domain.errors import InvalidInputError
from edgebox.domain.model_family import FamilyName
from edgebox.domain.overrides import NOTHING_SET, Overrides
from edgebox.domain.pipelines import Pipeline, PipelineName, PipelineStage, StageName
from edgebox.domain.requests import SiteId, UtilityStep
from edgebox.domain.zones import Line, Zone
from edgebox.link.override_messages import NAMES, changed, written
from tests.link.strategies import json_values, names
from tests.scheduling.scene import MS, camera

shares = st.integers(0, 1000).map(lambda n: n / 1000)
zones = st.builds(
    lambda name, low, high, dwell_ms: Zone(
        f"zone-{name}"[:64], ((low, 0.0), (1.0, high), (low, 1.0)), ("car",), dwell_ms * MS
    ),
    names,
    st.integers(0, 900).map(lambda n: n / 1000),
    shares,
    st.integers(0, 10_000),
)
overrides = st.builds(
    Overrides,
    slo_ns=st.none() | st.integers(1, 60_000).map(lambda ms: ms * MS),
    rate_hz=st.none() | st.floats(0.01, 1000),
    app=st.none() | names,
    min_accuracy=st.none() | st.floats(0, 1),
    site=st.none() | names.map(SiteId),
    pipeline=st.none() | names.map(PipelineName),
    tracking=st.none() | st.booleans(),
    zones=st.none() | st.lists(zones, max_size=3, unique_by=lambda zone: zone.name).map(tuple),
    lines=st.none()
    | st.just(())
    | st.just((Line("the-line", ((0.0, 0.5), (1.0, 0.25)), ("person",)),)),
)


@given(overrides)
def test_what_is_written_is_read(some: Overrides) -> None:
    assert changed(NOTHING_SET, written(some)) == some
    assert set(written(some)) == set(NAMES)
    assert len(NAMES) == len(fields(Overrides))


@given(overrides, overrides, st.sets(st.sampled_from(NAMES)))
def test_what_is_not_named_stays(before: Overrides, after: Overrides, named: set[str]) -> None:
    change = {name: value for name, value in written(after).items() if name in named}
    got = written(changed(before, change))
    assert got == {**written(before), **change}


@given(overrides)
def test_only_what_is_set_wins_over_the_hello(some: Overrides) -> None:
    hello = replace(camera(rate_hz=10, min_rate_hz=5), app="door", min_accuracy=0.3)
    got = some.applied_to(hello)
    assert NOTHING_SET.applied_to(hello) == hello
    assert got.slo_ns == (some.slo_ns or hello.slo_ns)
    assert got.rate_hz == min(hello.rate_hz, some.rate_hz or hello.rate_hz)
    assert got.min_rate_hz <= got.rate_hz
    assert got.app == (some.app or hello.app)
    assert got.min_accuracy == (0.3 if some.min_accuracy is None else some.min_accuracy)
    assert got.site == some.site
    untouched = ("id", "family", "width_px", "height_px")
    assert all(getattr(got, name) == getattr(hello, name) for name in untouched)


def test_a_pipeline_set_on_the_box_brings_its_family() -> None:
    stage = PipelineStage(StageName("look"), FamilyName("other"))
    pipeline = Pipeline(PipelineName("traffic"), (stage,))
    hello = camera()
    some = Overrides(pipeline=pipeline.name)
    got = some.applied_to(hello, {pipeline.name: pipeline})
    assert (got.pipeline, got.family) == (pipeline, "other")
    assert some.applied_to(hello) == hello, "the box has no such pipeline any more"


def test_a_family_set_on_the_box_takes_the_place_of_the_pipeline() -> None:
    stage = PipelineStage(StageName("look"), FamilyName("other"))
    hello = replace(camera(), pipeline=Pipeline(PipelineName("traffic"), (stage,)))
    some = Overrides(family=FamilyName("gate"))
    got = some.applied_to(hello, families={FamilyName("gate")})
    assert (got.pipeline, got.family) == (None, "gate")
    assert some.applied_to(hello) == hello, "the box has no such family any more"
    assert changed(NOTHING_SET, {"family": "gate"}) == some
    with pytest.raises(InvalidInputError, match="cannot be set beside a pipeline"):
        changed(some, {"pipeline": "traffic"})
    assert changed(some, {"pipeline": "traffic", "family": None}).pipeline == "traffic"


def test_a_deadline_set_on_the_box_is_the_only_one() -> None:
    hello = replace(camera(), steps=(UtilityStep(500 * MS, 0.5),))
    assert Overrides(rate_hz=1).applied_to(hello).steps == hello.steps
    assert Overrides(slo_ns=5 * MS).applied_to(hello).steps == ()


def test_every_mistake_is_named() -> None:
    with pytest.raises(InvalidInputError) as caught:
        changed(
            NOTHING_SET,
            {"slo_ms": 0, "rate_hz": "fast", "app": "a b", "min_accuracy": 2, "famly": "cats"},
        )
    message = str(caught.value)
    for part in (
        "settings.slo_ms must be a number from 1 to 60000, not 0",
        'settings.rate_hz must be a number from 0.01 to 1000, not "fast"',
        "settings.app must be 1 to 64 letters",
        "settings.min_accuracy must be a number from 0 to 1, not 2",
        "settings.famly is not known; there are slo_ms, rate_hz, app, min_accuracy, site, "
        "pipeline, ",
    ):
        assert part in message


@given(st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=5), json_values))
def test_anything_else_is_refused_and_nothing_worse(change: dict[str, object]) -> None:
    try:
        got = changed(NOTHING_SET, change)
    except InvalidInputError:
        return
    assert set(change) <= set(NAMES)
    assert changed(NOTHING_SET, written(got)) == got
