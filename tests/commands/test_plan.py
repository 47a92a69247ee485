"""`edgebox plan` as its users meet it."""

import json
import random
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from benchmarks.jellyfish.exact import exact_mapping
from benchmarks.jellyfish.instances import jellyfish
from edgebox.commands.root import main
from edgebox.planning.mapping_file import parse_problem
from edgebox.planning.mapping_problem import Mapping, WorkerMapping
from tests.planning.mapping_scene import feasible


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(
        main, ["plan", "adaptation", *map(str, arguments)], catch_exceptions=False
    )


@pytest.fixture
def instance(tmp_path: Path) -> Path:
    problem = jellyfish(random.Random(3), 2, 9)
    path = tmp_path / "instance.json"
    path.write_text(
        json.dumps(
            {
                "workers": problem.workers,
                "max_batch": problem.max_batch,
                "variants": [
                    {
                        "name": of.name,
                        "input_px": of.input_px,
                        "accuracy": of.accuracy,
                        "latency_ms": of.latency_ms,
                    }
                    for of in problem.variants
                ],
                "cameras": [
                    {"id": of.id, "rate_hz": of.rate_hz, "budget_ms": of.budget_ms}
                    for of in problem.cameras
                ],
            }
        )
    )
    return path


def test_the_answer_holds_and_is_the_best_there_is(instance: Path) -> None:
    result = run(instance, "--json")
    assert result.exit_code == 0, result.output
    answer = json.loads(result.output)
    problem = parse_problem(instance.read_bytes(), str(instance))
    variant = {of.name: at for at, of in enumerate(problem.variants)}
    camera = {of.id: at for at, of in enumerate(problem.cameras)}
    mapping = Mapping(
        tuple(
            WorkerMapping(
                variant[of["variant"]], of["batch"], tuple(camera[c] for c in of["cameras"])
            )
            for of in answer["workers"]
        )
    )
    assert feasible(problem, mapping)
    assert answer["served"] == mapping.served > 0
    assert answer["objective"] == pytest.approx(mapping.objective(problem))
    assert answer["solve_ms"] > 0
    best = exact_mapping(problem)
    assert answer["served"] == best.served
    assert answer["objective"] == pytest.approx(best.objective(problem))


def test_a_person_gets_a_table(instance: Path) -> None:
    result = run(instance)
    assert result.exit_code == 0
    assert "who runs what" in result.output
    assert "9 cameras served" in result.output


def test_who_is_left_out_is_named(instance: Path) -> None:
    document = json.loads(instance.read_text())
    document["cameras"][4]["budget_ms"] = [0] * 16
    instance.write_text(json.dumps(document))
    assert "left out: c4" in run(instance).output


def test_a_mistake_is_one_line(instance: Path, tmp_path: Path) -> None:
    document = json.loads(instance.read_text())
    document["cameras"][4]["rate_hz"] = "fast"
    instance.write_text(json.dumps(document))
    result = run(instance)
    assert result.exit_code == 1
    assert "cameras[4].rate_hz: must be a number" in result.stderr.replace("\n", " ")
    missing = run(tmp_path / "nothing.json")
    assert missing.exit_code == 1
    assert "there is no such file" in missing.stderr.replace("\n", " ")
