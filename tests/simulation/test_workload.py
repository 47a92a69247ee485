"""The workload format: what is written is read, and what is wrong is named."""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import orjson
import pytest

from edgebox.domain.errors import InvalidInputError
from edgebox.simulation.generation import KINDS, make_workload
from edgebox.simulation.workload import parse_workload, workload_lines

MODEL = {"type": "model", "c0_ms": 8, "c1": 0.25, "batch_sizes": [1, 2, 4], "workers": 1}
HISTORY = {"type": "history", "app": "a", "exec_ms": 10}
REQUEST = {"type": "request", "id": 0, "at_ms": 5, "app": "a", "exec_ms": 9.5, "slo_ms": 40}


def lines(*records: dict[str, Any]) -> list[bytes]:
    return [orjson.dumps(record) for record in records]


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_what_is_written_is_read(kind: str) -> None:
    made = make_workload(kind, load=0.7, slo_multiple=2, requests=50, rng=random.Random(1))
    again = parse_workload(workload_lines(made), "w")
    assert again == made
    longer = again.with_slo_multiple(5)
    assert longer.jobs[3].slo_ms == pytest.approx(2.5 * made.jobs[3].slo_ms)
    assert longer.model.slo_mult == 5


def test_several_deadlines_are_written_read_and_rescaled_together() -> None:
    made = make_workload("static", load=0.7, slo_multiple=2, requests=5, rng=random.Random(1))
    several = made.with_later([(3, 0.7), (8, 0.1)])
    slo_ms = made.jobs[0].slo_ms
    assert several.jobs[0].slo_ms == slo_ms
    assert several.jobs[0].later == ((1.5 * slo_ms, 0.7), (4 * slo_ms, 0.1))
    assert parse_workload(workload_lines(several), "w") == several
    assert several.with_slo_multiple(4).jobs[0].later == ((3 * slo_ms, 0.7), (8 * slo_ms, 0.1))
    with pytest.raises(InvalidInputError, match=r"\[1\]\[0\] must be above the deadline before it"):
        made.with_later([(2, 0.5)])
    unknown = parse_workload(lines(MODEL, HISTORY, REQUEST), "w")
    with pytest.raises(InvalidInputError, match="slo_mult"):
        unknown.with_later([(3, 0.5)])


def test_a_generated_workload_has_the_load_and_the_deadlines_asked_for() -> None:
    made = make_workload("modal-3", load=0.5, slo_multiple=3, requests=40_000, rng=random.Random(2))
    model = made.model
    times = np.array([job.exec_ms for job in made.jobs])
    mean_ms = times.mean()
    assert model.c0_ms == pytest.approx((1 - model.c1) * mean_ms, rel=0.05)
    capacity = 16 / (model.c0_ms + 16 * model.c1 * mean_ms)
    rate = len(made.jobs) / made.jobs[-1].at_ms
    assert rate / capacity == pytest.approx(0.5, rel=0.05)
    assert made.jobs[0].slo_ms == pytest.approx(3 * np.quantile(times, 0.99), rel=0.05)
    same = make_workload("modal-3", load=0.5, slo_multiple=3, requests=99, rng=random.Random(2))
    assert same.jobs == made.jobs[:99]


def test_an_application_may_have_no_history() -> None:
    new = {"type": "application", "app": "new"}
    lines = [orjson.dumps(line) for line in (MODEL, HISTORY, new, {**REQUEST, "app": "new"})]
    read = parse_workload(lines, "w")
    assert read.history == {"a": (10.0,), "new": ()}
    assert parse_workload(list(workload_lines(read)), "w") == read


WRONG: Sequence[tuple[list[dict[str, Any]], str]] = [
    ([HISTORY], 'w:1: type: the first line must be the model, like {"type":"model"'),
    ([{**MODEL, "c1": -1}], "w:1: c1: must be a number from 0 to 1e12, not -1"),
    ([{**MODEL, "c1": 0}], "w:1: c1: must be above 0"),
    ([{**MODEL, "batch_sizes": [2, 1]}], "w:1: batch_sizes: must be rising whole numbers"),
    ([{**MODEL, "batch_sizes": []}], "w:1: batch_sizes: must be rising"),
    ([{**MODEL, "batch_sizes": [True]}], "w:1: batch_sizes: must be rising"),
    ([{**MODEL, "workers": 0}], "w:1: workers: must be at least 1"),
    ([MODEL, MODEL], "w:2: type: there is a second model line"),
    (
        [MODEL, {"type": "story"}],
        'w:2: type: must be "history", "application" or "request"',
    ),
    ([MODEL, {**HISTORY, "exec_ms": -2}], "w:2: exec_ms: must be a number from 0"),
    (
        [MODEL, {**HISTORY, "exec_ms": None}],
        "w:2: exec_ms: must be a number from 0 to 1e12, not null",
    ),
    ([MODEL, {**HISTORY, "app": ""}], "w:2: app: must be a text"),
    (
        [MODEL, HISTORY, {**REQUEST, "app": "b"}],
        'w:3: app: "b" has no history or application line',
    ),
    ([MODEL, HISTORY, {**REQUEST, "at_ms": -5}], "w:3: at_ms: must be a number from 0"),
    ([MODEL, HISTORY, {**REQUEST, "id": 1.5}], "w:3: id: must be a whole number"),
    ([MODEL, HISTORY, REQUEST, {**REQUEST, "id": 1, "at_ms": 4}], "w:4: at_ms: 4 is before"),
    ([MODEL, HISTORY, REQUEST, REQUEST], "w:4: id: 0 is there twice"),
    (
        [MODEL, HISTORY, {**REQUEST, "slo_ms": "40"}],
        'w:3: slo_ms: must be a number from 0 to 1e12, not "40"',
    ),
    (
        [MODEL, HISTORY, {**REQUEST, "slo_ms": []}],
        "w:3: slo_ms must be a number from 0 to 1e+12, or",
    ),
    ([MODEL, HISTORY, {**REQUEST, "slo_ms": [[40, 1], 80]}], "w:3: slo_ms[1] must be a pair"),
    (
        [MODEL, HISTORY, {**REQUEST, "slo_ms": [[40, 1], [40, 0.5]]}],
        "w:3: slo_ms[1][0] must be above",
    ),
    ([MODEL, HISTORY, {**REQUEST, "slo_ms": [[40, 0.5]]}], "w:3: slo_ms[0][1] must be 1"),
    ([], "w:1: is empty"),
]


@pytest.mark.parametrize(("records", "message"), WRONG)
def test_what_is_wrong_is_named_with_line_and_field(
    records: list[dict[str, Any]], message: str
) -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse_workload(lines(*records), "w")
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("key", ["id", "at_ms", "app", "exec_ms", "slo_ms"])
def test_a_missing_field_is_named(key: str) -> None:
    record = {name: value for name, value in REQUEST.items() if name != key}
    with pytest.raises(InvalidInputError, match=f"w:3: {key}: is missing"):
        parse_workload(lines(MODEL, HISTORY, record), "w")


@pytest.mark.parametrize("line", [b"{", b"\xff\xfe", b"[1]", b'{"type": NaN}', b"3"])
def test_what_is_no_json_object_is_named(line: bytes) -> None:
    with pytest.raises(InvalidInputError, match=r"^w:2: "):
        parse_workload([*lines(MODEL), line], "w")


def test_deadlines_that_were_not_made_with_a_multiple_cannot_be_rescaled() -> None:
    workload = parse_workload(lines(MODEL, HISTORY, REQUEST), "w")
    with pytest.raises(InvalidInputError, match="slo_mult"):
        workload.with_slo_multiple(2)
