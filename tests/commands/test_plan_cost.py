"""`edgebox plan cost` as its users meet it."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from edgebox.commands.root import main

CONFIGS = [
    {"batch": 2, "duration_ms": 100, "hardware": "gpu", "price": 1},
    {"batch": 8, "duration_ms": 250, "hardware": "gpu", "price": 1},
    {"batch": 32, "duration_ms": 800, "hardware": "gpu", "price": 1},
]


def document() -> dict[str, Any]:
    return {
        "slo_ms": 1_400,
        "modules": [
            {"name": "detect", "rate_hz": 198, "configs": CONFIGS},
            {"name": "classify", "rate_hz": 400, "configs": CONFIGS},
            {"name": "plates", "rate_hz": 20, "configs": CONFIGS},
        ],
        "edges": [["detect", "classify"], ["detect", "plates"]],
    }


def run(tmp_path: Path, instance: Any, *options: str) -> Result:
    path = tmp_path / "instance.json"
    path.write_text(instance if isinstance(instance, str) else json.dumps(instance))
    return CliRunner().invoke(main, ["plan", "cost", str(path), *options], catch_exceptions=False)


def test_the_document_adds_up_and_every_path_is_within_the_deadline(tmp_path: Path) -> None:
    result = run(tmp_path, document(), "--json")
    assert result.exit_code == 0, result.output
    answer = json.loads(result.output)
    assert set(answer) == {"cost", "modules", "solve_ms"}
    modules = {of["name"]: of for of in answer["modules"]}
    assert set(modules["detect"]) == {"name", "wcl_ms", "cost", "dummy_hz", "groups"}
    for of, given in zip(answer["modules"], document()["modules"], strict=True):
        served_hz = sum(rate_hz for _, _, rate_hz, _ in of["groups"])
        assert served_hz == pytest.approx(given["rate_hz"] + of["dummy_hz"])
        left_hz, cost = served_hz, 0.0
        for hardware, batch, rate_hz, duration_ms in of["groups"]:
            assert any(
                (c["hardware"], c["batch"], c["duration_ms"]) == (hardware, batch, duration_ms)
                for c in CONFIGS
            )
            assert duration_ms + 1e3 * batch / left_hz <= of["wcl_ms"] + 1e-5
            cost += rate_hz * duration_ms / 1e3 / batch
            left_hz -= rate_hz
        assert cost == pytest.approx(of["cost"])
    assert answer["cost"] == pytest.approx(sum(of["cost"] for of in answer["modules"]))
    for after in ("classify", "plates"):
        assert modules["detect"]["wcl_ms"] + modules[after]["wcl_ms"] <= 1_400


def test_the_worked_example_of_the_paper(tmp_path: Path) -> None:
    instance = {"slo_ms": 1_000, "modules": document()["modules"][:1], "edges": []}
    answer = json.loads(run(tmp_path, instance, "--json").output)
    assert answer["cost"] == pytest.approx(5)
    assert answer["modules"][0]["groups"] == [["gpu", 32, pytest.approx(200), 800]]
    assert answer["modules"][0]["dummy_hz"] == pytest.approx(2)


def test_a_person_gets_a_table(tmp_path: Path) -> None:
    result = run(tmp_path, document())
    assert result.exit_code == 0
    for text in ("who runs what", "detect", "the longest path takes", "solved in"):
        assert text in result.output


def changed(**keys: Any) -> dict[str, Any]:
    return {**document(), **keys}


def module(**keys: Any) -> dict[str, Any]:
    first, *others = document()["modules"]
    return changed(modules=[{**first, **keys}, *others])


@pytest.mark.parametrize(
    ("instance", "said"),
    [
        (
            changed(edges=[["detect", "classify"], ["classify", "detect"]]),
            "edges: must not lead back to a module they come from",
        ),
        (changed(edges=[["plates", "plates"]]), "edges: must not lead back"),
        (changed(edges=[["detect", "cars"]]), "edges[0][1]: must be one of the modules detect"),
        (changed(edges=[["detect"]]), "edges[0]: must be a list of two module names"),
        (changed(slo_ms=0), "slo_ms: must be a number"),
        (changed(modules=[]), "modules: must have at least one entry"),
        (changed(slo=3), "slo: there is no such key"),
        (module(rate_hz="fast"), "modules[0].rate_hz: must be a number"),
        (module(name="plates"), 'modules[2].name: "plates" is there twice'),
        (module(configs=[]), "modules[0].configs: must have at least one entry"),
        (module(configs=[{**CONFIGS[0], "batch": 0}]), "modules[0].configs[0].batch: must be"),
        (changed(slo_ms=150), "no machines meet slo_ms: 150"),
        ("[1, 2]", "must be a JSON object"),
        ("{", "is not JSON"),
    ],
)
def test_a_mistake_is_one_line_with_file_and_key(tmp_path: Path, instance: Any, said: str) -> None:
    result = run(tmp_path, instance)
    assert result.exit_code == 1
    assert said in result.stderr.replace("\n", " ")
    assert "instance.json" in result.stderr.replace("\n", "")


def test_edges_that_are_there_twice_count_once(tmp_path: Path) -> None:
    twice = changed(edges=[*document()["edges"], *document()["edges"]])
    costs = [json.loads(run(tmp_path, of, "--json").output)["cost"] for of in (twice, document())]
    assert costs[0] == pytest.approx(costs[1])
