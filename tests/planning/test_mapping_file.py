"""Instances of the mapping problem as JSON: what is read, and what is said about mistakes."""

import json
from typing import Any

import pytest

from edgebox.domain.errors import InvalidInputError
from edgebox.planning.mapping_file import mapping_document, parse_problem
from edgebox.planning.mapping_problem import (
    Mapping,
    MappingCamera,
    MappingProblem,
    MappingVariant,
    WorkerMapping,
)


def document(**changes: Any) -> dict[str, Any]:
    return {
        "workers": 2,
        "max_batch": 2,
        "variants": [
            {"name": "d128", "input_px": 128, "accuracy": 0.31, "latency_ms": [10, 15]},
            {"name": "d256", "input_px": 256, "accuracy": 0.5, "latency_ms": [20, 30]},
        ],
        "cameras": [{"id": "c0", "rate_hz": 15, "budget_ms": [90, 0]}],
        **changes,
    }


def test_a_problem_is_read_and_an_answer_written() -> None:
    problem = parse_problem(json.dumps(document()).encode(), "x.json")
    assert problem == MappingProblem(
        2,
        2,
        (
            MappingVariant("d128", 128, 0.31, (10.0, 15.0)),
            MappingVariant("d256", 256, 0.5, (20.0, 30.0)),
        ),
        (MappingCamera("c0", 15.0, (90.0, 0.0)),),
    )
    mapping = Mapping((WorkerMapping(0, 1, (0,)), WorkerMapping(0, 1)))
    assert mapping_document(problem, mapping) == {
        "served": 1,
        "objective": pytest.approx(4.65),
        "workers": [
            {"variant": "d128", "batch": 1, "cameras": ["c0"]},
            {"variant": "d128", "batch": 1, "cameras": []},
        ],
    }


def camera(**changes: Any) -> dict[str, Any]:
    return {"cameras": [{"id": "c0", "rate_hz": 15, "budget_ms": [90, 0], **changes}]}


def variant(**changes: Any) -> dict[str, Any]:
    good = {"name": "d128", "input_px": 128, "accuracy": 0.31, "latency_ms": [10, 15]}
    return {"variants": [good, {**good, "name": "d256", **changes}]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"workers": 0}, "workers: must be a whole number from 1 to 1000, not 0"),
        ({"workers": True}, "workers: must be a whole number from 1 to 1000, not true"),
        ({"max_batch": 2.0}, "max_batch: must be a whole number from 1 to 4096, not 2.0"),
        ({"variants": []}, "variants: must have at least one entry"),
        ({"variants": 7}, "variants: must be a list, not 7"),
        ({"cameras": [3]}, "cameras[0]: must be a JSON object, not 3"),
        (camera(rate_hz=-1), "cameras[0].rate_hz: must be a number from 0.001 to 10000, not -1"),
        (
            camera(budget_ms=[1]),
            "cameras[0].budget_ms: must have 2 numbers, one per variant, not 1",
        ),
        (
            camera(budget_ms=[1, None]),
            "cameras[0].budget_ms[1]: must be a number from 0 to 1e+09, not null",
        ),
        (camera(id=""), 'cameras[0].id: must be a text that is not empty, not ""'),
        ({"cameras": camera()["cameras"] * 2}, 'cameras[1].id: "c0" is there twice'),
        (variant(name="d128"), 'variants[1].name: "d128" is there twice'),
        (variant(accuracy=31), "variants[1].accuracy: must be a number from 0 to 1, not 31"),
        (
            variant(latency_ms=[10]),
            "variants[1].latency_ms: must have 2 numbers, one per batch size, not 1",
        ),
        (
            variant(latency_ms=[10, 0]),
            "variants[1].latency_ms[1]: must be a number from 0.001 to 1e+09, not 0",
        ),
    ],
)
def test_a_mistake_is_named_with_its_field(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse_problem(json.dumps(document(**changes)).encode(), "x.json")
    assert str(caught.value) == f"x.json: {message}"


def test_a_missing_field_and_what_is_no_json() -> None:
    less = document()
    del less["workers"]
    with pytest.raises(InvalidInputError, match=r"^x\.json: workers: is missing$"):
        parse_problem(json.dumps(less).encode(), "x.json")
    with pytest.raises(InvalidInputError, match=r"^x\.json: must be a JSON object$"):
        parse_problem(b"[]", "x.json")
    with pytest.raises(InvalidInputError, match=r"^x\.json: is not JSON: "):
        parse_problem(b"{", "x.json")
