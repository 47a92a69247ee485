"""The documents that docs/reference/http-api.md shows are such as the box sends."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from edgebox.web.openapi import document
from edgebox.web.server import ROUTES

PAGE = (Path(__file__).resolve().parents[2] / "docs/reference/http-api.md").read_text("utf-8")
DOCUMENT = document(ROUTES, "1.2.3")
SHOWN: dict[str, list[str | None]] = {
    "Errors": ["Problem"],
    "POST /v1/infer": ["InferAnswer"],
    "POST /v1/vision/detection": [None, None],
    "Forms": ["CocoAnswer", "SupervisionAnswer"],
    "Stages": ["Detection"],
    "GET /v1/results": [None],
    "GET /v1/addresses": ["Addresses"],
    "GET /v1/fleet": ["FleetBoxes"],
    "Cameras": ["Camera"],
    "What is considered": ["/v1/cameras/{id}/explanation"],
    "Pipelines": ["/v1/pipelines"],
    "Models": ["/v1/models"],
    "Measuring and importing": ["Job"],
    "Events": ["/v1/events"],
    "The state document": ["State"],
    "The timeline": [None],
    "History": ["History"],
    "The page's WebSocket": ["LiveFrameHeader"],
}
"""By heading, the schemas of its examples, or the route that answers so; None: there is none."""
LEFT_OUT = "..."
"""In an object of an example: it has more than is shown."""


def examples() -> dict[str, list[str]]:
    """Return the examples of the page by heading."""
    found: dict[str, list[str]] = {}
    heading = ""
    for title, block in re.findall(
        r"^##+ ([^\n]+)$|^```json\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL
    ):
        if title:
            heading = title
        else:
            found.setdefault(heading, []).append(block)
    return found


def closed(schema: Any) -> Any:
    """Return a schema whose objects have nothing that it does not name."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    of = {key: closed(value) for key, value in schema.items()}
    return {"additionalProperties": False, **of} if "properties" in of else of


def schema_of(name: str) -> dict[str, Any]:
    """Return a schema by its name, or that of what a route answers."""
    if not name.startswith("/"):
        return {"$ref": f"#/components/schemas/{name}"}
    answer = DOCUMENT["paths"][name]["get"]["responses"]["200"]
    return dict(answer["content"]["application/json"]["schema"])


def mistakes(schema: dict[str, Any], example: str) -> Iterator[str]:
    """Yield what an example has and the schema has not, or the reverse."""
    text = re.sub(r"(?<=[{ ])\.\.\.(?=})", f'"{LEFT_OUT}": 0', example)
    components = {"schemas": closed(DOCUMENT["components"]["schemas"])}
    validator = Draft202012Validator({**closed(schema), "components": components})
    for error in validator.iter_errors(json.loads(text)):
        of = error.instance
        if not (isinstance(of, dict) and LEFT_OUT in of):
            yield f"{error.json_path}: {error.message}"


def test_every_example_is_looked_at() -> None:
    found = {heading: len(blocks) for heading, blocks in examples().items()}
    assert found == {heading: len(names) for heading, names in SHOWN.items()}


@pytest.mark.parametrize(
    ("heading", "number"),
    [(h, n) for h, names in SHOWN.items() for n, name in enumerate(names) if name is not None],
)
def test_an_example_is_what_the_box_sends(heading: str, number: int) -> None:
    name = SHOWN[heading][number]
    assert name is not None
    assert list(mistakes(schema_of(name), examples()[heading][number])) == []


def test_the_timeline_of_a_viewer_has_all_but_its_span() -> None:
    (text,) = examples()["The timeline"]
    answer = text.replace('"type": "timeline", "begins": true', '"from_ms": 0, "to_ms": 0')
    assert answer != text
    assert list(mistakes(schema_of("Timeline"), answer)) == []


def test_what_an_example_lacks_or_has_too_much_is_noticed() -> None:
    one = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    schema = {"type": "object", "properties": {"of": one}, "required": ["of"]}
    assert list(mistakes(schema, '{"of": {"a": 1}}')) == []
    assert list(mistakes(schema, '{"of": {...}}')) == []
    assert "'a' is a required" in next(mistakes(schema, '{"of": {}}'))
    assert "'x' was unexpected" in next(mistakes(schema, '{"of": {"a": 1, "x": 1}}'))


def test_what_the_planner_considers_adds_up() -> None:
    """Of the uplink a fifth stays free, and for an upgrade a tenth more is asked for."""
    (text,) = examples()["What is considered"]
    shown = json.loads(text)
    chosen, larger = shown["options"]
    rate_hz = 10
    for option, margin in ((chosen, 1.0), (larger, 1.1)):
        bits = 8 * option["frame_bytes"] * rate_hz
        assert option["needed_bps"] == pytest.approx(bits / 0.8 * margin)
        assert option["height_px"] * 16 == option["width_px"] * 9
    missing = (larger["needed_bps"] - shown["bandwidth_bps"]) / 1e6
    assert larger["limit"]["missing"] == pytest.approx(missing)
    gain = (larger["accuracy"] - chosen["accuracy"]) * rate_hz
    assert larger["limit"]["gain"] == pytest.approx(gain)
    assert larger["limit"]["price"] == pytest.approx(gain / missing, abs=1e-3)
